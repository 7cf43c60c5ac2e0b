"""Plain values: what JSON has, as JSON has it. Is it one, and how it is written, line by line.

A plain value is built of exactly `dict` with `str` keys, `list`, `str`, `int`, finite `float`,
`bool` and `None` and is not nested deeper than `PLAIN_DEPTH`; so it has no cycle. Parts of it may
occur twice as long as that does not make its JSON much larger than it is itself.

Layout. A reader addresses lines, so the text has some: the elements of a list stand one a line; the
keys of a dict stand one a line, and where the value of a key is a list of containers, its elements
stand one a line. Everything else is compact.

What may live here: pure functions over plain values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, compress
from math import isfinite
from typing import Any, Final

import msgspec

__all__ = ["PLAIN_DEPTH", "VIEW_DEPTH", "dump", "dump_deep", "dump_line", "is_plain"]

PLAIN_DEPTH: Final = 100
"""Deeper values take the other way, so that no caller's stack decides how a value is stored."""

VIEW_DEPTH: Final = 400
"""What lies deeper is written as a string of JSON: every JSON parser can read the text."""

_REPEATS: Final = 1_000_000
"""A value of more parts than this (counted each time they occur) in which a container occurs twice
is not plain."""

_SCALARS: Final = frozenset({str, int, bool, type(None)})
_PLAIN: Final = _SCALARS | {float, dict, list}
_TEXT: Final = frozenset({str})
_ENCODER = msgspec.json.Encoder()


def is_plain(value: object) -> bool:
    """Whether `value` is plain. Linear in its size; follows no cycle and no deep nest to its end."""
    if type(value) not in (dict, list):
        return type(value) in _SCALARS or (type(value) is float and isfinite(value))
    # Level by level, so that the work on one is a few passes in C over all of its containers.
    dicts = [value] if type(value) is dict else []
    lists = [value] if type(value) is list else []
    passed: list[list[Any]] = []
    seen: set[int] = set()
    nodes = 0
    for _ in range(PLAIN_DEPTH):
        nodes += sum(map(len, dicts)) + sum(map(len, lists))
        passed += (dicts, lists)
        if nodes > _REPEATS:
            # From here on nothing may occur twice: else this loop, and the JSON, could be endless.
            while passed:
                level = passed.pop()
                before = len(seen)
                seen.update(map(id, level))
                if len(seen) - before != len(level):
                    return False
        if not _TEXT.issuperset(map(type, chain.from_iterable(dicts))):
            return False
        items = list(chain.from_iterable(map(dict.values, dicts)))
        items += chain.from_iterable(lists)
        types = list(map(type, items))
        kinds = set(types)
        if not kinds <= _PLAIN:
            return False
        if float in kinds and not all(map(isfinite, _of(float, types, items))):
            return False
        dicts = _of(dict, types, items) if dict in kinds else []
        lists = _of(list, types, items) if list in kinds else []
        if not dicts and not lists:
            return True
    return False


def _of(kind: type, types: list[type], items: list[Any]) -> list[Any]:
    return list(compress(items, [found is kind for found in types]))


def dump(value: Any) -> bytes:
    """The JSON of a plain value, laid out in lines.

    Raises ValueError for an integer of more digits than the interpreter writes (4,300).
    """
    try:
        if type(value) is list and value:
            return b"[%b]" % _lines(value)
        if type(value) is dict and value:
            return b"{%b}" % b",\n".join(_members(value))
        return _encode(value)
    except RecursionError:  # the caller's own stack is nearly used up
        return dump_deep(value)


def dump_line(value: Any) -> bytes:
    """The JSON of a plain value in one line. Raises as `dump`."""
    try:
        return _encode(value)
    except RecursionError:
        return dump_deep(value, lines=False)


def _encode(value: Any) -> bytes:
    try:
        return _ENCODER.encode(value)
    except (OverflowError, UnicodeEncodeError):
        # An integer of more than 64 bits, or a lone surrogate, which goes out as it is.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8", "surrogatepass")


def _lines(items: Sequence[Any]) -> bytes:
    try:
        # JSON escapes newlines, so the only ones are those between the lines.
        return _ENCODER.encode_lines(items)[:-1].replace(b"\n", b",\n")
    except (OverflowError, UnicodeEncodeError):
        return b",\n".join(map(_encode, items))


def _members(value: dict[str, Any]) -> Iterator[bytes]:
    for key, item in value.items():
        if _is_table(item):
            yield b"%b:[%b]" % (_encode(key), _lines(item))
        else:
            yield b"%b:%b" % (_encode(key), _encode(item))


def _is_table(value: object) -> bool:
    return type(value) is list and bool(value) and {dict, list}.issuperset(map(type, value))


def dump_deep(value: Any, lines: bool = True) -> bytes:
    """The same text for plain values nested to any depth; what lies deeper than `VIEW_DEPTH` is
    written as one string, which holds its JSON."""
    parts: list[bytes] = []
    # A frame: what is left of a container, its closing bracket, what stands between its members,
    # and, for the container that becomes a string, the index in `parts` where it begins.
    frames: list[tuple[Iterator[Any], bytes, bytes, int]] = []
    first = True

    def enter(container: Any, separator: bytes) -> None:
        nonlocal first
        begins = len(parts) if len(frames) == VIEW_DEPTH else -1
        is_dict = type(container) is dict
        parts.append(b"{" if is_dict else b"[")
        members = iter(container.items() if is_dict else container)
        frames.append((members, b"}" if is_dict else b"]", separator, begins))
        first = True

    if type(value) not in (dict, list):
        return _encode(value)
    enter(value, b",\n" if lines else b",")
    while frames:
        members, closing, separator, begins = frames[-1]
        for member in members:
            if not first:
                parts.append(separator)
            first = False
            item = member
            if closing == b"}":
                key, item = member
                parts.append(_encode(key) + b":")
            if type(item) is dict or type(item) is list:
                table = lines and len(frames) == 1 and closing == b"}" and _is_table(item)
                enter(item, b",\n" if table else b",")
                break
            parts.append(_encode(item))
        else:
            frames.pop()
            parts.append(closing)
            first = False
            if begins >= 0:
                text = b"".join(parts[begins:]).decode("utf-8", "surrogatepass")
                parts[begins:] = [_encode(text)]
    return b"".join(parts)
