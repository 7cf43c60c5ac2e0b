"""Records that are the elements of a JSON list, or the lines of an NDJSON text."""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from itertools import accumulate

import msgspec

from callslip.stacks.recognise.base import Recogniser, names_of
from callslip.stacks.records import (
    HEAD_BYTES,
    MAX_RECORD_BYTES,
    WHOLE_RECORD_BYTES,
    ArrayScanner,
    by_record,
)
from callslip.stacks.valid import mended

__all__ = ["Array", "InnerList", "Known", "Lines", "open_list"]

DOMINANT = 0.6
"""A part is what a document is about if it holds so much of its bytes."""

_WINDOW = 256 * 1024
_JSON = "application/json"
_NDJSON = "application/x-ndjson"
_SPACES = b" \t\r\n"
_ANY = msgspec.json.Decoder(msgspec.Raw)


class _Object(msgspec.Struct, gc=False):
    """Any JSON object, of which nothing is kept."""


_OBJECTS = msgspec.json.Decoder(_Object)
_STEP = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len)
_KEY = re.compile(r'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*')
_GAP = re.compile(r"[ \t\r\n]*,")
_BLANK = re.compile(r"[ \t\r\n]*")


class Array(Recogniser):
    """A JSON text whose top value is an array."""

    def __init__(self, head: bytes, kind: str, whole: bytes | None = None) -> None:
        super().__init__("rows" if kind == "rows" else "document", _JSON)
        self.format = "json"
        self.by_record = by_record(head)
        self._scanner = ArrayScanner(MAX_RECORD_BYTES if whole is None else WHOLE_RECORD_BYTES)
        body = head[:HEAD_BYTES]
        spans = ArrayScanner().feed(body)
        if not spans and whole is not None:
            # One record alone fills the head.
            body = whole[:MAX_RECORD_BYTES]
            spans = ArrayScanner().feed(body)
        self.fields = names_of(body[a:b] for a, b in zip(spans[::2], spans[1::2], strict=True))

    def feed(self, block: bytes) -> array[int] | None:
        return None if self._scanner.failed else self._scanner.feed(block)

    def finish(self) -> array[int] | None:
        scanner = self._scanner
        scanner.finish()
        if not scanner.complete:
            # Cut short, or no JSON after all: what was found of it is no count of anything.
            self.kind, self.mime, self.format, self.fields = "text", "text/plain", "", ()
            return None
        self.records = scanner.records
        self.kind = "rows" if scanner.objects and scanner.records else "document"
        if self.kind == "document":
            self.fields = ()
        return None


class Known(Recogniser):
    """The list inside a document, found beforehand: `spans` are its elements'."""

    def __init__(self, path: str, spans: array[int], body: bytes) -> None:
        super().__init__("rows", _JSON)
        self.format = "json"
        self.table = path
        self.records = len(spans) // 2
        self.by_record = body.count(b"\n") + 1 < self.records
        first = zip(spans[:40:2], spans[1:40:2], strict=True)
        self.fields = names_of(body[start:end] for start, end in first)
        self._spans = spans
        self._ends = spans[1::2]
        self._given = 0
        self._size = 0

    def feed(self, block: bytes) -> array[int] | None:
        if self._given == len(self._ends):
            return None
        self._size += len(block)
        upto = bisect_right(self._ends, self._size)
        found = self._spans[2 * self._given : 2 * upto]
        self._given = upto
        return found


class _ListScanner(ArrayScanner):
    """The same for a list that other text follows."""

    def __init__(self, offset: int) -> None:
        super().__init__()
        self._base = offset
        self.end = 0

    def _close(self, end: int) -> None:
        self.end = self._base + end
        self._closed = True
        self._buffer = b""

    def _only_space(self) -> None:
        self._buffer = b""


