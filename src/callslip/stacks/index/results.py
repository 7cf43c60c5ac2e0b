"""Reading rows of results and their tombstones: one by id, or a session's list; own and shared."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from callslip.handle import Scope
from callslip.stacks import ops
from callslip.stacks.index import shares
from callslip.stacks.index.rows import result_from, shape_from_blob, to_blob, to_text
from callslip.stacks.index.sessions import Session

_RESULT = (
    "r.id, r.call, r.tool, r.args, r.status, r.shape, r.preview, r.created_at, r.same_as,"
    " p.digest, p.form, p.packed, p.trailer, p.key"
)


def row_of(
    db: sqlite3.Connection, scope: Scope, session: int, id: bytes
) -> tuple[int, ops.Result] | None:
    """A row of a session and its seq, whether it ran out or not."""
    row = db.execute(
        f"SELECT {_RESULT}, r.seq, d.data FROM results r JOIN payloads p ON p.n = r.payload"
        " LEFT JOIN inline d ON d.payload = p.n WHERE r.session = ? AND r.id = ?",
        (session, id),
    ).fetchone()
    return None if row is None else (row[14], result_from(scope, row, row[15]))


def live(db: sqlite3.Connection, session: Session, now: float) -> int:
    """How many rows of its own a reader sees."""
    held = session.live(now)
    if not held:
        return 0
    (ran_out,) = db.execute(
        "SELECT count(*) FROM results WHERE session = ? AND expires_at < ? AND seq >= ?",
        (session.n, now, session.floor),
    ).fetchone()
    return held - int(ran_out)


_GIVEN = (
    f"SELECT {_RESULT}, r.seq, d.data, NULL, s.user, s.name FROM {shares.RECEIVED}"
    f" LEFT JOIN inline d ON d.payload = p.n WHERE h.id = ? AND {shares.TO} LIMIT 1"
)
_READABLE = (
    f"SELECT {_RESULT}, r.seq, d.data, r.expires_at, NULL, NULL FROM results r"
    " JOIN payloads p ON p.n = r.payload LEFT JOIN inline d ON d.payload = p.n"
    f" WHERE r.session = ? AND r.id = ? UNION ALL {_GIVEN}"
)
"""The session's own row of an id, or else the one that was shared with it: the second half is
run only where the first finds nothing."""


def get(
    db: sqlite3.Connection, op: ops.Get, session: Session | None
) -> ops.Result | ops.Tombstone | None:
    id = to_blob(op.id)
    own = -1 if session is None else session.n
    given = (id, *shares.to(op.scope, op.now))
    row = db.execute(_READABLE, (own, id, *given)).fetchone()
    if row is not None and row[17] is not None:
        return _received(op.scope, row, row[15])
    if session is None:
        return None
    if row is not None:
        result, at = (
            result_from(op.scope, row, row[15]),
            _ran_out(session, row[14], row[16], op.now),
        )
        if at is None:
            return result
        # It only waits for the sweep: what is shared comes before what is left of it.
        row = db.execute(_GIVEN, given).fetchone()
        if row is not None:
            return _received(op.scope, row, row[15])
        return ops.Tombstone(result.id, result.tool, result.args, result.shape, "expired", at)
    row = db.execute(
        "SELECT id, tool, args, shape, why, gone_at FROM tombstones WHERE session = ? AND id = ?",
        (session.n, id),
    ).fetchone()
    if row is None:
        return None
    return ops.Tombstone(
        to_text(row[0]), to_text(row[1]), to_text(row[2]), shape_from_blob(row[3]), row[4], row[5]
    )


def _ran_out(session: Session, seq: int, runs_out: float | None, now: float) -> float | None:
    """When a row that is still there ran out; None if it did not."""
    if seq < session.floor:
        return session.floor_at
    if session.expired(now):
        return session.expires_at
    return runs_out if runs_out is not None and runs_out < now else None


def _received(scope: Scope, row: Sequence[Any], data: bytes | None) -> ops.Result:
    """A shared row, as its owner's. What it repeats is a row that the receiver may not see."""
    owner = Scope(to_text(row[-1]), to_text(row[-2]), scope.tenant)
    return replace(result_from(owner, row, data), same_as="")


def list_live(
    db: sqlite3.Connection, op: ops.List, session: Session | None
) -> tuple[Sequence[ops.Result], int]:
    own = 0 if session is None else live(db, session, op.now)
    after, limit = max(op.after, 0), max(op.limit, 0)
    found: list[ops.Result] = []
    if session is not None and after < own and limit:
        start, skip = session.floor, after
        if own == session.live(op.now):
            start, skip = _seq_at(db, session, after, own), 0
        rows = db.execute(
            f"SELECT {_RESULT} FROM results r JOIN payloads p ON p.n = r.payload"
            " WHERE r.session = ? AND r.seq >= ? AND (r.expires_at IS NULL OR r.expires_at >= ?)"
            " ORDER BY r.seq LIMIT ? OFFSET ?",
            (session.n, start, op.now, min(limit, own), skip),
        )
        found = [result_from(op.scope, row, None) for row in rows]
    received = f"FROM {shares.RECEIVED} WHERE {shares.TO}"
    values = shares.to(op.scope, op.now)
    if own:
        # Its own result of that id is what the session sees.
        assert session is not None
        received += (
            " AND NOT EXISTS (SELECT 1 FROM results o WHERE o.session = ? AND o.id = r.id"
            " AND o.seq >= ? AND (o.expires_at IS NULL OR o.expires_at >= ?))"
        )
        values += (session.n, session.floor, op.now)
    (given,) = db.execute(f"SELECT count(DISTINCT r.n) {received}", values).fetchone()
    left = limit - len(found)
    if left and given:
        rows = db.execute(
            f"SELECT {_RESULT}, s.user, s.name {received}"
            " GROUP BY r.n ORDER BY min(h.n) LIMIT ? OFFSET ?",
            (*values, left, max(after - own, 0)),
        )
        found += [_received(op.scope, row, None) for row in rows]
    return found or (), own + given


def _seq_at(db: sqlite3.Connection, session: Session, after: int, total: int) -> int:
    """The seq of the live row that `after` others come before."""
    where = "FROM results WHERE session = ? AND seq >= ?"
    first, last = (
        db.execute(f"SELECT {edge}(seq) {where}", (session.n, session.floor)).fetchone()[0]
        for edge in ("min", "max")
    )
    if last - first + 1 == total:
        # No gaps: nothing was deleted out of the middle. So a list's end costs what its start does.
        return int(first + after)
    order, skip = ("ASC", after) if after * 2 < total else ("DESC", total - 1 - after)
    (seq,) = db.execute(
        f"SELECT seq {where} ORDER BY seq {order} LIMIT 1 OFFSET ?",
        (session.n, session.floor, skip),
    ).fetchone()
    return int(seq)
