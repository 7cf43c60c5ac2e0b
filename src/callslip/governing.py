"""The verbs of a `ResultStore` that govern its data: who did what, what must stay, what must go."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from callslip import limits
from callslip.errors import SettingsError
from callslip.settings import Settings, is_number
from callslip.stacks.ops import Flow, do

if TYPE_CHECKING:
    from typing import Self

    from callslip.stacks.auditops import Entry, Hold, Trail
    from callslip.stacks.governing import Proof

T = TypeVar("T")
_AT_ONCE = 500
_MOST = 2**62


class Takes(Protocol):
    """A text file open for writing, or what is like one."""

    def write(self, text: str, /) -> object: ...


class Governing:
    """What `ResultStore` inherits: it has settings, and runs flows."""

    settings: Settings

    if TYPE_CHECKING:

        def run_flow(self, flow: Flow[T]) -> T: ...

        async def arun_flow(self, flow: Flow[T]) -> T: ...

        def now(self) -> float: ...

        def _beside(self, **changes: Any) -> Self: ...

    def acting(self, actor: str) -> Self:
        """The same store, on the same connections, whose audit names `actor` for what is done:
        ``store.acting("support:li").session("run-42", user="ana").read(id)``."""
        if not isinstance(actor, str):
            raise SettingsError(f"actor={actor!r}: give a string")
        return self._beside(actor=actor)

    # --- the audit --------------------------------------------------------------------------------

    def audit(
        self,
        *,
        tenant: str | None = None,
        user: str | None = None,
        session: str | None = None,
        id: str | None = None,
        action: str | None = None,
        since: float | None = None,
        until: float | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Entry]:
        """Entries of the audit in the order they were made: those that match all that is given.

        `since` and `until` are seconds since the epoch; `after` goes on behind an entry's `n`.
        There are entries for as long as a store with ``audit=True`` was used, and none is ever
        changed or removed.
        """
        given = (tenant, user, session, id, action, since, until)
        return self.run_flow(self._audit(_trail(*given, after, limit)))

    async def aaudit(
        self,
        *,
        tenant: str | None = None,
        user: str | None = None,
        session: str | None = None,
        id: str | None = None,
        action: str | None = None,
        since: float | None = None,
        until: float | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Entry]:
        """`audit`, off the event loop."""
        given = (tenant, user, session, id, action, since, until)
        return await self.arun_flow(self._audit(_trail(*given, after, limit)))

    def _audit(self, trail: Trail) -> Flow[list[Entry]]:
        return list((yield from do(trail)))

    def export_audit(
        self,
        file: Takes,
        *,
        tenant: str | None = None,
        since: float | None = None,
        until: float | None = None,
        after: int = 0,
    ) -> int:
        """Write the audit to a text file as NDJSON, one entry a line; answer how many.

        The lines are ASCII, so the file's encoding does not matter. Raises what its `write` raises.
        """
        return self.run_flow(self._export(file, tenant, since, until, after))

    async def aexport_audit(
        self,
        file: Takes,
        *,
        tenant: str | None = None,
        since: float | None = None,
        until: float | None = None,
        after: int = 0,
    ) -> int:
        """`export_audit`, off the event loop."""
        return await self.arun_flow(self._export(file, tenant, since, until, after))

    def _export(
        self,
        file: Takes,
        tenant: str | None,
        since: float | None,
        until: float | None,
        after: int,
    ) -> Flow[int]:
        from callslip.stacks import governing

        if not hasattr(file, "write"):
            raise SettingsError(
                f"export_audit({file!r}): give a text file that is open for writing"
            )
        trail = _trail(tenant, None, None, None, None, since, until, after, _AT_ONCE)
        return governing.walk(trail, lambda entry: file.write(json.dumps(asdict(entry)) + "\n"))

    def proof(
        self,
        *,
        tenant: str = "",
        subject: str | None = None,
        user: str | None = None,
        session: str | None = None,
        id: str | None = None,
    ) -> Proof:
        """What the audit proves of a deletion: what went, by whom and when (`proof.deleted`), that
        nothing of it is left (`proof.complete`), or what is yet to be erased (`proof.pending`)."""
        return self.run_flow(self._proof(tenant, subject, user, session, id))

    async def aproof(
        self,
        *,
        tenant: str = "",
        subject: str | None = None,
        user: str | None = None,
        session: str | None = None,
        id: str | None = None,
    ) -> Proof:
        """`proof`, off the event loop."""
        return await self.arun_flow(self._proof(tenant, subject, user, session, id))

    def _proof(
        self,
        tenant: str,
        subject: str | None,
        user: str | None,
        session: str | None,
        id: str | None,
    ) -> Flow[Proof]:
        from callslip.stacks import governing
        from callslip.stacks.writing import subject_cause

        trail = _trail(tenant, user, session, id, None, None, None, 0, _AT_ONCE)
        if subject is not None:
            if not isinstance(subject, str) or not subject:
                raise SettingsError(f"subject={subject!r}: give a name")
            trail = replace(trail, cause=(yield from subject_cause(tenant, subject)))
        return (yield from governing.proof(trail))

    # --- legal holds ------------------------------------------------------------------------------

    def hold(
        self,
        *,
        tenant: str = "",
        user: str | None = None,
        session: str | None = None,
        reason: str = "",
    ) -> Hold:
        """Keep all of a tenant, of a user or of a user's session, there or yet to come, until
        `release`: it does not expire and no quota evicts it, and `delete`, `close` and `forget`
        raise `LegalHold`. It can be read and written as before."""
        return self.run_flow(self._hold(tenant, user, session, reason))

    async def ahold(
        self,
        *,
        tenant: str = "",
        user: str | None = None,
        session: str | None = None,
        reason: str = "",
    ) -> Hold:
        """`hold`, off the event loop."""
        return await self.arun_flow(self._hold(tenant, user, session, reason))

    def _hold(self, tenant: str, user: str | None, session: str | None, reason: str) -> Flow[Hold]:
        from callslip.stacks.auditops import PlaceHold

        reach = reach_of(tenant, user, session)
        if not isinstance(reason, str):
            raise SettingsError(f"reason={reason!r}: give a string")
        return (yield from do(PlaceHold(*reach, reason, self.settings.actor, self.now())))

    def release(
        self, *, tenant: str = "", user: str | None = None, session: str | None = None
    ) -> int:
        """Lift the holds that were placed with exactly these names; answer how many. What has run
        out of its time meanwhile, and no other hold covers, goes with the next sweep."""
        return self.run_flow(self._release(tenant, user, session))

    async def arelease(
        self, *, tenant: str = "", user: str | None = None, session: str | None = None
    ) -> int:
        """`release`, off the event loop."""
        return await self.arun_flow(self._release(tenant, user, session))

    def _release(self, tenant: str, user: str | None, session: str | None) -> Flow[int]:
        from callslip.stacks.auditops import Release

        return len((yield from do(Release(*reach_of(tenant, user, session)))))

    def holds(
        self, *, tenant: str | None = None, user: str | None = None, session: str | None = None
    ) -> list[Hold]:
        """The holds there are, the oldest first; or those that a deletion of a tenant, of a user or
        of a user's session would reach into."""
        return self.run_flow(self._holds(tenant, user, session))

    async def aholds(
        self, *, tenant: str | None = None, user: str | None = None, session: str | None = None
    ) -> list[Hold]:
        """`holds`, off the event loop."""
        return await self.arun_flow(self._holds(tenant, user, session))

    def _holds(self, tenant: str | None, user: str | None, session: str | None) -> Flow[list[Hold]]:
        from callslip.stacks.auditops import HeldBy, Holds

        if tenant is None and user is None and session is None:
            return list((yield from do(Holds())))
        return list((yield from do(HeldBy(*reach_of(tenant or "", user, session)))))


