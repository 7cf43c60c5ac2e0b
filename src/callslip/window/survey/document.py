"""The outline of a JSON document: what stands at the top, and where its largest parts are.

The parts are exact byte ranges that msgspec cuts out without reading them (about 1 GB/s). The
largest is opened first, again and again, until `_BUDGET` bytes have been gone over: bounded,
whatever the nesting. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Literal

from callslip.handle import Shape
from callslip.window.columns import literal
from callslip.window.survey.diff import DiffOutline, diff_of, looks_like_diff
from callslip.window.survey.markup import MarkupOutline, looks_like, markup_of
from callslip.window.survey.media import MediaFacts, media_of_base64
from callslip.window.survey.parts import (
    NAME_CHARS,
    NAMES,
    fields_of,
    kind_of_each,
    many,
    small,
    step,
)

if TYPE_CHECKING:
    from callslip.window.preview.sample import Sample

__all__ = ["DocumentOutline", "Part", "TextPart", "document_of"]

Type = Literal["object", "list", "string", "number", "boolean", "null"]

_BUDGET: Final = 24 * 1024 * 1024
_OPENED: Final = 120

_KEYS: Final = 200
_LARGEST: Final = 6
_AROUND: Final = 30
_SHORT: Final = 4096
_TABLE: Final = 8
_TEXT_CHARS: Final = 800
_JSON = re.compile(r'[\[{][\[{\s]*(?:"|[\]}]|-?\d|true|false|null)')
# Half a surrogate pair, which msgspec refuses and JSON allows. As long as what stands in for it.
_HALF_PAIR = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_BASE64 = re.compile(rb'"(?:data:[\w/+.-]{1,80};base64,)?[A-Za-z0-9+/_-]{200,}')


@dataclass(frozen=True, slots=True)
class Part:
    """One value of a document. `size` is of its JSON text in bytes.

    `count` is how many keys, items or characters it has (-1: not counted). `names` are the first
    keys of an object, or the fields of a list's objects; `each` is what the items of a list (or the
    values of an object) are, if all looked at are of one type. `value` is a scalar's JSON text, cut
    to be shown; `lines` those of a string.
    """

    path: str
    type: Type
    size: int
    count: int = 0
    names: tuple[str, ...] = ()
    each: str = ""
    value: str = ""
    lines: int = 0
    media: MediaFacts | None = None
    holds: str = ""
    """What a string holds, where that is not plain text: `JSON`, `HTML`, …"""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A long string of a document, sampled like a content of its own."""

    path: str
    sample: Sample
    shape: Shape


@dataclass(frozen=True, slots=True)
class DocumentOutline:
    """`root` is the whole; `parts` are its first 200 members, in order, their paths being their
    keys; `largest` the biggest parts further down. `text` is the string that makes up most of the
    document, if one does; `inner` the outline of the JSON in it instead, found at `inner_path`.
    `around` are the members of the objects that most of the document is in, one inside the other:
    `{"result": {"items": […], "next": 7}}` has `result.items` and `result.next` there."""

    root: Part
    parts: tuple[Part, ...] = ()
    around: tuple[Part, ...] = ()
    largest: tuple[Part, ...] = ()
    text: TextPart | None = None
    inner_path: str = ""
    inner: DocumentOutline | None = field(default=None)


def document_of(body: bytes, *, nested: bool = True) -> DocumentOutline | None:
    """The outline of a JSON text; None where it is none, or nested beyond what is read.

    `nested` allows the JSON text inside a string to be opened, once.
    """
    import msgspec

    body = body.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")
    try:
        try:
            return _Walk(body).outline(nested)
        except msgspec.DecodeError:
            whole = _HALF_PAIR.sub(rb"\\ufffd", body)
            if whole == body:
                raise
            return _Walk(whole).outline(nested)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, ValueError):
        return None


