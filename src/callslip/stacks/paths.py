"""Paths into a JSON text: `info.version`, `items[3].name`, `["a key"]`, `/items/3/name`.

What is found is the exact bytes of the value. Places in lists count from 0, as everywhere in JSON.

What may live here: pure functions over JSON text. Nothing is decoded but what a path goes through.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

import msgspec

from callslip.stacks.records import ArrayScanner

__all__ = ["Dead", "Found", "chars_of", "find", "items_of", "members_of", "step", "string_of"]

_SPACES: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
_PLAIN_KEY = re.compile(r"[^\s.\[\]\"'/~]+")
_QUOTED = re.compile(r"""\[\s*("(?:[^"\\]|\\.)*"|'[^']*')\s*\]""")
_INDEX = re.compile(r"\[\s*(-?\d{1,12})\s*\]|\.?(-?\d{1,12})(?=$|[.\[/])")
_KEY = re.compile(r'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*')
_MARK = re.compile(r"[ \t\r\n]*([,}])")
_STEP = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len)
_OBJECT: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Found:
    """A value: its exact bytes, and its path as it would be written."""

    raw: bytes
    path: str


@dataclass(frozen=True, slots=True)
class Dead:
    """A path that leads nowhere: how far it came, and what there is instead.

    `names` are the keys of the object at `path`; `size` the length of the list; both empty where
    it is neither.
    """

    path: str
    names: tuple[str, ...] = ()
    size: int | None = None


def step(path: str, key: str | int) -> str:
    """`path` with one step more."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if _PLAIN_KEY.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"


def find(body: bytes, path: str) -> Found | Dead:
    """The value at a path. A string that holds JSON is opened where the path goes on inside it.

    Keys are taken as they stand first, so `a.b` finds a key of that name before it goes through
    `a`; where no key fits, one that differs only in case does.
    """
    raw = body.removeprefix(_BOM).strip(_SPACES)
    rest = path.strip()
    if rest.startswith("$"):
        rest = rest[1:].removeprefix(".")
    pointer = rest.startswith("/")
    here = ""
    while rest not in ("", "/") or (pointer and rest == "/"):
        first = raw[:1]
        if first == b'"':
            opened = string_of(raw)
            inner = opened.encode("utf-8", "surrogatepass").strip(_SPACES)
            if inner[:1] not in (b"{", b"["):
                return Dead(here)
            raw = inner
            continue
        if first == b"{":
            members = members_of(raw)
            if members is None:
                return Dead(here)
            taken = _pointed(rest, members) if pointer else _keyed(rest, members)
            if taken is None:
                return Dead(here, tuple(members))
            key, rest = taken
            raw, here = bytes(members[key]), step(here, key)
        elif first == b"[":
            items = items_of(raw)
            if items is None:
                return Dead(here)
            place = _placed(rest, pointer)
            if place is None or not -len(items) <= place[0] < len(items):
                return Dead(here, size=len(items))
            at, rest = place
            at %= len(items)
            raw, here = bytes(items[at]), step(here, at)
        else:
            return Dead(here)
    return Found(raw, here or "$")


def members_of(raw: bytes) -> dict[str, msgspec.Raw] | None:
    """The members of a JSON object, each the very bytes that stand there; None if it is none, or
    nested beyond what is read. A key is named as it is shown: U+FFFD for what is no UTF-8."""
    try:
        return _OBJECT.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _stepped(raw)


def _stepped(raw: bytes) -> dict[str, msgspec.Raw] | None:
    """The same, one member after the other: for keys that are beyond the quick way."""
    begin = len(raw) - len(raw.lstrip(_SPACES))
    if raw[begin : begin + 1] != b"{":
        return None
    text = raw.decode("latin-1")  # a character for each byte
    found: dict[str, msgspec.Raw] = {}
    at = begin + 1
    while True:
        key = _KEY.match(text, at)
        if key is None:
            return None
        try:
            name = json.loads(chars_of(raw[key.start(1) : key.end(1)]))
            end = _STEP.raw_decode(text, key.end())[1]
        except (ValueError, RecursionError):
            return None
        found[name] = msgspec.Raw(raw[key.end() : end])
        mark = _MARK.match(text, end)
        if mark is None:
            return None
        at = mark.end()
        if mark[1] == "}":
            return None if raw[at:].strip(_SPACES) else found


def items_of(raw: bytes) -> list[msgspec.Raw] | None:
    """The elements of a JSON list, as `members_of`."""
    try:
        return _LIST.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        scanner = ArrayScanner(len(raw) + 1)
        spans = scanner.feed(raw)
        scanner.finish()
    if not scanner.complete:
        return None
    return [msgspec.Raw(raw[a:b]) for a, b in zip(spans[::2], spans[1::2], strict=True)]


def string_of(raw: bytes) -> str:
    """The text of a JSON string."""
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = json.loads(chars_of(raw), strict=False)
        return found if isinstance(found, str) else ""


def chars_of(raw: bytes) -> str:
    """Stored bytes as text: half a surrogate pair as it is, what is no UTF-8 marked with U+FFFD."""
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")


def _keyed(rest: str, members: dict[str, msgspec.Raw]) -> tuple[str, str] | None:
    quoted = _QUOTED.match(rest)
    if quoted is not None:
        inside = quoted[1]
        try:
            key = json.loads(inside) if inside[0] == '"' else inside[1:-1]
        except ValueError:
            return None
        return (key, _following(rest[quoted.end() :])) if key in members else None
    rest = rest.removeprefix(".")
    if rest in members:
        return rest, ""
    # The longest key that the path goes on from; keys are looked up, not looked through.
    ends = [m.start() for m in re.finditer(r"[.\[/]", rest)]
    for end in reversed(ends[:64]):
        if rest[:end] in members:
            return rest[:end], _following(rest[end:])
    for end in (*reversed(ends[:8]), len(rest)):
        low = rest[:end].lower()
        close = [key for key in members if key.lower() == low] if low else []
        if len(close) == 1:
            return close[0], _following(rest[end:])
    return None


def _following(rest: str) -> str:
    return rest[1:] if rest[:1] in (".", "/") else rest


def _pointed(rest: str, members: dict[str, msgspec.Raw]) -> tuple[str, str] | None:
    token, slash, after = rest[1:].partition("/")
    key = token.replace("~1", "/").replace("~0", "~")
    return (key, slash + after) if key in members else None


def _placed(rest: str, pointer: bool) -> tuple[int, str] | None:
    if pointer:
        token, slash, after = rest[1:].partition("/")
        return (int(token), slash + after) if re.fullmatch(r"\d{1,12}", token) else None
    index = _INDEX.match(rest)
    if index is None:
        return None
    return int(index[1] or index[2]), _following(rest[index.end() :])
