"""Wrapped keys in PostgreSQL, in a table of their own, and what the index says of its keys."""

from __future__ import annotations

from typing import Any

from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.keyops import AddKey, DropKeys, GetKey, KeyRow, ListKeys, SealMark, SwapKey

_IS = "sha256(name) = sha256(%s)"
_FIRST = "substring(name FROM 1 FOR 256)"


_GET = f"SELECT name, wrapped, made_at FROM wrapped_keys WHERE {_IS}"


def _get(db: Db, op: GetKey) -> KeyRow | None:
    row = db.finish(_GET, (op.name.encode(),)).fetchone()  # one round trip
    return None if row is None else _row(row)


def _add(db: Db, op: AddKey) -> KeyRow | None:
    if op.under is not None:
        # Locked: who destroys or exchanges it waits, and then sees what was added under it.
        above = db.execute(f"{_GET} FOR SHARE", (op.under.name.encode(),)).fetchone()
        if above is None or _row(above) != op.under:
            return None
    db.execute(
        "INSERT INTO wrapped_keys (name, wrapped, made_at) VALUES (%s, %s, %s)"
        " ON CONFLICT DO NOTHING",
        (op.row.name.encode(), op.row.wrapped, op.row.made_at),
    )
    row = db.finish(_GET, (op.row.name.encode(),)).fetchone()
    return None if row is None else _row(row)


def _swap(db: Db, op: SwapKey) -> bool:
    answer = db.execute(
        f"UPDATE wrapped_keys SET wrapped = %s WHERE {_IS} AND wrapped = %s",
        (op.new, op.name.encode(), op.old),
    )
    return answer.rowcount > 0


def _drop(db: Db, op: DropKeys) -> int:
    gone = 0
    for name, made_at in op.names:
        gone += db.execute(
            f"DELETE FROM wrapped_keys WHERE {_IS} AND made_at = %s", (name.encode(), made_at)
        ).rowcount
    if gone and op.below:
        first = op.below.encode()
        gone += db.execute(
            f"DELETE FROM wrapped_keys WHERE {_FIRST} >= %s AND {_FIRST} < %s",
            (first, first + b"\x7f"),
        ).rowcount
    return gone


def _list(db: Db, op: ListKeys) -> list[KeyRow]:
    first, after = op.prefix.encode(), op.after.encode()
    rows = db.execute(
        f"SELECT name, wrapped, made_at FROM wrapped_keys WHERE {_FIRST} >= %s AND {_FIRST} < %s"
        f" AND name > %s ORDER BY {_FIRST}, name LIMIT %s",
        (max(first, after[:256]), first + b"\x7f", after, op.limit),
    )
    return [_row(row) for row in rows]


def _mark(db: Db, op: SealMark) -> bytes | None:
    if op.mark is not None:
        db.execute("UPDATE store SET sealed = %s WHERE sealed IS NULL", (op.mark,))
    ((known,),) = db.finish("SELECT sealed FROM store")
    return None if known is None else bytes(known)


def _row(row: Any) -> KeyRow:
    name, wrapped, made_at = row
    return KeyRow(bytes(name).decode(), bytes(wrapped), made_at)


READS: dict[type, Any] = {GetKey: _get, ListKeys: _list}
WRITES: dict[type, Any] = {AddKey: _add, SwapKey: _swap, DropKeys: _drop, SealMark: _mark}
AGAIN = frozenset({AddKey, DropKeys, SealMark})
"""What may be run anew though it may have been done: the answer is the same."""
