"""Texts in UTF-16 and UTF-32, as Windows writes them: no name of a field stands in their bytes.

What may live here: telling one by its head. Pure.
"""

from __future__ import annotations

import codecs
from typing import Final

__all__ = ["decoder_of"]

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins as that of UTF-16 does
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FILLED: Final = {
    "utf-32-le": (0,),
    "utf-32-be": (3,),
    "utf-16-le": (0, 2),
    "utf-16-be": (1, 3),
}
"""Which of four bytes say something, where characters are of ASCII."""

_LOOKED_AT: Final = 4096


def decoder_of(head: bytes) -> codecs.IncrementalDecoder | None:
    """What decodes a text of wide characters; None for bytes that look like none."""
    name = _named(head)
    return codecs.getincrementaldecoder(name)("replace") if name else None


def _named(head: bytes) -> str:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    head = head[:_LOOKED_AT]
    if b"\0" not in head or len(head) < 4:
        return ""
    # Of a character of ASCII, as those of names and marks are, all bytes but one are 0.
    shares = [head[at::4].count(0) * 4 / len(head) for at in range(4)]
    found = ""
    for name, filled in _FILLED.items():
        least = min(share for at, share in enumerate(shares) if at not in filled)
        # A few have a 0 there, too, as U+1F600.
        if least > 0.1 and all(shares[at] * 4 < least for at in filled):
            found = name
    if not found:
        return ""
    try:
        codecs.getincrementaldecoder(found)().decode(head)  # its last character may be cut
    except UnicodeDecodeError:
        return ""
    return found
