"""Values replaced in a text, wherever it holds JSON or Python's own form of a masked field. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from callslip.stacks.hiding.literals import CONTAINERS, hides_to, literal, literal_end
from callslip.stacks.hiding.names import key_of
from callslip.stacks.hiding.scan import HIDDEN, HIDDEN_JSON, decoded, skip, value_end

if TYPE_CHECKING:
    from callslip.stacks.hiding.fields import Fields

__all__ = ["text_shown"]

_OBJECT_MOST: Final = 16 * 1024
"""Bytes of a text that are searched at first for the end of a value that begins in it: a text may
begin many that never end."""

_SPARE: Final = 8 * 1024 * 1024
"""Bytes of a text that are searched once more for the ends of values that are longer."""

_OPEN_MOST: Final = 20
"""Values without an end that are looked for in one piece of a text; then they are taken for such."""


def text_shown(
    fields: Fields, keys: re.Pattern[bytes], raw: bytes, *, final: bool
) -> tuple[bytes, int]:
    """The text with the values behind `keys` replaced, and how much of `raw` that is."""
    out: list[bytes] = []
    done = at = 0
    most, left, spare = _OBJECT_MOST, _OPEN_MOST, _SPARE
    while (match := keys.search(raw, at)) is not None:
        at = start = match.end()
        rest = len(raw) - start
        stop = None if match[1] else literal_end(raw, start, most)
        if stop is None and not match[1]:
            opens = raw[start : start + 1] in CONTAINERS
            if not final and (rest < most or opens):
                return b"".join([*out, raw[done : match.start()]]), match.start()
            if opens and rest > most and spare > 0:
                stop = literal_end(raw, start, rest)
                spare -= rest if stop is None else stop - start
        if not final and stop is not None and skip(raw, stop) == len(raw):
            # Strings side by side are one: the next may begin with what comes.
            return b"".join([*out, raw[done : match.start()]]), match.start()
        new, end = _in_text(fields, key_of(match[3]), raw, start, match[1], most, stop)
        if new is HIDDEN_JSON and (left := left - 1) == 0:
            most = 64
        out += raw[done:start], new
        done = end
        # Of a string that was torn, the end may be where a key starts.
        at = max(start, end - 1)
    return b"".join([*out, raw[done:]]), len(raw)


def _in_text(
    fields: Fields, key: str, raw: bytes, start: int, escape: bytes, most: int, stop: int | None
) -> tuple[bytes, int]:
    """What takes the place of the value at `start`, whose quotes have `escape` before them."""
    mark = raw[start : start + len(escape) + 1]
    if escape and mark[: len(escape)] == escape and mark[-1:] in (b'"', b"'"):
        end = raw.find(mark, start + len(mark))
        while end > 0 and raw[end - 1 : end] == b"\\":
            end = raw.find(mark, end + 1)
        if end < 0:
            return mark + HIDDEN.encode() + mark, hides_to(raw, start, None)
        value: Any = decoded(raw[start + len(mark) : end])
        return mark + _said(fields, key, value, mark) + mark, end + len(mark)
    if escape and mark[:1] in CONTAINERS:
        return HIDDEN.encode(), hides_to(raw, start, None)
    if escape:
        stop = literal_end(raw, start, most)
    if stop is None:
        return HIDDEN_JSON, hides_to(raw, start, value_end(raw, start, most))
    found = raw[start:stop]
    if stop == start or fields.plain(key, found):
        return found, stop
    if mark[:1] == b"'":
        value = literal(found)
        value = value if isinstance(value, str) else decoded(found[1:-1])
        return b"'" + _said(fields, key, value, b"'") + b"'", stop
    return fields.value(key, found), stop


def _said(fields: Fields, key: str, value: Any, mark: bytes) -> bytes:
    """What is shown of a text, without what would end it early."""
    new = fields.told(key, value)
    text = new if isinstance(new, str) else json.dumps(new)
    for char in ("\\", mark[-1:].decode(), "\n"):
        text = text.replace(char, " ")
    return text.encode("utf-8", "surrogatepass")
