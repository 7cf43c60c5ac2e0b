from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from callslip.errors import SettingsError, StoreUnavailable
from callslip.stacks import fileops, ops
from callslip.stacks.index import pool, schema
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index import HOME, NOW, insert, make_row
from callslip.testing.index_files import make_write
from tests.machine import mounted
from tests.stacks.index.plans import traced, walks_over_tables

WORKER = Path(__file__).with_name("index_worker.py")


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    path.write_bytes(b"my precious notes\n" * 400)
    with pytest.raises(StoreUnavailable) as caught:
        SqliteIndex(path).run(ops.Count())
    assert caught.value.reason == "failed"
    assert "precious" not in str(caught.value)
    assert path.read_bytes() == b"my precious notes\n" * 400


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as theirs:
        theirs.execute("CREATE TABLE users (name)")
    before = path.read_bytes()
    with pytest.raises(SettingsError, match="another program"):
        SqliteIndex(path).run(ops.Count())
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    index = SqliteIndex(path)
    index.run(ops.Count())
    with index._pool.borrow() as db:
        db.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS) + 1}")
    index.close()
    with pytest.raises(SettingsError, match="newer callslip"):
        SqliteIndex(path).run(ops.Count())


def test_a_migration_is_done_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index.db"
    index = SqliteIndex(path)
    stored = index.run(insert(make_row(), "res_a"))
    index.close()
    step = ("ALTER TABLE results ADD COLUMN extra INTEGER", "CREATE TABLE more (n)")
    broken = (*step, "INSERT INTO nowhere VALUES (1)")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
    with pytest.raises(StoreUnavailable):
        SqliteIndex(path).run(ops.Count())
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS) - 1,)
        assert not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'more'").fetchall()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:-1], step))
    index = SqliteIndex(path)
    assert stored is not None
    assert index.run(ops.Get(HOME, "res_a", NOW)) == stored.result
    with index._pool.borrow() as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)


def test_a_full_disk_loses_nothing_and_passes(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    with index._pool.borrow() as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages + 30}")
    stored = []
    with pytest.raises(StoreUnavailable) as caught:
        for n in range(100):
            assert index.run(insert(make_row(str(n), data=b"x" * 20_000), f"res_{n}")) is not None
            stored.append(f"res_{n}")
    assert caught.value.reason == "disk full"
    assert stored
    rows, total = index.run(ops.List(HOME, 0, 100, NOW))
    assert [row.id for row in rows] == stored
    assert index.run(ops.Repair(mend=False)) == []
    with index._pool.borrow() as db:
        db.execute("PRAGMA max_page_count = 100000")
    assert index.run(insert(make_row("room again"), "res_z")) is not None
    assert index.run(ops.Count()).results == total + 1


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "tiny"
    place.mkdir()
    with mounted(place, "size=1m"):
        yield place


def test_a_disk_that_is_really_full_is_named_and_reading_goes_on(tiny_disk: Path) -> None:
    index = SqliteIndex(tiny_disk / "index.db")
    stored = []
    with pytest.raises(StoreUnavailable) as caught:
        for n in range(1000):
            row = make_row(str(n), data=os.urandom(20_000))
            assert index.run(insert(row, f"res_{n}")) is not None
            stored.append(f"res_{n}")
    assert caught.value.reason == "disk full"
    # A minute later the read would note its activity; there is no room for that either.
    for id in stored:
        assert isinstance(index.run(ops.Get(HOME, id, NOW + 61)), ops.Result)
    index.close()
    index = SqliteIndex(tiny_disk / "index.db")
    assert index.run(ops.List(HOME, 0, 0, NOW))[1] == len(stored)
    index.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_without_rights_is_named() -> None:
    # Not below tmp_path: its parents are closed to other users anyway.
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        command = [sys.executable, str(WORKER), str(place / "new" / "index.db")]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert answer.strip() == "permission denied"
        SqliteIndex(place / "index.db").run(ops.Count())
        command[-1] = str(place / "index.db")
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert answer.strip() == "permission denied"


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        SqliteIndex(tmp_path).run(ops.Count())


def test_a_lock_that_is_never_let_go_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "BUSY_SECONDS", 0.05)
    index = SqliteIndex(tmp_path / "index.db")
    with index._pool.borrow() as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable) as caught:
            index.run(insert(make_row(), "res_a"))
        assert caught.value.reason == "locked"
        other.execute("ROLLBACK")
    assert index.run(insert(make_row(), "res_a")) is not None


