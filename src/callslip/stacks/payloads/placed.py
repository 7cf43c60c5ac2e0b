"""A payload store that the index has to agree with.

Two stores on one index that keep their payloads in different places would lose each other's: an
equal content of the one is taken for stored by the other, and what the one deletes is not there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from callslip.errors import SettingsError
from callslip.stacks.ops import Op, PayloadPlace, PutObject, Runs

T = TypeVar("T")


class PlacedPayloads:
    """The payload store at `where`, for the index in the folder `home`; None for an index
    on a server.

    The first object that is written has its place recorded in the index. Every operation of a
    store with another place raises SettingsError, which says where the payloads are.
    """

    def __init__(self, payloads: Runs, index: Runs, where: str, home: Path | None) -> None:
        self._payloads = payloads
        self._index = index
        self._where = where
        self._home = home
        self._agreed = False

    def run(self, op: Op[T], /) -> T:
        """Run one operation, where the index agrees."""
        # Asked before every write: the index may have been removed and made anew.
        if not self._agreed or isinstance(op, PutObject):
            self._agree(isinstance(op, PutObject))
        return self._payloads.run(op)

    def _agree(self, record: bool) -> None:
        given = recorded_as(self._where, self._home)
        recorded = self._index.run(PayloadPlace(given if record else None))
        if recorded is None:
            return
        there = resolved(recorded, self._home)
        if there != resolved(given, self._home):
            raise SettingsError(
                f"payloads={given!r}: the payloads of this index are in {recorded!r}; "
                f"give payloads={there!r}"
            )
        self._agreed = True


def recorded_as(where: str, home: Path | None) -> str:
    """How a place is recorded: a URL without credentials, a folder by its absolute path, or, inside
    the index's own folder, by its path from there: the whole can then be moved."""
    if "://" in where:
        url = urlsplit(where)
        if url.scheme != "file":
            host = url.netloc.rpartition("@")[2]
            return f"{url.scheme}://{host}{url.path.rstrip('/')}"
        where = unquote(url.path)
    folder = _straight(where)
    base = None if home is None else _straight(home)
    inside = base is not None and folder.is_relative_to(base)
    return str(folder.relative_to(base) if base is not None and inside else folder)


def _straight(folder: str | Path) -> Path:
    return Path(os.path.realpath(folder) if ".." in Path(folder).parts else folder).absolute()


def resolved(recorded: str, home: Path | None) -> str:
    """The place that was recorded, so that equal places are equal."""
    return recorded if "://" in recorded else os.path.realpath((home or Path()) / recorded)
