"""The caller's side of a payload: its exact bytes as a file, read chunk by chunk."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Self

from callslip.limits import STREAM_BLOCK_BYTES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from callslip.stacks.reader import Reader
    from callslip.store import ResultStore


class _Raw(io.RawIOBase):
    def __init__(self, store: ResultStore, reader: Reader) -> None:
        self._store = store
        self._reader = reader
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._store.run_flow(self._reader.part(self._at, len(view)))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._reader.directory.size}
        if whence not in base:
            raise ValueError(f"whence={whence!r}: give 0, 1 or 2")
        if base[whence] + offset < 0:
            raise ValueError(f"offset={offset!r}: this is before the start")
        self._at = base[whence] + offset
        return self._at


class Stored(io.BufferedReader):
    """A stored content as a binary file object: `read`, `seek`, line by line, `with`.

    Raises `PayloadDamaged` where the bytes are not those that were stored.
    """

    def __init__(self, store: ResultStore, reader: Reader) -> None:
        # The stub wants a RawIOBase; a block of this size is one ranged read of a few chunks.
        super().__init__(_Raw(store, reader), buffer_size=STREAM_BLOCK_BYTES // 4)
        self.size = reader.directory.size
        """Bytes of the whole content."""


class AsyncStored:
    """A stored content for a task: read it in pieces, off the event loop."""

    def __init__(self, store: ResultStore, reader: Reader) -> None:
        self._store = store
        self._reader = reader
        self._at = 0
        self.size = reader.directory.size
        """Bytes of the whole content."""

    async def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes from where the last read ended; all that is left if negative."""
        length = self.size - self._at if size < 0 else size
        data = await self._store.arun_flow(self._reader.part(self._at, length))
        self._at += len(data)
        return data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while block := await self.read(STREAM_BLOCK_BYTES):
            yield block

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None
