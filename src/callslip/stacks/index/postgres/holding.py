"""Legal holds in PostgreSQL: placed, lifted, and asked of before anything goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from callslip.errors import LegalHold
from callslip.stacks.auditops import HeldBy, Hold, Holds, PlaceHold, Release
from callslip.stacks.index.postgres.audit_schema import HELD
from callslip.stacks.index.postgres.transaction import Db, Row
from callslip.stacks.index.rows import blob_if_any, hold_from, to_blob
from callslip.stacks.memoryops import Namespace

_COLUMNS = 'n, tenant, "user", session, reason, actor, since'


def place(db: Db, op: PlaceHold) -> Hold:
    """Do `auditops.PlaceHold`."""
    reach = (to_blob(op.tenant), blob_if_any(op.user), blob_if_any(op.session))
    # A session that is opened just now is either seen here, or sees the hold. The holds first, as
    # whoever removes something does.
    db.execute("LOCK TABLE holds, sessions IN SHARE ROW EXCLUSIVE MODE")
    row = db.execute(
        'INSERT INTO holds (tenant, "user", session, reason, actor, since)'
        f" VALUES (%s, %s, %s, %s, %s, %s) RETURNING {_COLUMNS}",
        (*reach, to_blob(op.reason), to_blob(op.actor), op.now),
    )[0]
    db.finish("SELECT mark_held(%s, %s, %s)", reach)
    return hold_from(row)


def release(db: Db, op: Release) -> Sequence[Hold]:
    """Do `auditops.Release`."""
    reach = (to_blob(op.tenant), blob_if_any(op.user), blob_if_any(op.session))
    db.execute("LOCK TABLE holds, sessions IN SHARE ROW EXCLUSIVE MODE")
    rows = db.execute(
        'DELETE FROM holds WHERE tenant = %s AND "user" IS NOT DISTINCT FROM %s'
        f" AND session IS NOT DISTINCT FROM %s RETURNING {_COLUMNS}",
        reach,
    )
    db.finish("SELECT mark_held(%s, %s, %s)", reach)
    return [hold_from(row) for row in sorted(rows)]


def holds(db: Db, op: Holds) -> Sequence[Hold]:
    """Do `auditops.Holds`."""
    where, values = ("", ()) if op.tenant is None else ("WHERE tenant = %s", (to_blob(op.tenant),))
    return [
        hold_from(row)
        for row in db.finish(f"SELECT {_COLUMNS} FROM holds {where} ORDER BY n", values)
    ]


def held_by(db: Db, op: HeldBy) -> Sequence[Hold]:
    """Do `auditops.HeldBy`."""
    return reaching(db, op.tenant, op.user, op.session)


def reaching(
    db: Db, tenant: str | None, user: str | None = None, session: str | None = None
) -> Sequence[Hold]:
    """The holds that reach into that. No other is placed until this transaction is over."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM holds_on(%s, %s, %s)",
        (blob_if_any(tenant), blob_if_any(user), blob_if_any(session)),
    )
    return [hold_from(row) for row in rows]


def refuse(db: Db, tenant: str, user: str | None = None, session: str | None = None) -> None:
    """Raise `LegalHold` if any hold reaches into that."""
    found = reaching(db, tenant, user, session)
    if found:
        raise LegalHold(f"kept by {found[0]}")


class Held(Exception):
    """A legal hold keeps what was to be removed: the transaction is undone."""


def unless_held(db: Db, sql: str, values: Sequence[Any]) -> Row:
    """The row of a last statement that asks `refuse_held`. Raises `Held`."""
    try:
        return db.finish(sql, values)[0]
    except psycopg.Error as error:
        if error.sqlstate != HELD:
            raise
        raise Held from None


def of_memory(db: Db, namespace: Namespace) -> Hold | None:
    """A hold that reaches into what is remembered there: one of no single session."""
    words: list[str | None] = [*namespace[:2], None, None]
    found = (hold for hold in reaching(db, words[0], words[1]) if hold.session is None)
    return next(found, None)


def refuse_memory(db: Db, namespace: Namespace) -> None:
    """Raise `LegalHold` if a hold reaches into what is remembered there."""
    found = of_memory(db, namespace)
    if found is not None:
        raise LegalHold(f"kept by {found}")


KEEPS_FACTS = (
    "EXISTS (SELECT 1 FROM holds h WHERE h.session IS NULL AND h.tenant = m.tenant"
    ' AND (h."user" IS NULL OR h."user" = memory_user(s.path)))'
)
"""Whether a hold keeps a fact `m` of a space `s`."""


def keeps_facts(db: Db, namespace: Namespace) -> bool:
    """The same of a whole space. No other hold is placed until this transaction is over."""
    tenant, *owner = namespace[:2] or ("",)
    found = reaching(db, tenant)
    return any(hold.session is None and hold.user in (None, *owner) for hold in found)
