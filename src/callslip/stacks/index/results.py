"""Reading rows of results and their tombstones: one by id, or a session's list."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from callslip.handle import Scope
from callslip.stacks import ops
from callslip.stacks.index.rows import payload_from, shape_from_blob, to_blob, to_text
from callslip.stacks.index.sessions import Session

_RESULT = (
    "r.id, r.call, r.tool, r.args, r.status, r.shape, r.preview, r.created_at, r.same_as,"
    " p.digest, p.form, p.packed, p.trailer, p.key"
)


def _result(scope: Scope, row: Sequence[Any], data: bytes | None) -> ops.Result:
    return ops.Result(
        scope=scope,
        id=to_text(row[0]),
        call=row[1],
        tool=to_text(row[2]),
        args=to_text(row[3]),
        status=to_text(row[4]),
        shape=shape_from_blob(row[5]),
        preview=to_text(row[6]),
        created_at=row[7],
        same_as=to_text(row[8]),
        payload=payload_from(row[9], row[10], row[11], row[12], row[13], data),
    )


def row_of(
    db: sqlite3.Connection, scope: Scope, session: int, id: bytes
) -> tuple[int, ops.Result] | None:
    row = db.execute(
        f"SELECT {_RESULT}, r.seq, d.data FROM results r JOIN payloads p ON p.n = r.payload"
        " LEFT JOIN inline d ON d.payload = p.n WHERE r.session = ? AND r.id = ?",
        (session, id),
    ).fetchone()
    return None if row is None else (row[14], _result(scope, row, row[15]))


def get(
    db: sqlite3.Connection, op: ops.Get, session: Session | None
) -> ops.Result | ops.Tombstone | None:
    if session is None:
        return None
    found = row_of(db, op.scope, session.n, to_blob(op.id))
    if found is not None:
        seq, result = found
        if seq >= session.floor and not session.expired(op.now):
            return result
        at = session.floor_at if seq < session.floor else session.expires_at
        assert at is not None
        return ops.Tombstone(result.id, result.tool, result.args, result.shape, "expired", at)
    row = db.execute(
        "SELECT id, tool, args, shape, why, gone_at FROM tombstones WHERE session = ? AND id = ?",
        (session.n, to_blob(op.id)),
    ).fetchone()
    if row is None:
        return None
    return ops.Tombstone(
        to_text(row[0]), to_text(row[1]), to_text(row[2]), shape_from_blob(row[3]), row[4], row[5]
    )


def list_live(
    db: sqlite3.Connection, op: ops.List, session: Session | None
) -> tuple[Sequence[ops.Result], int]:
    total = 0 if session is None else session.live(op.now)
    after, limit = max(op.after, 0), min(op.limit, total)
    if session is None or after >= total or limit <= 0:
        return (), total
    rows = db.execute(
        f"SELECT {_RESULT} FROM results r JOIN payloads p ON p.n = r.payload"
        " WHERE r.session = ? AND r.seq >= ? ORDER BY r.seq LIMIT ?",
        (session.n, _seq_at(db, session, after, total), limit),
    )
    return [_result(op.scope, row, None) for row in rows], total


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
