from __future__ import annotations

import json
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from callslip import ResultStore
from callslip.stacks import checking
from callslip.stacks.index.copying import newest_version
from tests.cli.shell import here
from tests.servers.s3 import Moto


def test_doctor_says_of_every_part_that_it_works(tmp_path: Path) -> None:
    ResultStore(tmp_path / ".callslip").session("cli").put("x", tool="t")
    done = here(tmp_path, "doctor")
    assert done.exit_code == 0, done.output
    parts = [line.split()[0] for line in done.stdout.splitlines()]
    assert parts == ["index", "payloads", "keys", "clock", "spool", "versions"]
    assert "wrong" not in done.stdout and "callslip 0." in done.stdout


def test_doctor_says_whether_what_is_stored_is_sealed(tmp_path: Path) -> None:
    assert here(tmp_path, "keys", "new", str(tmp_path / "k")).exit_code == 0
    sealed = ("--keys", str(tmp_path / "k"))
    assert here(tmp_path, "put", "-", *sealed, stdin=b"x").exit_code == 0
    assert "the master key at hand opens it" in here(tmp_path, "doctor", *sealed).stdout
    without = here(tmp_path, "doctor")
    assert without.exit_code == 1 and "this store is sealed" in without.stdout
    store = ResultStore(tmp_path / "clear")
    assert "keys: ok, none" in str(store.examine())


def test_doctor_leaves_nothing_behind(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / ".callslip")
    store.session("cli").put("x" * 100_000, tool="t")
    before = store.stats()
    assert here(tmp_path, "doctor").exit_code == 0
    assert store.stats() == before and store.verify().orphans == 0


def test_doctor_says_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / ".callslip")
    store.session("cli").put(os.urandom(100_000), tool="t")
    payloads = tmp_path / ".callslip" / "payloads"
    payloads.rename(tmp_path / "elsewhere")
    payloads.write_text("a file where the folder was")
    done = here(tmp_path, "doctor")
    assert done.exit_code == 1 and "wrong" in done.stdout
    found = json.loads(here(tmp_path, "doctor", "--json").stdout)
    wrong = [check for check in found["checks"] if not check["ok"]]
    assert not found["ok"] and [check["part"] for check in wrong] == ["payloads"]
    assert wrong[0]["advice"] and found["versions"]["callslip"]


def test_doctor_counts_what_waits_in_the_spool(tmp_path: Path) -> None:
    os.environ["XDG_STATE_HOME"], before = str(tmp_path / "state"), os.environ.get("XDG_STATE_HOME")
    try:
        (tmp_path / ".callslip").write_text("no folder")
        store = ResultStore(tmp_path / ".callslip")
        assert store.session("cli").offload("line\n" * 9_000, tool="t").handle is None
        (tmp_path / ".callslip").unlink()
        ResultStore(tmp_path / ".callslip", spool="").session("cli").put("x", tool="t")
        done = here(tmp_path, "doctor", "--quick")
        assert done.exit_code == 1 and "1 result waits" in done.stdout
        assert here(tmp_path, "gc").exit_code == 0
        assert here(tmp_path, "doctor").exit_code == 0
    finally:
        os.environ.pop("XDG_STATE_HOME")
        if before is not None:
            os.environ["XDG_STATE_HOME"] = before


def test_a_store_that_is_not_there_is_not_made_by_a_doctor(tmp_path: Path) -> None:
    done = here(tmp_path, "doctor")
    assert done.exit_code == 4 and not (tmp_path / ".callslip").exists()


def test_health_asks_for_the_bucket_of_a_store_that_has_put_nothing_there_yet(
    s3: Moto, tmp_path: Path
) -> None:
    given = {"url": tmp_path, "spool": ""}
    assert ResultStore(payloads=s3.url("p"), **given).health().ok  # type: ignore[arg-type]
    missing = ResultStore(payloads="s3://no-such-bucket/p", **given)  # type: ignore[arg-type]
    (problem,) = missing.health().problems
    assert problem.startswith("payloads: the object store: ")


def test_doctor_says_that_the_spool_could_take_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ResultStore(tmp_path / "store", spool=tmp_path / "file" / "spool")
    (problem,) = store.examine().problems
    assert problem.startswith(f"spool: {tmp_path / 'file'} cannot be written to")
    assert store.health().ok, "a look writes nothing, and a run needs no spool"


