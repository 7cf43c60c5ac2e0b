"""Versions, migration, health and backup of a store on PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from callslip import ResultStore
from callslip.errors import SettingsError
from tests.servers.postgres import Postgres, programs


def test_a_database_without_tables_is_told_and_left_alone_until_it_is_migrated(
    postgres: Postgres, tmp_path: Path
) -> None:
    store = ResultStore(postgres.new_database(), payloads=tmp_path)
    assert store.versions().found == 0 and store.versions().found == 0
    before = store.migrate()
    assert before.found == 0 and store.versions().current


def test_health_is_told_of_the_server_and_of_its_clock(postgres: Postgres, tmp_path: Path) -> None:
    store = ResultStore(postgres.new_database(), payloads=tmp_path, spool="")
    assert store.health().ok
    health = store.examine()
    assert health.ok, health
    said = {check.part: check.said for check in health.checks}
    assert said["index"].startswith("PostgreSQL ") and "read and written" in said["index"]
    assert "index" in said["clock"]
    assert store.stats().garbage == 0


def test_health_of_a_server_that_is_away_says_so_without_raising(
    postgres: Postgres, tmp_path: Path
) -> None:
    dsn = postgres.new_database()
    store = ResultStore(dsn.replace(f":{postgres.port}/", ":9/"), payloads=tmp_path, spool="")
    health = store.health()
    # Where the payloads are stands in the index, so nobody can tell whether they are well, either.
    assert [line.split(":")[0] for line in health.problems] == ["index", "payloads"]
    assert not health.ok


def test_a_file_backup_of_a_server_names_the_way_there_is(
    postgres: Postgres, tmp_path: Path
) -> None:
    store = ResultStore(postgres.new_database(), payloads=tmp_path / "p")
    with pytest.raises(SettingsError, match="pg_dump|operating.md"):
        store.backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_what_docs_say_of_backup_and_restore_brings_everything_back(
    postgres: Postgres, tmp_path: Path
) -> None:
    dsn, payloads = postgres.new_database(), tmp_path / "payloads"
    store = ResultStore(dsn, payloads=payloads)
    session = store.session("run", user="ana", tenant="acme")
    large, small = os.urandom(300_000), "small\0\ud800"
    ids = [session.put(value, tool="t").id for value in (large, small)]
    store.close()
    bin = programs()
    assert bin is not None
    dump = tmp_path / "index.dump"
    pg_dump = bin / "pg_dump" if (bin / "pg_dump").exists() else Path("pg_dump")
    pg_restore = bin / "pg_restore" if (bin / "pg_restore").exists() else Path("pg_restore")
    subprocess.run([pg_dump, "-Fc", "-n", "callslip", "-f", dump, dsn], check=True)
    shutil.copytree(payloads, tmp_path / "copy")
    shutil.rmtree(payloads)
    other = postgres.new_database()
    subprocess.run([pg_restore, "--no-owner", "-d", other, dump], check=True)
    (tmp_path / "copy").rename(payloads)
    restored = ResultStore(other, payloads=payloads)
    assert restored.verify().ok and restored.versions().current
    again = restored.session("run", user="ana", tenant="acme")
    assert [again.load(id) for id in ids] == [large, small]
    assert again.put(large, tool="t").id == ids[0] and restored.stats().results == 2
