"""Values within a text, in JSON or in Python's own form: where one ends, and what it is. Pure."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from callslip.stacks.hiding.scan import decoded, skip

__all__ = ["CONTAINERS", "NO_VALUE", "hides_to", "literal", "literal_end"]

CONTAINERS: Final = (b"{", b"[", b"(")
NO_VALUE: Final = object()
"""What `literal` says of bytes that are no literal."""

_LITERAL_MOST: Final = 64 * 1024
_DOUBLE = re.compile(rb'"(?:[^"\\\n]|\\.)*+"', re.DOTALL)
_SINGLE = re.compile(rb"'(?:[^'\\\n]|\\.)*+'", re.DOTALL)
_QUOTED = {b'"': _DOUBLE, b"'": _SINGLE}
_PREFIXED = re.compile(rb"[rbuRBU]{0,2}([\"'])")
_MARKS = re.compile(rb"[\"'{}\[\](),\r\n]")
_LINE_END = re.compile(rb"[\r\n]|\Z")
_GOES_ON = re.compile(rb"(?:\r\n|[\r\n])(?:[ \t]|[\]}\[{)(\"'])[^\r\n]*")


def literal_end(raw: bytes, at: int, most: int) -> int | None:
    """Where the value that starts at `at` ends; `at` if there is none; None if it does not end among
    the next `most` bytes. No string goes on behind a line's end; strings side by side are one."""
    limit = min(len(raw), at + most)
    start = at
    prefixed = _PREFIXED.match(raw, at)
    if prefixed is not None:
        return _strings_end(raw, at, limit)
    depth = 0
    while True:
        mark = _MARKS.search(raw, at, limit)
        if mark is None:
            return None if depth or limit < len(raw) else start + len(raw[start:limit].rstrip())
        char, at = mark[0], mark.end()
        if char in _QUOTED:
            string = _QUOTED[char].match(raw, at - 1, limit)
            if string is None:
                return None
            at = string.end()
        elif char in b"{[(":
            depth += 1
        elif depth == 0:  # what ends a bare word
            return start + len(raw[start : at - 1].rstrip())
        elif char in b"}])":
            depth -= 1
            if depth == 0:
                return at


def _strings_end(raw: bytes, at: int, limit: int) -> int | None:
    end = at
    while (prefixed := _PREFIXED.match(raw, at)) is not None:
        string = _QUOTED[prefixed[1]].match(raw, prefixed.end() - 1, limit)
        if string is None:
            return None
        end = string.end()
        at = skip(raw, end)
        if _PREFIXED.match(raw, at):
            colon = skip(raw, _after(raw, at))
            if raw[colon : colon + 1] == b":":
                break  # a key: a comma was forgotten
    return end


def _after(raw: bytes, at: int) -> int:
    prefixed = _PREFIXED.match(raw, at)
    assert prefixed is not None
    string = _QUOTED[prefixed[1]].match(raw, prefixed.end() - 1)
    return string.end() if string else at


def literal(raw: bytes) -> Any:
    """The value of bytes in Python's own form; `NO_VALUE` if they are none, or too many."""
    if len(raw) > _LITERAL_MOST:
        return NO_VALUE
    try:
        return ast.literal_eval(decoded(raw).strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return NO_VALUE


def hides_to(raw: bytes, start: int, end: int | None) -> int:
    """Up to where a value is hidden that does not end as it should: to the end of the line in which
    it seems to (`end`), else of its own and of those that look as if they went on with it."""
    match = _LINE_END.search(raw, start if end is None else end)
    at = match.start() if match else len(raw)
    while raw[start : start + 1] in CONTAINERS and (more := _GOES_ON.match(raw, at)):
        at = more.end()
    return at
