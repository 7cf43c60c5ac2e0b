from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from callslip import ResultStore
from callslip.cli import out
from callslip.session import Session
from tests.cli.shell import here


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return ResultStore(tmp_path / ".callslip").session("cli")


def test_ls_lists_every_result_oldest_first_one_a_line(tmp_path: Path, session: Session) -> None:
    ids = [session.put(f"{n}\n" * 3, tool=f"t{n}", args={"n": n}).id for n in range(230)]
    rows = [line.split("\t") for line in here(tmp_path, "ls").stdout.splitlines()]
    assert [row[0] for row in rows] == ids
    assert rows[7][1] == "t7" and rows[7][3:5] == ["3", "6"] and rows[7][6] == '{"n":7}'
    datetime.strptime(rows[7][5], "%Y-%m-%dT%H:%M:%SZ")
    assert here(tmp_path, "ls", "-q", "--after", "5", "-n", "2").stdout.split() == ids[5:7]
    handles = [json.loads(line) for line in here(tmp_path, "ls", "--json").stdout.splitlines()]
    assert [handle["id"] for handle in handles] == ids
    assert set(handles[0]) == {
        "id",
        "tool",
        "args",
        "status",
        "kind",
        "mime",
        "size",
        "chars",
        "lines",
        "records",
        "created_at",
        "same_as",
    }


def test_a_hostile_tool_name_stays_in_its_field_and_moves_no_terminal(
    tmp_path: Path, session: Session
) -> None:
    session.put("x", tool="evil\tname\nres_fake\x1b[2J", args={"\x1b]0;": "\u202e"})
    done = here(tmp_path, "ls")
    assert done.stdout.count("\n") == 1 and len(done.stdout.split("\t")) == 7
    assert "\x1b" not in done.stdout
    shown = here(tmp_path, "show", done.stdout.split("\t")[0])
    assert shown.exit_code == 0 and "\x1b" not in shown.stdout and "\u202e" not in shown.stdout


def test_what_a_terminal_would_obey_becomes_a_picture_of_it() -> None:
    hostile = "\x1b[31m\x07\x9b31m\x7f\u202eabc\u2066\rover\r\nnext\ttab\x00"
    shown = out.harmless(hostile)
    assert shown == "␛[31m␇\ufffd31m␡\ufffdabc\ufffd␍over\nnext\ttab␀"


def test_show_describes_a_result_for_a_person(tmp_path: Path, session: Session) -> None:
    text = "".join(f"row {n}\n" for n in range(5000))
    handle = session.put(text, tool="report", args={"year": 2025})
    done = here(tmp_path, "show", handle.id)
    lines = done.stdout.splitlines()
    assert lines[0] == f"{handle.id}  report"
    assert "5,000 lines" in done.stdout and '{"year":2025}' in done.stdout
    assert "  │ row 0" in lines and "  │ row 4999" in lines
    assert f"callslip search {handle.id} PATTERN" in lines[-2]
    assert "</result>" not in done.stdout and "\x1b" not in done.stdout
    found = json.loads(here(tmp_path, "show", "--json", handle.id).stdout)
    assert found["envelope"] == str(handle) and found["lines"] == 5000


def test_show_of_a_repeat_shows_the_first(tmp_path: Path, session: Session) -> None:
    session.put("the same\n" * 50, tool="a", args=1)
    second = session.put("the same\n" * 50, tool="b", args=2)
    done = here(tmp_path, "show", second.id)
    assert f"same as      {second.same_as}" in done.stdout and "│ the same" in done.stdout


def test_sessions_are_listed_with_what_they_hold(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / ".callslip")
    store.session("a", user="ana", tenant="acme").put("x")
    store.session("b").put("y")
    rows = [line.split("\t") for line in here(tmp_path, "sessions").stdout.splitlines()]
    assert sorted(row[:4] for row in rows) == [["a", "ana", "acme", "1"], ["b", "", "", "1"]]
    done = here(tmp_path, "sessions", "--json", "--tenant", "acme")
    assert [json.loads(line)["session"] for line in done.stdout.splitlines()] == ["a"]


