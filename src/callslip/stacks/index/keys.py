"""Wrapped keys in a SQLite file of their own, beside the index: `index.db-keys`.

Not in the index: a backup of that must not hold the keys of what is destroyed afterwards. A key that
is deleted is overwritten in the file (`secure_delete`), and the journal that had it is removed: there
is no write-ahead log in which it would stay.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callslip.errors import SettingsError
from callslip.stacks.index.pool import Pool
from callslip.stacks.keyops import AddKey, DropKeys, GetKey, KeyRow, ListKeys, SwapKey

KEYS_ID = 0x43534B59  # "CSKY": tells this file from an index.

_TABLE = (
    "CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, wrapped BLOB NOT NULL,"
    " made_at REAL NOT NULL) WITHOUT ROWID"
)


class SqliteKeys:
    """The keys of the index at `path`: their file is made, 0600, by the first key that is added."""

    def __init__(self, path: Path, memory: bool = False) -> None:
        self._path = path.with_name(path.name + "-keys")
        self._pool = _Keys(":memory:" if memory else self._path)
        self._memory = memory

    def run(self, op: Any, /) -> Any:
        """Do one operation of `callslip.stacks.keyops`."""
        if not self._memory and not isinstance(op, AddKey) and not self._path.exists():
            return _NOTHING[type(op)]
        with self._pool.borrow() as db:
            db.execute("BEGIN IMMEDIATE" if type(op) in _WRITES else "BEGIN DEFERRED")
            answer = _DOES[type(op)](db, op)
            db.execute("COMMIT")
        return answer

    def close(self) -> None:
        """Let go of the file; a later operation opens it again."""
        self._pool.close()


class _NoRoom:
    """Keys are small: no room is held for them."""

    def make(self) -> None:
        return None

    def give(self) -> bool:
        return False


class _Keys(Pool):
    """Connections to a file of keys."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.reserve = _NoRoom()  # type: ignore[assignment]

    def _prepare(self, connection: sqlite3.Connection) -> None:
        self._known(connection)
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA synchronous = FULL")
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA application_id = {KEYS_ID}")
            connection.execute("COMMIT")

    def _open_to_read(self) -> sqlite3.Connection | None:
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode=ro&immutable=1",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._known(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _known(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != KEYS_ID and (application or tables):
            raise SettingsError(
                f"{self.where} is no file of callslip's keys; move it out of the way"
            )


# --- operations -----------------------------------------------------------------------------------


def _get(db: sqlite3.Connection, op: GetKey) -> KeyRow | None:
    row = db.execute(
        "SELECT name, wrapped, made_at FROM keys WHERE name = ?", (op.name,)
    ).fetchone()
    return None if row is None else KeyRow(*row)


def _add(db: sqlite3.Connection, op: AddKey) -> KeyRow | None:
    row = op.row
    if op.under is not None and _get(db, GetKey(op.under.name)) != op.under:
        return None
    db.execute(
        "INSERT INTO keys (name, wrapped, made_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (row.name, row.wrapped, row.made_at),
    )
    return _get(db, GetKey(row.name))


def _swap(db: sqlite3.Connection, op: SwapKey) -> bool:
    cursor = db.execute(
        "UPDATE keys SET wrapped = ? WHERE name = ? AND wrapped = ?", (op.new, op.name, op.old)
    )
    return cursor.rowcount > 0


def _drop(db: sqlite3.Connection, op: DropKeys) -> int:
    gone = 0
    for each in op.names:
        gone += db.execute("DELETE FROM keys WHERE name = ? AND made_at = ?", each).rowcount
    if gone and op.below:
        between = (op.below, op.below + "\x7f")
        gone += db.execute("DELETE FROM keys WHERE name >= ? AND name < ?", between).rowcount
    return gone


def _list(db: sqlite3.Connection, op: ListKeys) -> list[KeyRow]:
    rows = db.execute(
        "SELECT name, wrapped, made_at FROM keys WHERE name > ? AND name >= ? AND name < ?"
        " ORDER BY name LIMIT ?",
        (op.after, op.prefix, op.prefix + "\x7f", op.limit),
    )
    return [KeyRow(*row) for row in rows]


_DOES: dict[type, Callable[[sqlite3.Connection, Any], Any]] = {
    GetKey: _get,
    AddKey: _add,
    SwapKey: _swap,
    DropKeys: _drop,
    ListKeys: _list,
}
_WRITES = (AddKey, SwapKey, DropKeys)
_NOTHING: dict[type, Any] = {GetKey: None, SwapKey: False, DropKeys: 0, ListKeys: ()}

KINDS = frozenset(_DOES)
"""The operations that `SqliteKeys` does."""


# --- in the index itself --------------------------------------------------------------------------


def mark(db: sqlite3.Connection) -> bytes | None:
    """What the index says of its keys."""
    (known,) = db.execute("SELECT sealed FROM store").fetchone()
    return None if known is None else bytes(known)


def record_mark(db: sqlite3.Connection, given: bytes) -> bytes | None:
    """Say which keys the index is sealed with, unless that is said already; what is said then."""
    db.execute("UPDATE store SET sealed = ? WHERE sealed IS NULL", (given,))
    return mark(db)
