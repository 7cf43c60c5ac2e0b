"""What a JSON document is about: one list of objects, one long text, or columns side by side.

A part is what the document is about if it holds `DOMINANT` of its bytes. It is looked for from the
top, down the largest part of each level, so that `{"result": {"items": […]}, "next": 7}` and a
tool's `{"content": [{"type": "text", "text": "…"}]}` are found alike.
"""

from __future__ import annotations

import json
from array import array
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from callslip.stacks.paths import items_of, members_of, step, string_of
from callslip.stacks.recognise.lists import DOMINANT
from callslip.stacks.recognise.media import is_base64
from callslip.stacks.records import ArrayScanner
from callslip.stacks.valid import is_json

__all__ = ["About", "about", "transposed"]

_DEPTH: Final = 6
_LONG: Final = 1000
"""A string of one line is read in its document's stead only if it is longer."""
_TAKEN_APART: Final = 200
_SPACES: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class About:
    """`list`: `spans` are the offsets of its objects. `text`: `text` is the string. `columns`: the
    whole is one, `names` are its fields and `count` its rows. `path` is where it stands."""

    what: Literal["list", "text", "columns"]
    path: str = ""
    spans: array[int] | None = None
    text: bytes = b""
    names: tuple[str, ...] = ()
    count: int = 0


def about(body: bytes) -> About | None:
    """What the document `body` is about; None where it is about more than one thing, or is a list
    of several itself."""
    raw = body.removeprefix(b"\xef\xbb\xbf").strip(_SPACES)
    offset = body.find(raw[:1])
    path = ""
    total = len(raw)
    for depth in range(_DEPTH):
        first = raw[:1]
        if first == b'"':
            return _text(raw, path)
        if first == b"{":
            members = members_of(raw)
            if not members:
                return None
            if depth == 0:
                columns = _columns(members)
                if columns is not None:
                    return columns
            key = _copied(members) or max(members, key=lambda name: len(memoryview(members[name])))
            inner = bytes(members[key])
            if _copied(members):
                total = len(inner)
            path = step(path, key)
        elif first == b"[":
            found = _list(raw, offset, depth, total)
            if isinstance(found, array):
                return About("list", path, spans=found)
            if found is None:
                return None
            at, inner = found
            path = step(path, at)
        else:
            return None
        if len(inner) < DOMINANT * total:
            return None
        if inner[:1] in b"[{":
            offset += raw.find(inner)
        raw = inner
    return None


def _list(raw: bytes, offset: int, depth: int, total: int) -> array[int] | tuple[int, bytes] | None:
    """The spans of a list of objects; or the one element that the list is about."""
    scanner = ArrayScanner()
    spans = scanner.feed(raw)
    scanner.finish()
    if not scanner.complete or not scanner.records:
        return None
    if scanner.records <= _TAKEN_APART and (depth or scanner.records == 1):
        sizes = [end - start for start, end in zip(spans[::2], spans[1::2], strict=True)]
        largest = max(range(len(sizes)), key=sizes.__getitem__)
        if sizes[largest] >= DOMINANT * total:
            return largest, raw[spans[2 * largest] : spans[2 * largest + 1]]
    if depth == 0 or not scanner.objects or scanner.records < 2:
        return None
    return array("Q", [at + offset for at in spans]) if offset else spans


def _text(raw: bytes, path: str) -> About | None:
    text = string_of(raw).encode("utf-8", "surrogatepass")
    opening = text.lstrip(_SPACES)[:1]
    if opening in (b"{", b"["):
        with suppress(RecursionError):
            if is_json(text):
                return About("text", path or "$", text=text)
    if not path or is_base64(text) or (b"\n" not in text and len(text) < _LONG):
        return None
    return About("text", path, text=text)


def _copied(members: dict[str, msgspec.Raw]) -> str:
    """The structured half of a tool's answer (MCP) whose text half is empty or says the same."""
    structured = members.get("structuredContent")
    content = members.get("content")
    if structured is None or content is None or bytes(structured)[:1] != b"{":
        return ""
    try:
        blocks = items_of(bytes(content))
        if blocks is None:
            return ""
        if not blocks:
            return "structuredContent"
        block = members_of(bytes(blocks[0])) or {}
        if len(blocks) > 1 or "text" not in block:
            return ""
        text = string_of(bytes(block["text"]))
        same = _says(bytes(structured), text)
    except (ValueError, RecursionError):
        return ""
    return "structuredContent" if same else ""


def _says(structured: bytes, text: str) -> bool:
    """Whether an object says what a text does: as JSON, or as its one string."""
    value = json.loads(structured)
    if list(value.values()) == [text]:
        return True
    return text.lstrip()[:1] == "{" and bool(json.loads(text) == value)


# --- columns -------------------------------------------------------------------------------------


def _columns(members: dict[str, msgspec.Raw]) -> About | None:
    """`{"a": [1, 2], "b": [3, 4]}`, or `{"a": {"0": 1, "1": 2}, …}` as pandas writes it: at least
    two fields, and as many scalars in each."""
    if len(members) < 2 or {bytes(memoryview(raw)[:1]) for raw in members.values()} not in (
        {b"["},
        {b"{"},
    ):
        return None
    count = -1
    index: list[str] | None = None
    for raw in members.values():
        parts = _parts(bytes(raw))
        if parts is None:
            return None
        keys, items = parts
        if count < 0:
            count, index = len(items), keys
        if len(items) != count or keys != index:
            return None
        if any(bytes(memoryview(item)[:1]) in (b"[", b"{") for item in items):
            return None
    if count < 2 or (index is not None and index != [str(n) for n in range(count)]):
        return None
    return About("columns", names=tuple(members), count=count)


def _parts(raw: bytes) -> tuple[list[str] | None, list[msgspec.Raw]] | None:
    if raw[:1] == b"[":
        items = items_of(raw)
        return None if items is None else (None, items)
    members = members_of(raw)
    return None if members is None else (list(members), list(members.values()))


def transposed(body: bytes) -> bytes:
    """The rows of a document that is columns side by side, as NDJSON; every value exact."""
    members = members_of(body.removeprefix(b"\xef\xbb\xbf")) or {}
    names = [json.dumps(name, ensure_ascii=False).encode("utf-8", "replace") for name in members]
    columns = [(_parts(bytes(raw)) or (None, []))[1] for raw in members.values()]
    rows = zip(*[map(bytes, column) for column in columns], strict=True)
    return b"".join(
        b"{%b}\n" % b",".join(b"%b:%b" % pair for pair in zip(names, row, strict=True))
        for row in rows
    )
