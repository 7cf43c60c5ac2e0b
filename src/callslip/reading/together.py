"""Records as they lie in a text, one behind another: decoded at once, cut out only when asked for.

What may live here: this one sequence. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import overload

__all__ = ["Together", "bytes_of", "joined", "united"]


class Together(Sequence[bytes]):
    """The exact texts of `count` records. `pieces`, joined, are the same as the inside of a JSON
    list; `cut` cuts the records out, and costs more than decoding a field of all of them."""

    def __init__(
        self, pieces: Sequence[bytes], count: int, cut: Callable[[], Sequence[bytes]]
    ) -> None:
        self.pieces = pieces
        self._count = count
        self._cut = cut

    @cached_property
    def _records(self) -> Sequence[bytes]:
        return self._cut()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._records)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        return self._records[index]


def joined(records: Sequence[bytes]) -> bytes:
    """All of them as one JSON list."""
    if isinstance(records, Together):
        return b"".join([b"[", *records.pieces, b"]"])
    return b"[" + b",".join(records) + b"]"


def united(groups: Sequence[Sequence[bytes]]) -> Sequence[bytes]:
    """Several groups as one."""
    if len(groups) == 1:
        return groups[0]
    pieces: list[bytes] = []
    for group in groups:
        if not isinstance(group, Together):
            return [record for each in groups for record in each]
        if pieces:
            pieces.append(b",")
        pieces += group.pieces
    count = sum(map(len, groups))
    return Together(pieces, count, lambda: [record for each in groups for record in each])


def bytes_of(records: Sequence[bytes]) -> int:
    """About how many bytes they are together."""
    return sum(map(len, records.pieces if isinstance(records, Together) else records))
