"""The packed payload's bytes: what its parts are, in one place for the writer and the reader.

`docs/decisions/0003-payload-format.md` draws it. All numbers are little-endian.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence

MAGIC = b"CSLIP\x01"
"""The last byte is the version of the format."""

KEY_SUFFIX = ".cslip"
"""Every key of a payload store ends so: gc must never take a stranger's file for an orphan."""

HEADER = struct.Struct("<6sH")
"""Magic, flags. A reader does not need it: the trailer says the same. It is for people and tools
that find an object without its index row."""

INFO = struct.Struct("<HHIQQQQQ32s")
"""Flags, length of the form's name, twin frames, chunks, twin bytes, lines, records, marked,
sha256 of the body. The form's name follows, padded to 8 bytes; then the columns."""

FOOTER = struct.Struct("<Q16s2x6s")
"""Length of the trailer (footer included), check of what stands before the footer, magic."""

FLAG_BYTES = 1
"""The content was bytes, not str."""
FLAG_BY_RECORD = 2
"""A line is a record."""
FLAG_SPANS = 4
"""There is a column of record numbers, and frames carry the spans of their records."""
FLAGS_KNOWN = FLAG_BYTES | FLAG_BY_RECORD | FLAG_SPANS
"""A payload with another flag was written by a later version and is not read as if it were ours."""

NO_RECORDS = 2**64 - 1
CHECK_BYTES = 16
LEVEL = 1
TWIN_BYTES = 1024 * 1024
"""Raw bytes of one twin frame: a twin is only ever read whole."""

THREADS = 2
THREADED_BYTES = 512 * 1024
"""Starting threads costs some 0.1 ms, which pays from about here."""

UNOPENED = "unopened"
"""The form of a payload that is sealed, and that no key at hand opens: what it is is not known."""

NO_SECRET = bytes(32)
"""The secret of an object that says nothing of any content, where objects are sealed."""

AS_STORED = b"as stored"
"""Given for a secret, it reads the bytes of an object as they lie in the store, to copy them."""


def to_little(numbers: array[int]) -> bytes:
    """The bytes of an array, little-endian wherever we run."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def from_little(data: bytes | memoryview, code: str) -> Sequence[int]:
    """Little-endian numbers as a sequence, without decoding each where the machine agrees."""
    if sys.byteorder == "big":
        numbers = array(code, bytes(data))
        numbers.byteswap()
        return numbers
    return memoryview(data).cast("B").cast(code)  # type: ignore[call-overload, no-any-return]


def padded(length: int) -> int:
    """`length` rounded up to 8, so that columns stay aligned."""
    return -(-length // 8) * 8
