"""How rows go in SQLite: removed, run out, or pushed out by a quota. Always O(rows that go)."""

from __future__ import annotations

import sqlite3
import time

from callslip.errors import SettingsError
from callslip.handle import Quota, Why
from callslip.limits import TOMBSTONE_SECONDS
from callslip.stacks.index import files, holding, memories, results, sessions, shares
from callslip.stacks.index.rows import to_blob
from callslip.stacks.index.sessions import Session
from callslip.stacks.ops import Remove, Sweep

_END = 2**62
_OLD = "FROM tombstones b WHERE gone_at < ? AND (SELECT held FROM sessions WHERE n = b.session) = 0"
_BATCH = 20
"""Rows between two looks at the clock: some 2 ms."""


def bury(
    db: sqlite3.Connection, session: int, start: int, end: int, why: Why, at: float, limit: int
) -> int:
    """Turn up to `limit` rows of a session with `start <= seq < end` into tombstones."""
    past = db.execute(
        "SELECT seq FROM results WHERE session = ? AND seq >= ? AND seq < ?"
        " ORDER BY seq LIMIT 1 OFFSET ?",
        (session, start, end, min(limit, _END)),
    ).fetchone()
    if past is not None:
        end = past[0]
    db.execute(
        "INSERT INTO tombstones"
        " (tenant, session, id, call, digest, why, gone_at, tool, args, shape)"
        " SELECT r.tenant, r.session, r.id, r.call, p.digest, ?, ?, r.tool, r.args, r.shape"
        " FROM results r JOIN payloads p ON p.n = r.payload"
        " WHERE r.session = ? AND r.seq >= ? AND r.seq < ?",
        (why, at, session, start, end),
    )
    return db.execute(
        "DELETE FROM results WHERE session = ? AND seq >= ? AND seq < ?", (session, start, end)
    ).rowcount


def bury_expired(db: sqlite3.Connection, session: Session, now: float, limit: int) -> int:
    """Turn up to `limit` rows that have run out into tombstones, and close what is through."""
    gone = files.drop(db, session.n, limit) if session.files and session.expired(now) else 0
    if session.dead and gone < limit:
        gone += bury(db, session.n, 0, session.floor, "expired", session.floor_at, limit - gone)
    if session.expired(now):
        assert session.expires_at is not None
        if gone < limit:
            gone += bury(
                db, session.n, session.floor, _END, "expired", session.expires_at, limit - gone
            )
        db.execute(
            "UPDATE sessions SET closed = 1, expires_at = NULL"
            " WHERE n = ? AND results = 0 AND files = 0",
            (session.n,),
        )
        sessions.settle(db, session.n)
    return gone


def bury_run_out(
    db: sqlite3.Connection, now: float, limit: int, *, whose: str = "", owner: int = 0
) -> int:
    """Turn up to `limit` rows that ran out by themselves into tombstones, of all or of one `session`
    or `tenant`; answer how many."""
    where, values = (f"{whose} = ? AND", (owner,)) if whose else ("", ())
    rows = db.execute(
        f"SELECT session, seq, expires_at FROM results WHERE {where} expires_at < ?"
        " ORDER BY expires_at LIMIT ?",
        (*values, now, min(limit, _END)),
    ).fetchall()
    for session, seq, at in rows:
        bury(db, session, seq, seq + 1, "expired", at, 1)
    return len(rows)


def remove(db: sqlite3.Connection, op: Remove) -> int:
    """Do `ops.Remove`."""
    if op.id is not None and op.session is None:
        raise SettingsError("Remove: an id needs the session it is in")
    holding.refuse(db, op.tenant, op.user, op.session)
    gone = 0
    for session in sessions.matching(db, op.tenant, op.user, op.session):
        if op.id is not None:
            gone += _remove_one(db, op, session, to_blob(op.id))
            continue
        gone += results.live(db, session, op.now)
        files.drop(db, session.n)
        if op.tombstones:
            bury_expired(db, session, op.now, _END)
            bury_run_out(db, op.now, _END, whose="session", owner=session.n)
            bury(db, session.n, session.floor, _END, op.why, op.now, _END)
            db.execute(
                "UPDATE sessions SET closed = 1, expires_at = NULL WHERE n = ?", (session.n,)
            )
            sessions.settle(db, session.n)
        else:
            db.execute("DELETE FROM results WHERE session = ?", (session.n,))
            db.execute("DELETE FROM tombstones WHERE session = ?", (session.n,))
            db.execute("DELETE FROM sessions WHERE n = ?", (session.n,))
            sessions.drop_tenant(db, session.tenant)
    if op.session is None and not op.tombstones:
        memories.drop_below(db, (op.tenant,) if op.user is None else (op.tenant, op.user))
    return gone


def _remove_one(db: sqlite3.Connection, op: Remove, session: Session, id: bytes) -> int:
    row = db.execute(
        "SELECT seq, expires_at FROM results WHERE session = ? AND id = ?", (session.n, id)
    ).fetchone()
    gone = 0
    if row is not None:
        seq, runs_out = row
        if seq < session.floor:
            bury(db, session.n, seq, seq + 1, "expired", session.floor_at, 1)
        elif session.expired(op.now):
            assert session.expires_at is not None
            bury(db, session.n, seq, seq + 1, "expired", session.expires_at, 1)
        elif runs_out is not None and runs_out < op.now:
            bury(db, session.n, seq, seq + 1, "expired", runs_out, 1)
        else:
            gone = bury(db, session.n, seq, seq + 1, op.why, op.now, 1)
    if not op.tombstones:
        db.execute("DELETE FROM tombstones WHERE session = ? AND id = ?", (session.n, id))
        sessions.drop_empty(db, session.n)
    return gone


