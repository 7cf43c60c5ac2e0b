from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from callslip import ResultStore
from tests.cli.shell import here, shell

LOG = "".join(f"line {n} of the log\n" for n in range(1, 1001))


@pytest.fixture
def stored(tmp_path: Path) -> str:
    (tmp_path / "big.log").write_text(LOG)
    done = here(tmp_path, "put", "-q", str(tmp_path / "big.log"))
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def test_put_prints_the_envelope_and_how_to_read_on_from_a_shell(tmp_path: Path) -> None:
    done = here(tmp_path, "put", "--tool", "build", stdin=LOG.encode())
    assert done.exit_code == 0 and done.stderr == ""
    opening, *_, closing, notice, ways = done.stdout.splitlines()
    assert opening.startswith('<result id="res_') and 'tool="build"' in opening
    assert closing == "</result>" and "read_result(" in notice
    id = opening.split('"')[1]
    assert f"callslip read {id}" in ways and f"callslip search {id} PATTERN" in ways


def test_put_gives_several_files_a_handle_each_as_json_lines(tmp_path: Path) -> None:
    names = [tmp_path / "a", tmp_path / "b"]
    for name in names:
        name.write_text(f"I am {name.name}\n" * 9)
    done = here(tmp_path, "put", "--json", *map(str, names))
    handles = [json.loads(line) for line in done.stdout.splitlines()]
    assert [json.loads(handle["args"])["file"] for handle in handles] == [str(n) for n in names]
    assert [handle["lines"] for handle in handles] == [9, 9]
    assert all(handle["envelope"].startswith("<result ") for handle in handles)


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_stored(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("good\n")
    (tmp_path / "folder").mkdir()
    words = [str(tmp_path / name) for name in ("missing", "folder", "good")]
    done = here(tmp_path, "put", "-q", *words)
    assert done.exit_code == 2
    assert len(done.stdout.splitlines()) == 1
    first, second = done.stderr.splitlines()
    assert first == f"callslip: put: {words[0]}: no such file; it was not stored"
    assert second.startswith("callslip: put: ") and "directory" in second


def test_put_of_an_empty_pipe_stores_nothing_but_its_emptiness(tmp_path: Path) -> None:
    id = here(tmp_path, "put", "-q", stdin=b"").stdout.strip()
    done = here(tmp_path, "export", id)
    assert done.exit_code == 0 and done.stdout_bytes == b""


def test_options_stand_before_or_after_the_command(tmp_path: Path, stored: str) -> None:
    other = ["--store", str(tmp_path / "other"), "--session", "s1"]
    id = here(tmp_path, *other, "put", "-q", stdin=b"elsewhere\n").stdout.strip()
    for words in (
        [*other, "--json", "read", id],
        ["read", *other, "--json", id],
        ["read", id, *other, "--json"],
        ["--session", "wrong", "read", id, *other, "--json"],
    ):
        done = here(tmp_path, *words)
        assert json.loads(done.stdout)["text"] == "elsewhere\n", done.output
    assert here(tmp_path, "read", id).exit_code == 3
    # What is printed to be typed leads to the same store and session.
    ways = here(tmp_path, *other, "put", stdin=b"elsewhere\n").stdout.splitlines()[-1]
    assert f"--store {tmp_path / 'other'} --session s1" in ways


def test_read_prints_what_a_model_would_see(tmp_path: Path, stored: str) -> None:
    page = ResultStore(tmp_path / ".callslip").session("cli").read(stored, 200, 40)
    done = here(tmp_path, "read", stored, "--start", "200", "--limit", "40")
    assert done.stdout == str(page) + "\n"
    assert done.stderr == f"read on: callslip read {stored} --start=240 --limit=40\n"
    plain = here(tmp_path, "read", stored, "--start", "200", "--limit", "40", "--plain")
    assert plain.stdout == page.text and plain.stderr == ""


def test_reading_on_as_the_json_says_gives_every_character_once(
    tmp_path: Path, stored: str
) -> None:
    text, words = "", ["--start", "1"]
    for _ in range(50):
        found = json.loads(here(tmp_path, "--json", "read", stored, *words).stdout)
        text += found["text"]
        if found["next"] is None:
            break
        words = [f"--{name}={value}" for name, value in found["next"].items()]
    assert text == LOG


def test_search_prints_what_a_model_would_see_and_exits_like_grep(
    tmp_path: Path, stored: str
) -> None:
    hits = ResultStore(tmp_path / ".callslip").session("cli").search(stored, "line 9", 1)
    done = here(tmp_path, "search", stored, "line 9", "-C", "1")
    assert done.exit_code == 0 and done.stdout == str(hits) + "\n"
    assert done.stderr.startswith("more: callslip search --after=8 --context=1 res_")
    assert here(tmp_path, "search", stored, "nowhere").exit_code == 1
    counted = here(tmp_path, "search", stored, "LINE 9", "-c", "-i")
    assert (counted.exit_code, counted.stdout) == (0, "111\n")
    missed = here(tmp_path, "search", stored, "LINE 9", "-c")
    assert (missed.exit_code, missed.stdout) == (1, "0\n")


def test_the_hits_of_a_walk_are_all_hits_once(tmp_path: Path, stored: str) -> None:
    lines, after = [], 0
    for _ in range(20):
        words = ("search", stored, "line 9", "--json", "-n", "20", "--after", str(after))
        found = json.loads(here(tmp_path, *words).stdout)
        assert found["total"] == 111
        lines += [hit["line"] for hit in found["hits"]]
        if found["next"] is None:
            break
        after = found["next"]["after"]
    assert lines == [n for n in range(1, 1001) if str(n).startswith("9")]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["search", "ID", "(?=x)"], 2, "look"),
        (["search", "ID", "("], 2, ""),
        (["read", "res_0000000000"], 3, "callslip ls"),
        (["read", "../../etc/passwd"], 3, "callslip ls"),
        (["show", "res_\x1b[31mred\n"], 3, "callslip ls"),
        (["export", "res_" + "9" * 200], 3, "callslip ls"),
        (["rm", "res_0000000000"], 3, "rm: "),
        (["read"], 2, "callslip read --help"),
        (["read", "ID", "--start", "x"], 2, "not a valid integer"),
        (["reed", "ID"], 2, "No such command"),
        (["--store", "postgresql://h/db", "ls"], 2, "postgresql"),
        (["--session", "", "read", "ID"], 2, "session=''"),
        (["--store", "nowhere", "ls"], 4, "no store at nowhere"),
        (["--store", "", "ls"], 2, "--store is empty"),
        (["ls", "-n", "-1"], 2, "-1 is less than 0"),
        (["search", "ID", "x", "-n", "-1"], 2, "-1 is less than 0"),
        (["run", "--threshold", "-1", "--", "true"], 2, "-1 is less than 0"),
        (["gc", "--grace", "-1"], 2, "-1 is less than 0"),
        (["put", "--tool"], 2, "callslip put --help"),
        (["--store", "mysql://h/db", "ls"], 2, "--store='mysql://…'"),
        (["get", "ID", "2"], 1, "line 2: callslip read res_"),
        (["export", "ID", "-o", "no/folder/x"], 2, "no/folder/x: there is no folder"),
        (["put", "/"], 2, "put: /: is a directory; it was not stored"),
        (["rm"], 2, "--session-all"),
        (["rm", "--session-all"], 2, "--yes"),
        (["completion", "tcsh"], 2, "tcsh"),
    ],
)
def test_an_error_is_one_line_with_what_to_do(
    tmp_path: Path, stored: str, words: list[str], status: int, said: str
) -> None:
    done = here(tmp_path, *[stored if word == "ID" else word for word in words])
    assert done.exit_code == status, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("callslip: ") and done.stderr.count("\n") == 1
    assert said in done.stderr and "\x1b" not in done.stderr


