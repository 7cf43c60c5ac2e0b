"""Packing: a stream of content bytes in, frames and a trailer out. Pure; holds a few blocks."""

from __future__ import annotations

import hashlib
import hmac
import re
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain
from operator import sub
from typing import TYPE_CHECKING, TypeAlias

from callslip.handle import Source
from callslip.limits import CHUNK_BYTES, CHUNK_MIN_BYTES, HELD_BYTES
from callslip.stacks.layout import (
    CHECK_BYTES,
    FLAG_BY_RECORD,
    FLAG_BYTES,
    FLAG_SPANS,
    FOOTER,
    HEADER,
    INFO,
    LEVEL,
    MAGIC,
    NO_RECORDS,
    THREADED_BYTES,
    THREADS,
    TWIN_BYTES,
    padded,
    to_little,
)

if TYPE_CHECKING:
    import zstandard

_Buffer: TypeAlias = "bytes | bytearray | memoryview"
_CONTINUATION = bytes(range(0x80, 0xC0))
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")


class Packer:
    """Packs one content as it arrives, into the format that `Directory` reads.

    Write the header-and-frames that `add` and `finish` return, in order, to one object. Memory
    is a few blocks, whatever the content's size. Where the blocks are cut makes no difference to
    what comes out.

    `key` is the tenant's digest key. `form` may still change in `finish`. With `by_record`, lines
    are records: line k runs from the start of record k to the start of record k+1.

    After `finish`: `digest` and `lock` (32 bytes each, those of `plain_digest`), `sha256` of the body (32
    bytes), `size` in bytes, `chars`, `lines`, `records` (None where there are none), `marked`
    characters that are not valid Unicode, `trailer` (offset) and `packed` (total bytes).
    """

    def __init__(self, source: Source, key: bytes, form: str, by_record: bool = False) -> None:
        self.source = source
        self.by_record = by_record
        self.form = form
        self.size = 0
        self.chars = 0
        self.lines = 0
        self.records: int | None = None
        self.marked = 0
        self.packed = 0
        self.trailer = 0
        self.digest = b""
        self.lock = b""
        self.sha256 = b""
        self._key = key
        self._hash = hashlib.sha256()
        self._done = False
        self._compressor: zstandard.ZstdCompressor | None = None

        self._parts: list[bytes] = []  # what is not yet cut into chunks, from byte `_base` on
        self._base = 0
        self._settled = 0  # all records that start before this byte are known
        self._gave_up = False
        self._flat = array("Q")  # spans of records that start at or after `_base`
        self._starts = array("Q")
        self._seen = 0  # records that start before `_base`

        self._newlines = 0
        self._column = 0
        self._frame_starts = array("Q", [HEADER.size])
        self._raw_starts = array("Q", [0])
        self._char_starts = array("Q", [0])
        self._line_starts = array("Q")
        self._record_starts = array("Q")
        self._columns = array("Q")
        self._checks: list[bytes] = []

    def add(self, block: bytes, spans: array[int] | None = None) -> bytes:
        """Take the next block of the body; answer the frames that became ready, maybe b"".

        `spans` are the records found so far and not yet given: flat absolute byte (start, end),
        ascending, none overlapping; a start is at a character boundary. An array, empty or not,
        says that records are being looked for: what lies behind the last known record's end is
        held back, up to `HELD_BYTES`; beyond that later records are ignored. None says that no
        record is still to come in what was given so far.

        Raises ValueError for spans out of order, or that start in what is already packed.
        """
        if self._done:
            raise ValueError("add() after finish(): a Packer packs one content")
        if type(block) is not bytes:
            block = bytes(block)
        if block:
            self._hash.update(block)
            self._parts.append(block)
            self.size += len(block)
        if spans is None or self._gave_up:
            self._settled = self.size
        elif spans:
            self._take_spans(spans)
        if self.size - max(self._settled, self._base) > HELD_BYTES:
            self._gave_up = True
            self._settled = self.size
        return self._pack(final=False)

    def finish(
        self, twin: bytes | None = None, form: str | None = None, records: int | None = None
    ) -> bytes:
        """Answer the rest: last frames, twin, trailer.

        `twin` is the exact form of a Python value beside its view; `form` replaces the form given
        at the start; `records` is their number where the caller knows it better than the spans
        that were given.
        """
        if self._done:
            raise ValueError("finish() twice: a Packer packs one content")
        if form is not None:
            self.form = form
        self._settled = self.size
        out = [self._pack(final=True)]
        self._done = True
        if self._starts:
            raise ValueError("a record starts behind the end of the content")
        chunks = len(self._columns)
        if self.by_record:
            self.lines = max(self._seen, 1 if self.size else 0)
        else:
            self.lines = self._newlines + (1 if self._column else 0)
        self._line_starts.append(self.lines if self.by_record else self._newlines)
        self._record_starts.append(self._seen)
        if records is not None:
            self.records = records
        elif self._seen and not self._gave_up:
            self.records = self._seen
        if twin is not None:
            pieces: list[_Buffer] = [
                twin[i : i + TWIN_BYTES] for i in range(0, len(twin), TWIN_BYTES)
            ] or [b""]
            out.append(self._frames(pieces))
        self.sha256 = self._hash.digest()
        self.digest, self.lock = digests(
            self._key, self.form, self.source, self.size, self.sha256, twin
        )
        if not self.packed:  # an empty content without a twin: the header is still to come
            out.append(self._header())
        self.trailer = self.packed
        out.append(self._trailer(chunks, twin))
        self.packed += len(out[-1])
        return b"".join(out)

    def _take_spans(self, spans: array[int]) -> None:
        if spans[0] < self._base or (self._flat and spans[0] < self._flat[-1]):
            raise ValueError(
                f"spans must come in order and not too late: one starts at {spans[0]}, "
                f"and bytes before {self._base} are packed already"
            )
        if len(spans) % 2 or spans[-1] > self.size:
            raise ValueError("spans must be (start, end) pairs within the bytes given so far")
        self._flat.extend(spans)
        self._starts.extend(spans[::2])
        self._settled = max(self._settled, spans[-1])

    def _pack(self, final: bool) -> bytes:
        """Cut what can be cut into chunks, and compress them together."""
        if not final and self._settled - self._base <= CHUNK_BYTES:
            return b""
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        settled = self._settled - self._base
        at = 0
        bodies: list[_Buffer] = []
        while at < len(data):
            if settled - at <= CHUNK_BYTES:
                # A cut looks at the byte behind it, and at every record up to it.
                if not final:
                    break
                end = len(data)
            else:
                end = self._cut(data, at)
            bodies.append(self._chunk(data[at:end]))
            at = end
        self._parts = [data[at:]] if at < len(data) else []
        return self._frames(bodies) if bodies else b""

    def _cut(self, data: bytes, at: int) -> int:
        """Where the chunk that begins at `data[at]` ends; there is more than a chunk of it."""
        low, high = at + CHUNK_MIN_BYTES, at + CHUNK_BYTES
        if self.by_record:
            first = self._base - at  # of data[0]: `_base` moves with each chunk, `data` does not
            k = bisect_left(self._starts, first + high + 1) - 1
            if k >= 0 and self._starts[k] >= first + low:
                return self._starts[k] - first
        else:
            newline = data.rfind(b"\n", low - 1, high)
            if newline >= 0:
                return newline + 1
        # A character starts at any byte that continues none; and where four bytes in a row only
        # continue, none of them belongs to a character.
        for cut in range(high, high - 4, -1):
            if data[cut] & 0xC0 != 0x80:
                return cut
        return high

    def _chunk(self, raw: bytes) -> bytes:
        """Enter one chunk in the columns; what its frame holds."""
        base, end = self._base, self._base + len(raw)
        count = bisect_left(self._starts, end)
        flat, starts = self._flat[: 2 * count], self._starts[:count]
        del self._flat[: 2 * count], self._starts[:count]

        chars, marked = _count(raw, self.source)
        if self.by_record:
            # The first record of all does not start a line: line 1 starts at byte 0.
            if starts and starts[0] == base and self._seen:
                self._column = 0
            here = starts[0] == base if starts else False
            self._line_starts.append(max(0, self._seen + here - 1))
            opens = len(starts) if self._seen else len(starts) - 1
            line = starts[-1] - base if opens > 0 else -1
        else:
            self._line_starts.append(self._newlines)
            self._newlines += raw.count(b"\n")
            line = raw.rfind(b"\n") + 1 or -1
        self._columns.append(self._column)
        if line < 0:
            self._column += chars
        elif line == len(raw):
            self._column = 0
        else:
            self._column = _count(raw[line:], self.source)[0] if line else chars

        self.chars += chars
        self.marked += marked
        self._record_starts.append(self._seen)
        self._seen += len(starts)
        self._base = end
        self._raw_starts.append(end)
        self._char_starts.append(self.chars)
        if not flat:
            return raw
        try:
            # Gaps and lengths in place of positions: they compress to a fifth.
            steps = array("I", chain((flat[0] - base,), map(sub, flat[1:], flat)))
        except OverflowError as error:
            raise ValueError("spans must ascend, and none may be longer than 4 GiB") from error
        return raw + to_little(steps)

    def _frames(self, bodies: list[_Buffer]) -> bytes:
        if self._compressor is None:
            import zstandard

            self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=False)
        frames: Sequence[bytes]
        if len(bodies) > 1 and sum(map(len, bodies)) >= THREADED_BYTES:
            packed = self._compressor.multi_compress_to_buffer(bodies, threads=THREADS)
            frames = [packed[i].tobytes() for i in range(len(packed))]
        else:
            frames = [self._compressor.compress(body) for body in bodies]
        for frame in frames:
            self._checks.append(hashlib.sha256(frame).digest()[:CHECK_BYTES])
            self._frame_starts.append(self._frame_starts[-1] + len(frame))
        if self.packed:
            out = b"".join(frames)
            self.packed += len(out)
            return out
        return self._header() + self._counted(b"".join(frames))

    def _counted(self, out: bytes) -> bytes:
        self.packed += len(out)
        return out

    def _flags(self) -> int:
        return (FLAG_BYTES if self.source == "bytes" else 0) | (
            FLAG_BY_RECORD if self.by_record else 0
        )

    def _header(self) -> bytes:
        return self._counted(HEADER.pack(MAGIC, self._flags()))

    def _trailer(self, chunks: int, twin: bytes | None) -> bytes:
        form = self.form.encode("utf-8")
        info = INFO.pack(
            self._flags() | (FLAG_SPANS if self._seen else 0),
            len(form),
            len(self._checks) - chunks,
            chunks,
            len(twin or b""),
            self.lines,
            NO_RECORDS if self.records is None else self.records,
            self.marked,
            self.sha256,
        )
        columns = [
            self._frame_starts,
            self._raw_starts,
            self._char_starts,
            self._line_starts,
            self._columns,
        ]
        if self._seen:
            columns.append(self._record_starts)
        body = b"".join(
            [
                info,
                form.ljust(padded(len(form)), b"\0"),
                *map(to_little, columns),
                *self._checks,
            ]
        )
        check = hashlib.sha256(body).digest()[:CHECK_BYTES]
        return body + FOOTER.pack(len(body) + FOOTER.size, check, MAGIC)


