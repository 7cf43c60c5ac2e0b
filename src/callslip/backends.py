"""Which parts the store of some settings is made of: index, payload store and spool.

The one place that knows every kind of index and what is put around one; each part is opened by its
first operation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from callslip.settings import Settings, place_of
from callslip.stacks.breaker import Breaker
from callslip.stacks.drive import Backend, Lazy
from callslip.stacks.ops import Runs


def backend_of(settings: Settings, spool: Path | None) -> Backend:
    """The parts of a store, each opened by its first operation: a folder appears when it is used."""

    # Resolved once, by the first use: a folder changed in between must not part index and payloads.
    place = cache(lambda: place_of(settings))

    def index() -> Runs:
        from callslip.stacks.index.sealed import Clear, Sealed, master_of

        keys = settings.keys
        return Clear(database()) if keys is None else Sealed(database(), master_of(keys))

    def database() -> Runs:
        if place().database:
            from callslip.stacks.index.postgres import PostgresIndex

            return PostgresIndex(place().database)
        from callslip.stacks.index.sqlite import SqliteIndex

        return SqliteIndex(place().index or ":memory:")

    def payloads() -> Runs:
        from callslip.stacks.payloads import open_payloads
        from callslip.stacks.payloads.placed import PlacedPayloads

        file, where = place().index, place().payloads
        opened: Runs = open_payloads(where)
        if settings.keys is not None:
            from callslip.stacks.payloads.sealed import SealedPayloads

            opened = SealedPayloads(opened)
        if file is None and not place().database and where.startswith("memory:"):
            return opened
        return PlacedPayloads(opened, lazy, where, None if file is None else file.parent)

    served = settings.on_a_server
    lazy = Breaker(Lazy(index), "the index", locks_whole=not served)
    objects = Breaker(Lazy(payloads), "the payload store")
    sealed = settings.keys is not None
    if spool is None:
        return Backend(lazy, objects, sealed=sealed)
    local = replace(settings, url=str(spool), payloads=None)
    return Backend(lazy, objects, backend_of(local, None), sealed=sealed)
