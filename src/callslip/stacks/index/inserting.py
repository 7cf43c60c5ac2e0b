"""Inserting a row, or a version of a scratch file, with its payload and its session."""

from __future__ import annotations

import sqlite3

from callslip.errors import StoreUnavailable
from callslip.stacks import fileops, ops
from callslip.stacks.auditops import FILE_ID
from callslip.stacks.index import adopting, files, holding, retention, sessions, subjects
from callslip.stacks.index.results import row_of
from callslip.stacks.index.rows import shape_to_blob, to_blob
from callslip.stacks.index.sessions import Session


def insert(db: sqlite3.Connection, op: ops.Insert) -> ops.Inserted | None:
    given, scope = op.result.payload, op.result.scope
    stored = adopting.find(db, ops.FindPayload(scope.tenant, given.digest))
    if adopting.is_gone(db, given, stored):
        return None
    with adopting.held(db, scope.tenant, stored):
        session = sessions.open_session(db, scope, op.ttl, op.now)
        payload, adopted = adopting.adopt(db, session.tenant, given, stored)
        about = subjects.of_ids(db, session, op.ids)
        id, created, ended = _take_id(db, op, session, payload)
        if created:
            if ended is not None:
                # The row of an earlier life makes room. Holding its payload meanwhile keeps the trigger
                # from releasing what the new row needs.
                db.execute("UPDATE payloads SET refs = refs + 1 WHERE n = ?", (payload,))
                # By the way of a tombstone: it ran out, and nobody deleted it.
                retention.bury(db, session.n, ended, ended + 1, "expired", op.now, 1)
                db.execute("DELETE FROM tombstones WHERE session = ? AND id = ?", (session.n, id))
            _add_row(db, op, session, payload, id)
            if ended is not None:
                db.execute("UPDATE payloads SET refs = refs - 1 WHERE n = ?", (payload,))
            _enforce(db, op, session)
            # After the quota, so that it never names a row which this very insert pushed out. A row
            # that names another was never shown in full, so it is not the one to name.
            db.execute(
                "UPDATE results SET same_as = coalesce((SELECT id FROM results WHERE payload = ?"
                " AND session = ? AND seq >= ? AND seq < ? AND same_as = x''"
                " AND (expires_at IS NULL OR expires_at >= ?) ORDER BY seq LIMIT 1), x'')"
                " WHERE session = ? AND seq = ?",
                (
                    payload,
                    session.n,
                    session.floor,
                    session.next_seq,
                    op.now,
                    session.n,
                    session.next_seq,
                ),
            )
        # What lives again is about whom it was about: its earlier row, or tombstone, took that along.
        subjects.add(db, session, id, [*about.get(id, ()), *op.subjects])
        found = row_of(db, scope, session.n, id)
        assert found is not None
        return ops.Inserted(result=found[1], created=created, adopted=adopted)


def _enforce(db: sqlite3.Connection, op: ops.Insert, session: Session) -> None:
    holds = retention.enforce(db, op.quota, session.n, session.next_seq, op.now)
    if not holds and holding.in_the_way(db, session, op.quota):
        # Without a hold a single result may be larger than its quota: it is the newest.
        raise StoreUnavailable("what fills the quota is under a legal hold", reason="over quota")


def write_file(db: sqlite3.Connection, op: fileops.WriteFile) -> fileops.Wrote | None:
    stored = adopting.find(db, ops.FindPayload(op.scope.tenant, op.payload.digest))
    if adopting.is_gone(db, op.payload, stored):
        return None
    with adopting.held(db, op.scope.tenant, stored):
        session = sessions.open_session(db, op.scope, op.ttl, op.now)
        at = files.standing(db, op, session)
        if isinstance(at, fileops.Wrote):
            if at.outcome == "same" and at.file is not None:
                subjects.add(db, session, to_blob(f"{FILE_ID}{at.file.version}"), op.subjects)
            return at
        payload, adopted = adopting.adopt(db, session.tenant, op.payload, stored)
        written = files.add(db, op, session, payload, at)
        subjects.add(db, session, to_blob(f"{FILE_ID}{written.version}"), op.subjects)
        if not retention.enforce(db, op.quota, session.n, -1, op.now):
            raise StoreUnavailable("the files as they stand fill the quota", reason="over quota")
        return fileops.Wrote("written", written, adopted)


def _take_id(
    db: sqlite3.Connection, op: ops.Insert, session: Session, payload: int
) -> tuple[bytes, bool, int | None]:
    """The id for this call and content, whether a row must be made for it, and the seq of a row
    with that id which ran out with an earlier life of the session.

    An id that this call and content had before wins over a shorter one that became free: a replay
    gives the same handle.
    """
    ids = [to_blob(id) for id in sorted(op.ids, key=len)]
    marks = ", ".join("?" * len(ids))
    call, digest = op.result.call, op.result.payload.digest
    taken: dict[bytes, tuple[int | None, bool]] = {}
    for id, seq, own in db.execute(
        # The seq of one that ran out by itself as negative.
        "SELECT id, CASE WHEN expires_at < ? THEN -seq ELSE seq END, call = ? AND payload = ?"
        f" FROM results WHERE session = ? AND id IN ({marks})",
        (op.now, call, payload, session.n, *ids),
    ):
        taken[id] = (seq, bool(own))
    for id, own in db.execute(
        f"SELECT id, call = ? AND digest = ? FROM tombstones WHERE session = ? AND id IN ({marks})",
        (call, digest, session.n, *ids),
    ):
        taken[id] = (None, bool(own))
    for id in ids:
        seq, own = taken.get(id, (None, False))
        if not own:
            continue
        if seq is None:
            db.execute("DELETE FROM tombstones WHERE session = ? AND id = ?", (session.n, id))
        return id, seq is None or seq < session.floor, None if seq is None else abs(seq)
    for id in ids:
        if id not in taken:
            return id, True, None
    raise StoreUnavailable("every id offered for a result is taken in its session", reason="failed")


def _add_row(
    db: sqlite3.Connection, op: ops.Insert, session: Session, payload: int, id: bytes
) -> None:
    result = op.result
    runs_out = "held_expiry" if session.held else "expires_at"
    db.execute(
        "INSERT INTO results (tenant, session, seq, id, call, payload, size, created_at, same_as,"
        f" tool, status, args, shape, preview, {runs_out})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, x'', ?, ?, ?, ?, ?, ?)",
        (
            session.tenant,
            session.n,
            session.next_seq,
            id,
            result.call,
            payload,
            result.shape.size,
            result.created_at,
            to_blob(result.tool),
            to_blob(result.status),
            to_blob(result.args),
            shape_to_blob(result.shape),
            to_blob(result.preview),
            op.expires_at,
        ),
    )
    db.execute("UPDATE sessions SET next_seq = next_seq + 1 WHERE n = ?", (session.n,))
