"""Getting a payload's bytes: few reads, for over a network each is a round trip.

What may live here: which bytes are read, and when. No look into what is packed.
"""

from __future__ import annotations

from collections.abc import Iterator

from callslip.errors import PayloadDamaged
from callslip.limits import STREAM_BLOCK_BYTES
from callslip.stacks.directory import Directory
from callslip.stacks.ops import Flow, Payload, Runs, do, part_of

__all__ = ["Frames", "blocks_of", "bytes_of"]

AHEAD_BYTES = 2 * 1024 * 1024
"""Packed bytes that are read ahead at the most, by who reads one frame after the other."""


def bytes_of(row: Payload, start: int, length: int) -> Flow[bytes]:
    """Bytes of a packed payload, wherever it is. Raises PayloadDamaged if they are not there."""
    if row.data is not None:
        found = row.data[start : start + length]
    elif row.key is not None:
        found = yield from do(part_of(row, start, length))
    else:
        raise PayloadDamaged("an index row leads to no payload")
    if len(found) != length:
        raise PayloadDamaged(f"a payload is cut short: {len(found)} of {length} bytes")
    return found


def blocks_of(source: Runs, payload: Payload) -> Iterator[bytes]:
    """The object of a payload in another store, block by block, as it is put into this one."""
    for start in range(0, payload.packed, STREAM_BLOCK_BYTES):
        length = min(STREAM_BLOCK_BYTES, payload.packed - start)
        yield source.run(part_of(payload, start, length))


class Frames:
    """The frames of one payload's chunks, for one reader.

    With a frame comes the one behind it, for a page may end in that; who goes on reading where an
    earlier read ended gets more ahead each time.
    """

    def __init__(self, row: Payload, directory: Directory) -> None:
        self._row = row
        self._directory = directory
        self._held: tuple[tuple[int, bytes], ...] = ()
        """What was read last, and where it is in the payload: some readers are two groups ahead."""
        self._ahead = 0

    def read(self, first: int, behind: int) -> Flow[bytes]:
        """The frames of chunks `first` up to, not including, `behind`."""
        start, end = self._directory.extent(first)[0], self._end(behind)
        if self._row.data is not None:
            return (yield from bytes_of(self._row, start, end - start))
        for at, held in self._held:
            if at <= start and end <= at + len(held):
                return held[start - at : end - at]
        goes_on = any(at < start <= at + len(held) for at, held in self._held)
        self._ahead = min(max(self._ahead * 2, AHEAD_BYTES // 8), AHEAD_BYTES) if goes_on else 0
        chunks = self._directory.chunks
        upto = min(max(end + self._ahead, self._end(min(behind + 1, chunks))), self._end(chunks))
        try:
            found = yield from bytes_of(self._row, start, upto - start)
        except PayloadDamaged:
            # What was asked for may be there, though what is behind it is not.
            found = yield from bytes_of(self._row, start, end - start)
        self._held = ((start, found), *self._held[:1])
        return found[: end - start]

    def _end(self, behind: int) -> int:
        start, length = self._directory.extent(behind - 1)
        return start + length