def test_the_command_that_goes_on_with_a_search_runs_when_it_is_pasted(tmp_path: Path) -> None:
    text = b"".join(b"order 12%d of 'x'\n" % n for n in range(9))
    id = here(tmp_path, "--session", "run-42", "put", "-q", stdin=text).stdout.strip()
    asked = ["search", "--session", "run-42", id, "-n", "2", "--", "order 12"]
    for after in (2, 4):
        done = here(tmp_path, *asked)
        more = done.stderr.strip().removeprefix("more: callslip ")
        assert f"--after={after}" in more
        asked = shlex.split(more)
    assert 'shown="5-6"' in here(tmp_path, *asked).stdout
    dashes = here(tmp_path, "search", "--session", "run-42", id, "--", "--")
    assert dashes.stdout.startswith("0 matches"), "a pattern of dashes is one"


def test_one_of_a_thing_is_told_as_one(tmp_path: Path) -> None:
    id = here(tmp_path, "put", "-q", stdin=b"x").stdout.strip()
    assert "1 character, 1 line\n" in here(tmp_path, "show", id).stdout
    assert "no such line" in here(tmp_path, "read", id, "--start", "9" * 20).stdout
    here(tmp_path, "rm", id)
    assert ".;" not in here(tmp_path, "read", id).stderr
    here(tmp_path, "put", "-q", stdin=b"y")
    assert "removed 1 result\n" in here(tmp_path, "rm", "--session-all", "-y").stderr


