"""The stored runs of teams and agents in PostgreSQL: one table beside the results."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from callslip.stacks.index.postgres.server import Server
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import to_blob, to_text
from callslip.stacks.index.runs import StoredRun

_COLUMNS = "user_name, session, run, parent, owner, status, data"


class PostgresRuns:
    """Runs in a PostgreSQL database: a put is committed when it returns.

    Errors are those of the index: `StoreUnavailable`, `SettingsError`.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    def put(self, run: StoredRun) -> None:
        """Store a run, or what became of one; its place among the others stays."""
        names = map(to_blob, (run.user, run.session, run.run, run.parent, run.owner))
        self._ask(
            f"INSERT INTO team_runs (mark, {_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (mark, run) DO UPDATE"
            " SET status = excluded.status, data = excluded.data",
            (_mark(run.user, run.session), *names, run.status, run.data),
        )

    def get(self, user: str, session: str, run: str) -> StoredRun | None:
        """The run of that id, if this user's session has it."""
        found = self._ask(
            f"SELECT {_COLUMNS} FROM team_runs WHERE mark = %s AND run = %s",
            (_mark(user, session), to_blob(run)),
        )
        return found[0] if found else None

    def list(
        self,
        user: str,
        session: str,
        *,
        owner: str | None = None,
        parent: str | None = None,
        status: Sequence[str] = (),
        last: int | None = None,
    ) -> Sequence[StoredRun]:
        """The runs of a session in the order they began; of these the `last` ones."""
        where = ["mark = %s"]
        given: list[Any] = [_mark(user, session)]
        if owner is not None:
            where.append("owner = %s")
            given.append(to_blob(owner))
        if parent is not None:
            where.append("parent = %s")
            given.append(to_blob(parent))
        if status:
            where.append("status = ANY(%s)")
            given.append(list(status))
        found = self._ask(
            f"SELECT {_COLUMNS} FROM team_runs WHERE {' AND '.join(where)}"
            " ORDER BY seq DESC LIMIT %s",
            (*given, last),
        )
        return found[::-1]

    def remove(self, user: str, session: str, run: str | None = None) -> Sequence[StoredRun]:
        """Remove a run and those it delegated, or all of a session; answer what went."""
        mark = _mark(user, session)
        where, given = "mark = %s", (mark,)
        if run is not None:
            where += (
                " AND run IN (WITH RECURSIVE tree (id) AS (SELECT %s::bytea UNION SELECT t.run"
                " FROM team_runs t JOIN tree ON t.parent = tree.id WHERE t.mark = %s)"
                " SELECT id FROM tree)"
            )
            given = (mark, to_blob(run), mark)  # type: ignore[assignment]
        # Not run anew once it may have been done: who asks has to delete what went with it.
        return self._ask(
            f"DELETE FROM team_runs WHERE {where} RETURNING {_COLUMNS}", given, again=False
        )

    def holds_any(self) -> bool:
        """Whether there is any run."""
        return bool(self._ask(f"SELECT {_COLUMNS} FROM team_runs LIMIT 1", ()))

    def _ask(self, sql: str, values: Sequence[Any], *, again: bool = True) -> Sequence[StoredRun]:
        def work(db: Db) -> Sequence[StoredRun]:
            return [_run(row) for row in db.finish(sql, values)]

        return self._server.transact(work, tenant=None, again=again)


def _mark(user: str, session: str) -> bytes:
    told = to_blob(user)
    return blake2b(b"%d " % len(told) + told + to_blob(session), digest_size=16).digest()


def _run(row: Sequence[Any]) -> StoredRun:
    user, session, run, parent, owner, status, data = row
    return StoredRun(
        user=to_text(user),
        session=to_text(session),
        run=to_text(run),
        parent=to_text(parent),
        owner=to_text(owner),
        status=status,
        data=data,
    )