def test_a_read_is_answered_even_when_its_activity_cannot_be_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("callslip.stacks.index.sqlite.TOUCH_SECONDS", 0.01)
    index = SqliteIndex(tmp_path / "index.db")
    assert index.run(insert(make_row(), "res_a", ttl=100.0)) is not None
    with index._pool.borrow() as other, caplog.at_level(logging.WARNING):
        other.execute("BEGIN IMMEDIATE")
        assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 50)), ops.Result)
        other.execute("ROLLBACK")
    assert "could not be noted: locked" in caplog.text
    assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 51)), ops.Result)
    assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 150)), ops.Result)


def test_a_file_removed_under_us_is_made_anew_not_written_into_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    index = SqliteIndex(folder / "index.db")
    assert index.run(insert(make_row(), "res_a")) is not None
    shutil.rmtree(folder)
    assert index.run(insert(make_row(), "res_b")) is not None
    assert SqliteIndex(folder / "index.db").run(ops.Count()).results == 1


def test_repair_finds_wrong_counts_and_mends_them(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    assert index.run(insert(make_row(key="k/1"), "res_a")) is not None
    assert index.run(insert(make_row("b"), "res_b")) is not None
    right = index.run(ops.Count())
    with index._pool.borrow() as db:
        db.execute("UPDATE payloads SET refs = 5 WHERE key IS NOT NULL")
        db.execute("UPDATE sessions SET results = 9, dead = 1")
        db.execute("UPDATE tenants SET content_bytes = 0")
        db.execute("DELETE FROM inline")
    findings = index.run(ops.Repair(mend=False))
    assert len(findings) == 5
    assert index.run(ops.Repair(mend=True)) == findings
    # Lost data cannot be mended, and stays named.
    assert [text for text in index.run(ops.Repair(mend=False)) if "neither" not in text] == []
    assert index.run(ops.Count()) == right


def test_repair_names_a_damaged_database(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    index = SqliteIndex(path)
    for n in range(200):
        assert index.run(insert(make_row(str(n)), f"res_{n}")) is not None
    with index._pool.borrow() as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name='results'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    index.close()
    raw = bytearray(path.read_bytes())
    raw[(root - 1) * size + 8 : root * size] = b"\xff" * (size - 8)
    path.write_bytes(raw)
    try:
        findings = list(SqliteIndex(path).run(ops.Repair(mend=False)))
    except StoreUnavailable as error:
        findings = [str(error)]
    assert any("damaged" in text or "malformed" in text for text in findings)


def test_removing_without_tombstones_leaves_no_row_at_all(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    assert index.run(insert(make_row(), "res_a")) is not None
    assert index.run(make_write("a")) is not None
    index.run(ops.Remove("deleted", NOW, "acme", tombstones=False))
    with index._pool.borrow() as db:
        for table in (
            "tenants", "sessions", "results", "payloads", "inline", "tombstones", "files", "branches",
        ):  # fmt: skip
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_no_operation_of_a_running_agent_scans_a_table(tmp_path: Path) -> None:
    """What SQLite says it would do, for every statement that put, page, list and sweep send."""
    index = SqliteIndex(tmp_path / "index.db")
    sent: list[str] = []
    quota = ops.Quota(2, 10_000, 3, 10_000)
    traced(index, sent)
    for n in range(6):
        run = index.run(insert(make_row(str(n), key=f"k/{n}"), f"res_{n}", ttl=5.0, quota=quota))
        assert run is not None
    index.run(ops.Get(HOME, "res_5", NOW + 1))
    index.run(ops.Get(HOME, "res_0", NOW + 1))
    index.run(ops.List(HOME, 1, 2, NOW + 1))
    for n in range(4):
        view = fileops.View(n // 2, "run", str(n))
        assert index.run(make_write(str(n), view=view, call=bytes([n]) * 16)) is not None
        index.run(fileops.ReadFile(HOME, "todo.md", view, NOW + 1))
        index.run(fileops.ListFiles(HOME, view, NOW + 1))
    index.run(fileops.FindWrite(HOME, b"x" * 16, NOW + 1))
    index.run(ops.FindPayload("acme", b"0" * 32))
    index.run(ops.Sessions(5))
    index.run(ops.Sessions(5, tenant="acme"))
    index.run(ops.KnownKeys(["k/1"]))
    index.run(ops.Remove("deleted", NOW, "acme", "ana", "s", "res_5"))
    index.run(ops.Sweep(NOW + 50, 5, 1000.0))
    index.run(ops.Sweep(NOW + 1e8, 5, 1000.0))
    index.run(ops.Remove("deleted", NOW, "acme"))
    walks = {(walk, "LIMIT" in sql) for walk, sql in walks_over_tables(index, sent)}
    assert len(sent) > 100
    # In the order that was asked for, or of the few that wait for the sweep, and cut by a LIMIT.
    assert walks == {
        ("SCAN s USING INDEX sessions_active", True),
        ("SCAN sessions USING INDEX sessions_dead", True),
    }
