"""Reading rows of results and their tombstones from PostgreSQL: each in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from callslip.handle import Scope
from callslip.stacks import ops
from callslip.stacks.index.postgres import sessions, shares
from callslip.stacks.index.postgres.sessions import Session, session_from
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import payload_from, shape_from_blob, to_blob, to_text

RESULT = (
    "r.id, r.call, r.tool, r.args, r.status, r.shape, r.preview, r.created_at, r.same_as,"
    " p.digest, p.form, p.packed, p.trailer, p.key"
)
_GRAVE = "t.id, t.tool, t.args, t.shape, t.why, t.gone_at"
_NO_GRAVE = "NULL::bytea, NULL, NULL, NULL, NULL, NULL"
_OWNER = 17
"""Where the user and the session of a shared row's owner stand, behind `RESULT` and three more."""


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

    One statement whatever there is: an id of another scope costs what an invented one does, and so
    does one that was shared for a time.
    """
    id = to_blob(op.id)
    rows = db.finish(
        f"SELECT {sessions.COLUMNS}, {RESULT}, p.data, r.seq, r.expires_at, NULL::bytea,"
        f" NULL::bytea, {_GRAVE}"
        " FROM sessions s"
        " LEFT JOIN results r ON r.session = s.n AND r.id = %s"
        " LEFT JOIN payloads p ON p.n = r.payload"
        " LEFT JOIN tombstones t ON t.session = s.n AND t.id = %s"
        f" WHERE {sessions.WHERE}"
        f' UNION ALL (SELECT {sessions.COLUMNS}, {RESULT}, p.data, r.seq, NULL, s."user", s.name,'
        f" {_NO_GRAVE} FROM {shares.RECEIVED} JOIN payloads p ON p.n = r.payload"
        f" WHERE h.id = %s AND {shares.TO} LIMIT 1)",
        (id, id, *sessions.key_of(op.scope), id, *shares.to(op.scope, op.now)),
    )
    session = None
    found: ops.Result | ops.Tombstone | None = None
    for row in rows:
        part = row[sessions.WIDTH :]
        if part[_OWNER] is not None:
            # The session's own row of that id comes before one that was shared with it.
            if not isinstance(found, ops.Result):
                found = _received(op.scope, part, part[14])
            continue
        session = session_from(row)
        if part[0] is not None:
            return _as_read(op, session, part), session
        grave = part[_OWNER + 2 :]
        if grave[0] is not None and found is None:
            found = _tombstone(grave)
    return found, session


def _tombstone(row: Sequence[Any]) -> ops.Tombstone:
    id, tool, args, shape, why, gone_at = row
    return ops.Tombstone(
        to_text(id), to_text(tool), to_text(args), shape_from_blob(shape), why, gone_at
    )


def _received(scope: Scope, row: Sequence[Any], data: bytes | None) -> ops.Result:
    """A shared row, as its owner's. What it repeats is a row that the receiver may not see."""
    owner = Scope(to_text(row[_OWNER + 1]), to_text(row[_OWNER]), scope.tenant)
    return replace(result_from(owner, row, data), same_as="")


def _as_read(op: ops.Get, session: Session, row: Sequence[Any]) -> ops.Result | ops.Tombstone:
    seq, runs_out = row[15:17]
    result = result_from(op.scope, row, row[14])
    if seq < session.floor:
        at: float | None = session.floor_at
    elif session.expired(op.now):
        at = session.expires_at
    elif runs_out is not None and runs_out < op.now:
        at = runs_out
    else:
        return result
    assert at is not None
    return ops.Tombstone(result.id, result.tool, result.args, result.shape, "expired", at)


_SHARED = (
    f"SELECT h.owner, h.seq, min(h.n) first FROM {shares.RECEIVED} WHERE {shares.TO}"
    " AND NOT EXISTS (SELECT 1 FROM sessions s JOIN results o ON o.session = s.n AND o.seq >= s.floor"
    f" WHERE o.id = r.id AND {sessions.WHERE})"
    " GROUP BY h.owner, h.seq"
)
"""The rows that were shared with a scope, once each; not those of whose id it has one itself."""

