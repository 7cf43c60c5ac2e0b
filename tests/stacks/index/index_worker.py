"""What the tests start in processes of their own: importable, so that `spawn` finds it."""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from callslip.errors import CallslipError, StoreUnavailable
from callslip.handle import Scope
from callslip.stacks import ops
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index import NOW, insert, make_row


def scope_of(worker: int) -> Scope:
    return Scope(f"s{worker}", "", "acme")


def index_at(where: Path | str) -> ops.Runs:
    """The SQLite index in a file, or the one of a database's URL."""
    if isinstance(where, Path):
        return SqliteIndex(where)
    from callslip.stacks.index.postgres import PostgresIndex

    return PostgresIndex(where)


def insert_and_read(where: Path | str, worker: int, count: int) -> str:
    """Insert rows, some of them the same content in all processes, and read each back."""
    index = index_at(where)
    for n in range(count):
        content = f"shared {n}" if n % 2 else f"{worker} {n}"
        row = make_row(content, call=str(n), scope=scope_of(worker), data=content.encode())
        inserted = index.run(insert(row, f"res_{n}"))
        assert inserted is not None
        assert inserted.created
        found = index.run(ops.Get(row.scope, f"res_{n}", NOW))
        assert isinstance(found, ops.Result)
        assert found.payload.data == content.encode()
    return "done"


def insert_until_killed(where: Path | str, acknowledged: Connection) -> None:
    index = index_at(where)
    for n in range(1_000_000):
        row = make_row(str(n), key=f"k/{n}") if n % 2 else make_row(str(n), data=b"x" * 30_000)
        assert index.run(insert(row, f"res_{n}")) is not None
        acknowledged.send(n)


def open_as_nobody(path: Path) -> str:
    """What a process without rights gets: the error's reason, or `opened`."""
    os.setuid(65534)
    try:
        SqliteIndex(path).run(ops.Count())
    except StoreUnavailable as error:
        return error.reason
    except CallslipError as error:
        return type(error).__name__
    return "opened"


if __name__ == "__main__":
    print(open_as_nobody(Path(sys.argv[1])))
