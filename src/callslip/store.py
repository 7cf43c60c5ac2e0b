"""`ResultStore`: settings and store in one; where sessions come from and where upkeep is done."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from callslip import limits
from callslip.errors import SettingsError, StoreUnavailable
from callslip.handle import Quota, Scope
from callslip.settings import Event, Redact, Settings, Style, place_of, policy_of, spool_of
from callslip.stacks import upkeep
from callslip.stacks.drive import Backend, Lazy, adrive, drive
from callslip.stacks.ops import Count, Flow, Remove, Runs, Totals, aside, do
from callslip.stacks.reader import Caches
from callslip.stacks.upkeep import Cleaned, Findings
from callslip.window.policy import Rule

if TYPE_CHECKING:
    from callslip.reading.query import Tables
    from callslip.session import Session
    from callslip.window.envelope import Vocabulary

T = TypeVar("T")
logger = logging.getLogger("callslip")


def _backend(settings: Settings, spool: Path | None) -> Backend:
    """The parts of a store, each opened by its first operation: a folder appears when it is used."""

    # Resolved once, by the first use: a folder changed in between must not part index and payloads.
    place = cache(lambda: place_of(settings))

    def index() -> Runs:
        from callslip.stacks.index.sqlite import SqliteIndex

        return SqliteIndex(place().index or ":memory:")

    def payloads() -> Runs:
        from callslip.stacks.payloads import open_payloads
        from callslip.stacks.payloads.placed import PlacedPayloads

        file, where = place().index, place().payloads
        opened = open_payloads(where)
        return opened if file is None else PlacedPayloads(opened, lazy, where, file.parent)

    lazy = Lazy(index)
    if spool is None:
        return Backend(lazy, Lazy(payloads))
    local = replace(settings, url=str(spool), payloads=None)
    return Backend(lazy, Lazy(payloads), _backend(local, None))


def _made(kind: type[ResultStore], settings: Settings) -> ResultStore:
    store = kind.__new__(kind)
    store._setup(settings)
    return store


class ResultStore:
    """Keeps large results outside the model's window and gives each an address.

    ``ResultStore()`` keeps them in ``./.callslip`` (SQLite and a folder); a first argument names
    another folder or ``sqlite:///index.db``. Nothing is opened or created before the first use, and
    the object is never modified by giving it to something: `bind` makes a copy.

    threshold_chars   a result longer than this is offloaded (default 16,000: one full page)
    threshold_tokens  the same in tokens, instead; `count_tokens` is any callable, the default is an
                      offline estimate
    preview_lines, preview_chars   how much of a result its envelope shows
    ttl_seconds       a session's results expire this long after its last activity; None: never
    payloads          where large payloads live: a folder, ``file:///…``, ``memory://`` or an object
                      store's URL
    tools             per tool: ``"always"``, ``"never"``, ``"threshold"``, or its own threshold
    keep              ``keep(value, tool)`` is true for what must stay inline
    quota             caps on what is kept (`Quota`); the oldest results are evicted
    redact            a function of text, applied to whole lines of it before anything is stored
                      (not to what stands in base64)
    member_responses  for teams: also offload a member's own stored run
    on_event          called with an `Event` for each value stored, refused, spooled or removed
    clock             seconds since the epoch; for tests
    spool             folder that takes results while the store is away; "" for none
    vocabulary        what the read-back tools are called: ``"results"`` (`read_result`, …) or
                      ``"files"`` (`read_slice`, `grep_file`, …)
    style             what an envelope looks like: ``"text"``, or ``"json"`` for one JSON object
                      (`saved_to`, `rows`, `fields`, `preview`, `hint`)

    Raises `SettingsError`, which names the keyword, its value and what to give.
    """

    def __init__(
        self,
        url: str | PathLike[str] | None = None,
        *,
        payloads: str | PathLike[str] | None = None,
        threshold_chars: int = limits.THRESHOLD_CHARS,
        threshold_tokens: int | None = None,
        count_tokens: Callable[[str], int] | None = None,
        preview_lines: int = limits.PREVIEW_LINES,
        preview_chars: int = limits.PREVIEW_CHARS,
        ttl_seconds: float | None = None,
        member_responses: bool = True,
        tools: Mapping[str, Rule] | None = None,
        keep: Callable[[Any, str], bool] | None = None,
        quota: Quota | None = None,
        redact: Redact | None = None,
        on_event: Callable[[Event], object] | None = None,
        clock: Callable[[], float] | None = None,
        spool: str | PathLike[str] | None = None,
        vocabulary: Vocabulary = "results",
        style: Style = "text",
    ) -> None:
        settings = Settings(
            url=None if url is None else fspath(url),
            payloads=None if payloads is None else fspath(payloads),
            policy=policy_of(threshold_chars, threshold_tokens, count_tokens, tools, keep),
            preview_lines=preview_lines,
            preview_chars=preview_chars,
            ttl_seconds=ttl_seconds,
            member_responses=member_responses,
            quota=quota or Quota(),
            redact=redact,
            on_event=on_event,
            spool=None if spool is None else fspath(spool),
            vocabulary=vocabulary,
            style=style,
        )
        if clock is not None:
            settings = replace(settings, clock=clock)
        if settings.url is not None:
            place_of(settings)  # a wrong URL is an error here, not at the first put
        self._setup(settings)

    def _setup(self, settings: Settings) -> None:
        self.settings = settings
        self.caches = Caches()
        self._tables: Tables | None = None
        self._spool_folder = spool_of(settings)
        self._backend = _backend(settings, self._spool_folder)
        self._tidied_at = time.monotonic()
        self._spooled = False

    def __repr__(self) -> str:
        place = self.settings.url or ".callslip"
        return f"ResultStore({place!r})" if "://" not in place else "ResultStore(…)"

    def __deepcopy__(self, memo: dict[int, Any]) -> ResultStore:
        # A store is a place, not a value: frameworks that copy an agent mean the same place.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), self.settings)

    # --- sessions and binding ---

    def session(self, session: str, *, user: str = "", tenant: str = "") -> Session:
        """The session of that name: opened if it is new, picked up where it was if it is not.

        Names are compared exactly. Raises `SettingsError` if one is not a string, or the session's
        name is empty.
        """
        from callslip.session import Session

        for name, value in (("session", session), ("user", user), ("tenant", tenant)):
            if not isinstance(value, str):
                raise SettingsError(f"{name}={value!r}: give a string")
        if not session:
            raise SettingsError("session='': give the conversation's or the run's id")
        return Session(self, Scope(session=session, user=user, tenant=tenant))

    def bind(
        self, url: str | PathLike[str], payloads: str | PathLike[str] | None = None
    ) -> ResultStore:
        """A copy with the same settings, bound to that index. This object is not modified."""
        changes: dict[str, Any] = {"url": fspath(url)}
        if payloads is not None:
            changes["payloads"] = fspath(payloads)
        settings = replace(self.settings, **changes)
        place_of(settings)
        return self._with(settings)

    def _with(self, settings: Settings) -> ResultStore:
        return _made(type(self), settings)

    @property
    def bound(self) -> bool:
        """Whether a URL was given; an unbound store opens ``./.callslip`` when used by itself."""
        return self.settings.url is not None

    # --- running flows ---

    def run_flow(self, flow: Flow[T]) -> T:
        """Run a flow of this store, here."""
        return drive(self._backend, flow)

    async def arun_flow(self, flow: Flow[T]) -> T:
        """Run a flow of this store, off the event loop."""
        return await adrive(self._backend, flow)

    def now(self) -> float:
        """Seconds since the epoch, on the store's clock."""
        return self.settings.clock()

    def emit(self, event: Event) -> None:
        """Log an event and hand it to `on_event`; a hook that raises is logged, never passed on."""
        level = logging.INFO if event.name in ("stored", "delivered") else logging.WARNING
        logger.log(level, "%s", event, extra={"callslip": event})
        if self.settings.on_event is not None:
            try:
                self.settings.on_event(event)
            except Exception:
                logger.exception("on_event raised for %s", event.name)

    @property
    def tables(self) -> Tables:
        """The columns that queries made lately, of all results of this store."""
        from callslip.reading.query import Tables

        if self._tables is None:
            self._tables = Tables()
        return self._tables

    def forget(self, digest: bytes) -> None:
        """Keep nothing of one payload in memory: it was deleted."""
        self.caches.forget(digest)
        if self._tables is not None:
            self._tables.forget(digest)

    # --- upkeep ---

    def upkeep(self) -> Flow[None]:
        """What a put does by the way, at most every half minute: a bounded share of the sweep, and
        the delivery of what the spool holds. A store that is away again is no error here."""
        now = time.monotonic()
        if now - self._tidied_at < limits.SWEEP_EVERY_SECONDS and not self._spooled:
            return
        self._tidied_at = now
        try:
            yield from upkeep.tidy(self.now())
            yield from self._deliver()
        except StoreUnavailable as error:
            logger.warning("upkeep put off: %s", error)
        except Exception:
            # What was just stored is stored: upkeep that fails must not say otherwise.
            logger.exception("upkeep failed")

    def note_spooled(self) -> None:
        """Something went into the spool: deliver it at the next put that works."""
        self._spooled = True

    def _deliver(self) -> Flow[int]:
        if self.spool is None or not (self._spooled or self._spool_waits()):
            return 0
        arrived = yield from upkeep.deliver(
            self.spool, self.now(), self.settings.ttl_seconds, self.settings.quota
        )
        self._spooled = False
        for row in arrived:
            self.emit(Event("delivered", row.tool, row.id, row.shape.size))
        return len(arrived)

    def sweep(self) -> None:
        """Turn the results of every expired session into tombstones, and delete what they held."""
        self.run_flow(upkeep.sweep(self.now()))

    async def asweep(self) -> None:
        """`sweep`, off the event loop."""
        await self.arun_flow(upkeep.sweep(self.now()))

    def gc(self, grace_seconds: float = limits.ORPHAN_GRACE_SECONDS) -> Cleaned:
        """Sweep, delete orphans older than `grace_seconds`, deliver the spool, mend counts."""
        return self.run_flow(self._gc(grace_seconds))

    async def agc(self, grace_seconds: float = limits.ORPHAN_GRACE_SECONDS) -> Cleaned:
        """`gc`, off the event loop."""
        return await self.arun_flow(self._gc(grace_seconds))

    def _gc(self, grace_seconds: float) -> Flow[Cleaned]:
        delivered = yield from self._deliver()
        cleaned = yield from upkeep.gc(self.now(), grace_seconds, time.time())
        return replace(cleaned, delivered=delivered)

    def verify(self, progress: Callable[[int], object] | None = None) -> Findings:
        """Read every payload back against its checksums. `findings.ok`, `findings.problems`."""
        return self.run_flow(upkeep.verify(progress))

    async def averify(self, progress: Callable[[int], object] | None = None) -> Findings:
        """`verify`, off the event loop."""
        return await self.arun_flow(upkeep.verify(progress))

    def stats(self, *, tenant: str | None = None) -> Totals:
        """How much the store, or one tenant, holds."""
        return self.run_flow(do(Count(tenant=tenant)))

    async def astats(self, *, tenant: str | None = None) -> Totals:
        """`stats`, off the event loop."""
        return await self.arun_flow(do(Count(tenant=tenant)))

    def delete(
        self, *, tenant: str = "", user: str | None = None, session: str | None = None
    ) -> int:
        """Delete for good all results of a tenant, of a user, or of a user's session.

        Leaves no tombstones, and nothing of it in memory. Answers how many results went.
        """
        return self.run_flow(self._delete(tenant, user, session))

    async def adelete(
        self, *, tenant: str = "", user: str | None = None, session: str | None = None
    ) -> int:
        """`delete`, off the event loop."""
        return await self.arun_flow(self._delete(tenant, user, session))

    def _delete(self, tenant: str, user: str | None, session: str | None) -> Flow[int]:
        if session is not None and user is None:
            user = ""
        op = Remove("deleted", self.now(), tenant, user, session, tombstones=False)
        removed = yield from upkeep.remove(op)
        if self.spool is not None and self._spool_waits():
            yield from aside(upkeep.remove(op))
        self.caches = Caches()
        self._tables = None
        return removed

    def close(self) -> None:
        """Close files and connections. Nothing is lost; a later call opens them again."""
        self._backend.close()

    # --- parts ---

    @property
    def spool(self) -> Runs | None:
        """The local store that takes results while this one is away; None if there is none."""
        return self._backend.spool

    def _spool_waits(self) -> bool:
        folder = self._spool_folder
        return folder is not None and (folder / "index.db").exists()