def test_clocks_that_agree_are_told_without_a_sign_of_their_own() -> None:
    said = checking._clock({"index": -0.04, "payloads": -0.31, "other": 2.0}).said
    assert said == "against this machine: index +0.0 s, payloads -0.3 s, other +2.0 s"


def test_what_the_system_refuses_is_told_without_its_number(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ResultStore(tmp_path / "file", payloads=tmp_path / "file", spool="")
    said = str(store.examine().problems)
    assert "Not a directory" in said and "Errno" not in said


def test_health_never_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    health = ResultStore(tmp_path / "file" / "store", spool="").health()
    assert not health.ok and len(health.problems) == 2 and "NOT OK" in str(health)


def test_migrate_makes_the_tables_and_says_so_once(tmp_path: Path) -> None:
    before = here(tmp_path, "migrate", "--check")
    assert before.exit_code == 1 and before.stdout.startswith("there is no index yet")
    assert not (tmp_path / ".callslip").exists()
    done = here(tmp_path, "migrate")
    assert done.exit_code == 0 and f"has {newest_version()} now" in done.stdout
    assert here(tmp_path, "migrate", "--check").exit_code == 0
    assert f"newest tables, version {newest_version()}" in here(tmp_path, "migrate").stdout


def test_migrate_refuses_another_programs_file(tmp_path: Path) -> None:
    (tmp_path / ".callslip").mkdir()
    db = sqlite3.connect(tmp_path / ".callslip" / "index.db")
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    done = here(tmp_path, "migrate")
    assert done.exit_code == 2 and "another program" in done.stderr


def test_a_backup_is_a_store_and_so_is_what_is_restored_from_it(tmp_path: Path) -> None:
    session = ResultStore(tmp_path / ".callslip").session("cli", user="ana", tenant="acme")
    large, small = os.urandom(400_000), "small"
    ids = [session.put(value, tool="t").id for value in (large, small)]
    done = here(tmp_path, "backup", str(tmp_path / "copy"))
    assert done.exit_code == 0 and done.stdout.startswith("2 payloads, ")
    (tmp_path / ".callslip").rename(tmp_path / "lost")
    (tmp_path / "copy").rename(tmp_path / ".callslip")
    restored = ResultStore(tmp_path / ".callslip")
    again = restored.session("cli", user="ana", tenant="acme")
    assert [again.load(id) for id in ids] == [large, small]
    assert restored.verify().ok and restored.verify().orphans == 0
    assert again.put(large, tool="t").id == ids[0]


def test_a_backup_while_others_write_is_whole(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / ".callslip")
    ended = threading.Event()

    def write() -> None:
        session, number = store.session("busy"), 0
        while not ended.is_set():
            session.put(os.urandom(60_000) + bytes([number % 256]), tool="t")
            number += 1

    store.session("first").put(os.urandom(200_000), tool="t")
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            copied = store.backup(tmp_path / f"copy{number}")
            assert not copied.missing
            findings = ResultStore(tmp_path / f"copy{number}").verify()
            assert findings.ok and findings.payloads == copied.payloads, findings.problems
    finally:
        ended.set()
        writer.join()


def test_a_backup_names_what_was_lost_before(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / ".callslip")
    store.session("cli").put(os.urandom(200_000), tool="t")
    (file,) = (tmp_path / ".callslip" / "payloads").rglob("*.cslip")
    file.unlink()
    done = here(tmp_path, "backup", str(tmp_path / "copy"))
    assert done.exit_code == 1 and "missing" in done.stdout and file.stem in done.stdout


@pytest.mark.parametrize("held", ["index.db", "anything"])
def test_a_backup_never_goes_into_a_folder_that_holds_something(tmp_path: Path, held: str) -> None:
    ResultStore(tmp_path / ".callslip").session("cli").put("x", tool="t")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / held).write_text("mine")
    done = here(tmp_path, "backup", str(tmp_path / "copy"))
    assert done.exit_code == 2 and "holds something" in done.stderr
    assert (tmp_path / "copy" / held).read_text() == "mine"
