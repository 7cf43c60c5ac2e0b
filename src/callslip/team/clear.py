"""Runs of a database without keys, which must not be one that is sealed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from callslip.errors import SettingsError
from callslip.stacks.index.runs import StoredRun
from callslip.stacks.keyops import SealMark

if TYPE_CHECKING:
    from callslip.team.db import Runs

__all__ = ["ClearRuns"]


class ClearRuns:
    """Runs in `inner`, once the index of the same database, which `index` opens, has said that it is
    in the clear. From the first run on it stays so: keys are refused then."""

    def __init__(self, inner: Runs, index: Callable[[], Any]) -> None:
        self._inner = inner
        self.get, self.list, self.remove = inner.get, inner.list, inner.remove
        self._index = index
        self._known = False

    def put(self, run: StoredRun) -> None:
        if not self._known:
            index = self._index()
            try:
                mark = index.run(SealMark())
            finally:
                index.close()
            if mark is not None:
                raise SettingsError(
                    "this database is sealed: give it the keys= that it was made with, as "
                    "SqliteDb(file, keys=…) or PostgresDb(url, keys=…)"
                )
        self._inner.put(run)
        self._known = True
