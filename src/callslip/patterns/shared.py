"""A sub-agent's own session, and those results of the asker's that it may read."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from callslip.access import Action
from callslip.errors import HandleError, LegalHold, StoreUnavailable
from callslip.handle import Handle, Hits, Listing, Page, Scope
from callslip.queried import Queried
from callslip.reading.listing import listing
from callslip.session import Session
from callslip.stacks.ops import Flow, Remove, Result
from callslip.stacks.reader import Reader
from callslip.stacks.savedops import id_in
from callslip.stacks.upkeep import remove
from callslip.stacks.writing import Call
from callslip.tools import Tool, tools_for

logger = logging.getLogger(__name__)

_MORE = ("get", "aget")
"""Further verbs on one result, that a tool is made for where a session has them."""

__all__ = ["SharedSession", "shared_tools"]


class SharedSession(Queried):
    """What a sub-agent reads with: its own results, and the ones that it was given by id.

    Any other id of the asker's is unknown to it, as one of a stranger's would be. What a query
    saves is its own.
    """

    def __init__(self, session: Session, above: Session) -> None:
        self.session = session
        self.above = above
        self.store = session.store
        self.scope = session.scope
        self.subjects = session.subjects
        self._given: dict[str, None] = {}

    @classmethod
    def beside(cls, above: Session) -> SharedSession:
        """A new session for a sub-agent of `above`. `end` it: it is nobody else's."""
        scope = above.scope
        name = f"{scope.session}|delegate:{secrets.token_hex(8)}"
        return cls(
            Session(above.store, Scope(name, scope.user, scope.tenant), above.subjects), above
        )

    def share(self, ids: Iterable[str]) -> None:
        """Let results of the asker's be read."""
        self._given |= dict.fromkeys(ids)

    def end(self) -> None:
        """Drop the sub-agent's own results, without a trace. While the store is away, or a legal
        hold keeps them, they stay, until they expire or their tenant is deleted."""
        scope, store = self.session.scope, self.session.store
        op = Remove(
            "deleted", store.now(), scope.tenant, scope.user, scope.session, tombstones=False
        )
        try:
            store.run_flow(remove(op))
        except (LegalHold, StoreUnavailable) as error:
            logger.warning("a sub-agent's results were not dropped: %s", error)

    def of(self, id: str) -> Session:
        """Whose result it is, by its id or the path of its plain file."""
        given = (id_in(id) or id) if isinstance(id, str) and "/" in id else id
        return self.above if given in self._given else self.session

    def handle(self, id: str) -> Handle | None:
        """The handle of an id that the sub-agent can see; None if there is none."""
        try:
            return self.of(id).handle(id)
        except HandleError:
            return None

    def _shown(self, id: str, action: Action) -> Flow[tuple[Result, Reader]]:
        return self.of(id)._shown(id, action)

    def _call(self, tool: str, args: Any, call_id: str | None, status: str) -> Call:
        return self.session._call(tool, args, call_id, status)

    def __getattr__(self, verb: str) -> Any:
        if verb not in _MORE or not hasattr(self.above, verb):
            raise AttributeError(verb)
        return lambda id, *args, **more: getattr(self.of(id), verb)(id, *args, **more)

    # --- what the read-back tools need ------------------------------------------------------------

    def read(self, id: str, start: int = 1, limit: int | None = None, column: int = 0) -> Page:
        return self.of(id).read(id, start, limit, column)

    def search(
        self, id: str, pattern: str, context: int = 0, after: int | None = None, **more: Any
    ) -> Hits:
        return self.of(id).search(id, pattern, context, after, **more)

    def list(self, after: int = 0) -> Listing:
        given = self._handles()
        own = self.session.list(max(after - len(given), 0))
        return self._listed(given, own, after)

    async def aread(
        self, id: str, start: int = 1, limit: int | None = None, column: int = 0
    ) -> Page:
        return await self.of(id).aread(id, start, limit, column)

    async def asearch(
        self, id: str, pattern: str, context: int = 0, after: int | None = None, **more: Any
    ) -> Hits:
        return await self.of(id).asearch(id, pattern, context, after, **more)

    async def alist(self, after: int = 0) -> Listing:
        import asyncio

        return await asyncio.to_thread(self.list, after)

    def _handles(self) -> Sequence[Handle]:
        found = []
        for id in self._given:
            try:
                found.append(self.above.handle(id))
            except HandleError:
                continue  # gone meanwhile: then it is in no list either
        return found

    @staticmethod
    def _listed(given: Sequence[Handle], own: Listing, after: int) -> Listing:
        shown = [*given[after:], *own.handles]
        return listing(shown, after=after, total=len(given) + own.total)


def shared_tools(shared: SharedSession) -> Sequence[Tool]:
    """The read-back tools over what a sub-agent may see, in the words of its envelopes."""
    return tools_for(shared, shared.store.settings.vocabulary)
