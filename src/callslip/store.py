"""`ResultStore`: settings and store in one; where sessions come from and where upkeep is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Self, TypeVar

from callslip import limits
from callslip.backends import backend_of
from callslip.errors import SettingsError
from callslip.governing import Governing, subjects_of
from callslip.handle import Quota, Scope
from callslip.keyed import Keyed
from callslip.operating import Operating
from callslip.settings import (
    Authorize,
    Event,
    Mask,
    Redact,
    Retention,
    Settings,
    Style,
    place_of,
    policy_of,
    spool_of,
)
from callslip.stacks.caches import Caches
from callslip.stacks.clock import SharedClock
from callslip.window.policy import Rule

if TYPE_CHECKING:
    from callslip.reading.query import Tables
    from callslip.session import Session
    from callslip.stacks.hiding import Mask as ReadMask
    from callslip.window.envelope import Vocabulary


S = TypeVar("S", bound="ResultStore")


def _mask_of(settings: Settings) -> ReadMask | None:
    if settings.mask is None:
        return None
    from callslip.stacks.hiding import mask_of

    return mask_of(settings.mask)


def _made(kind: type[S], settings: Settings) -> S:
    store = kind.__new__(kind)
    store._setup(settings)
    return store


class ResultStore(Governing, Keyed, Operating):
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
                      store's URL; ``file:///folder?plain`` keeps a plain file of each besides
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
    keys              encrypts everything at rest: a key file, ``"env:NAME"``, or a KMS callable
    authorize         ``authorize(scope, handle, action)`` is true for what may be done; what may not
                      is answered as if there were no such handle
    mask              what a model sees of a field, as ``{"ssn": last4}``, or a function of the text;
                      `load`, `open` and `export` give the caller the whole
    audit             True: who stored, read, searched, queried, loaded, shared, deleted what and when
                      is kept for good, in the index (`audit`, `acting`, `proof`)
    retention         seconds that results are kept, by tool and by tenant (`Retention`)
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
        keys: Any = None,
        authorize: Authorize | None = None,
        mask: Mask | None = None,
        audit: bool = False,
        retention: Retention | None = None,
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
            keys=keys,
            authorize=authorize,
            mask=mask,
            audit=audit,
            retention=retention or Retention(),
        )
        if clock is not None:
            settings = replace(settings, clock=clock)
        if settings.url is not None:
            place_of(settings)  # a wrong URL is an error here, not at the first put
        self._setup(settings)

    def _setup(self, settings: Settings) -> None:
        self.settings = settings
        self.mask = _mask_of(settings)
        self.caches = Caches()
        self._tables: Tables | None = None
        self._origin: Self | None = None
        """The store that this one is beside of, with the same connections and memory (`acting`)."""
        self._spool_folder = spool_of(settings)
        self._backend = backend_of(settings, self._spool_folder)
        asks = settings.on_a_server and settings.clock is time.time
        self._clock = SharedClock(settings.clock, asks=asks)
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

    def session(
        self,
        session: str,
        *,
        user: str = "",
        tenant: str = "",
        subject: str | Sequence[str] | None = None,
    ) -> Session:
        """The session of that name: opened if it is new, picked up where it was if it is not.

        Names are compared exactly. `subject` says whom the results that are put into it from here
        are about, where a `put` does not say otherwise (`delete(subject=…)`). Raises `SettingsError`
        if one is not a string, the session's name is empty, or they are too long for PostgreSQL.
        """
        from callslip.session import Session

        for name, value in (("session", session), ("user", user), ("tenant", tenant)):
            if not isinstance(value, str):
                raise SettingsError(f"{name}={value!r}: give a string")
        if not session:
            raise SettingsError("session='': give the conversation's or the run's id")
        scope = Scope(session=session, user=user, tenant=tenant)
        if (
            self.settings.on_a_server and self.settings.keys is None
        ):  # sealed, names have one length
            from callslip.stacks.index.rows import scope_key

            scope_key(scope)  # said here: the spool would take what never arrives
        return Session(self, scope, subjects_of(subject))

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

    def _beside(self, **changes: Any) -> Self:
        other = _made(type(self), replace(self.settings, **changes))
        other._origin = self._origin or self
        other._backend, other.caches = self._backend, self.caches
        other._clock = self._clock
        return other

    @property
    def bound(self) -> bool:
        """Whether a URL was given; an unbound store opens ``./.callslip`` when used by itself."""
        return self.settings.url is not None

    # --- what is kept in memory ---

    @property
    def tables(self) -> Tables:
        """The columns that queries made lately, of all results of this store."""
        from callslip.reading.query import Tables

        if self._origin is not None:
            return self._origin.tables
        if self._tables is None:
            self._tables = Tables()
        return self._tables

    def forget(self, digest: bytes) -> None:
        """Keep nothing of one payload in memory: it was deleted."""
        self.caches.forget(digest)
        tables = (self._origin or self)._tables
        if tables is not None:
            tables.forget(digest)

    def forget_all(self) -> None:
        """Keep nothing in memory of what was read."""
        self.caches.clear()
        (self._origin or self)._tables = None

    def close(self) -> None:
        """Close files and connections. Nothing is lost; a later call opens them again."""
        self._backend.close()