def _trail(
    tenant: str | None,
    user: str | None,
    session: str | None,
    id: str | None,
    action: str | None,
    since: float | None,
    until: float | None,
    after: int,
    limit: int,
) -> Trail:
    from callslip.stacks.auditops import Trail

    texts = {"tenant": tenant, "user": user, "session": session, "id": id, "action": action}
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise SettingsError(f"{name}={text!r}: give a string")
    if action is not None and not action.isidentifier():
        raise SettingsError(f"action={action!r}: give one word, such as 'read' or 'deleted'")
    for name, at in (("since", since), ("until", until)):
        if at is not None and not is_number(at) and at not in (-math.inf, math.inf):
            raise SettingsError(f"{name}={at!r}: give seconds since the epoch")
    for name, number in (("after", after), ("limit", limit)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise SettingsError(f"{name}={number!r}: give a whole number")
    since, until = (None if at is None else float(at) for at in (since, until))
    after, limit = (min(max(number, 0), _MOST) for number in (after, limit))
    return Trail(after, limit, tenant, user, session, id, action, None, since, until)


def reach_of(
    tenant: str, user: str | None, session: str | None
) -> tuple[str, str | None, str | None]:
    """What a hold or a deletion is of, as three names. Raises `SettingsError` for what is none."""
    for name, given in (("tenant", tenant), ("user", user), ("session", session)):
        if not isinstance(given, str) and (given is not None or name == "tenant"):
            raise SettingsError(f"{name}={given!r}: give a string")
    # A session is one user's; without a name it is that of no user, as in `session`.
    return tenant, "" if session is not None and user is None else user, session


def subjects_of(subject: object, name: str = "subject") -> tuple[str, ...]:
    """Whom a result is about, as `subject=` says it: a name, or several. Raises `SettingsError`,
    which calls it `name`."""
    if subject is None:
        return ()
    names = (subject,) if isinstance(subject, str) else subject
    if not isinstance(names, list | tuple | set | frozenset) or not all(
        isinstance(each, str) and 0 < len(each) <= limits.SUBJECT_CHARS for each in names
    ):
        raise SettingsError(
            f"{name}={subject!r}: give a name of at most {limits.SUBJECT_CHARS} characters, or "
            "several in a list"
        )
    return tuple(dict.fromkeys(names))
