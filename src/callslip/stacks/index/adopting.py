"""How a payload gets into the SQLite index: found, or taken as it is given."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from callslip.stacks import ops
from callslip.stacks.index import upkeep
from callslip.stacks.index.rows import payload_from, to_blob


def find(db: sqlite3.Connection, op: ops.FindPayload) -> ops.Payload | None:
    row = db.execute(
        "SELECT p.digest, p.form, p.packed, p.trailer, p.key, NULL"
        " FROM tenants t JOIN payloads p ON p.tenant = t.n WHERE t.name = ? AND p.digest = ?",
        (to_blob(op.tenant), op.digest),
    ).fetchone()
    return None if row is None else payload_from(*row)


def is_gone(db: sqlite3.Connection, given: ops.Payload, stored: ops.Payload | None) -> bool:
    """Whether a payload can neither be found nor be taken: its bytes are, or may soon be, gone."""
    if stored is not None:
        return False
    if given.key is None:
        return given.data is None
    return upkeep.known_garbage(db, to_blob(given.key))  # deleted at any moment


@contextmanager
def held(db: sqlite3.Connection, tenant: str, stored: ops.Payload | None) -> Iterator[None]:
    """Keep a stored payload while its session is opened: what had run out there lets go of it."""
    if stored is None:
        yield
        return
    where = (
        "WHERE tenant = (SELECT n FROM tenants WHERE name = ?) AND digest = ?",
        (to_blob(tenant), stored.digest),
    )
    db.execute(f"UPDATE payloads SET refs = refs + 1 {where[0]}", where[1])
    yield
    db.execute(f"UPDATE payloads SET refs = refs - 1 {where[0]}", where[1])


def adopt(
    db: sqlite3.Connection, tenant: int, given: ops.Payload, stored: ops.Payload | None
) -> tuple[int, bool]:
    """The row number of a payload, the stored one or the given; and whether it is the given one."""
    if stored is None:
        return _add(db, tenant, given), True
    (payload,) = db.execute(
        "SELECT n FROM payloads WHERE tenant = ? AND digest = ?", (tenant, given.digest)
    ).fetchone()
    # A retried insert whose first answer was lost gives the key that is stored: still the index's.
    return payload, given.key is not None and given.key == stored.key


def _add(db: sqlite3.Connection, tenant: int, given: ops.Payload) -> int:
    key = None if given.key is None else to_blob(given.key)
    cursor = db.execute(
        "INSERT INTO payloads (tenant, digest, form, packed, trailer, key)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (tenant, given.digest, to_blob(given.form), given.packed, given.trailer, key),
    )
    n = cast("int", cursor.lastrowid)
    if given.data is not None:
        db.execute("INSERT INTO inline (payload, data) VALUES (?, ?)", (n, given.data))
    return n