class _Walk:
    def __init__(self, body: bytes) -> None:
        self._body = body
        # One look at each byte is always allowed, whatever the size.
        self._budget = _BUDGET + len(body)
        self._opened = 0
        self._inside: dict[str, list[tuple[str, bytes]] | None] = {}

    def outline(self, nested: bool) -> DocumentOutline:
        body = self._body
        members = self._open(body)
        root = self._describe("", body, members)
        if members is None:
            # Nothing to open, but it must be JSON all the same.
            import msgspec

            msgspec.json.decode(body, type=msgspec.Raw)
        longest: tuple[int, str, bytes] = (0, "", b"")
        known: list[tuple[int, str, bytes]] = []
        shares: dict[str, int] = {}
        parts: list[Part] = []
        if body[:1] == b'"':
            longest = (len(body), "", body)
        heap: list[tuple[int, int, str, bytes, list[tuple[str, bytes]] | None]] = []
        order = 0
        for path, raw in (members or [])[:_KEYS]:
            inner = None
            if raw[:1] in b"[{" and len(raw) <= _SHORT:
                inner = self._open(raw)
            parts.append(self._describe(path, raw, inner))
        around = self._around(members or [], body)
        if members is not None:
            heappush(heap, (-len(body), order, "", body, members))
        while heap and self._opened < _OPENED:
            _, _, path, raw, ready = heappop(heap)
            inside = ready or self._inside.get(path) or self._open(raw)
            if inside is None:
                continue
            is_list = raw[:1] == b"["
            biggest = max((len(part) for _, part in inside), default=0)
            shares[path] = biggest
            if is_list and len(inside) > _TABLE and biggest * 2 < len(raw) and path:
                continue
            for name, part in _biggest(inside, 16):
                order += 1
                below = step(path, name, is_list)
                if part[:1] in b"[{":
                    heappush(heap, (-len(part), order, below, part, None))
                elif part[:1] == b'"' and len(part) > longest[0]:
                    longest = (len(part), below, part)
                known.append((len(part), below, part))
        outline = DocumentOutline(root, tuple(parts), around, self._largest(known, shares))
        size, path, raw = longest
        if size >= _TEXT_CHARS and size * 5 >= len(body) * 2:
            return _with_text(outline, path, raw, nested)
        return outline

    def _around(self, members: list[tuple[str, bytes]], body: bytes) -> tuple[Part, ...]:
        found: list[Part] = []
        path, size, is_list = "", len(body), body[:1] == b"["
        for _ in range(_OPENED):
            name, raw = max(members, key=lambda one: len(one[1]), default=("", b""))
            if len(raw) * 10 < size * 6 or raw[:1] not in (b"{", b"["):
                break
            path, size = step(path, name, is_list), len(raw)
            is_list = raw[:1] == b"["
            inside = self._inside[path] = self._open(raw)
            if inside is None or (is_list and len(inside) > _TABLE) or len(found) >= _AROUND:
                break
            members = inside
            # Where it only wraps one thing, that thing is what is told of.
            if not is_list and 2 <= len(members) <= _AROUND:
                found += [self._describe(step(path, key, False), raw, None) for key, raw in members]
        return tuple(found)

    def _open(self, raw: bytes) -> list[tuple[str, bytes]] | None:
        """The members of an object or list, by key or place; None if it is none or has too many."""
        import msgspec

        if raw[:1] not in (b"{", b"[") or self._budget < len(raw) or many(raw):
            return None
        if len(raw) > _SHORT:
            self._opened += 1
            self._budget -= len(raw)
        if raw[:1] == b"{":
            # Views, not copies: only what is described is copied out.
            found = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
            return [(key, bytes(part)) for key, part in found.items()]
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        return [(str(at), bytes(part)) for at, part in enumerate(items)]

    def _largest(
        self, known: Iterable[tuple[int, str, bytes]], shares: dict[str, int]
    ) -> tuple[Part, ...]:
        """The biggest parts below the top level; one that is mostly one part of it gives way."""
        least = max(len(self._body) // 20, 200)
        chosen: list[Part] = []
        for size, path, raw in sorted(known, key=lambda one: (-one[0], one[1])):
            if size < least or len(chosen) == _LARGEST:
                break
            if shares.get(path, 0) * 10 >= size * 7:
                continue
            if any(mark in path for mark in ".["):
                chosen.append(self._describe(path, raw, None))
        return tuple(chosen)

    def _describe(self, path: str, raw: bytes, inside: list[tuple[str, bytes]] | None) -> Part:
        first = raw[:1]
        if first == b"{":
            part = Part(path, "object", len(raw), -1)
            if inside is None:
                inside = self._open(raw)
            if inside is None:
                return part
            names = tuple(name[:NAME_CHARS] for name, _ in inside[:NAMES])
            each = kind_of_each([part for _, part in inside]) if len(inside) > _TABLE else ""
            return replace(part, count=len(inside), names=names, each=each, value=small(raw))
        if first == b"[":
            part = Part(path, "list", len(raw), -1)
            if inside is None:
                inside = self._open(raw)
            if inside is None:
                flat = not any(mark in raw[1:] for mark in (b'"', b"[", b"{"))
                count = raw.count(b",") + 1 if flat else -1
                return replace(part, count=count, each="number" if flat else "")
            each = kind_of_each([part for _, part in inside])
            names = fields_of([raw for _, raw in inside[:20]]) if each == "object" else ()
            return replace(part, count=len(inside), names=names, each=each, value=small(raw))
        if first == b'"':
            return _string(path, raw)
        kind: Type = "null" if first == b"n" else "boolean" if first in b"tf" else "number"
        text = raw.decode("utf-8", "replace")
        return Part(path, kind, len(raw), value=text if len(text) <= 60 else text[:59] + "…")


def _string(path: str, raw: bytes) -> Part:
    if len(raw) > 200 and _BASE64.match(raw):
        media = media_of_base64(raw[1:65_537].decode("ascii", "replace").rstrip('"'), len(raw) - 2)
        if media is not None:
            return Part(path, "string", len(raw), len(raw) - 2, media=media)
    text = _text(raw)
    part = Part(path, "string", len(raw), len(text), lines=_lines(text))
    if len(text) <= 200 or len(text) > 4 and text[:1] not in "[{<":
        return replace(part, value=literal(text[:61]))
    return replace(part, value=literal(text[:61]), holds=_holds(text))


def _holds(text: str) -> str:
    start = text[:1000].lstrip()
    if text[-100:].rstrip()[-1:] in ("]", "}") and _JSON.match(start):
        return "JSON"
    if looks_like(text[:4000].encode("utf-8", "replace")) == "text/html":
        return "HTML"
    return ""


def _text(raw: bytes) -> str:
    import msgspec

    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # Half a surrogate pair, which msgspec refuses and JSON allows.
        return str(json.loads(raw.decode("utf-8", "replace")))


def _with_text(outline: DocumentOutline, path: str, raw: bytes, nested: bool) -> DocumentOutline:
    """The outline with what its longest string holds."""
    if _string(path, raw).media is not None:
        return outline
    from callslip.window.preview.sample import Sampler

    text = _text(raw)
    bare = text.strip()
    body = text.encode("utf-8", "surrogatepass")
    if nested and bare[:1] in ("[", "{"):
        inner = document_of(body, nested=False)
        rows = _rows(body, text) if inner is not None and inner.root.each == "object" else None
        if rows is not None:
            return replace(outline, text=replace(rows, path=path))
        if inner is not None:
            return replace(outline, inner=inner, inner_path=path)
    sampler = Sampler("str")
    sampler.add(body)
    sample = sampler.finish()
    found: DiffOutline | MarkupOutline | None = None
    mime = "text/plain"
    head = body[: 16 * 1024]
    if looks_like_diff(head):
        mime, found = "text/x-diff", diff_of(body)
    elif markup := looks_like(head):
        mime, found = markup, markup_of(body, markup)
    if found is not None:
        sample = replace(sample, outline=found)
    shape = Shape("text", mime, size=len(body), chars=len(text), lines=_lines(text))
    return replace(outline, text=TextPart(path, sample, shape))


def _rows(body: bytes, text: str) -> TextPart | None:
    """A text that is a JSON array of objects, as rows."""
    import msgspec

    from callslip.window.preview.sample import Sample
    from callslip.window.profile import Profiler

    if many(body):
        return None
    records = list(map(bytes, msgspec.json.decode(body, type=list[msgspec.Raw])))
    if len(records) < 3:
        return None
    profiler = Profiler()
    profiler.add(records)
    sample = Sample(whole=False, profile=profiler.finish())
    shape = Shape("rows", "application/json", len(body), len(text), _lines(text))
    return TextPart("", sample, shape)


def _lines(text: str) -> int:
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def _biggest(members: list[tuple[str, bytes]], most: int) -> list[tuple[str, bytes]]:
    if len(members) <= most:
        return members
    ranked = sorted(range(len(members)), key=lambda i: -len(members[i][1]))[:most]
    return [members[i] for i in sorted(ranked)]
