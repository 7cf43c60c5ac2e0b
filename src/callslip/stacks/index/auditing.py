"""The audit in SQLite: entries written beside an operation, read back, and what is yet to be erased."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from callslip.stacks.auditops import Audited, Entry, Record, Trail
from callslip.stacks.index.audit_rows import COLUMNS, entry_from, values_of, wanted
from callslip.stacks.index.rows import to_blob
from callslip.stacks.ops import Forget

_PENDING = (
    "(SELECT n, 0.0 AS at, 'erasing' AS action, 'done' AS outcome, actor, tenant, user, session, id,"
    " x'' AS tool, 1 AS count, cause, x'' AS detail FROM erasing)"
)


@contextmanager
def under_way(db: sqlite3.Connection, op: Audited[Any]) -> Iterator[None]:
    """As long as this lasts, what goes is told by the triggers of the schema."""
    db.execute(
        "INSERT INTO auditing (one, actor, at, cause) VALUES (1, ?, ?, ?)",
        (to_blob(op.actor), op.at, to_blob(op.cause)),
    )
    yield
    _settle(db)
    db.execute("DELETE FROM auditing")


def _settle(db: sqlite3.Connection) -> None:
    """Say what was erased with this very transaction, and note what is yet to be."""
    if db.execute("SELECT 1 FROM erasing WHERE fresh = 1 LIMIT 1").fetchone() is None:
        return
    kept = "EXISTS (SELECT 1 FROM payloads p WHERE p.n = e.payload AND p.digest = e.digest)"
    db.execute(
        f"INSERT INTO audit (at, action, outcome, actor, tenant, user, session, id, cause)"
        f" SELECT a.at, 'erased', CASE WHEN {kept} THEN 'kept' ELSE 'done' END,"
        " e.actor, e.tenant, e.user, e.session, e.id, e.cause FROM auditing a, erasing e"
        f" WHERE e.fresh = 1 AND (e.key IS NULL OR {kept}) ORDER BY e.n"
    )
    db.execute(f"DELETE FROM erasing AS e WHERE e.fresh = 1 AND (e.key IS NULL OR {kept})")
    db.execute("UPDATE erasing SET fresh = 0 WHERE fresh = 1")


def erased(db: sqlite3.Connection, op: Forget) -> None:
    """The objects of those keys are deleted: that is what `erased` says."""
    for key in map(to_blob, op.keys):
        db.execute(
            "INSERT INTO audit (at, action, actor, tenant, user, session, id, cause)"
            " SELECT ?, 'erased', actor, tenant, user, session, id, cause FROM erasing"
            " WHERE key = ? ORDER BY n",
            (op.now, key),
        )
        db.execute("DELETE FROM erasing WHERE key = ?", (key,))


def write(db: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    """Append entries."""
    db.executemany(
        f"INSERT INTO audit ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        map(values_of, entries),
    )


def record(db: sqlite3.Connection, op: Record) -> None:
    """Do `auditops.Record`."""
    write(db, op.entries)


def trail(db: sqlite3.Connection, op: Trail) -> Sequence[Entry]:
    """Do `auditops.Trail`."""
    tests = wanted(op)
    where = [f"{test} ?" for test, _ in tests]
    if op.cause:
        where.append("cause <> x''")  # what its index is of
    table = _PENDING if op.pending else "audit"
    rows = db.execute(
        f"SELECT {COLUMNS}, n FROM {table} WHERE {' AND '.join(where)} ORDER BY n LIMIT ?",
        (*(value for _, value in tests), max(op.limit, 0)),
    )
    return [entry_from(row) for row in rows]
