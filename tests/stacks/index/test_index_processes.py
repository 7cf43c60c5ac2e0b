from __future__ import annotations

import os
import sqlite3
import stat
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from callslip.stacks import ops
from callslip.stacks.index import pool, schema
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index import HOME, NOW, insert, make_row
from tests.stacks.index.index_worker import (
    SPAWN,
    fork_while_threads_write,
    holds_what_was_acknowledged,
    insert_and_read,
    killed_after,
    scope_of,
)


def test_many_threads_share_one_index(tmp_path: Path) -> None:
    for path in (tmp_path / "index.db", ":memory:"):
        index = SqliteIndex(path)

        def work(worker: int, index: SqliteIndex = index) -> None:
            for n in range(25):
                row = make_row(f"{n}", call=str(n), scope=scope_of(worker))
                assert index.run(insert(row, f"res_{n}")) is not None
                assert isinstance(index.run(ops.Get(row.scope, f"res_{n}", NOW)), ops.Result)

        with ThreadPoolExecutor(12) as threads:
            list(threads.map(work, range(12)))
        held = index.run(ops.Count())
        assert (held.sessions, held.results, held.payloads) == (12, 300, 25)
        assert index.run(ops.Repair(mend=False)) == []
        index.close()


def test_a_file_that_another_process_fills_while_it_is_looked_at_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index.db"
    with sqlite3.connect(path) as empty:
        empty.execute("PRAGMA journal_mode = WAL")
    check = schema.check
    raced = []

    class Racing:
        def __init__(self, db: sqlite3.Connection) -> None:
            self.db = db

        def execute(self, sql: str) -> sqlite3.Cursor:
            found = self.db.execute(sql)
            if not raced:
                raced.append(sql)
                SqliteIndex(path).run(ops.Count())
            return found

    monkeypatch.setattr(schema, "check", lambda db, where: check(Racing(db), where))
    assert SqliteIndex(path).run(ops.Count()).results == 0
    assert raced


def test_eight_spawned_processes_meet_no_lock_error_and_lose_nothing(tmp_path: Path) -> None:
    # All of them find no file: creating, WAL and migrating race too.
    path = tmp_path / "new" / "index.db"
    with ProcessPoolExecutor(8, mp_context=SPAWN) as processes:
        done = list(processes.map(insert_and_read, [path] * 8, range(8), [60] * 8))
    assert done == ["done"] * 8
    index = SqliteIndex(path)
    held = index.run(ops.Count())
    assert (held.sessions, held.results, held.payloads) == (8, 480, 8 * 30 + 30)
    assert index.run(ops.Repair(mend=False)) == []


@pytest.mark.parametrize("after", [3, 40])
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, after: int) -> None:
    path = tmp_path / "index.db"
    acknowledged = killed_after(path, after)
    holds_what_was_acknowledged(SqliteIndex(path), acknowledged)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_and_its_parent_go_on_while_threads_write(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    fork_while_threads_write(index, 5)


def test_no_connection_is_open_in_the_moment_of_a_fork(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    index.run(ops.Count())
    assert index._pool._idle
    pool._before_fork()
    try:
        assert not index._pool._idle
    finally:
        pool._after_fork_in_parent()
    assert index.run(ops.Count()).results == 0


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_rights_are_ours_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        index = SqliteIndex(tmp_path / "a" / "b" / "index.db")
        assert index.run(insert(make_row(), "res_a")) is not None
    finally:
        os.umask(before)
    rights = {
        found.name: stat.S_IMODE(found.stat().st_mode) for found in (tmp_path / "a").rglob("*")
    }
    files = ("index.db", "index.db-wal", "index.db-shm", "index.db-reserve")
    assert rights == {"b": 0o700, **dict.fromkeys(files, 0o600)}
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_a_reader_does_not_wait_for_a_writer_and_a_sweep_does_not_either(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    assert index.run(insert(make_row(), "res_a", ttl=10.0)) is not None
    with index._pool.borrow() as other:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        assert isinstance(index.run(ops.Get(HOME, "res_a", NOW)), ops.Result)
        assert index.run(ops.Sweep(NOW + 20, 9, 20.0)) is True
        # Not a measure of speed: waiting for the writer would take the whole busy timeout.
        assert time.monotonic() - started < pool.BUSY_SECONDS / 2
        other.execute("ROLLBACK")