def test_looking_makes_no_store(tmp_path: Path) -> None:
    for words in (["ls"], ["stats"], ["verify"], ["gc"], ["sessions"], ["read", "res_0000000000"]):
        assert here(tmp_path, *words).exit_code == 4
    assert not (tmp_path / ".callslip").exists()


def test_a_file_name_that_is_not_utf8_is_no_obstacle(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\x1b[2J")
    Path(name).write_text("coffee\n")
    done = shell(tmp_path, "put", "--json", name)
    handle = json.loads(done.stdout)
    assert done.returncode == 0 and handle["lines"] == 1
    for words in (["ls"], ["show", handle["id"]]):
        shown = shell(tmp_path, *words)
        assert shown.returncode == 0 and b"caf" in shown.stdout and b"\x1b" not in shown.stdout
    missing = shell(tmp_path, "put", name + "2")
    assert missing.returncode == 2 and missing.stderr.count(b"\n") == 1


@pytest.mark.parametrize("words", [[], ["memory"], ["keys"]])
def test_a_group_without_a_command_says_what_there_is(tmp_path: Path, words: list[str]) -> None:
    done = here(tmp_path, *words)
    assert done.exit_code == 0 and not done.stderr
    assert done.stdout.startswith("Usage: callslip") and "\nCommands:\n" in done.stdout


def test_who_stores_rows_is_told_how_they_are_asked(tmp_path: Path) -> None:
    rows = json.dumps([{"id": n, "name": f"n{n}"} for n in range(99)]).encode()
    last = here(tmp_path, "put", stdin=rows).stdout.splitlines()[-1]
    assert re.fullmatch(r"Shell: callslip read res_\w+ or callslip query res_\w+ WHERE", last)


def test_a_file_that_the_store_did_not_take_is_named(tmp_path: Path) -> None:
    (tmp_path / ".callslip").write_text("a file where the folder was to be")
    (tmp_path / "a.log").write_text("text\n")
    done = here(tmp_path, "put", str(tmp_path / "a.log"))
    assert done.exit_code == 4
    assert done.stderr.startswith(f"callslip: put: {tmp_path / 'a.log'} was not stored: the index ")
    piped = here(tmp_path, "put", stdin=b"text")
    assert "put: what came down the pipe was not stored: " in piped.stderr
