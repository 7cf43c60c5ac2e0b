"""What is stored of an owner's sessions: its runs for a look, and their deletion."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from callslip.errors import LegalHold
from callslip.store import ResultStore
from callslip.team.binding import DEFAULT
from callslip.team.db import Db, InMemoryDb
from callslip.team.output import RunOutput
from callslip.team.records import held, unpacked
from callslip.team.run import Run, stored_output

if TYPE_CHECKING:
    from callslip.team.owner import Owner


class Sessions:
    """The part of `Owner` that looks at what was stored."""

    db: Db | None
    result_store: ResultStore | None
    _scratch: InMemoryDb

    if TYPE_CHECKING:

        def initialize(self) -> None: ...

    def runs(self, session_id: str, *, user_id: str | None = None) -> list[RunOutput]:
        """The runs of a session, its members' included, as they are stored: `messages` is what a
        later run replays, `content` the exact answer. In the order they began."""
        db, store = self._place()
        rows = db.runs.list(user_id or "", session_id)
        return [stored_output(store, row, unpacked(row)) for row in rows]

    async def aruns(self, session_id: str, *, user_id: str | None = None) -> list[RunOutput]:
        """`runs` for a task."""
        return await asyncio.to_thread(lambda: self.runs(session_id, user_id=user_id))

    def delete_session(self, session_id: str, *, user_id: str | None = None) -> int:
        """Delete a user's session for good: its runs, checkpoints and results. Answers how many
        runs went. The session of that name of another user stays. Raises `LegalHold`, and deletes
        nothing, while a hold covers it."""
        db, store = self._place()
        _refuse_held(store, user_id or "", session_id)
        removed = db.runs.remove(user_id or "", session_id)
        for row in removed:
            db.saver.delete_thread(row.run)
        if store is not None:
            store.delete(user=user_id or "", session=session_id)
        return len(removed)

    async def adelete_session(self, session_id: str, *, user_id: str | None = None) -> int:
        """`delete_session` for a task."""
        return await asyncio.to_thread(lambda: self.delete_session(session_id, user_id=user_id))

    def delete_run(self, run_id: str, *, session_id: str, user_id: str | None = None) -> bool:
        """Delete a run, those it delegated, and the results that no other run of the session names:
        one that a later answer repeats stays for that. False if this user's session has none."""
        db, store = self._place()
        user = user_id or ""
        before = {row.run: row for row in db.runs.list(user, session_id)}
        if run_id not in before:
            return False
        _refuse_held(store, user, session_id)
        held_by = {run: held(db, row) for run, row in before.items()}
        gone = [row.run for row in db.runs.remove(user, session_id, run_id)]
        for run in gone:
            db.saver.delete_thread(run)
        if store is not None:
            left = set().union(*(ids for run, ids in held_by.items() if run not in gone))
            session = store.session(session_id, user=user)
            for id in sorted(set().union(*(held_by[run] for run in gone)) - left):
                session.delete(id)
        return True

    async def adelete_run(
        self, run_id: str, *, session_id: str, user_id: str | None = None
    ) -> bool:
        """`delete_run` for a task."""
        return await asyncio.to_thread(
            lambda: self.delete_run(run_id, session_id=session_id, user_id=user_id)
        )

    def _place(self) -> tuple[Db, ResultStore | None]:
        """The database, and a store on it: its results outlive a setting that was turned off."""
        self.initialize()
        db = self.db or self._scratch
        store = self.result_store or db.kept(DEFAULT)
        return db, store

    def _unfinished(self: Owner, going: Run, run: str | None) -> str | None:  # type: ignore[misc]
        rows = going.db.runs.list(
            going.user, going.session, owner=going.path, status=("running", "paused")
        )
        if run is not None:
            found = going.db.runs.get(going.user, going.session, run)
            return run if found is not None and found.owner == going.path else None
        own = [row.run for row in rows if not row.parent]
        return own[-1] if own else None


def _refuse_held(store: ResultStore | None, user: str, session: str) -> None:
    # Before anything goes: a run has answers in it that are evidence as well.
    held = [] if store is None else store.holds(tenant="", user=user, session=session)
    if held:
        raise LegalHold(f"kept by {held[0]}")
