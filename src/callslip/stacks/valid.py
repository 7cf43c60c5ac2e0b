"""Whether a text is JSON. The quick parser refuses half of a surrogate pair that is written as an
escape (`"\\ud83d"`), which JSON allows, and which stands where somebody cut a text within an emoji.

What may live here: checks that look at every byte, and answer yes or no.
"""

from __future__ import annotations

import re

import msgspec

__all__ = ["is_json", "mended"]

_RAW = msgspec.json.Decoder(msgspec.Raw)
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def is_json(text: bytes) -> bool:
    """Whether it is one JSON value. Raises RecursionError where it is nested beyond what is read."""
    try:
        _RAW.decode(text)
    except msgspec.DecodeError:
        whole = mended(text)
        return whole != text and is_json(whole)
    return True


def mended(text: bytes) -> bytes:
    """The text with other escapes, as long as these, in the place of surrogates: what is a value, a
    record or a line of the one is that of the other, at the same bytes."""
    return _HALF_PAIR.sub(rb"\\ufffd", text)
