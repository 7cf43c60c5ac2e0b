"""How a payload gets into the SQLite index: found, or taken as it is given."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from callslip.stacks import ops
from callslip.stacks.index import upkeep
from callslip.stacks.index.rows import blob_if_any, payload_from, text_if_any, to_blob


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
    if given.data is not None and stored.key is None:
        (data,) = db.execute(
            "SELECT (SELECT data FROM inline WHERE payload = ?)", (payload,)
        ).fetchone()
        if data != given.data:
            _move(db, payload, given)  # a damaged one: the given was packed just now
    # A retried insert whose first answer was lost gives the key that is stored: still the index's.
    return payload, given.key is not None and given.key == stored.key


def _add(db: sqlite3.Connection, tenant: int, given: ops.Payload) -> int:
    key = blob_if_any(given.key)
    cursor = db.execute(
        "INSERT INTO payloads (tenant, digest, form, packed, trailer, key)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (tenant, given.digest, to_blob(given.form), given.packed, given.trailer, key),
    )
    n = cast("int", cursor.lastrowid)
    if given.data is not None:
        db.execute("INSERT INTO inline (payload, data) VALUES (?, ?)", (n, given.data))
    return n


def replace(db: sqlite3.Connection, op: ops.Replace) -> bool:
    """Do `ops.Replace`."""
    row = db.execute(
        "SELECT p.n FROM tenants t JOIN payloads p ON p.tenant = t.n"
        " WHERE t.name = ? AND p.digest = ?",
        (to_blob(op.tenant), op.payload.digest),
    ).fetchone()
    if row is None or is_gone(db, op.payload, None):
        return False
    _move(db, row[0], op.payload)
    return True


def _move(db: sqlite3.Connection, payload: int, given: ops.Payload) -> None:
    """Let a payload be kept where `given` is. Other bytes of it may be more or fewer."""
    key = blob_if_any(given.key)
    (old,) = db.execute("SELECT key FROM payloads WHERE n = ?", (payload,)).fetchone()
    rows = ("SELECT session FROM results", "SELECT session FROM files")
    for table, having in (
        ("tenants", "SELECT tenant FROM payloads WHERE n = ?2"),
        ("sessions", " UNION ".join(f"{each} WHERE payload = ?2" for each in rows)),
    ):
        db.execute(
            f"UPDATE {table} SET packed_bytes = packed_bytes + ?1"
            f" - (SELECT packed FROM payloads WHERE n = ?2) WHERE n IN ({having})",
            (given.packed, payload),
        )
    db.execute(
        "UPDATE payloads SET form = ?, packed = ?, trailer = ?, key = ? WHERE n = ?",
        (to_blob(given.form), given.packed, given.trailer, key, payload),
    )
    db.execute("DELETE FROM inline WHERE payload = ?", (payload,))
    if given.data is not None:
        db.execute("INSERT INTO inline (payload, data) VALUES (?, ?)", (payload, given.data))
    if old is not None and old != key:
        db.execute("INSERT INTO garbage (key) VALUES (?)", (old,))


def place(db: sqlite3.Connection) -> str | None:
    """Where the objects are, if that is recorded."""
    (known,) = db.execute("SELECT payloads FROM store").fetchone()
    return text_if_any(known)


def record_place(db: sqlite3.Connection, where: str) -> str | None:
    """Record where the objects are, unless another process was faster; where they are then."""
    db.execute("UPDATE store SET payloads = ? WHERE payloads IS NULL", (to_blob(where),))
    return place(db)
