"""Which parts the store of some settings is made of: index, payload store and spool.

The one place that knows every kind of index and what is put around one; each part is opened by its
first operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from callslip.settings import Settings, place_of
from callslip.stacks.breaker import Breaker
from callslip.stacks.drive import Backend, Lazy
from callslip.stacks.ops import Runs

if TYPE_CHECKING:
    from callslip.stacks.index.sealed import Master


def backend_of(settings: Settings, spool: Path | None) -> Backend:
    """The parts of a store, each opened by its first operation: a folder appears when it is used."""

    @cache
    def master() -> Master:
        # One for both: a KMS that hangs is waited for once, not for the spool again.
        from callslip.stacks.index.sealed import master_of

        return master_of(settings.keys)

    backend = _parts(settings, master)
    if spool is not None:
        backend.spool = _parts(replace(settings, url=str(spool), payloads=None), master)
    return backend


def _parts(settings: Settings, master: Callable[[], Master]) -> Backend:

    # Resolved once, by the first use: a folder changed in between must not part index and payloads.
    place = cache(lambda: place_of(settings))

    def index() -> Runs:
        from callslip.stacks.index.sealed import Clear, Sealed

        return Clear(database()) if settings.keys is None else Sealed(database(), master())

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
    return Backend(lazy, objects, sealed=settings.keys is not None)
