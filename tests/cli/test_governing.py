from __future__ import annotations

import json
from pathlib import Path

import pytest

from callslip import ResultStore
from tests.cli.shell import here


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / ".callslip", spool="", audit=True)


def test_audit_prints_a_line_for_each_entry(tmp_path: Path, store: ResultStore) -> None:
    id = store.session("cli", user="ana").put("text", tool="search").id
    store.session("other").put("text", tool="t")
    (line,) = here(tmp_path, "audit", "--session", "cli").stdout.splitlines()
    fields = line.split("\t")
    assert (fields[0], *fields[2:]) == (
        "1", "stored", "done", "ana", "", "ana", "cli", id, "search", "4",
    )  # fmt: skip
    assert len(here(tmp_path, "audit", "--all").stdout.splitlines()) == 2
    found = here(tmp_path, "audit", "--all", "--action", "stored", "--json", "--after", "1").stdout
    assert [json.loads(each)["session"] for each in found.splitlines()] == ["other"]
    assert here(tmp_path, "audit", "--all", "--since", "2099-01-01").stdout == ""
    assert here(tmp_path, "audit", "--since", "soon").exit_code == 2


def test_what_the_command_line_does_is_told_where_that_is_wanted(
    tmp_path: Path, store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = store.session("cli").put("text", tool="search").id
    monkeypatch.setenv("CALLSLIP_AUDIT", "1")
    monkeypatch.setenv("LOGNAME", "li")
    assert here(tmp_path, "read", id).exit_code == 0
    (entry,) = store.audit(action="read")
    assert (entry.actor, entry.id) == ("li", id)
    assert here(tmp_path, "export", id, "-o", str(tmp_path / "out.txt")).exit_code == 0
    assert [entry.action for entry in store.audit(after=entry.n)] == ["listed", "open"]


def test_a_hold_is_placed_shown_and_lifted(tmp_path: Path, store: ResultStore) -> None:
    store.session("cli", tenant="acme").put("text")
    assert here(tmp_path, "hold").exit_code == 2
    held = here(tmp_path, "hold", "--tenant", "acme", "--reason", "case 7")
    assert held.exit_code == 0
    assert held.stderr == "held, by hold 1; to lift it: callslip release --tenant acme\n"
    assert here(tmp_path, "holds").stdout.split("\t")[2:] == ["acme", "*", "*", "case 7\n"]
    refused = here(tmp_path, "rm", "--tenant", "acme", "--session-all", "--yes")
    assert refused.exit_code == 5
    assert refused.stderr == "callslip: kept by hold 1 (case 7); see: callslip holds\n"
    assert here(tmp_path, "release", "--tenant", "acme").exit_code == 0
    assert here(tmp_path, "release", "--tenant", "acme").exit_code == 1
    assert here(tmp_path, "rm", "--tenant", "acme", "--session-all", "--yes").exit_code == 0


def test_erase_deletes_by_subject_and_says_whether_it_is_proven(
    tmp_path: Path, store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.session("cli", tenant="acme").put("text", subject="patient-17")
    monkeypatch.setenv("CALLSLIP_AUDIT", "1")
    assert here(tmp_path, "erase", "patient-17", "--tenant", "acme").exit_code == 2
    done = here(tmp_path, "erase", "patient-17", "--tenant", "acme", "--yes", "--json")
    assert json.loads(done.stdout) == {"removed": 1, "proven": True, "pending": []}
    assert store.stats().results == 0
    store.session("cli", tenant="acme").put("text", subject="patient-18")
    for said in (
        "deleted 1 result, file or fact\n",
        "nothing is about this subject in this tenant\n",
    ):
        done = here(tmp_path, "erase", "patient-18", "--tenant", "acme", "--yes")
        assert (done.exit_code, done.stderr) == (0, said)
