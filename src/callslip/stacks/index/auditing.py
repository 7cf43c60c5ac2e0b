"""The audit in SQLite: entries written beside an operation, read back, and what is yet to be erased."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from callslip.stacks.auditops import Audited, Entry, Record, Trail
from callslip.stacks.index.rows import to_blob, to_text
from callslip.stacks.ops import Forget

_COLUMNS = (
    "at, action, outcome, actor, tenant, user, session, id, tool, count, cause, detail"  # and n
)
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
        f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                entry.at,
                entry.action,
                entry.outcome,
                to_blob(entry.actor),
                to_blob(entry.tenant),
                to_blob(entry.user),
                to_blob(entry.session),
                to_blob(entry.id),
                to_blob(entry.tool),
                entry.count,
                to_blob(entry.cause),
                to_blob(entry.detail),
            )
            for entry in entries
        ],
    )


def record(db: sqlite3.Connection, op: Record) -> None:
    """Do `auditops.Record`."""
    write(db, op.entries)


def trail(db: sqlite3.Connection, op: Trail) -> Sequence[Entry]:
    """Do `auditops.Trail`."""
    where, values = ["n > ?"], cast("list[object]", [op.after])
    for name in ("tenant", "user", "session", "id", "cause"):
        if (given := getattr(op, name)) is not None:
            where.append(f"{name} = ?")
            values.append(to_blob(given))
    if op.cause:
        where.append("cause <> x''")  # what its index is of
    for test, given in (("action =", op.action), ("at >=", op.since), ("at <", op.until)):
        if given is not None:
            where.append(f"{test} ?")
            values.append(given)
    table = _PENDING if op.pending else "audit"
    rows = db.execute(
        f"SELECT {_COLUMNS}, n FROM {table} WHERE {' AND '.join(where)} ORDER BY n LIMIT ?",
        (*values, max(op.limit, 0)),
    )
    return [_entry(row) for row in rows]


def _entry(row: Sequence[Any]) -> Entry:
    at, action, outcome, *texts = row
    actor, tenant, user, session, id, tool = map(to_text, texts[:6])
    return Entry(
        action=action,
        at=at,
        outcome=outcome,
        actor=actor,
        tenant=tenant,
        user=user,
        session=session,
        id=id,
        tool=tool,
        count=texts[6],
        cause=to_text(texts[7]),
        detail=to_text(texts[8]),
        n=texts[9],
    )