def test_rm_removes_by_id_and_names_what_is_not_here(tmp_path: Path, session: Session) -> None:
    one, two = session.put("one"), session.put("two")
    done = here(tmp_path, "rm", one.id, "res_0000000000", two.id)
    assert done.exit_code == 3 and "res_0000000000" in done.stderr and done.stdout == ""
    assert session.list().total == 0
    again = here(tmp_path, "rm", one.id)
    assert again.exit_code == 3 and "deleted" in again.stderr
    assert "deleted" in here(tmp_path, "read", two.id).stderr


def test_rm_of_what_another_session_shares_removes_nothing_and_says_so(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / ".callslip", audit=True)
    owner = store.session("owner")
    id = owner.put("text\n" * 99, tool="t").id
    owner.share(id, with_session="cli", seconds=600)
    done = here(tmp_path, "rm", id)
    assert done.exit_code == 3 and done.stdout == ""
    assert (
        done.stderr
        == f"callslip: rm: {id} is another session's, which shares it: it can remove it\n"
    )
    assert owner.handle(id).id == id


def test_rm_tells_the_audit_of_the_removal_and_of_no_look_before_it(
    tmp_path: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = session.put("text\n", tool="t").id
    monkeypatch.setenv("CALLSLIP_AUDIT", "1")
    assert here(tmp_path, "rm", id).exit_code == 0
    store = ResultStore(tmp_path / ".callslip", audit=True)
    assert [entry.action for entry in store.audit()] == ["deleted", "erased"]


def test_rm_of_a_whole_session_needs_a_yes(tmp_path: Path, session: Session) -> None:
    session.put("one")
    other = ResultStore(tmp_path / ".callslip").session("other")
    other.put("kept")
    assert here(tmp_path, "rm", "--session-all").exit_code == 2
    assert session.list().total == 1
    done = here(tmp_path, "rm", "--session-all", "--yes", "--json")
    assert json.loads(done.stdout) == {"session": "cli", "removed": 1}
    assert session.list().total == 0 and other.list().total == 1


def test_stats_say_how_much_is_held(tmp_path: Path, session: Session) -> None:
    session.put("a" * 1000)
    found = json.loads(here(tmp_path, "stats", "--json").stdout)
    assert (found["results"], found["payloads"], found["content_bytes"]) == (1, 1, 1000)
    shown = here(tmp_path, "stats").stdout
    assert "results     1" in shown and "1000B" in shown


def test_verify_is_silent_about_a_whole_store_and_exits_with_1_about_a_damaged_one(
    tmp_path: Path, session: Session
) -> None:
    import random

    session.put(random.Random(1).randbytes(300_000))
    assert here(tmp_path, "verify").exit_code == 0
    (payload,) = (
        path for path in (tmp_path / ".callslip" / "payloads").rglob("*") if path.is_file()
    )
    damaged = bytearray(payload.read_bytes())
    damaged[1000] ^= 1
    payload.chmod(0o600)
    payload.write_bytes(damaged)
    done = here(tmp_path, "verify")
    assert done.exit_code == 1 and done.stdout.startswith("damaged  payload ")
    found = json.loads(here(tmp_path, "verify", "--json").stdout)
    assert found["ok"] is False and len(found["problems"]) == 1


def test_gc_says_what_it_did(tmp_path: Path, session: Session) -> None:
    session.put("a" * 1000)
    found = json.loads(here(tmp_path, "gc", "--json").stdout)
    assert found == {"released": 0, "orphans": 0, "delivered": 0, "mended": []}
    assert here(tmp_path, "gc").stdout == "nothing to clean\n"


def test_completion_is_given_for_each_shell(tmp_path: Path) -> None:
    for shell, word in (("bash", "complete "), ("zsh", "compdef"), ("fish", "complete ")):
        done = here(tmp_path, "completion", shell)
        assert done.exit_code == 0 and word in done.stdout and "_CALLSLIP_COMPLETE" in done.stdout
