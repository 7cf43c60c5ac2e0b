"""How the name of a field may be written: in either case, composed or not, with JSON's escapes."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator
from typing import Final, Literal

__all__ = ["folded", "key_of", "parts_of", "written"]

_UNICODE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_SLASHED = re.compile(r"\\+(.)", re.DOTALL)
_SHARP = re.compile(r"ss|.", re.DOTALL)
_FORMS: Final[tuple[Literal["NFC"], Literal["NFD"]]] = ("NFC", "NFD")


def folded(name: str) -> str:
    """The name as names are compared: case does not matter, nor how an accent is composed."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def key_of(raw: bytes) -> str:
    """The folded name of a field as it stands in a text, perhaps with escapes."""
    text = raw.decode("utf-8", "surrogatepass")
    if "\\" in text:
        text = _UNICODE.sub(lambda match: chr(int(match[1], 16)), text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = _SLASHED.sub(r"\1", text)
    return folded(text)


def parts_of(name: str) -> Iterator[str]:
    """The names in a name that is itself a tuple of names, as a frame's columns may be."""
    if name[:1] == "(" and name[-1:] == ")" and len(name) < 1_000:
        try:
            found = ast.literal_eval(name)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return
        if isinstance(found, tuple):
            yield from (part for part in found if isinstance(part, str))


def written(name: str, *, escaped: bool = False, sharp: bool = False) -> bytes:
    """A pattern for the ways in which a name is written; for `re.IGNORECASE`.

    With `escaped` also those in which JSON escapes its characters, at any depth. With `sharp`, two s
    may be a sharp one, as it was before the name was folded.
    """
    text = unicodedata.normalize("NFC", name)
    chars = _SHARP.findall(text) if sharp else text
    return b"".join(_char(char, escaped) for char in chars)


def _char(char: str, escaped: bool) -> bytes:
    if len(char) == 2:
        sharp = b"|".join(_char(one, escaped) for one in "\u00df\u1e9e")
        return b"(?:" + _char(char[0], escaped) * 2 + b"|" + sharp + b")"
    if char.isascii():
        plain = re.escape(char.encode())
        if char in '"\\/':
            plain = rb"\\*" + plain
        if not escaped:
            return plain
        return rb"(?:" + plain + b"|" + b"|".join(map(_hex, {char.lower(), char.upper()})) + b")"
    cased = {char, char.lower(), char.upper(), char.casefold(), char.title()}
    ways = {unicodedata.normalize(form, way) for way in cased for form in _FORMS}
    found = {re.escape(way.encode("utf-8", "surrogatepass")) for way in ways}
    if escaped:
        found |= {b"".join(map(_hex, way)) for way in ways}
    return b"(?:" + b"|".join(sorted(found, reverse=True)) + b")"


def _hex(char: str) -> bytes:
    units = char.encode("utf-16-be", "surrogatepass")
    codes = [units[at : at + 2].hex().encode() for at in range(0, len(units), 2)]
    plain = b"|" + re.escape(char.encode()) if char.isascii() else b""
    return b"(?:" + b"".join(rb"\\+u" + code for code in codes) + plain + b")"
