"""An index without keys, which must not be one that is sealed."""

from __future__ import annotations

from typing import TypeVar

from callslip.errors import SettingsError
from callslip.stacks.keyops import Rewrap, SealMark, Shred
from callslip.stacks.ops import Op, Runs

T = TypeVar("T")


class Clear:
    """Runs operations on `inner`, once it has said that it is in the clear."""

    def __init__(self, inner: Runs) -> None:
        self.inner = inner
        self._known = False

    def run(self, op: Op[T], /) -> T:
        """Run one operation. Raises `SettingsError` for an index that needs keys."""
        if not self._known:
            if self.inner.run(SealMark()) is not None:
                raise SettingsError(
                    "this store is sealed: give keys= what it was made with (a key file, 'env:NAME' "
                    "or a KMS); callslip takes --keys or CALLSLIP_KEYS"
                )
            self._known = True
        if isinstance(op, Shred | Rewrap):
            raise SettingsError("this store has no keys: give keys=, or delete(…)")
        return self.inner.run(op)

    def close(self) -> None:
        """Close the index."""
        if hasattr(self.inner, "close"):
            self.inner.close()
