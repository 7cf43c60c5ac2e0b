"""Small questions about the JSON text of a part: how many parts it has, of which kinds. Pure."""

from __future__ import annotations

import json
import re
from typing import Final

__all__ = ["fields_of", "kind_of_each", "many", "small", "step"]

NAMES: Final = 12
NAME_CHARS: Final = 80
_PARTS: Final = 100_000
"""A list or object with more parts than this is not taken apart: that alone would take long."""

_PLAIN_KEY = re.compile(r"[^\W\d]\w*")
_KINDS: Final = {
    b"{": "object",
    b"[": "list",
    b'"': "string",
    b"t": "boolean",
    b"f": "boolean",
    b"n": "null",
}


def many(raw: bytes) -> bool:
    """Whether it may have so many parts that taking it apart alone takes long.

    Judged by its first parts.
    """
    if len(raw) <= 2 * _PARTS:
        return False
    decode = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len).raw_decode
    text = raw[: 64 * 1024].decode("latin-1")
    at, parts = 1, 0
    space = re.compile(r"[\s,:]*")
    try:
        while parts < 400:
            match = space.match(text, at)
            at = decode(text, match.end() if match else at)[1]
            parts += 1
    except (ValueError, RecursionError):
        pass
    return parts > 8 and len(raw) // (at // parts + 1) > _PARTS


def kind_of_each(parts: list[bytes]) -> str:
    firsts = {part[:1] for part in parts[:1000]}
    kinds = {_KINDS.get(first, "number") for first in firsts}
    return kinds.pop() if len(kinds) == 1 else ""


def fields_of(parts: list[bytes]) -> tuple[str, ...]:
    import msgspec

    names: dict[str, None] = {}
    for part in parts:
        if len(part) <= 1024 * 1024:
            names.update(dict.fromkeys(msgspec.json.decode(part, type=dict[str, msgspec.Raw])))
    return tuple(name[:NAME_CHARS] for name in list(names)[:NAMES])


def small(raw: bytes) -> str:
    """A small object or list as it is, on one line."""
    import msgspec

    if len(raw) > 200:
        return ""
    try:
        text = msgspec.json.format(raw, indent=-1).decode("utf-8", "replace")
    except msgspec.MsgspecError:
        return ""
    return text if len(text) <= 64 else ""


def step(path: str, name: str, is_list: bool) -> str:
    """The path of a part: `info.version`, `items[3].name`, `files["a b"].size`."""
    if is_list:
        return f"{path}[{name}]"
    if _PLAIN_KEY.fullmatch(name):
        return f"{path}.{name}" if path else name
    return f"{path}[{json.dumps(name, ensure_ascii=False)}]"
