"""Records as places in a block of bytes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

__all__ = ["Cut"]


class _Less(Sequence[int]):
    """Numbers, each less by `base`: worked out only where one is asked for."""

    def __init__(self, numbers: Sequence[int], base: int) -> None:
        self._numbers = numbers
        self._base = base

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            return _Less(self._numbers[index], self._base)
        return self._numbers[index] - self._base


class Cut(Sequence[bytes]):
    """Records as places in a block of bytes: cut out only where one is asked for.

    `spans` are flat (start, end) pairs in order, of an offset `base` that the block starts at.
    """

    def __init__(self, block: bytes, spans: Sequence[int], base: int = 0) -> None:
        self.block = block
        self.starts: Sequence[int] = _Less(spans[::2], base) if base else spans[::2]
        self.ends: Sequence[int] = _Less(spans[1::2], base) if base else spans[1::2]

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            block = self.block
            pairs = zip(self.starts[index], self.ends[index], strict=True)
            return [block[start:end] for start, end in pairs]
        return self.block[self.starts[index] : self.ends[index]]
