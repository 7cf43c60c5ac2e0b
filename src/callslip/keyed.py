"""The verbs of a `ResultStore` with `keys=`: wrap its keys anew, and destroy some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from callslip.errors import SettingsError
from callslip.governing import reach_of
from callslip.settings import Settings
from callslip.stacks.drive import SpoolUnavailable
from callslip.stacks.flows import aside
from callslip.stacks.ops import Flow, do

T = TypeVar("T")


class Keyed:
    """What `ResultStore` inherits: it has settings and a spool, and runs flows."""

    settings: Settings

    if TYPE_CHECKING:

        def run_flow(self, flow: Flow[T]) -> T: ...

        async def arun_flow(self, flow: Flow[T]) -> T: ...

        def _spool_waits(self) -> bool: ...

        def _delete(self, tenant: str, user: Any, session: Any, subject: Any) -> Flow[int]: ...

    def rotate_keys(self, *, sessions: bool = False) -> int:
        """Wrap every tenant's keys with the current master key, the first of the key file, and answer
        how many were wrapped anew. No payload and no row is written again.

        After it the older keys can be taken out of the file. `sessions=True` also gives each tenant
        a new key that wraps those of its sessions.
        """
        return self.run_flow(self._rotate(sessions))

    async def arotate_keys(self, *, sessions: bool = False) -> int:
        """`rotate_keys`, off the event loop."""
        return await self.arun_flow(self._rotate(sessions))

    def _rotate(self, sessions: bool) -> Flow[int]:
        from callslip.stacks.keyops import Rewrap

        self._needs_keys("rotate_keys")
        done = yield from do(Rewrap(sessions))
        if self._spool_waits():
            done += yield from aside(do(Rewrap(sessions)))
        return done

    def shred(
        self, *, tenant: str = "", user: str | None = None, session: str | None = None
    ) -> int:
        """Delete what a tenant, a user or a user's session holds, and destroy the keys of it: what
        copies and backups still have of it can be opened by nobody. Answers how many results went.

        Other processes may know the keys for `limits.KEYS_CACHED_SECONDS` more. Raises `LegalHold`,
        and then destroys nothing.
        """
        return self.run_flow(self._shred(tenant, user, session))

    async def ashred(
        self, *, tenant: str = "", user: str | None = None, session: str | None = None
    ) -> int:
        """`shred`, off the event loop."""
        return await self.arun_flow(self._shred(tenant, user, session))

    def _shred(self, tenant: str, user: str | None, session: str | None) -> Flow[int]:
        from callslip.stacks.keyops import Shred

        self._needs_keys("shred")
        tenant, user, session = reach_of(tenant, user, session)
        spool: SpoolUnavailable | None = None
        removed = 0
        try:
            removed = yield from self._delete(tenant, user, session, None)
        except SpoolUnavailable as error:
            spool = error
        # Done with the removal already, unless an earlier one was cut off before it came to that.
        yield from do(Shred(tenant, user, session))
        if spool is not None:  # the keys of the store are destroyed; what waits there is not
            raise spool
        if self._spool_waits():
            yield from aside(do(Shred(tenant, user, session)))
        return removed

    def _needs_keys(self, verb: str) -> None:
        if self.settings.keys is None:
            raise SettingsError(
                f"{verb}: this store was opened without keys; give keys= (callslip: --keys)"
            )
