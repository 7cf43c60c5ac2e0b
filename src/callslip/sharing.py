"""The verbs of a `Session` that let another session read a result: on purpose, for a time, read-only."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from callslip import access
from callslip.errors import SettingsError
from callslip.handle import Handle, Scope, Shared
from callslip.reading.missing import unknown
from callslip.settings import is_seconds
from callslip.stacks.ops import Flow, Result, do
from callslip.stacks.savedops import id_in
from callslip.stacks.shareops import Revoke, Share, Shares

if TYPE_CHECKING:
    from callslip.store import ResultStore

__all__ = ["Sharing"]

_AN_HOUR = 3600.0
_AT_ONCE = 100


class Sharing:
    """What `Session` inherits: it has the store and the scope, and finds a result by its id."""

    store: ResultStore
    scope: Scope

    if TYPE_CHECKING:

        def _row(self, id: str, action: access.Action) -> Flow[Result]: ...

    def share(
        self,
        id: str,
        *,
        with_session: str | None = None,
        user: str | None = None,
        seconds: float = _AN_HOUR,
        tenant: str | None = None,
    ) -> Shared:
        """Let another session read a result of this one, under the same id, for `seconds`.

        `with_session` names the session, `user` whose it is (this session's user by default); with
        `user` alone it is all of that user's sessions. Who it is shared with reads, searches,
        queries and loads it and finds it in `list()`, and can neither delete it nor share it on.
        It ends by its time, by `revoke`, and with the result; it is then unknown there. Sharing
        with the same receiver again sets the time anew.

        Raises `UnknownHandle` and `HandleGone` as every look-up does, and `SettingsError` for
        another tenant, for what is only shared with this session, and for arguments that are wrong.
        """
        given = (id, with_session, user, seconds, tenant)
        return self.store.run_flow(self._share(*given))

    async def ashare(
        self,
        id: str,
        *,
        with_session: str | None = None,
        user: str | None = None,
        seconds: float = _AN_HOUR,
        tenant: str | None = None,
    ) -> Shared:
        """`share`, off the event loop."""
        given = (id, with_session, user, seconds, tenant)
        return await self.store.arun_flow(self._share(*given))

    def _share(
        self,
        id: str,
        with_session: str | None,
        user: str | None,
        seconds: float,
        tenant: str | None,
    ) -> Flow[Shared]:
        to = _receiver(self.scope, with_session, user, tenant)
        if not is_seconds(seconds):
            raise SettingsError(f"seconds={seconds!r}: give how long it may be read, above 0")
        row = yield from self._row(id, "share")
        if row.scope != self.scope:
            raise SettingsError(
                f"{row.id} is only shared with this session; the one that stored it shares it"
            )
        name, now = f"shr_{secrets.token_hex(8)}", self.store.now()
        made = yield from do(Share(self.scope, row.id, name, *to, now + seconds, now))
        if made is None:
            raise unknown(id)  # it went this very moment
        return made

    def revoke(self, share: Shared | Handle | str | None = None) -> int:
        """End a share now: one that `share` or `shares` answered, or its name; all shares of a
        result, by its id; or without an argument all that this session has given. Answers how many
        ended."""
        return self.store.run_flow(self._revoke(share))

    async def arevoke(self, share: Shared | Handle | str | None = None) -> int:
        """`revoke`, off the event loop."""
        return await self.store.arun_flow(self._revoke(share))

    def _revoke(self, share: Shared | Handle | str | None) -> Flow[int]:
        # Taking a right away is never refused: `authorize=` is not asked.
        op = Revoke(self.scope, self.store.now())
        if isinstance(share, Shared):
            op = Revoke(self.scope, op.now, name=share.name)
        elif isinstance(share, Handle | str):
            id = _id_of(share)
            named = id.startswith("shr_")
            op = Revoke(self.scope, op.now, id if named else None, None if named else id)
        elif share is not None:
            raise SettingsError(f"revoke({share!r}): give a share, its name, or a result's id")
        return (yield from do(op))

    def shares(self, id: str | None = None) -> list[Shared]:
        """What this session shares now, oldest first; of one result, if `id` is given."""
        return self.store.run_flow(self._shares(id))

    async def ashares(self, id: str | None = None) -> list[Shared]:
        """`shares`, off the event loop."""
        return await self.store.arun_flow(self._shares(id))

    def _shares(self, id: str | None) -> Flow[list[Shared]]:
        of = None if id is None else _id_of(id)
        found: list[Shared] = []
        now = self.store.now()
        while True:
            page = yield from do(Shares(self.scope, now, of, _AT_ONCE, len(found)))
            found += page
            if len(page) < _AT_ONCE:
                return found


def _id_of(given: str | Handle) -> str:
    """The id in all that `share` takes: what could be shared so, and not revoked, would be a leak."""
    id = access.id_of(given)
    return (id_in(id) or id) if "/" in id else id


def _receiver(
    scope: Scope, session: str | None, user: str | None, tenant: str | None
) -> tuple[str, str | None]:
    if tenant is not None and tenant != scope.tenant:
        raise SettingsError(
            f"tenant={tenant!r}: a result is shared within its tenant only, because payloads and "
            "keys are a tenant's own; load it and put it there"
        )
    for name, value in (("with_session", session), ("user", user)):
        if value is not None and not isinstance(value, str):
            raise SettingsError(f"{name}={value!r}: give a string")
    if session == "":
        raise SettingsError("with_session='': give the session's name, or only user= for all")
    if session is None and user is None:
        raise SettingsError("share: give with_session=, user=, or both")
    to = scope.user if user is None else user
    if (session, to) == (scope.session, scope.user):
        raise SettingsError(f"with_session={session!r}: this session has it already")
    return to, session