def enforce(db: sqlite3.Connection, quota: Quota, session: int, seq: int, now: float) -> bool:
    """Let the oldest rows go until the quota holds; never the row `seq` of this session. Then the
    texts of old versions of files. Answers whether it holds. What is under a legal hold stays."""
    holds = True
    if quota != Quota():
        bury_run_out(db, now, _END, whose="session", owner=session)
    if quota.session_results is not None or quota.session_bytes is not None:
        while True:
            own = sessions.load(db, session)
            if not _over(
                own.results - own.dead,
                _size(own),
                quota.session_results,
                quota.session_bytes,
            ):
                break
            oldest = db.execute(
                "SELECT seq FROM results WHERE session = ? AND seq >= ? AND seq <> ? AND ? = 0"
                " ORDER BY seq LIMIT 1",
                (session, own.floor, seq, own.held),
            ).fetchone()
            if oldest is None:
                # Old texts go for bytes alone: they are no results.
                bytes_over = _over(0, _size(own), None, quota.session_bytes)
                if bytes_over and files.evict(db, "session", session):
                    continue
                holds = False
                break
            bury(db, session, oldest[0], oldest[0] + 1, "evicted", now, 1)
    if quota.tenant_results is not None or quota.tenant_bytes is not None:
        tenant = sessions.load(db, session).tenant
        while True:
            results, size = db.execute(
                "SELECT results, content_bytes + file_bytes FROM tenants WHERE n = ?", (tenant,)
            ).fetchone()
            if not _over(results, size, quota.tenant_results, quota.tenant_bytes):
                break
            # What has run out goes first: it must not push out what a reader still has.
            ended = db.execute(
                "SELECT n FROM (SELECT n FROM sessions WHERE tenant = ? AND dead > 0 AND held = 0"
                " LIMIT 1) UNION ALL SELECT n FROM (SELECT n FROM sessions WHERE tenant = ?"
                " AND expires_at IS NOT NULL AND held = 0 AND expires_at < ?"
                " ORDER BY expires_at LIMIT 1) LIMIT 1",
                (tenant, tenant, now),
            ).fetchone()
            if ended is not None:
                bury_expired(db, sessions.load(db, ended[0]), now, 1)
                continue
            if bury_run_out(db, now, 1, whose="tenant", owner=tenant):
                continue
            oldest = db.execute(
                "SELECT session, seq FROM results r WHERE tenant = ?"
                " AND NOT (session = ? AND seq = ?)"
                " AND (SELECT held FROM sessions WHERE n = r.session) = 0 ORDER BY n LIMIT 1",
                (tenant, session, seq),
            ).fetchone()
            if oldest is None:
                bytes_over = _over(0, size, None, quota.tenant_bytes)
                if bytes_over and files.evict(db, "tenant", tenant):
                    continue
                holds = False
                break
            bury(db, oldest[0], oldest[1], oldest[1] + 1, "evicted", now, 1)
    return holds


def _size(session: Session) -> int:
    return session.content_bytes - session.dead_bytes + session.file_bytes


def _over(results: int, size: int, most_results: int | None, most_bytes: int | None) -> bool:
    return (most_results is not None and results > most_results) or (
        most_bytes is not None and size > most_bytes
    )


def sweep(db: sqlite3.Connection, op: Sweep) -> bool:
    """Do `ops.Sweep`."""
    # Half of the time is the commit's, which writes what the other half changed.
    until = time.monotonic() + op.milliseconds / 2000
    left = max(op.rows, 0)
    while left and time.monotonic() < until:
        ended = _ended(db, op.now)
        if ended is None:
            break
        # A session without rows is a row's work too, so that many of them stay bounded.
        left -= max(1, bury_expired(db, sessions.load(db, ended), op.now, min(left, _BATCH)))
    while left and time.monotonic() < until:
        gone = bury_run_out(db, op.now, min(left, _BATCH))
        left -= gone
        if not gone:
            break
    while left and time.monotonic() < until:
        limit = min(left, _BATCH)
        old = db.execute(
            f"DELETE FROM tombstones WHERE n IN (SELECT n {_OLD} ORDER BY gone_at LIMIT ?)"
            " RETURNING session",
            (op.now - TOMBSTONE_SECONDS, limit),
        ).fetchall()
        for (session,) in dict.fromkeys(old):
            sessions.settle(db, session)
        left -= len(old)
        if len(old) < limit:
            break
    if left and time.monotonic() < until:
        shares.sweep(db, op.now, min(left, _BATCH))
    return more(db, op.now)


def more(db: sqlite3.Connection, now: float) -> bool:
    """Whether a sweep at `now` has anything to do."""
    if _ended(db, now) is not None or shares.more(db, now):
        return True
    old = ("FROM results WHERE expires_at < ?", now), (_OLD, now - TOMBSTONE_SECONDS)
    return any(
        db.execute(f"SELECT 1 {rows} LIMIT 1", (until,)).fetchone() is not None
        for rows, until in old
    )


def _ended(db: sqlite3.Connection, now: float) -> int | None:
    row = db.execute(
        "SELECT n FROM (SELECT n FROM sessions WHERE dead > 0 AND held = 0 LIMIT 1)"
        " UNION ALL SELECT n FROM (SELECT n FROM sessions WHERE expires_at IS NOT NULL"
        " AND held = 0 AND expires_at < ? ORDER BY expires_at LIMIT 1) LIMIT 1",
        (now,),
    ).fetchone()
    return None if row is None else int(row[0])
