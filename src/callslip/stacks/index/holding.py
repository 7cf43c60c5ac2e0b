"""Legal holds in SQLite: placed, lifted, and asked of before anything goes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from callslip.errors import LegalHold
from callslip.stacks.auditops import HeldBy, Hold, Holds, PlaceHold, Release
from callslip.stacks.index.rows import blob_if_any, hold_from, to_blob, to_text
from callslip.stacks.memoryops import Namespace

if TYPE_CHECKING:
    from callslip.handle import Quota
    from callslip.stacks.index.sessions import Session

_COLUMNS = "n, tenant, user, session, reason, actor, since"
_COVERS = (
    "EXISTS (SELECT 1 FROM holds h WHERE h.tenant = (SELECT name FROM tenants WHERE n = s.tenant)"
    " AND coalesce(h.user, s.user) = s.user AND coalesce(h.session, s.name) = s.name)"
)

KEEPS_FACTS = (
    "EXISTS (SELECT 1 FROM holds h WHERE h.session IS NULL AND h.tenant = s.tenant"
    " AND (h.user IS NULL OR h.user = s.owner))"
)
"""Whether a hold keeps the facts of a space `s`."""


def place(db: sqlite3.Connection, op: PlaceHold) -> Hold:
    """Do `auditops.PlaceHold`."""
    cursor = db.execute(
        "INSERT INTO holds (tenant, user, session, reason, actor, since) VALUES (?, ?, ?, ?, ?, ?)",
        (
            to_blob(op.tenant),
            blob_if_any(op.user),
            blob_if_any(op.session),
            to_blob(op.reason),
            to_blob(op.actor),
            op.now,
        ),
    )
    _mark(db, op.tenant, op.user, op.session)
    n = cast("int", cursor.lastrowid)
    return Hold(n, op.tenant, op.user, op.session, op.reason, op.actor, op.now)


def release(db: sqlite3.Connection, op: Release) -> Sequence[Hold]:
    """Do `auditops.Release`."""
    which = (to_blob(op.tenant), blob_if_any(op.user), blob_if_any(op.session))
    where = "WHERE tenant = ? AND user IS ? AND session IS ?"
    lifted = db.execute(f"SELECT {_COLUMNS} FROM holds {where} ORDER BY n", which).fetchall()
    db.execute(f"DELETE FROM holds {where}", which)
    _mark(db, op.tenant, op.user, op.session)
    return [hold_from(row) for row in lifted]


def _mark(db: sqlite3.Connection, tenant: str, user: str | None, session: str | None) -> None:
    """Note in the sessions of a reach whether they are held: a sweep asks them, not the holds."""
    where = "s.tenant = (SELECT n FROM tenants WHERE name = ?)"
    values = [to_blob(tenant)]
    for column, given in (("user", user), ("name", session)):
        if given is not None:
            where += f" AND s.{column} = ?"
            values.append(to_blob(given))
    for turned in (0, 1):
        changed = db.execute(
            f"UPDATE sessions AS s SET held = {1 - turned} WHERE {where} AND s.held = {turned}"
            f" AND {_COVERS} = {1 - turned} RETURNING n",
            values,
        ).fetchall()
        ended, kept = (
            ("expires_at", "held_expiry") if turned == 0 else ("held_expiry", "expires_at")
        )
        db.executemany(
            f"UPDATE results SET {kept} = {ended}, {ended} = NULL"
            f" WHERE session = ? AND {ended} IS NOT NULL",
            changed,
        )


def covers(db: sqlite3.Connection, n: int) -> bool:
    """Whether a hold covers that session."""
    return bool(db.execute(f"SELECT {_COVERS} FROM sessions s WHERE s.n = ?", (n,)).fetchone()[0])


def holds(db: sqlite3.Connection, op: Holds) -> Sequence[Hold]:
    """Do `auditops.Holds`."""
    where, values = ("", []) if op.tenant is None else ("WHERE tenant = ?", [to_blob(op.tenant)])
    rows = db.execute(f"SELECT {_COLUMNS} FROM holds {where} ORDER BY n", values)
    return [hold_from(row) for row in rows]


def held_by(db: sqlite3.Connection, op: HeldBy) -> Sequence[Hold]:
    """Do `auditops.HeldBy`."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM holds WHERE tenant = ?1 AND (user IS NULL OR ?2 IS NULL"
        " OR user = ?2) AND (session IS NULL OR ?3 IS NULL OR session = ?3) ORDER BY n",
        (to_blob(op.tenant), blob_if_any(op.user), blob_if_any(op.session)),
    )
    return [hold_from(row) for row in rows]


def refuse(
    db: sqlite3.Connection, tenant: str, user: str | None = None, session: str | None = None
) -> None:
    """Raise `LegalHold` if any hold reaches into that."""
    found = held_by(db, HeldBy(tenant, user, session))
    if found:
        raise LegalHold(f"kept by {found[0]}")


def refuse_session(db: sqlite3.Connection, n: int) -> None:
    """Raise `LegalHold` if that session is held."""
    tenant, user, name = db.execute(
        "SELECT t.name, s.user, s.name FROM sessions s JOIN tenants t ON t.n = s.tenant"
        " WHERE s.n = ?",
        (n,),
    ).fetchone()
    refuse(db, to_text(tenant), to_text(user), to_text(name))


def of_memory(db: sqlite3.Connection, namespace: Namespace) -> Hold | None:
    """A hold that reaches into what is remembered there: one of no single session."""
    words: list[str | None] = [*namespace[:2], None, None]
    row = db.execute(
        f"SELECT {_COLUMNS} FROM holds WHERE session IS NULL AND (?1 IS NULL OR tenant = ?1)"
        " AND (user IS NULL OR ?2 IS NULL OR user = ?2) ORDER BY n LIMIT 1",
        (blob_if_any(words[0]), blob_if_any(words[1])),
    ).fetchone()
    return None if row is None else hold_from(row)


def refuse_memory(db: sqlite3.Connection, namespace: Namespace) -> None:
    """Raise `LegalHold` if a hold reaches into what is remembered there."""
    found = of_memory(db, namespace)
    if found is not None:
        raise LegalHold(f"kept by {found}")


def in_the_way(db: sqlite3.Connection, session: Session, quota: Quota) -> bool:
    """Whether a hold keeps what would go for a quota: of the session, or of its tenant."""
    if session.held:
        return True
    of_tenant = quota.tenant_results is not None or quota.tenant_bytes is not None
    held = db.execute(
        "SELECT 1 FROM sessions WHERE tenant = ? AND held = 1 LIMIT 1", (session.tenant,)
    )
    return of_tenant and held.fetchone() is not None
