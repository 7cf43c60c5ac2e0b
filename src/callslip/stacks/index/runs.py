"""The stored runs of teams and agents: one table beside the results, in the same SQLite file.

What a run holds is packed by whoever stores it; here it is bytes. Names are compared exactly, as
everywhere in the index.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from callslip.stacks.index.pool import Pool
from callslip.stacks.index.rows import to_blob, to_text

_TABLE = (
    "CREATE TABLE IF NOT EXISTS team_runs (seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " user BLOB NOT NULL, session BLOB NOT NULL, run TEXT NOT NULL, parent TEXT NOT NULL,"
    " owner BLOB NOT NULL, status TEXT NOT NULL, data BLOB NOT NULL,"
    " UNIQUE (user, session, run))"
)
_COLUMNS = "user, session, run, parent, owner, status, data"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run as it is kept. `owner` is the path of its agent or team, as `team/researcher`."""

    user: str
    session: str
    run: str
    owner: str
    status: str
    """`running`, `paused` or `completed`."""
    parent: str = ""
    """The run that delegated this one; empty for one that a caller started."""
    data: bytes = b""


class SqliteRuns:
    """Runs in the SQLite file at `path`: a put is on the disk when it returns.

    Errors are those of the index: `StoreUnavailable`, `SettingsError`.
    """

    def __init__(self, path: str | Path) -> None:
        self._pool = Pool(path)

    def put(self, run: StoredRun) -> None:
        """Store a run, or what became of one; its place among the others stays."""
        with self._db() as db:
            db.execute(
                f"INSERT INTO team_runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (user, session, run) DO UPDATE"
                " SET status = excluded.status, data = excluded.data",
                (
                    to_blob(run.user),
                    to_blob(run.session),
                    run.run,
                    run.parent,
                    to_blob(run.owner),
                    run.status,
                    run.data,
                ),
            )

    def get(self, user: str, session: str, run: str) -> StoredRun | None:
        """The run of that id, if this user's session has it."""
        where = f"SELECT {_COLUMNS} FROM team_runs WHERE user = ? AND session = ? AND run = ?"
        with self._db() as db:
            row = db.execute(where, (to_blob(user), to_blob(session), run)).fetchone()
        return None if row is None else _run(row)

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
        where = ["user = ?", "session = ?"]
        given: list[bytes | str | int] = [to_blob(user), to_blob(session)]
        if owner is not None:
            where.append("owner = ?")
            given.append(to_blob(owner))
        if parent is not None:
            where.append("parent = ?")
            given.append(parent)
        if status:
            where.append(f"status IN ({', '.join('?' * len(status))})")
            given.extend(status)
        given.append(-1 if last is None else last)
        query = (
            f"SELECT {_COLUMNS} FROM team_runs WHERE {' AND '.join(where)}"
            " ORDER BY seq DESC LIMIT ?"
        )
        with self._db() as db:
            rows = db.execute(query, given).fetchall()
        return [_run(row) for row in reversed(rows)]

    def remove(self, user: str, session: str, run: str | None = None) -> Sequence[StoredRun]:
        """Remove a run and those it delegated, or all of a session; answer what went."""
        scope = (to_blob(user), to_blob(session))
        where = "user = ? AND session = ?"
        given: tuple[bytes | str, ...] = scope
        if run is not None:
            given = (*scope, run, *scope)
            where += (
                " AND run IN (WITH RECURSIVE tree (id) AS (SELECT ? UNION SELECT t.run"
                " FROM team_runs t JOIN tree ON t.parent = tree.id"
                " WHERE t.user = ? AND t.session = ?) SELECT id FROM tree)"
            )
        with self._db() as db:
            rows = db.execute(
                f"DELETE FROM team_runs WHERE {where} RETURNING {_COLUMNS}", given
            ).fetchall()
        return [_run(row) for row in rows]

    def holds_any(self) -> bool:
        """Whether there is any run."""
        with self._db() as db:
            return db.execute("SELECT 1 FROM team_runs LIMIT 1").fetchone() is not None

    def close(self) -> None:
        """Let go of the file; a later operation opens it again."""
        self._pool.close()

    @contextmanager
    def _db(self) -> Iterator[sqlite3.Connection]:
        with self._pool.borrow() as db:
            db.execute(_TABLE)
            yield db


def _run(row: Sequence[bytes | str]) -> StoredRun:
    user, session, run, parent, owner, status, data = row
    assert isinstance(user, bytes) and isinstance(session, bytes) and isinstance(owner, bytes)
    assert isinstance(data, bytes)
    return StoredRun(
        user=to_text(user),
        session=to_text(session),
        run=str(run),
        parent=str(parent),
        owner=to_text(owner),
        status=str(status),
        data=data,
    )
