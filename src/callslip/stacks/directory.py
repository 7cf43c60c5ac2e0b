"""Reading a packed payload: where each chunk is, and its bytes, checked. Pure; bytes come in."""

from __future__ import annotations

import hashlib
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from callslip.errors import PayloadDamaged
from callslip.handle import Source
from callslip.stacks.layout import (
    CHECK_BYTES,
    FLAG_BY_RECORD,
    FLAG_BYTES,
    FLAG_SPANS,
    FLAGS_KNOWN,
    FOOTER,
    INFO,
    MAGIC,
    NO_RECORDS,
    TWIN_BYTES,
    from_little,
    padded,
)

if TYPE_CHECKING:
    import zstandard


@dataclass(frozen=True)
class Chunk:
    """One chunk of a content, checked. `raw` are its bytes."""

    index: int
    raw: bytes = field(repr=False)
    steps: bytes = field(default=b"", repr=False)
    """The record spans as they are stored: gap, length, gap, length …"""

    @cached_property
    def spans(self) -> memoryview[int]:
        """Flat (start, end) of the records that start in this chunk, in bytes from its start.

        A record's end may lie beyond the chunk. Decoded when first asked for.
        """
        return memoryview(array("I", accumulate(from_little(self.steps, "I"))))


class Directory:
    """What a packed payload's trailer says: where the lines, records and bytes are.

    Looking something up costs a binary search over columns that are read in place; parsing costs
    one SHA-256 of the trailer (64 bytes for each chunk of up to 128 KiB). Frozen in practice and
    safe to share between threads.

    Chunks are counted from 0, lines and records from 1. `*_start(chunks)` is the total.
    """

    source: Source
    form: str
    by_record: bool
    chunks: int
    size: int
    chars: int
    lines: int
    records: int | None
    marked: int
    sha256: bytes

    def __init__(self, trailer: bytes) -> None:
        """Use `parse`."""
        total = len(trailer)
        if total < FOOTER.size + INFO.size:
            raise PayloadDamaged(f"a payload's trailer is cut short: {total} bytes")
        view = memoryview(trailer)
        body = view[: total - FOOTER.size]
        length, check, magic = FOOTER.unpack(view[total - FOOTER.size :])
        if magic != MAGIC or length != total or trailer[-8:-6] != b"\0\0":
            raise PayloadDamaged("a payload's trailer does not end as one")
        if hashlib.sha256(body).digest()[:CHECK_BYTES] != check:
            raise PayloadDamaged("a payload's trailer does not match its checksum")
        (
            flags,
            name,
            twins,
            self.chunks,
            self._twin_size,
            self.lines,
            records,
            self.marked,
            self.sha256,
        ) = INFO.unpack(body[: INFO.size])
        if flags & ~FLAGS_KNOWN:
            raise PayloadDamaged("a payload was written by a later version of callslip")
        self.source = "bytes" if flags & FLAG_BYTES else "str"
        self.by_record = bool(flags & FLAG_BY_RECORD)
        self.records = None if records == NO_RECORDS else records
        self._frames = self.chunks + twins

        at = INFO.size + padded(name)
        with_spans = bool(flags & FLAG_SPANS)
        numbers = (self._frames + 1) + (3 + with_spans) * (self.chunks + 1) + self.chunks
        if len(body) != at + 8 * numbers + CHECK_BYTES * self._frames:
            raise PayloadDamaged("a payload's trailer does not have the length it states")
        self.form = str(body[INFO.size : INFO.size + name], "utf-8", "replace")

        def column(count: int) -> Sequence[int]:
            nonlocal at
            at += 8 * count
            return from_little(body[at - 8 * count : at], "Q")

        self._frame_starts = column(self._frames + 1)
        self._raw_starts = column(self.chunks + 1)
        self._char_starts = column(self.chunks + 1)
        self._line_starts = column(self.chunks + 1)
        self._columns = column(self.chunks)
        self._record_starts = column(self.chunks + 1) if with_spans else None
        self._checks = body[at:]
        self.size = self._raw_starts[self.chunks]
        self.chars = self._char_starts[self.chunks]

    @classmethod
    def parse(cls, trailer: bytes) -> Directory:
        """Read a trailer, `packed[trailer:]`. Raises PayloadDamaged if it is not one, whole."""
        return cls(trailer)

    # --- where things are -----------------------------------------------------------------------

    def extent(self, index: int) -> tuple[int, int]:
        """Where the frame of chunk `index` is in the packed payload: (start, length)."""
        start = self._frame_starts[index]
        return start, self._frame_starts[index + 1] - start

    def raw_start(self, index: int) -> int:
        """Bytes of the content before chunk `index`."""
        return self._raw_starts[index]

    def char_start(self, index: int) -> int:
        """Characters of the text view before chunk `index`."""
        return self._char_starts[index]

    def line_start(self, index: int) -> int:
        """Lines that end before chunk `index`: its first byte is in the line after these."""
        return self._line_starts[index]

    def column(self, index: int) -> int:
        """Characters of chunk `index`'s first line that lie in earlier chunks."""
        return self._columns[index]

    def record_start(self, index: int) -> int:
        """Records that start before chunk `index`, of those whose spans are stored."""
        return self._record_starts[index] if self._record_starts is not None else 0

    def chunk_of_line(self, line: int) -> int:
        """The chunk in which line `line` (from 1) starts. IndexError if there is none such."""
        if not 1 <= line <= self.lines:
            raise IndexError(f"line {line} of {self.lines}")
        index = bisect_left(self._line_starts, line - 1, 0, self.chunks)
        if (
            index < self.chunks
            and self._line_starts[index] == line - 1
            and not self._columns[index]
        ):
            return index
        return index - 1

    def chunk_of_record(self, record: int) -> int:
        """The chunk in which record `record` (from 1) starts. IndexError if its span is unknown."""
        if not 1 <= record <= self.record_start(self.chunks) or self._record_starts is None:
            raise IndexError(f"record {record} of {self.record_start(self.chunks)}")
        return bisect_right(self._record_starts, record - 1) - 1

    def chunk_of_byte(self, offset: int) -> int:
        """The chunk that holds the content's byte `offset`. IndexError outside of the content."""
        if not 0 <= offset < self.size:
            raise IndexError(f"byte {offset} of {self.size}")
        return bisect_right(self._raw_starts, offset) - 1

    def twin_extent(self) -> tuple[int, int] | None:
        """Where the twin's frames are in the packed payload: (start, length), or None."""
        if self._frames == self.chunks:
            return None
        start = self._frame_starts[self.chunks]
        return start, self._frame_starts[self._frames] - start

    # --- what is in them ------------------------------------------------------------------------

    def unpack(self, index: int, frame: bytes) -> Chunk:
        """Chunk `index` out of its frame. Raises PayloadDamaged if one byte of it is wrong."""
        self._check(index, frame)
        return self._opened(index, _decompressed(frame, self._body_size(index)))

    def unpack_twin(self, blob: bytes) -> bytes:
        """The twin out of the bytes at `twin_extent()`. Raises PayloadDamaged, and IndexError
        where there is none."""
        extent = self.twin_extent()
        if extent is None:
            raise IndexError("this payload has no twin")
        start, length = extent
        if len(blob) != length:
            raise PayloadDamaged(f"a twin is cut short: {len(blob)} of {length} bytes")
        view = memoryview(blob)
        pieces = []
        left = self._twin_size
        for i in range(self.chunks, self._frames):
            at, length = self.extent(i)
            frame = view[at - start : at - start + length]
            self._check(i, frame)
            pieces.append(_decompressed(frame, min(left, TWIN_BYTES)))
            left -= len(pieces[-1])
        if left:
            raise PayloadDamaged(f"a twin lacks {left} bytes")
        return b"".join(pieces)

    def _check(self, index: int, frame: bytes | bytearray | memoryview) -> None:
        want = self._checks[CHECK_BYTES * index : CHECK_BYTES * (index + 1)]
        if hashlib.sha256(frame).digest()[:CHECK_BYTES] != want:
            raise PayloadDamaged(f"frame {index} does not match its checksum")

    def _body_size(self, index: int) -> int:
        return (
            self._raw_starts[index + 1]
            - self._raw_starts[index]
            + 8 * (self.record_start(index + 1) - self.record_start(index))
        )

    def _opened(self, index: int, body: bytes) -> Chunk:
        length = self._raw_starts[index + 1] - self._raw_starts[index]
        if length == len(body):
            return Chunk(index, body)
        return Chunk(index, body[:length], body[length:])


_local = threading.local()


def _decompressor() -> zstandard.ZstdDecompressor:
    # One for each thread: a context must not be used by two at once.
    found: zstandard.ZstdDecompressor | None = getattr(_local, "decompressor", None)
    if found is None:
        import zstandard

        found = _local.decompressor = zstandard.ZstdDecompressor()
    return found


def _decompressed(frame: bytes | bytearray | memoryview, size: int) -> bytes:
    import zstandard

    try:
        # The size is compared before anything is made of that size.
        if zstandard.frame_content_size(frame) != size:
            raise PayloadDamaged("a frame does not hold what the directory says")
        return _decompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise PayloadDamaged(f"a frame cannot be decompressed: {error}") from error
