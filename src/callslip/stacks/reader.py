"""Reading one payload back: only the chunks that are asked for, through one small cache.

Everything here is a flow. A payload that lives in the index row needs no operation at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from callslip.limits import (
    CHUNKS_CACHED,
    STREAM_BLOCK_BYTES,
)
from callslip.stacks.caches import Caches, Key, key_of
from callslip.stacks.directory import Chunk, Directory
from callslip.stacks.drive import worker_pool
from callslip.stacks.fetching import Frames, bytes_of
from callslip.stacks.looking import packed_text
from callslip.stacks.ops import Flow, Payload
from callslip.window.inert import shown

__all__ = ["Caches", "Reader", "View", "open_reader"]

_SHARED_CHUNKS = 4
"""From so many chunks on, half of them are decompressed on another thread."""


_KEEP_CHUNKS = CHUNKS_CACHED // 4
"""A payload with more chunks than this is not kept whole: one long search would empty the cache."""


def open_reader(row: Payload, caches: Caches) -> Flow[Reader]:
    """A reader of the payload that `row` leads to; reads its trailer if that is not cached.

    Raises PayloadDamaged if the trailer is not one, whole, and StoreUnavailable.
    """
    key = key_of(row)
    directory = caches.directories.get(key)
    if directory is None:
        length = row.packed - row.trailer
        trailer = yield from bytes_of(row, row.trailer, length)
        directory = Directory.parse(trailer)
        caches.directories.put(key, directory)
    return Reader(row, directory, caches)


class Reader:
    """One payload, to be read in part or whole. Made by `open_reader`.

    Every chunk is checked before it is returned; PayloadDamaged if it is not what was stored.
    """

    def __init__(self, row: Payload, directory: Directory, caches: Caches) -> None:
        self.directory = directory
        self._row = row
        self._key = key_of(row)
        self._caches = caches
        self._frames = Frames(row, directory)

    @property
    def key(self) -> Key:
        """What tells this payload from any other that is read with the same caches."""
        return self._key

    @property
    def digest(self) -> bytes:
        """What tells this content from any other of its tenant."""
        return self._row.digest

    def derived(self, name: str, make: Callable[[bytes], bytes] | bytes) -> Flow[Reader]:
        """A reader of a text out of this content, or of what `make` takes out of the whole.

        `name` says what that is; made once, and kept packed while there is room.
        """
        known = self._caches.derived.get((self._key, name))
        if known is None:
            text = make if isinstance(make, bytes) else make((yield from self.body()))
            packed = packed_text(text)
            known = replace(packed, digest=self._row.digest, key=f"{self._row.key}#{name}")
            self._caches.derived.put((self._key, name), known)
        return (yield from open_reader(known, self._caches))

    def chunk(self, index: int) -> Flow[Chunk]:
        """Chunk `index`, from 0."""
        found = self._caches.chunks.get((self._key, index))
        if found is None:
            frame = yield from self._frames.read(index, index + 1)
            found = self.directory.unpack(index, frame)
            self._caches.chunks.put((self._key, index), found)
        return found

    def chunks(self, start: int, end: int) -> Flow[list[Chunk]]:
        """Chunks `start` up to, not including, `end`: one ranged read for all of them."""
        if end - start == 1:
            return [(yield from self.chunk(start))]
        small = self.directory.chunks <= _KEEP_CHUNKS
        if small:
            kept = [self._caches.chunks.get((self._key, index)) for index in range(start, end)]
            found = [chunk for chunk in kept if chunk is not None]
            if len(found) == end - start:
                return found
        if end <= start:
            return []
        blob = yield from self._frames.read(start, end)
        read = self._unpacked(start, end, blob)
        if small:
            for chunk in read:
                self._caches.chunks.put((self._key, chunk.index), chunk)
        return read

    def _unpacked(self, start: int, end: int, blob: bytes) -> list[Chunk]:
        """The chunks whose frames are `blob`: checked and decompressed, half of them aside.

        Both let go of the interpreter's lock. A thread that waits for us costs 20 µs; those that
        the decompressor starts by itself cost more than they save at this size.
        """
        base, _ = self.directory.extent(start)
        part = partial(self._part, blob, base)
        if end - start < _SHARED_CHUNKS:
            return part(start, end)
        middle = (start + end) // 2
        try:
            other = worker_pool().submit(part, middle, end)
        except RuntimeError:
            # The interpreter is shutting down and starts no threads any more.
            return part(start, end)
        try:
            mine = part(start, middle)
        except BaseException:
            other.cancel()
            raise
        # What no thread has begun is done here: this may itself run on the last free one.
        return mine + (part(middle, end) if other.cancel() else other.result())

    def _part(self, blob: bytes, base: int, first: int, behind: int) -> list[Chunk]:
        chunks = []
        for index in range(first, behind):
            at, length = self.directory.extent(index)
            chunks.append(self.directory.unpack(index, blob[at - base : at - base + length]))
        return chunks

    def ahead(self, start: int, end: int) -> Flow[Callable[[], list[Chunk]]]:
        """The chunks that will be wanted next: read now, decompressed by another thread meanwhile.

        Call the answer for them. They are not kept.
        """
        base, _ = self.directory.extent(start)
        blob = yield from self._frames.read(start, end)
        job = partial(self._part, blob, base, start, end)
        try:
            other = worker_pool().submit(job)
        except RuntimeError:
            return job
        # What no thread has begun is done by who wants it: it may itself run on the last free one.
        return lambda: job() if other.cancel() else other.result()

    @property
    def long(self) -> bool:
        """Whether it has more chunks than are kept of one payload."""
        return self.directory.chunks > _KEEP_CHUNKS

    def groups(self, size: int = STREAM_BLOCK_BYTES) -> Iterator[tuple[int, int]]:
        """(start, end) of runs of chunks of about `size` raw bytes, to be read one by one."""
        directory, start = self.directory, 0
        while start < directory.chunks:
            end = start + 1
            limit = directory.raw_start(start) + size
            while end < directory.chunks and directory.raw_start(end + 1) <= limit:
                end += 1
            yield start, end
            start = end

    def blocks(self) -> Iterator[Flow[bytes]]:
        """The exact bytes of the content, block by block: each item is a flow to be driven."""
        for start, end in self.groups():
            yield self._block(start, end)

    def _block(self, start: int, end: int) -> Flow[bytes]:
        chunks = yield from self.chunks(start, end)
        return b"".join(chunk.raw for chunk in chunks)

    def body(self) -> Flow[bytes]:
        """All bytes of the content."""
        pieces = []
        for flow in self.blocks():
            pieces.append((yield from flow))
        return b"".join(pieces)

    def part(self, start: int, length: int) -> Flow[bytes]:
        """Up to `length` bytes of the content from byte `start`; b"" at or behind its end."""
        directory = self.directory
        end = min(start + length, directory.size)
        if start < 0 or start >= end:
            return b""
        first = directory.chunk_of_byte(start)
        chunks = yield from self.chunks(first, directory.chunk_of_byte(end - 1) + 1)
        base = directory.raw_start(first)
        return b"".join(chunk.raw for chunk in chunks)[start - base : end - base]

    def twin(self) -> Flow[bytes | None]:
        """The exact form of a Python object, or None where the body is all there is."""
        extent = self.directory.twin_extent()
        if extent is None:
            return None
        return self.directory.unpack_twin((yield from bytes_of(self._row, *extent)))

    # --- the text view --------------------------------------------------------------------------

    def view(self, index: int) -> Flow[View]:
        """The text view of chunk `index`."""
        return View(self.directory, (yield from self.chunk(index)))

    def char_of_line(self, line: int) -> Flow[int]:
        """Characters of the text view before line `line`; for the line after the last: all."""
        directory = self.directory
        if line > directory.lines:
            return directory.chars
        index = directory.chunk_of_line(line)
        if directory.column(index) == 0 and directory.line_start(index) == line - 1:
            return directory.char_start(index)
        behind = index + 1
        if behind < directory.chunks and directory.line_start(behind) == line - 1:
            # It goes on in the next chunk, which knows how much of it came before.
            return directory.char_start(behind) - directory.column(behind)
        view = yield from self.view(index)
        return directory.char_start(index) + view.start_of(line)

    def chunk_of_char(self, char: int) -> int:
        """The chunk that holds character `char` (from 0) of the text view; past the end: the last."""
        directory = self.directory
        return min(
            bisect_right(_CharStarts(directory), char) - 1,
            directory.chunks - 1,
        )


class _CharStarts:
    """The directory's char starts as a sequence, for bisect."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def __len__(self) -> int:
        return self._directory.chunks

    def __getitem__(self, index: int) -> int:
        return self._directory.char_start(index)


