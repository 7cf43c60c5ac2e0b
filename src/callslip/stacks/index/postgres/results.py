"""Reading rows of results and their tombstones from PostgreSQL: each in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from callslip.handle import Scope
from callslip.stacks import ops
from callslip.stacks.index.postgres import sessions
from callslip.stacks.index.postgres.sessions import Session, session_from
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import (
    receiver_to_blob,
    result_from,
    scope_key,
    shape_from_blob,
    to_blob,
    to_text,
)

_OWNER = 17
"""Where the user and the session of a shared row's owner stand, behind `read_schema.RESULT` and three more."""


def get(db: Db, op: ops.Get) -> tuple[ops.Result | ops.Tombstone | None, Session | None]:
    """Do `ops.Get`; with the session, whose activity it is.

    One statement whatever there is: an id of another scope costs what an invented one does, and so
    does one that was shared for a time.
    """
    key = scope_key(op.scope)
    rows = db.finish(
        "SELECT * FROM get_result(%s, %s, %s, %s, %s, %s)",
        (*key, to_blob(op.id), op.now, receiver_to_blob(op.scope.session)),
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
            own = _as_read(op, session, part)
            if isinstance(own, ops.Result):
                return own, session
            # It only waits for the sweep: what is shared comes before what is left of it.
            found = found or own
            continue
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


def list_live(db: Db, op: ops.List) -> tuple[tuple[Sequence[ops.Result], int], Session | None]:
    """Do `ops.List`; with the session, whose activity it is."""
    after, limit = min(max(op.after, 0), 2**62), min(max(op.limit, 0), 2**31)
    key = scope_key(op.scope)
    rows = db.finish(
        "SELECT * FROM list_results(%s, %s, %s, %s, %s, %s, %s)",
        (*key, after, limit, op.now, receiver_to_blob(op.scope.session)),
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
