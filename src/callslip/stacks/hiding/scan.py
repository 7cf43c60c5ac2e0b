"""Where a JSON value ends, and what the parts of an object or a list are: byte positions. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = [
    "DECODER",
    "HIDDEN",
    "HIDDEN_JSON",
    "STRING",
    "decoded",
    "items",
    "members",
    "skip",
    "text_of",
    "value_end",
]

HIDDEN: Final = "[hidden]"
"""What stands where a value cannot be shown at all."""

HIDDEN_JSON: Final = f'"{HIDDEN}"'.encode()
STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_QUOTED = re.compile(rb"'(?:[^'\\]|\\.)*+'", re.DOTALL)
DECODER: Final = json.JSONDecoder(strict=False)
"""Takes a line end in a string, too. One for all: json.loads would make one for each value."""

_SPACES = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[^,\]}\r\n]+")
_MARKS = re.compile(rb'["{}\[\]]')


def skip(raw: bytes, at: int) -> int:
    """The first byte from `at` on that is no blank."""
    match = _SPACES.match(raw, at)
    assert match is not None
    return match.end()


def value_end(raw: bytes, at: int, most: int | None = None) -> int | None:
    """Where the value that starts at `at` ends; `at` if there is none; None if its end is not in
    these bytes, or not among the next `most` of them."""
    limit = len(raw) if most is None else at + most
    first = raw[at : at + 1]
    if first in (b'"', b"'"):
        match = (STRING if first == b'"' else _QUOTED).match(raw, at, limit)
        return match.end() if match else None
    if first not in (b"{", b"["):
        match = _SCALAR.match(raw, at)
        return at + len(match[0].rstrip()) if match else at
    depth = 0
    while True:
        mark = _MARKS.search(raw, at, limit)
        if mark is None:
            return None
        char, at = mark[0], mark.end()
        if char == b'"':
            string = STRING.match(raw, at - 1, limit)
            if string is None:
                return None
            at = string.end()
        else:
            depth += 1 if char in b"{[" else -1
            if depth == 0:
                return at


def items(raw: bytes, at: int = 0) -> list[tuple[int, int]] | None:
    """(start, end) of each item of the list at `at`; None if it is not one, whole."""
    found: list[tuple[int, int]] = []
    first = raw[at : at + 1]
    at = skip(raw, at + 1)
    if first != b"[" or raw[at : at + 1] == b"]":
        return [] if first == b"[" else None
    while True:
        end = value_end(raw, at)
        if end is None or end == at:
            return None
        found.append((at, end))
        at = skip(raw, end)
        if raw[at : at + 1] == b"]":
            return found
        if raw[at : at + 1] != b",":
            return None
        at = skip(raw, at + 1)


def members(raw: bytes) -> list[tuple[str, int, int]] | None:
    """(key, start, end) of each member's value of an object; None if it is not one, whole."""
    found: list[tuple[str, int, int]] = []
    at = skip(raw, 1)
    if raw[:1] != b"{" or raw[at : at + 1] == b"}":
        return [] if raw[:1] == b"{" else None
    while True:
        key = STRING.match(raw, at)
        if key is None:
            return None
        at = skip(raw, key.end())
        if raw[at : at + 1] != b":":
            return None
        at = skip(raw, at + 1)
        end = value_end(raw, at)
        if end is None or end == at:
            return None
        found.append((text_of(key[0]), at, end))
        at = skip(raw, end)
        if raw[at : at + 1] == b"}":
            return found
        if raw[at : at + 1] != b",":
            return None
        at = skip(raw, at + 1)


def text_of(token: bytes) -> str:
    """The text of a JSON string; of one that is none, what stands between its quotes."""
    text = decoded(token)
    try:
        found: Any = DECODER.decode(text)
    except ValueError:
        return text[1:-1]
    return found if isinstance(found, str) else text[1:-1]


def decoded(raw: bytes) -> str:
    """The text of UTF-8 that may hold lone surrogates, or bytes that are no text at all."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")
