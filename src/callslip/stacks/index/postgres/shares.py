"""Shares in PostgreSQL: made, ended, listed, each in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callslip.handle import Shared
from callslip.stacks.index.postgres import sessions
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import (
    blob_if_any,
    receiver_to_blob,
    scope_key,
    shared_from,
    to_blob,
)
from callslip.stacks.shareops import Revoke, Share, Shares

_COLUMNS = 'h.name, h.id, h."user", h.session, h.made_at, h.until'
_LIVE = (
    "r.seq >= s.floor AND NOT s.closed AND (s.expires_at IS NULL OR s.held OR s.expires_at >= %s)"
    " AND (r.expires_at IS NULL OR r.expires_at >= %s)"
)

RECEIVED = (
    "shares h JOIN sessions s ON s.n = h.owner"
    " JOIN results r ON r.session = h.owner AND r.seq = h.seq"
)
"""Where the rows that were shared with a scope are."""


def share(db: Db, op: Share) -> Shared | None:
    """Do `shareops.Share`."""
    row = db.finish(
        'INSERT INTO shares AS h (tenant, owner, seq, name, id, "user", session, made_at, until)'
        " SELECT r.tenant, r.session, r.seq, %s, r.id, %s, %s, %s, %s FROM sessions s"
        f" JOIN results r ON r.session = s.n AND r.id = %s WHERE {sessions.WHERE} AND {_LIVE}"
        ' ON CONFLICT (owner, seq, "user", session) DO UPDATE SET until = excluded.until'
        f" RETURNING {_COLUMNS}",
        (
            to_blob(op.name),
            to_blob(op.user),
            receiver_to_blob(op.session),
            op.now,
            op.until,
            to_blob(op.id),
            *scope_key(op.scope),
            op.now,
            op.now,
        ),
    ).fetchone()
    return None if row is None else shared_from(row)


def revoke(db: Db, op: Revoke) -> int:
    """Do `shareops.Revoke`."""
    sql = (
        f"DELETE FROM shares h USING sessions s WHERE h.owner = s.n AND {sessions.WHERE}"
        " AND (%s::bytea IS NULL OR h.name = %s) AND (%s::bytea IS NULL OR h.id = %s)"
        " RETURNING h.until > %s AND h.seq >= s.floor AND NOT s.closed"
        " AND (s.expires_at IS NULL OR s.held OR s.expires_at >= %s)"
    )
    name = blob_if_any(op.name)
    id = blob_if_any(op.id)
    values = (*scope_key(op.scope), name, name, id, id, op.now, op.now)
    return sum(live for (live,) in db.finish(sql, values))


def list_given(db: Db, op: Shares) -> Sequence[Shared]:
    """Do `shareops.Shares`."""
    id = blob_if_any(op.id)
    rows = db.finish(
        f"SELECT {_COLUMNS} FROM {RECEIVED} WHERE {sessions.WHERE} AND {_LIVE} AND h.until > %s"
        " AND (%s::bytea IS NULL OR h.id = %s) ORDER BY h.n LIMIT %s OFFSET %s",
        (
            *scope_key(op.scope),
            op.now,
            op.now,
            op.now,
            id,
            id,
            min(max(op.limit, 0), 2**31),
            min(max(op.after, 0), 2**62),
        ),
    )
    return [shared_from(row) for row in rows]


def sweep(db: Db, now: float, limit: int) -> int:
    """Drop up to `limit` shares that have ended; those that others hold are left to them."""
    return db.execute(
        "DELETE FROM shares WHERE n IN (SELECT n FROM shares WHERE until <= %s LIMIT %s"
        " FOR UPDATE SKIP LOCKED)",
        (now, limit),
    ).rowcount


def more(db: Db, now: float) -> bool:
    """Whether `sweep` has anything to do."""
    return bool(db.execute("SELECT 1 FROM shares WHERE until <= %s LIMIT 1", (now,)))


READS: dict[type, Any] = {Shares: list_given}
WRITES: dict[type, Any] = {Share: share, Revoke: revoke}
AGAIN = frozenset({Share})
"""What may be run anew though it may have been done: the answer is the same."""
