"""An index without keys, which must not be one that is sealed."""

from __future__ import annotations

from typing import TypeVar

from callslip.errors import SettingsError
from callslip.stacks.auditops import Holds, Trail
from callslip.stacks.index.sealed.wrapping import Anew
from callslip.stacks.keyops import Rewrap, SealMark, Shred
from callslip.stacks.memoryops import ListFacts, Which
from callslip.stacks.ops import Count, Op, Runs, Sessions

T = TypeVar("T")


def holds_any(index: Runs) -> bool:
    """Whether an index holds anything at all of anybody."""
    held = index.run(Count())
    facts = ListFacts(Which((), deep=True), 0, 0, 0.0)
    return bool(
        held.sessions
        or held.results
        or held.tombstones
        or held.files
        or index.run(facts)[1]
        or index.run(Holds())
        or index.run(Trail(0, 1))
    )


class Clear:
    """Runs operations on `inner`, once it has said that it is in the clear."""

    def __init__(self, inner: Runs) -> None:
        self.inner = inner
        self._known = False
        if hasattr(inner, "anew"):
            inner.anew = self._anew

    def run(self, op: Op[T], /) -> T:
        """Run one operation. Raises `SettingsError` for an index that needs keys."""
        try:
            return self._run(op)
        except Anew:  # before anything of it was done
            return self._run(op)

    def _anew(self) -> None:
        """Who makes it anew may do so with keys."""
        self._known = False
        raise Anew("the index was made anew while it was used", reason="failed")

    def _run(self, op: Op[T]) -> T:
        if not self._known:
            # Until it holds something: an empty one may be sealed yet, by who brings keys.
            if self.inner.run(SealMark()) is not None:
                raise SettingsError(
                    "this store is sealed: give keys= what it was made with (a key file, 'env:NAME' "
                    "or a KMS); callslip takes --keys or CALLSLIP_KEYS"
                )
            self._known = bool(self.inner.run(Sessions(1)))
        if isinstance(op, Shred | Rewrap):
            raise SettingsError("this store has no keys: give keys=, or delete(…)")
        return self.inner.run(op)

    def close(self) -> None:
        """Close the index."""
        if hasattr(self.inner, "close"):
            self.inner.close()
