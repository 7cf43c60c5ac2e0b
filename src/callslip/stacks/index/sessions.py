"""Sessions in SQLite: found, opened, touched, and let go once nothing is left of them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import cast

from callslip.handle import Scope
from callslip.stacks.index import files, holding
from callslip.stacks.index.rows import to_blob, touch_after

_COLUMNS = (
    "s.n, s.tenant, s.active_at, s.ttl, s.expires_at, s.closed, s.next_seq, s.floor, s.floor_at,"
    " s.results, s.dead, s.content_bytes, s.dead_bytes, s.files, s.file_bytes, s.held"
)


@dataclass(frozen=True, slots=True)
class Session:
    """A row of `sessions`, as far as the operations need it."""

    n: int
    tenant: int
    active_at: float
    ttl: float | None
    expires_at: float | None
    closed: int
    next_seq: int
    floor: int
    floor_at: float
    results: int
    dead: int
    content_bytes: int
    dead_bytes: int
    files: int
    file_bytes: int
    held: int

    def expired(self, now: float) -> bool:
        """Whether its ttl has run out, swept or not. While it is held, it never has."""
        if self.closed or self.held or self.expires_at is None:
            return False
        return self.expires_at < now

    def ended(self, now: float) -> bool:
        """Whether a reader finds nothing in it any more."""
        return bool(self.closed) or self.expired(now)

    def live(self, now: float) -> int:
        """How many rows a reader sees, those aside that ran out by themselves (`results.live`)."""
        return 0 if self.ended(now) else self.results - self.dead


def find(db: sqlite3.Connection, scope: Scope) -> Session | None:
    """The session of that scope, whatever its state."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM tenants t JOIN sessions s ON s.tenant = t.n"
        " WHERE t.name = ? AND s.name = ? AND s.user = ?",
        (to_blob(scope.tenant), to_blob(scope.session), to_blob(scope.user)),
    ).fetchone()
    return None if row is None else Session(*row)


def load(db: sqlite3.Connection, n: int) -> Session:
    """The session of that row number."""
    return Session(*db.execute(f"SELECT {_COLUMNS} FROM sessions s WHERE s.n = ?", (n,)).fetchone())


def matching(
    db: sqlite3.Connection, tenant: str, user: str | None, session: str | None
) -> list[Session]:
    """The sessions of a tenant, all of them or those of one user, of one name, or of both."""
    sql = f"SELECT {_COLUMNS} FROM tenants t JOIN sessions s ON s.tenant = t.n WHERE t.name = ?"
    values = [to_blob(tenant)]
    if session is not None:
        sql += " AND s.name = ?"
        values.append(to_blob(session))
    if user is not None:
        sql += " AND s.user = ?"
        values.append(to_blob(user))
    return [Session(*row) for row in db.execute(sql, values)]


def open_session(db: sqlite3.Connection, scope: Scope, ttl: float | None, now: float) -> Session:
    """The session, open and active, for an insert that will take `next_seq`.

    Rows of one that had run out stay below its `floor`: they are gone for a reader, as they were a
    moment ago, and the sweep turns them into tombstones.
    """
    tenant = to_blob(scope.tenant)
    db.execute("INSERT INTO tenants (name) VALUES (?) ON CONFLICT DO NOTHING", (tenant,))
    found = find(db, scope)
    active_at = now if found is None else max(now, found.active_at)
    expires_at = None if ttl is None else active_at + ttl
    if found is None:
        made = db.execute(
            "INSERT INTO sessions (tenant, name, user, active_at, ttl, expires_at)"
            " SELECT n, ?, ?, ?, ?, ? FROM tenants WHERE name = ?",
            (to_blob(scope.session), to_blob(scope.user), active_at, ttl, expires_at, tenant),
        )
        n = cast("int", made.lastrowid)
        if holding.covers(db, n):
            db.execute("UPDATE sessions SET held = 1 WHERE n = ?", (n,))
    else:
        if found.expired(now):
            # Files leave no tombstones, so there is nothing for the sweep to turn them into.
            files.drop(db, found.n)
            db.execute(
                "UPDATE sessions SET floor = next_seq, floor_at = expires_at, dead = results,"
                " dead_bytes = content_bytes WHERE n = ?",
                (found.n,),
            )
        db.execute(
            "UPDATE sessions SET active_at = ?, ttl = ?, expires_at = ?, closed = 0 WHERE n = ?",
            (active_at, ttl, expires_at, found.n),
        )
    opened = find(db, scope)
    assert opened is not None
    return opened


def due(session: Session, now: float) -> bool:
    """Whether a read now is activity worth a write."""
    if session.closed or session.expired(now):
        return False
    return now - session.active_at >= touch_after(session.ttl)


def touch(db: sqlite3.Connection, session: Session, now: float) -> None:
    """Count a read as activity, unless the session ended since it was looked up."""
    db.execute(
        "UPDATE sessions SET active_at = ?, expires_at = ? + ttl WHERE n = ? AND closed = 0"
        " AND active_at < ? AND (expires_at IS NULL OR expires_at >= ? OR held = 1)",
        (now, now, session.n, now, now),
    )


def settle(db: sqlite3.Connection, n: int) -> None:
    """Drop a closed session of which nothing is left, and its tenant if it was the last."""
    gone = db.execute(
        "DELETE FROM sessions WHERE n = ? AND closed = 1 AND results = 0 AND tombstones = 0"
        " AND files = 0 RETURNING tenant",
        (n,),
    ).fetchall()
    for (tenant,) in gone:
        drop_tenant(db, tenant)


def drop_empty(db: sqlite3.Connection, n: int) -> None:
    """Drop a session, open or not, that nothing is left of: it would be a trace of what was there."""
    db.execute(
        "UPDATE sessions SET closed = 1, expires_at = NULL"
        " WHERE n = ? AND results = 0 AND tombstones = 0 AND files = 0",
        (n,),
    )
    settle(db, n)


def drop_tenant(db: sqlite3.Connection, tenant: int) -> None:
    """Drop a tenant without sessions: nothing else can be left of it."""
    db.execute(
        "DELETE FROM tenants WHERE n = ?"
        " AND NOT EXISTS (SELECT 1 FROM sessions WHERE tenant = tenants.n)",
        (tenant,),
    )
