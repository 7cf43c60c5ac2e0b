"""Shares in SQLite: made, ended, listed; and what a look-up takes from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from callslip.handle import Scope, Shared
from callslip.stacks.index import sessions
from callslip.stacks.index.rows import receiver_to_blob, shared_from, to_blob
from callslip.stacks.shareops import Revoke, Share, Shares

_COLUMNS = "h.name, h.id, h.user, h.session, h.made_at, h.until"

RECEIVED = (
    "tenants t CROSS JOIN shares h ON h.tenant = t.n JOIN results r ON r.n = h.result"
    " JOIN sessions s ON s.n = r.session JOIN payloads p ON p.n = r.payload"
)
"""Where the rows that were shared with a scope are."""

_LIVE = (
    "r.seq >= s.floor AND s.closed = 0"
    " AND (s.expires_at IS NULL OR s.held = 1 OR s.expires_at >= ?)"
    " AND (r.expires_at IS NULL OR r.expires_at >= ?)"
)

TO = f"t.name = ? AND h.user = ? AND h.session IN (x'', ?) AND h.until > ? AND {_LIVE}"
"""Which of them a scope may read now; its values are those of `to`."""


_OWN = "r.seq >= ? AND (r.expires_at IS NULL OR r.expires_at >= ?) AND h.until > ?"
"""Which shares of a session's own results have not ended; its values are those of `_own`."""


def _own(session: sessions.Session, now: float) -> tuple[Any, ...]:
    return session.floor, now, now


def to(scope: Scope, now: float) -> tuple[Any, ...]:
    """The values of `TO`."""
    return (
        to_blob(scope.tenant),
        to_blob(scope.user),
        receiver_to_blob(scope.session),
        now,
        now,
        now,
    )


def share(db: sqlite3.Connection, op: Share) -> Shared | None:
    """Do `shareops.Share`."""
    session = sessions.find(db, op.scope)
    if session is None or session.ended(op.now):
        return None
    row = db.execute(
        "INSERT INTO shares AS h (result, tenant, name, id, user, session, made_at, until)"
        " SELECT n, tenant, ?, id, ?, ?, ?, ? FROM results"
        " WHERE session = ? AND id = ? AND seq >= ? AND (expires_at IS NULL OR expires_at >= ?)"
        " ON CONFLICT (result, user, session) DO UPDATE SET until = excluded.until"
        " RETURNING name, id, user, session, made_at, until",
        (
            to_blob(op.name),
            to_blob(op.user),
            receiver_to_blob(op.session),
            op.now,
            op.until,
            session.n,
            to_blob(op.id),
            session.floor,
            op.now,
        ),
    ).fetchone()
    return None if row is None else shared_from(row)


def revoke(db: sqlite3.Connection, op: Revoke) -> int:
    """Do `shareops.Revoke`."""
    session = sessions.find(db, op.scope)
    if session is None:
        return 0
    which, values = "", []
    if op.id is not None:
        which, values = " AND r.id = ?", [to_blob(op.id)]
    if op.name is not None:
        which, values = f"{which} AND h.name = ?", [*values, to_blob(op.name)]
    of = f"FROM results r JOIN shares h ON h.result = r.n WHERE r.session = ?{which}"
    ended = db.execute(
        f"SELECT count(*) {of} AND {_OWN}", (session.n, *values, *_own(session, op.now))
    ).fetchone()
    db.execute(f"DELETE FROM shares WHERE n IN (SELECT h.n {of})", (session.n, *values))
    return 0 if session.ended(op.now) else int(ended[0])


def list_given(db: sqlite3.Connection, op: Shares) -> Sequence[Shared]:
    """Do `shareops.Shares`."""
    session = sessions.find(db, op.scope)
    if session is None or session.ended(op.now):
        return ()
    values: list[Any] = [session.n, *_own(session, op.now)]
    which = ""
    if op.id is not None:
        which = " AND r.id = ?"
        values.append(to_blob(op.id))
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM results r JOIN shares h ON h.result = r.n"
        f" WHERE r.session = ? AND {_OWN}{which} ORDER BY h.n LIMIT ? OFFSET ?",
        (*values, max(op.limit, 0), max(op.after, 0)),
    )
    return [shared_from(row) for row in rows]


def sweep(db: sqlite3.Connection, now: float, limit: int) -> int:
    """Drop up to `limit` shares that have ended."""
    return db.execute(
        "DELETE FROM shares WHERE n IN (SELECT n FROM shares WHERE until <= ? LIMIT ?)",
        (now, limit),
    ).rowcount


def more(db: sqlite3.Connection, now: float) -> bool:
    """Whether `sweep` has anything to do."""
    ended = db.execute("SELECT 1 FROM shares WHERE until <= ? LIMIT 1", (now,)).fetchone()
    return ended is not None
