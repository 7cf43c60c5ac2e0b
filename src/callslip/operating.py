"""Operating a `ResultStore`: is it well, is it of today's version, and a copy of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from callslip.errors import PayloadDamaged, SettingsError
from callslip.settings import place_of
from callslip.stacks.fetching import blocks_of
from callslip.stacks.layout import AS_STORED
from callslip.stacks.ops import Payloads, PutObject, Runs, do
from callslip.tending import Tending

if TYPE_CHECKING:
    from callslip.stacks.checking import Health
    from callslip.stacks.index.sqlite import SqliteIndex

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Copied:
    """What a backup holds."""

    payloads: int
    """Payloads, those that stand in the index included."""
    packed_bytes: int
    missing: tuple[str, ...]
    """Keys of objects that the index knows and the payload store does not have whole any more:
    deleted while the copy was made, or lost. `verify` on the copy names their results."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The version of an index's tables, 0 where there are none yet, and the newest there is."""

    found: int
    newest: int

    @property
    def current(self) -> bool:
        """True if there is nothing to migrate."""
        return self.found == self.newest


class Operating(Tending):
    """What `ResultStore` inherits for whoever operates it."""

    # --- how it is ---

    def health(self) -> Health:
        """Whether the store works, for a worker's health check: one request to the index, one to
        the payload store, reads only. Never raises for their sake: `health.ok`, `health.problems`."""
        from callslip.stacks import checking

        return self.run_flow(checking.look(self._spool_waits()))

    async def ahealth(self) -> Health:
        """`health`, off the event loop."""
        from callslip.stacks import checking

        return await self.arun_flow(checking.look(self._spool_waits()))

    def examine(self) -> Health:
        """What `callslip doctor` says: besides `health`, the index is written to, an object is put,
        read back and deleted, and the servers' clocks are compared with this machine's."""
        from callslip.stacks import checking

        return self.run_flow(
            checking.examine(self._spool_waits(), time.time, self._spool_blocked())
        )

    async def aexamine(self) -> Health:
        """`examine`, off the event loop."""
        from callslip.stacks import checking

        return await self.arun_flow(
            checking.examine(self._spool_waits(), time.time, self._spool_blocked())
        )

    # --- its version ---

    def versions(self) -> Versions:
        """Which version the index has. Reads only; nothing is made or migrated."""
        from callslip.stacks.index.copying import newest_version, version_of

        place = place_of(self.settings)
        if place.database:
            from callslip.stacks.index.postgres.about import versions

            return Versions(*versions(place.database))
        newest = newest_version()
        return Versions(newest if place.index is None else version_of(place.index), newest)

    def migrate(self) -> Versions:
        """Bring the index to this version, or make it; what there was before is the answer.

        Every store does so at its first use. This is for a deployment that wants it done once,
        ahead, by a role that may change tables."""
        from callslip.stacks import checking

        before = self.versions()
        self.run_flow(checking.touched())
        return before

    # --- a copy ---

    def backup(self, folder: str | PathLike[str]) -> Copied:
        """Copy index and payloads into a new folder, while others read and write.

        The folder is a store: ``ResultStore(folder)`` opens it, and putting it in the old one's
        place restores it. The index is copied as it is at one moment, and then what it knows of.

        Raises `SettingsError` where the folder holds something, and for an index that is not a
        file: PostgreSQL has `pg_dump`, a bucket its provider's copy (docs/operating.md).
        """
        from callslip.stacks.auditops import Entry, Record
        from callslip.stacks.index.copying import copy_index
        from callslip.stacks.index.sqlite import SqliteIndex
        from callslip.stacks.payloads import open_payloads
        from callslip.stacks.payloads.placed import PlacedPayloads
        from callslip.stacks.payloads.sealed import sealed_size

        source, target = place_of(self.settings).index, Path(fspath(folder)).absolute()
        if source is None:
            raise SettingsError(
                "backup copies an index that is a SQLite file; this one is not (docs/operating.md "
                "says how PostgreSQL and buckets are backed up)"
            )
        if target.exists() and any(target.iterdir()):
            raise SettingsError(f"backup={str(target)!r} holds something; give a new folder")
        if self.settings.audit:
            entry = Entry("copied", self.now(), self.settings.actor)
            self.run_flow(do(Record([entry])))  # first: what cannot be told is not done
        copy_index(source, target / "index.db")
        index = SqliteIndex(target / "index.db")
        try:
            where = str(target / "payloads")
            objects = PlacedPayloads(open_payloads(where), index, where, target)
            size_of = sealed_size if self._backend.sealed else int
            return _copied(index, self._backend.payloads, objects, size_of)
        finally:
            index.close()


def _copied(
    index: SqliteIndex, source: Runs, target: Runs, size_of: Callable[[int], int]
) -> Copied:
    count = size = 0
    missing = []
    after: tuple[str, bytes] | None = None
    while listed := index.run(Payloads(after, _BATCH)):
        for tenant, payload, _ in listed:
            after = (tenant, payload.digest)
            count += 1
            size += payload.packed
            if payload.key is None:
                continue
            stored = replace(payload, packed=size_of(payload.packed), secret=AS_STORED)
            try:
                target.run(PutObject(payload.key, blocks_of(source, stored)))
            except PayloadDamaged:
                missing.append(payload.key)
    return Copied(count, size, tuple(missing))
