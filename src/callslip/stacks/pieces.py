"""A stream, as the blocks of bytes that are stored of it.

What may live here: turning what an iterator or a file object yields into bytes, in bounded memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from callslip.handle import Source
from callslip.limits import STREAM_BLOCK_BYTES
from callslip.stacks import exact
from callslip.stacks.plain import dump_deep, dump_line, is_plain
from callslip.stacks.shown import shown

__all__ = ["Pieces", "join_items", "one_line"]


class Pieces:
    """A file object or an iterable, as canonical blocks of bytes.

    Iterate it once: each block has up to about `block_bytes` (one item of the stream that is longer
    comes in several). `source` is known before the first block; `form` and `twin` are settled when
    the iteration has ended:

    - only `str` items: form "str", the texts joined; `load` gives one string;
    - only bytes-like items, or `str` mixed with bytes: form "bytes", joined; `load` gives bytes;
    - anything else: form "items", one JSON text a line; `load` gives the list of the items. Where
      the stream began as text, that text is the list's first item.

    An error that the stream raises goes to whoever iterates.
    """

    def __init__(self, stream: Any, block_bytes: int = STREAM_BLOCK_BYTES) -> None:
        self.form = ""
        self.source: Source = "str"
        self.twin: bytes | None = None
        self._block = max(block_bytes, 4)
        self._twins: dict[str, bytes] = {}
        self._lead: dict[str, Any] = {}
        self._lines = 0
        self._size = 0
        self._last = b""
        self._items = self._open(stream)
        self._first: list[Any] = []
        for item in self._items:
            self._first.append(item)
            break
        if self._first and _is_bytes(self._first[0]):
            self.source = "bytes"

    def _open(self, stream: Any) -> Iterator[Any]:
        if callable(getattr(type(stream), "read", None)):
            return self._read(stream)
        iterable: Iterable[Any] = stream
        return iter(iterable)

    def _read(self, stream: Any) -> Iterator[Any]:
        while True:
            part = stream.read(self._block)
            if part is None:
                # A non-blocking stream: nothing yet is not the end of it.
                raise BlockingIOError("the stream has nothing to read yet; give a blocking one")
            if not self.form:
                # Even an empty file says whether it is text.
                self.form = "str" if isinstance(part, str) else "bytes"
                self.source = "str" if self.form == "str" else "bytes"
            if not part:
                return
            yield part

    def __iter__(self) -> Iterator[bytes]:
        held: list[bytes] = []
        size = 0
        for part in self._parts():
            if not part:
                continue
            self._size += len(part)
            self._last = part[-1:]
            held.append(part)
            size += len(part)
            if size >= self._block:
                block = b"".join(held)
                held, size = [], 0
                for start in range(0, len(block), self._block):
                    yield block[start : start + self._block]
        if held:
            yield b"".join(held)
        self.form = self.form or "items"
        if self._twins or self._lead:
            self.twin = msgspec.msgpack.encode({"twins": self._twins, **self._lead})

    def _parts(self) -> Iterator[bytes]:
        for item in self._chained():
            if self.form != "items":
                part = self._joined(item)
                if part is not None:
                    yield part
                    continue
                yield from self._change(item)
            yield self._line(item)

    def _chained(self) -> Iterator[Any]:
        while self._first:
            yield self._first.pop()
        yield from self._items

    def _joined(self, item: Any) -> bytes | None:
        """The bytes of an item that goes on in the form so far; None if it cannot."""
        if issubclass(type(item), str):
            self.form = self.form or "str"
            return str.encode(item, "utf-8", "surrogatepass")
        if not _is_bytes(item):
            return None
        part = bytes(item)
        if self.source == "str" and self.form:
            # Readers see this stream as text by now, so what joins it must be text.
            try:
                part.decode()
            except UnicodeDecodeError:
                return None
        self.form = "bytes"
        return part

    def _change(self, item: Any) -> Iterator[bytes]:
        """From here on, one item a line; what came before, if anything, becomes one item."""
        if self.form and self._size:
            gap = b"" if self._last == b"\n" else b"\n"
            self._lead = {
                "text": self._size,
                "bytes": self.form == "bytes",
                "skip": self._size + len(gap),
            }
            yield gap
        self.form = "items"

    def _line(self, item: Any) -> bytes:
        line, twin = one_line(item)
        if twin is not None:
            self._twins[str(self._lines)] = twin
        self._lines += 1
        return line + b"\n"


def _is_bytes(item: object) -> bool:
    return issubclass(type(item), (bytes, bytearray, memoryview))


def one_line(value: object) -> tuple[bytes, bytes | None]:
    """A value as one line of JSON (no newline), and its exact form if JSON is not exact."""
    if is_plain(value):
        try:
            return dump_line(value), None
        except ValueError:
            pass  # an integer of more digits than Python writes
    view = shown(value)
    return dump_deep(view.tree, lines=False), exact.encode(value, view.types)


def join_items(body: bytes, twin: bytes | None) -> list[Any]:
    """The list of items that a stream of form "items" was, from its body and its twin."""
    notes = msgspec.msgpack.decode(twin) if twin is not None else {}
    twins: dict[int, bytes] = {int(k): v for k, v in notes.get("twins", {}).items()}
    text: int | None = notes.get("text")
    found: list[Any] = []
    if text is not None:
        lead = body[:text]
        found.append(lead if notes["bytes"] else lead.decode("utf-8", "surrogatepass"))
        body = body[notes["skip"] :]
    for number, line in enumerate(body.split(b"\n")[:-1]):
        exactly = twins.get(number)
        if exactly is not None:
            found.append(exact.decode(exactly))
        else:
            found.append(json.loads(line.decode("utf-8", "surrogatepass")))
    return found