def plain_digest(key: bytes, form: str, source: Source, body: bytes, twin: bytes | None) -> bytes:
    """The digest that a `Packer` would come to, without packing: to ask the index first."""
    return digests(key, form, source, len(body), hashlib.sha256(body).digest(), twin)[0]


def digests(
    key: bytes, form: str, source: Source, size: int, sha256: bytes, twin: bytes | None
) -> tuple[bytes, bytes]:
    """The digest of a content, by which it is found, and its lock, which nobody learns from that."""
    # The body enters by its hash, so that one pass serves both, and the form may come last.
    # Every part has a fixed length or its length before it: no two contents give one message.
    name = form.encode("utf-8")
    message = b"".join(
        [
            b"callslip content 1\0",
            len(name).to_bytes(8, "little"),
            name,
            source.encode().ljust(8, b"\0"),
            size.to_bytes(8, "little"),
            sha256,
            b"" if twin is None else hashlib.sha256(twin).digest(),
        ]
    )
    lock = hmac.digest(key, b"callslip lock 1\0" + message, "sha256")
    return hmac.digest(key, message, "sha256"), lock


def _count(raw: bytes, source: Source) -> tuple[int, int]:
    """Characters of the text view, and how many of them stand for what is not valid Unicode."""
    if raw.isascii():
        return len(raw), 0
    try:
        return len(raw.decode("utf-8")), 0
    except UnicodeDecodeError:
        if source == "str":  # UTF-8 with lone surrogates: every byte that continues none is one
            return len(raw.translate(None, _CONTINUATION)), len(_SURROGATE.findall(raw))
        text = raw.decode("utf-8", "surrogateescape")
        return len(text), len(text) - len(text.encode("utf-8", "ignore").decode("utf-8"))
