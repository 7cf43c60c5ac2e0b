"""Files inside text: base64, bare or after `data:…;base64,`.

What may live here: finding it and taking it out. What it is: `callslip.window.survey.media`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

__all__ = ["decoded", "holds_base64", "is_base64", "opens_base64", "parts_of"]

_RUN: Final = 1024
"""Shorter runs are keys, hashes and signatures, which a reader may well want to see."""

_SEEN: Final = 64
_MARK: Final = b";base64,"
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
# Only from where a run begins: else it would be tried from every byte of each long word.
_LONG = re.compile(rb"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{%d,}={0,2}" % _RUN)
_DATA = re.compile(
    rb"data:[\w.+-]{1,60}/[\w.+-]{1,80}(?:;[\w.+=-]{1,60})*;base64,[A-Za-z0-9+/_-]+={0,2}"
)
_LEAST: Final = 48
_VARIED: Final = 12


def holds_base64(block: bytes) -> bool:
    """Whether a file of some size stands in this text as base64. 10 MB take 2 ms."""
    # A run of `_RUN` covers a whole window at one of these places.
    for at in range(0, len(block) - _SEEN, _RUN - _SEEN):
        seen = block[at : at + _SEEN]
        if not seen.strip(_ALPHABET) and len(set(seen)) >= _VARIED:
            before = block[max(at - _RUN, 0) : at]
            start = at - len(before) + len(before.rstrip(_ALPHABET))
            run = block[start : start + 2 * _RUN]
            run = run[: len(run) - len(run.lstrip(_ALPHABET))]
            if len(run) >= _RUN and _mixed(run):
                return True
    return False


def opens_base64(head: bytes) -> bool:
    """Whether a file of any size stands behind `data:…;base64,` in the head of a text."""
    return _MARK in head and _DATA.search(head) is not None


def is_base64(text: bytes) -> bool:
    """Whether a text is a file in base64 and nothing else, perhaps with `data:` before it."""
    text = text.strip()
    if text.startswith(b"data:"):
        return _DATA.fullmatch(text[: 4 * 1024 * 1024]) is not None
    return len(text) >= _LEAST and not text[:-2].translate(None, _ALPHABET) and _mixed(text)


def _mixed(run: bytes) -> bool:
    """Not a word, a number or a line of one character: files use most of the alphabet."""
    used = set(run[:4096])
    return (
        len(used) >= 20 and any(65 <= c <= 90 for c in used) and any(97 <= c <= 122 for c in used)
    )


def parts_of(text: bytes) -> Iterator[tuple[int, int]]:
    """Where files stand in a text as base64: (start, end) of each, `data:` included."""
    at = 0
    while True:
        found = [m for m in (_DATA.search(text, at), _LONG.search(text, at)) if m is not None]
        if not found:
            return
        first = min(found, key=lambda match: match.start())
        at = first.end()
        if first.re is _DATA or _mixed(first[0]):
            yield first.start(), at


def decoded(text: bytes) -> bytes | None:
    """The bytes of a base64 text, `data:` before it or not; None where it is none."""
    text = text.strip()
    if text.startswith(b"data:"):
        _, mark, text = text.partition(_MARK)
        if not mark:
            return None
    plain = text.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
