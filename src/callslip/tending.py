"""The upkeep of a `ResultStore`: sweeping, collecting, verifying, counting, deleting, delivering."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from callslip import limits
from callslip.errors import SettingsError, StoreUnavailable
from callslip.governing import reach_of
from callslip.settings import Event, Settings
from callslip.stacks.caches import Caches
from callslip.stacks.clock import SharedClock
from callslip.stacks.drive import Backend, adrive, drive
from callslip.stacks.flows import aside
from callslip.stacks.ops import Count, Flow, Remove, Runs, Totals, do

if TYPE_CHECKING:
    from callslip.reading.query import Tables
    from callslip.stacks.upkeep import Cleaned, Findings

T = TypeVar("T")
logger = logging.getLogger("callslip")

_LETS_NOTHING_GO = ("permission denied", "failed")
"""Why a store that works may refuse to delete: a right that is missing, an object that is locked.
That is no reason not to deliver to it what waits."""


class Tending:
    """What `ResultStore` inherits: it has settings and a backend, and runs flows on it."""

    settings: Settings
    caches: Caches
    _backend: Backend
    _clock: SharedClock
    _tables: Tables | None
    _spool_folder: Path | None
    _tidied_at: float
    _spooled: bool

    if TYPE_CHECKING:

        def forget_all(self) -> None: ...

    # --- running flows ---

    def run_flow(self, flow: Flow[T]) -> T:
        """Run a flow of this store, here."""
        return drive(self._backend, self._clock.asked(self._told(flow)))

    async def arun_flow(self, flow: Flow[T]) -> T:
        """Run a flow of this store, off the event loop."""
        return await adrive(self._backend, self._clock.asked(self._told(flow)))

    def _told(self, flow: Flow[T]) -> Flow[T]:
        if not self.settings.audit:
            return flow
        from callslip.stacks.telling import Teller, told

        asks = self.settings.authorize is not None
        return told(flow, Teller(self.settings.actor, self.now, asks))

    def now(self) -> float:
        """Seconds since the epoch, on the store's clock: that of the index, where it has one."""
        return self._clock.now()

    def emit(self, event: Event) -> None:
        """Log an event and hand it to `on_event`; a hook that raises is logged, never passed on."""
        level = logging.INFO if event.name in ("stored", "delivered") else logging.WARNING
        logger.log(level, "%s", event, extra={"callslip": event})
        if self.settings.on_event is not None:
            try:
                self.settings.on_event(event)
            except Exception:
                logger.exception("on_event raised for %s", event.name)

    # --- upkeep ---

    def upkeep(self) -> Flow[None]:
        """What a put does by the way, at most every half minute: a bounded share of the sweep, and
        the delivery of what the spool holds. A store that is away again is no error here."""
        from callslip.stacks import upkeep

        now = time.monotonic()
        if now - self._tidied_at < limits.SWEEP_EVERY_SECONDS and not self._spooled:
            return
        self._tidied_at = now
        try:
            try:
                yield from upkeep.tidy((yield from self._clock.sure()))
            except StoreUnavailable as error:
                if error.reason not in _LETS_NOTHING_GO:
                    raise
                logger.warning("upkeep put off: %s", error)
            yield from self._deliver(limits.DELIVER_SECONDS)
        except StoreUnavailable as error:
            logger.warning("upkeep put off: %s", error)
        except Exception:
            # What was just stored is stored: upkeep that fails must not say otherwise.
            logger.exception("upkeep failed")

    def note_spooled(self) -> None:
        """Something went into the spool: deliver it at the next put that works."""
        self._spooled = True

    def _deliver(self, seconds: float = float("inf")) -> Flow[int]:
        from callslip.stacks import upkeep
        from callslip.stacks.upkeep import Terms

        if self.spool is None or not (self._spooled or self._spool_waits()):
            return 0
        settings = self.settings
        plain = bool(settings.plain_folder)
        terms = Terms(settings.ttl_of, settings.retention.runs_out, settings.quota, plain)
        arrived, more = yield from upkeep.deliver(self.spool, self.now(), terms, seconds=seconds)
        self._spooled = more
        for row in arrived:
            self.emit(Event("delivered", row.tool, row.id, row.shape.size))
        return len(arrived)

    def sweep(self) -> None:
        """Turn the results of every expired session into tombstones, and delete what they held."""
        self.run_flow(self._sweep())

    async def asweep(self) -> None:
        """`sweep`, off the event loop."""
        await self.arun_flow(self._sweep())

    def _sweep(self) -> Flow[int]:
        from callslip.stacks import upkeep

        return (yield from upkeep.sweep((yield from self._clock.sure())))

    def gc(self, grace_seconds: float = limits.ORPHAN_GRACE_SECONDS) -> Cleaned:
        """Sweep, delete orphans older than `grace_seconds`, deliver the spool, mend counts.

        Of what others are storing meanwhile the object comes first: an orphan until its row is there.
        So 0 seconds are for when nobody writes. A spool that cannot be used is raised
        (`StoreUnavailable`) once all else is done.
        """
        return self.run_flow(self._gc(grace_seconds))

    async def agc(self, grace_seconds: float = limits.ORPHAN_GRACE_SECONDS) -> Cleaned:
        """`gc`, off the event loop."""
        return await self.arun_flow(self._gc(grace_seconds))

    def _gc(self, grace_seconds: float) -> Flow[Cleaned]:
        from callslip.stacks import saving, upkeep
        from callslip.stacks.upkeep import Cleaned

        cleaned, refused = Cleaned(), None
        try:
            cleaned = yield from upkeep.gc((yield from self._clock.sure()), grace_seconds)
        except StoreUnavailable as error:
            if error.reason not in _LETS_NOTHING_GO:
                raise
            refused = error
        if self.settings.plain_folder:
            yield from saving.tidy()
        # Last: where the disk is full, the rest has made room.
        delivered = yield from self._deliver()
        if refused is not None:
            raise refused
        return replace(cleaned, delivered=delivered)

    def verify(self, progress: Callable[[int], object] | None = None) -> Findings:
        """Read every payload back against its checksums. `findings.ok`, `findings.problems`."""
        from callslip.stacks import upkeep

        return self.run_flow(upkeep.verify(progress))

    async def averify(self, progress: Callable[[int], object] | None = None) -> Findings:
        """`verify`, off the event loop."""
        from callslip.stacks import upkeep

        return await self.arun_flow(upkeep.verify(progress))

    def stats(self, *, tenant: str | None = None) -> Totals:
        """How much the store, or one tenant, holds."""
        return self.run_flow(do(Count(tenant=tenant)))

    async def astats(self, *, tenant: str | None = None) -> Totals:
        """`stats`, off the event loop."""
        return await self.arun_flow(do(Count(tenant=tenant)))

    def delete(
        self,
        *,
        tenant: str = "",
        user: str | None = None,
        session: str | None = None,
        subject: str | None = None,
    ) -> int:
        """Delete for good all results of a tenant, of a user, or of a user's session; or, with
        `subject`, every result, scratch file version and fact about it in all of the tenant.

        Leaves no tombstones, and nothing of it in memory. Answers how many results went; with a
        subject results, versions and facts. Raises `LegalHold`, and deletes nothing, if a hold
        covers any of it.
        """
        return self.run_flow(self._delete(tenant, user, session, subject))

    async def adelete(
        self,
        *,
        tenant: str = "",
        user: str | None = None,
        session: str | None = None,
        subject: str | None = None,
    ) -> int:
        """`delete`, off the event loop."""
        return await self.arun_flow(self._delete(tenant, user, session, subject))

    def _delete(
        self, tenant: str, user: str | None, session: str | None, subject: str | None
    ) -> Flow[int]:
        from callslip.stacks import saving, upkeep
        from callslip.stacks.governing import remove_subject

        tenant, user, session = reach_of(tenant, user, session)
        make: Callable[[], Flow[int]]
        if subject is None:
            op = Remove("deleted", self.now(), tenant, user, session, tombstones=False)
            make = partial(upkeep.remove, op)
        elif user is not None or session is not None:
            raise SettingsError("delete: a subject goes with a tenant alone, not a user or session")
        elif not isinstance(subject, str) or not subject:
            raise SettingsError(f"subject={subject!r}: give a name")
        else:
            make = partial(remove_subject, tenant, subject, self.now())
        removed = yield from make()
        if self.settings.plain_folder:
            # Those of what went whose payload another result has, too.
            try:
                yield from saving.tidy()
            except StoreUnavailable as error:
                logger.warning("plain files are left to gc: %s", error)
        self.forget_all()
        if self._spool_waits():
            yield from aside(make())
        return removed

    # --- parts ---

    @property
    def spool(self) -> Runs | None:
        """The local store that takes results while this one is away; None if there is none."""
        return self._backend.spool

    def _spool_waits(self) -> bool:
        folder = self._spool_folder
        return folder is not None and (folder / "index.db").exists()

    def _spool_blocked(self) -> str:
        """The folder on the spool's path that nothing can be made in; "" where all is well."""
        folder = self._spool_folder
        while folder is not None and not os.path.lexists(folder):
            folder = folder.parent
        usable = folder is None or os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
        return "" if usable else str(folder)