class InnerList(Recogniser):
    """A list inside a document that streams by: taken for its rows if it turns out to dominate."""

    def __init__(self, head: bytes, path: str, offset: int) -> None:
        super().__init__("document", _JSON)
        self.table = path
        self.by_record = by_record(head[offset:])
        self._scanner = _ListScanner(offset)
        self._offset = offset
        self._size = 0
        self._last = b""
        first = ArrayScanner()
        spans = first.feed(head[offset:HEAD_BYTES])
        pairs = zip(spans[::2], spans[1::2], strict=True)
        self.fields = names_of(head[offset + a : offset + b] for a, b in pairs)

    def feed(self, block: bytes) -> array[int] | None:
        before, self._size = self._size, self._size + len(block)
        self._last = block.rstrip(_SPACES)[-1:] or self._last
        if self._scanner.failed or self._scanner.end:
            return None
        return self._scanner.feed(block[max(self._offset - before, 0) :])

    def finish(self) -> array[int] | None:
        scanner = self._scanner
        scanner.finish()
        if scanner.complete and scanner.objects and self._last == b"}":
            size = scanner.end - self._offset
            if scanner.records >= 2 and size >= DOMINANT * self._size:
                self.kind, self.format, self.records = "rows", "json", scanner.records
                return None
        elif not scanner.complete:
            self.kind, self.mime = "text", "text/plain"
        self.table, self.fields = "", ()
        return None


def open_list(head: bytes) -> tuple[str, int] | None:
    """The list of objects that a document's head breaks off in: its path and where it starts."""
    text = head.decode("latin-1")
    at = text.find("{")
    path: list[str] = []
    for _ in range(4):
        at += 1
        while True:
            key = _KEY.match(text, at)
            if key is None:
                return None
            start = key.end()
            try:
                at = _STEP.raw_decode(text, start)[1]
            except (json.JSONDecodeError, RecursionError):
                break
            gap = _GAP.match(text, at)
            if gap is None:
                return None
            at = gap.end()
        try:
            name = json.loads(head[key.start(1) : key.end(1)].decode("utf-8", "surrogatepass"))
        except ValueError:
            return None
        path.append(name)
        if text[start : start + 1] == "[":
            inner = _BLANK.match(text, start + 1)
            if inner is not None and text[inner.end() : inner.end() + 1] == "{":
                return ".".join(path), start
            return None
        if text[start : start + 1] != "{":
            return None
        at = start
    return None


class Lines(Recogniser):
    """NDJSON: a record a line. Blank lines are none; a few lines that are no JSON do not matter."""

    def __init__(self, head: bytes) -> None:
        super().__init__("rows", _NDJSON)
        self.format = "ndjson"
        self.fields = names_of(line for line in head.split(b"\n") if line.strip())
        self._rest = b""
        self._base = 0
        self._found = 0
        self._bad = 0
        self._given_up = False

    def feed(self, block: bytes) -> array[int] | None:
        if self._given_up:
            return None
        data = self._rest + block if self._rest else block
        found: array[int] = array("Q")
        at = 0
        if not self._base and not self._found:
            at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        while True:
            cut = data.rfind(b"\n", at, at + _WINDOW) + 1 or data.find(b"\n", at) + 1
            if not cut:
                break
            self._take(data[at:cut], self._base + at, found)
            at = cut
        self._rest = data[at:]
        self._base += at
        if len(self._rest) > MAX_RECORD_BYTES or self._bad > 100 + self._found:
            self._given_up = True
        return found

    def finish(self) -> array[int] | None:
        found: array[int] = array("Q")
        if self._rest and not self._given_up:
            self._take(self._rest, self._base, found)
        if self._given_up or self._bad * 50 > self._found or not self._found:
            self.kind, self.mime, self.format, self.fields = "text", "text/plain", "", ()
            return found
        self.records = self._found
        return found

    def _take(self, window: bytes, base: int, found: array[int]) -> None:
        lines = window.removesuffix(b"\n").split(b"\n")
        if b"\r" not in window and _valid(window, len(lines)):
            sizes = list(map(len, lines))
            starts = list(accumulate([size + 1 for size in sizes[:-1]], initial=base))
            flat = array("Q", bytes(16 * len(sizes)))
            flat[::2] = array("Q", starts)
            flat[1::2] = array("Q", [a + b for a, b in zip(starts, sizes, strict=True)])
            found.extend(flat)
            self._found += len(sizes)
            return
        at = base
        for line in lines:
            text = line.strip(_SPACES)
            if text and _valid(text, 1):
                start = at + line.index(text[:1])
                found.extend((start, start + len(text)))
                self._found += 1
            elif text:
                self._bad += 1
            at += len(line) + 1


def _valid(window: bytes, lines: int) -> bool:
    """Whether these lines are JSON, each of them one value."""
    for decoder in (_OBJECTS, _ANY):
        try:
            return len(decoder.decode_lines(window)) == lines
        except (msgspec.DecodeError, RecursionError):
            continue
    whole = mended(window)
    return whole != window and _valid(whole, lines)