_OWN_LIVE = (
    "coalesce((SELECT CASE WHEN s.closed OR (NOT s.held AND coalesce(s.expires_at < %s, false))"
    " THEN 0 ELSE s.results - s.dead - (SELECT count(*) FROM results WHERE session = s.n"
    f" AND expires_at < %s AND seq >= s.floor) END FROM sessions s WHERE {sessions.WHERE}), 0)"
)


def list_live(db: Db, op: ops.List) -> tuple[tuple[Sequence[ops.Result], int], Session | None]:
    """Do `ops.List`; with the session, whose activity it is."""
    after, limit = min(max(op.after, 0), 2**62), min(max(op.limit, 0), 2**31)
    key = sessions.key_of(op.scope)
    # Without gaps, where nothing was deleted out of the middle, the page begins `after` numbers
    # after the first: so a list's end costs what its start does.
    rows = db.finish(
        f"WITH given AS MATERIALIZED ({_SHARED})"
        f" (SELECT {sessions.COLUMNS}, {RESULT}, o.ran_out, (SELECT count(*) FROM given),"
        " NULL, NULL::bytea, NULL::bytea, r.seq FROM (SELECT 1) one"
        f" LEFT JOIN sessions s ON {sessions.WHERE}"
        " LEFT JOIN LATERAL (SELECT"
        " (SELECT seq FROM results WHERE session = s.n AND seq >= s.floor ORDER BY seq LIMIT 1) a,"
        " (SELECT seq FROM results WHERE session = s.n AND seq >= s.floor ORDER BY seq DESC LIMIT 1)"
        " b) e ON true"
        " LEFT JOIN LATERAL (SELECT count(*) ran_out FROM results WHERE session = s.n"
        " AND expires_at < %s AND seq >= s.floor) o ON true"
        " LEFT JOIN LATERAL (SELECT o.ran_out = 0"
        " AND coalesce(e.b - e.a + 1 = s.results - s.dead, true) dense) d ON true"
        " LEFT JOIN LATERAL (SELECT * FROM results WHERE session = s.n AND %s > 0"
        " AND NOT s.closed AND (s.held OR NOT coalesce(s.expires_at < %s, false))"
        " AND coalesce(expires_at >= %s, true) AND seq >= CASE WHEN d.dense THEN e.a + %s ELSE s.floor END"
        " ORDER BY seq OFFSET CASE WHEN d.dense THEN 0 ELSE %s END LIMIT %s) r ON true"
        " LEFT JOIN payloads p ON p.n = r.payload ORDER BY r.seq)"
        f' UNION ALL (SELECT {sessions.COLUMNS}, {RESULT}, 0, 0, NULL, s."user", s.name, g.first'
        f" FROM (SELECT * FROM given ORDER BY first OFFSET greatest(%s - {_OWN_LIVE}, 0)"
        f" LIMIT greatest(%s - greatest({_OWN_LIVE} - %s, 0), 0)) g"
        " JOIN sessions s ON s.n = g.owner JOIN results r ON r.session = g.owner AND r.seq = g.seq"
        " JOIN payloads p ON p.n = r.payload ORDER BY g.first)",
        (
            *(*shares.to(op.scope, op.now), *key),
            *(*key, op.now, limit, op.now, op.now, after, after, limit),
            *(after, op.now, op.now, *key),
            *(limit, op.now, op.now, *key, after),
        ),
    )
    session = None if rows[0][0] is None else session_from(rows[0])
    ran_out, given = rows[0][sessions.WIDTH + 14 : sessions.WIDTH + 16]
    found = []
    for row in rows:
        part = row[sessions.WIDTH :]
        if part[0] is None:
            continue
        own = part[_OWNER] is None
        found.append(result_from(op.scope, part, None) if own else _received(op.scope, part, None))
    live = 0 if session is None else session.live(op.now)
    live = live and live - ran_out
    return (found or (), live + given), session