class View:
    """One chunk as text: what a page shows and what a search looks through.

    `shown` replaces what is not valid Unicode, one character for one, so that columns stay.
    """

    def __init__(self, directory: Directory, chunk: Chunk) -> None:
        self.directory = directory
        self.index = chunk.index
        self._chunk = chunk
        self._errors = "surrogatepass" if directory.source == "str" else "surrogateescape"

    @property
    def text(self) -> str:
        """The chunk's part of the text view, as it may be shown."""
        return self._decoded(self._chunk.raw)

    @property
    def raw(self) -> bytes:
        """`text` in UTF-8. Without marked characters these are the stored bytes, uncopied."""
        return self.text.encode() if self.directory.marked else self._chunk.raw

    def _decoded(self, raw: bytes) -> str:
        if not self.directory.marked:
            return raw.decode()
        return shown(raw.decode("utf-8", self._errors))

    def starts(self) -> list[int]:
        """The characters of `text` at which a line starts."""
        directory, index = self.directory, self.index
        found = [] if directory.column(index) else [0]
        if not directory.by_record:
            text = self.text
            at = text.find("\n") + 1
            while 0 < at < len(text):
                found.append(at)
                at = text.find("\n", at) + 1
            return found
        ascii_only = self._chunk.raw.isascii()
        chars = done = 0
        for start in self._record_starts():
            chars = start if ascii_only else chars + len(self._decoded(self._chunk.raw[done:start]))
            done = start
            found.append(chars)
        return found

    def _record_starts(self) -> list[int]:
        # Line 1 starts at byte 0, the bracket, and not where record 1 does.
        skip = self.directory.record_start(self.index) == 0
        return [start for start in self._chunk.spans[::2].tolist()[skip:] if start > 0]

    def start_of(self, line: int) -> int:
        """The character of `text` at which line `line` starts. It has to start in this chunk."""
        before = line - 1 - self.directory.line_start(self.index)
        if before == 0:
            return 0
        if self.directory.by_record:
            return self.starts()[before - (self.directory.column(self.index) > 0)]
        text = self.text
        return len(text) - len(text.split("\n", before)[before])

    def place(self, offset: int) -> tuple[int, int]:
        """(line, column) of byte `offset` of `raw`; line from 1, column in characters from 0."""
        directory, index = self.directory, self.index
        raw = self.raw
        first = directory.line_start(index) + 1
        if directory.by_record:
            char = len(raw[:offset].decode())
            starts = self.starts()
            passed = bisect_right(starts, char)
            if passed == 0:
                return first, directory.column(index) + char
            line = first + passed - 1 + (directory.column(index) > 0)
            return line, char - starts[passed - 1]
        passed = raw.count(b"\n", 0, offset)
        newline = raw.rfind(b"\n", 0, offset)
        column = len(raw[newline + 1 : offset].decode())
        return first + passed, column + (directory.column(index) if newline < 0 else 0)
