"""A payload store as one index sees it: where the index agrees, and only what is its own.

Two stores on one index that keep their payloads in different places would lose each other's: an
equal content of the one is taken for stored by the other, and what the one deletes is not there. Two
indexes with one place would lose each other's, too: gc takes what it does not know for an orphan. So
an index records its place, and a name that all of its keys begin with there.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import unquote, urlsplit

from callslip.errors import SettingsError
from callslip.stacks.ops import (
    DeleteObjects,
    IsRemote,
    ListObjects,
    Op,
    PayloadPlace,
    PutObject,
    ReadObject,
    Runs,
)
from callslip.stacks.savedops import AppendPlain, BeginPlain, DropPlain, EndPlain, MovePlain

T = TypeVar("T")

_NAMED = re.compile(r"(?P<place>.*)#(?P<name>d-[0-9a-f]{16})", re.DOTALL)
_OF_ANOTHER = re.compile(r"d-[0-9a-f]{16}/")


class PlacedPayloads:
    """The payload store at `where`, for the index in the folder `home`; None for an index
    on a server, or in memory.

    The first object that is written has its place recorded in the index. Every operation of a
    store with another place raises SettingsError, which says where the payloads are.

    A place that others may use as well, which is one outside of `home`, is recorded with a random
    name: objects stand in a folder of that name, and no others are listed, so that gc removes
    nobody else's. The index does not know of it: its keys are those within the folder.
    """

    def __init__(self, payloads: Runs, index: Runs, where: str, home: Path | None) -> None:
        self._payloads = payloads
        self._index = index
        self._where = where
        self._home = home
        self._agreed = False
        self._name = ""

    def run(self, op: Op[T], /) -> T:
        """Run one operation, where the index agrees."""
        # Asked before every write: the index may have been removed and made anew.
        writes = isinstance(op, PutObject)
        if writes or not (self._agreed or isinstance(op, IsRemote)):
            self._agree(writes)
        match op:
            case ListObjects():
                return cast("T", self._list(op))
            case PutObject() | ReadObject():
                full: Op[Any] = replace(op, key=self._full(op.key))
                return cast("T", self._payloads.run(full))
            case BeginPlain() | AppendPlain() | EndPlain() | DropPlain():
                return cast("T", self._payloads.run(replace(op, key=self._full(op.key))))
            case MovePlain(key, new):
                return cast("T", self._payloads.run(MovePlain(self._full(key), self._full(new))))
            case DeleteObjects():
                return cast("T", self._payloads.run(DeleteObjects([*map(self._full, op.keys)])))
        return self._payloads.run(op)

    def _full(self, key: str) -> str:
        return f"{self._name}/{key}" if self._name else key

    def _list(self, op: ListObjects) -> list[tuple[str, int, float]]:
        if self._name:
            after = None if op.after is None else self._full(op.after)
            under = f"{self._name}/{op.under}" if op.under else self._name
            found = self._payloads.run(ListObjects(after, op.limit, under))
            return [(key[len(self._name) + 1 :], size, at) for key, size, at in found]
        if not self._agreed and self._shared():
            # Nothing of this index is there yet; whether the place is there is asked all the same.
            self._payloads.run(replace(op, limit=1))
            return []
        # An index of before there were names: all is its own but what has one.
        while listed := self._payloads.run(op):
            if own := [each for each in listed if not _OF_ANOTHER.match(each[0])]:
                return own
            op = replace(op, after=listed[-1][0])
        return []

    def _shared(self) -> bool:
        given = recorded_as(self._where, self._home)
        if "://" in given:
            return not given.startswith("memory:")
        return Path(given).is_absolute()

    def _agree(self, record: bool) -> None:
        given = recorded_as(self._where, self._home)
        offered = f"{given}#d-{secrets.token_hex(8)}" if self._shared() else given
        recorded = self._index.run(PayloadPlace(offered if record else None))
        if recorded is None:
            return
        place, name = named(recorded)
        there = resolved(place, self._home)
        if there != resolved(given, self._home):
            raise SettingsError(
                f"payloads={given!r}: the payloads of this index are in {place!r}; "
                f"give payloads={there!r}"
            )
        self._name = name
        self._agreed = True


def named(recorded: str) -> tuple[str, str]:
    """What was recorded, taken apart: the place, and the index's own name there, "" without one."""
    found = _NAMED.fullmatch(recorded)
    return (found["place"], found["name"]) if found else (recorded, "")


def recorded_as(where: str, home: Path | None) -> str:
    """How a place is recorded: a URL without credentials, a folder by its absolute path, or, inside
    the index's own folder, by its path from there: the whole can then be moved."""
    if "://" in where:
        url = urlsplit(where)
        if url.scheme != "file":
            host = url.netloc.rpartition("@")[2]
            return f"{url.scheme}://{host}{url.path.rstrip('/')}"
        where = unquote(url.path) + ("/.callslip" if url.query == "plain" else "")
    folder = _straight(where)
    base = None if home is None else _straight(home)
    inside = base is not None and folder.is_relative_to(base)
    return str(folder.relative_to(base) if base is not None and inside else folder)


def _straight(folder: str | Path) -> Path:
    return Path(os.path.realpath(folder) if ".." in Path(folder).parts else folder).absolute()


def resolved(recorded: str, home: Path | None) -> str:
    """The place that was recorded, so that equal places are equal."""
    return recorded if "://" in recorded else os.path.realpath((home or Path()) / recorded)
