"""Reading rows of results and their tombstones from PostgreSQL: each in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callslip.handle import Scope
from callslip.stacks import ops
from callslip.stacks.index.postgres import sessions
from callslip.stacks.index.postgres.sessions import Session, session_from
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import payload_from, shape_from_blob, to_blob, to_text

RESULT = (
    "r.id, r.call, r.tool, r.args, r.status, r.shape, r.preview, r.created_at, r.same_as,"
    " p.digest, p.form, p.packed, p.trailer, p.key"
)
_GRAVE = "t.id, t.tool, t.args, t.shape, t.why, t.gone_at"


def result_from(scope: Scope, row: Sequence[Any], data: bytes | None) -> ops.Result:
    """The result of a row that begins with `RESULT`."""
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


def get(db: Db, op: ops.Get) -> tuple[ops.Result | ops.Tombstone | None, Session | None]:
    """Do `ops.Get`; with the session, whose activity it is.

    One statement whatever there is: an id of another scope costs what an invented one does.
    """
    id = to_blob(op.id)
    row = db.finish(
        f"SELECT {sessions.COLUMNS}, {RESULT}, p.data, r.seq, {_GRAVE} FROM sessions s"
        " LEFT JOIN results r ON r.session = s.n AND r.id = %s"
        " LEFT JOIN payloads p ON p.n = r.payload"
        " LEFT JOIN tombstones t ON t.session = s.n AND t.id = %s"
        f" WHERE {sessions.WHERE}",
        (id, id, *sessions.key_of(op.scope)),
    ).fetchone()
    if row is None:
        return None, None
    session, found = session_from(row), row[sessions.WIDTH :]
    if found[0] is not None:
        return _as_read(op, session, found), session
    grave = found[16:]
    if grave[0] is None:
        return None, session
    id, tool, args, shape, why, gone_at = grave
    tombstone = ops.Tombstone(
        to_text(id), to_text(tool), to_text(args), shape_from_blob(shape), why, gone_at
    )
    return tombstone, session


def _as_read(op: ops.Get, session: Session, row: Sequence[Any]) -> ops.Result | ops.Tombstone:
    seq = row[15]
    result = result_from(op.scope, row, row[14])
    if seq >= session.floor and not session.expired(op.now):
        return result
    at = session.floor_at if seq < session.floor else session.expires_at
    assert at is not None
    return ops.Tombstone(result.id, result.tool, result.args, result.shape, "expired", at)


def list_live(db: Db, op: ops.List) -> tuple[tuple[Sequence[ops.Result], int], Session | None]:
    """Do `ops.List`; with the session, whose activity it is."""
    after, limit = min(max(op.after, 0), 2**62), min(max(op.limit, 0), 2**31)
    # Without gaps, where nothing was deleted out of the middle, the page begins `after` numbers
    # after the first: so a list's end costs what its start does.
    rows = db.finish(
        f"SELECT {sessions.COLUMNS}, {RESULT} FROM sessions s"
        " CROSS JOIN LATERAL (SELECT"
        " (SELECT seq FROM results WHERE session = s.n AND seq >= s.floor ORDER BY seq LIMIT 1) a,"
        " (SELECT seq FROM results WHERE session = s.n AND seq >= s.floor ORDER BY seq DESC LIMIT 1)"
        " b) e"
        " CROSS JOIN LATERAL (SELECT coalesce(e.b - e.a + 1 = s.results - s.dead, true) dense) d"
        " LEFT JOIN LATERAL (SELECT * FROM results WHERE session = s.n AND %s > 0"
        " AND NOT s.closed AND NOT coalesce(s.expires_at < %s, false)"
        " AND seq >= CASE WHEN d.dense THEN e.a + %s ELSE s.floor END"
        " ORDER BY seq OFFSET CASE WHEN d.dense THEN 0 ELSE %s END LIMIT %s) r ON true"
        " LEFT JOIN payloads p ON p.n = r.payload"
        f" WHERE {sessions.WHERE} ORDER BY r.seq",
        (limit, op.now, after, after, limit, *sessions.key_of(op.scope)),
    )
    if not rows:
        return ((), 0), None
    session = session_from(rows[0])
    found = [
        result_from(op.scope, row[sessions.WIDTH :], None)
        for row in rows
        if row[sessions.WIDTH] is not None
    ]
    return (found or (), session.live(op.now)), session
