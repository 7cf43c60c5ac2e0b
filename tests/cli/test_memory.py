from __future__ import annotations

import json
from pathlib import Path

import pytest

from callslip import ResultStore
from callslip.patterns.memory import Memory
from tests.cli.shell import here, shell


def add(folder: Path, *words: str) -> str:
    done = here(folder, "memory", "add", *words)
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def test_a_fact_is_added_recalled_listed_shown_changed_and_forgotten(tmp_path: Path) -> None:
    id = add(tmp_path, "Ana wants conflicts", "side by side", "-k", "view", "--kind", "preference")
    found = here(tmp_path, "memory", "recall", "how", "to show", "conflicts")
    assert found.stdout.startswith('<facts shown="1" of="1"')
    assert "\nAna wants conflicts side by side\n" in found.stdout
    again = here(tmp_path, "memory", "add", "ana wants conflicts side by side", "--json")
    told = json.loads(again.stdout)
    assert (told["id"], told["count"], told["outcome"]) == (id, 2, "repeated")
    row = here(tmp_path, "memory", "list").stdout.rstrip("\n").split("\t")
    assert row[0] == id
    assert row[2:] == ["2", "preference", "view", "cli", "Ana wants conflicts side by side"]
    assert here(tmp_path, "memory", "edit", id, "Ana wants a table").stdout.strip() == id
    shown = json.loads(here(tmp_path, "memory", "show", id, "--json").stdout)
    assert (shown["text"], shown["history"][0]["text"], shown["history"][0]["why"]) == (
        "Ana wants a table",
        "Ana wants conflicts side by side",
        "updated",
    )
    assert "(updated): Ana wants conflicts" in here(tmp_path, "memory", "show", id).stdout
    assert here(tmp_path, "memory", "forget", id).exit_code == 0
    assert here(tmp_path, "memory", "list").stdout == ""


def test_nothing_found_and_unknown_ids_have_their_statuses(tmp_path: Path) -> None:
    id = add(tmp_path, "zebra")
    assert here(tmp_path, "memory", "recall", "yak").exit_code == 1
    for words in (("show", "mem_x"), ("edit", "mem_x", "y"), ("forget", "mem_x", id)):
        done = here(tmp_path, "memory", *words)
        assert done.exit_code == 3
        assert "no fact mem_x" in done.stderr
    assert here(tmp_path, "memory", "list").stdout == "", "the other one was forgotten"


@pytest.mark.parametrize(
    "words",
    [
        ("add",),
        ("add", "x", "--expires", "soon"),
        ("add", "x", "--metadata", "[1]"),
        ("add", "the password is hunter2!"),
        ("recall", "x", "--where", "{"),
        ("recall", "x", "--where", '{"a": {"$regex": 1}}'),
        ("edit", "ID"),
        ("forget",),
        ("forget", "--all"),
        ("forget", "--all", "mem_x"),
        ("list", "-N", "a//b"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(tmp_path: Path, words: tuple[str, ...]) -> None:
    id = add(tmp_path, "zebra")
    done = here(tmp_path, "memory", *[id if word == "ID" else word for word in words], stdin=b"")
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert here(tmp_path, "memory", "list").stdout.count("\n") == 1


def test_namespaces_are_those_of_the_library(tmp_path: Path) -> None:
    memory = Memory(ResultStore(tmp_path / ".callslip"), ("acme", "ana"))
    memory.remember("zebra", metadata={"year": 2026})
    for words in (("-N", "acme/ana"), ("--tenant", "acme", "--user", "ana")):
        assert here(tmp_path, "memory", "list", *words).stdout.count("\n") == 1
    where = ("--where", '{"year": {"$gte": 2026}}', "-N", "acme/ana", "--json")
    assert json.loads(here(tmp_path, "memory", "recall", "zebra", *where).stdout)["text"] == "zebra"
    assert here(tmp_path, "memory", "list").stdout == ""
    assert here(tmp_path, "memory", "forget", "--all", "-y", "-N", "acme").exit_code == 0
    assert memory.list().total == 0


def test_what_is_exported_is_imported_elsewhere(tmp_path: Path) -> None:
    add(tmp_path, "用户喜欢深色模式", "--kind", "偏好", "--metadata", '{"n": 1}')
    add(tmp_path, "two\nlines", "-k", "k", "--expires", "7d", "--source", "ana")
    file = tmp_path / "facts.ndjson"
    assert here(tmp_path, "memory", "export", "-o", str(file)).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    done = here(tmp_path, "memory", "import", str(file), "-N", "other", "--json")
    assert json.loads(done.stdout)["new"] == 2

    def facts(*words: str) -> list[dict[str, object]]:
        lines = here(tmp_path, "memory", "export", *words).stdout.splitlines()
        told = [json.loads(line) for line in lines]
        unlike = ("id", "created_at", "updated_at")
        return sorted(
            ({n: v for n, v in fact.items() if n not in unlike} for fact in told),
            key=lambda fact: str(fact["text"]),
        )

    assert facts("-N", "other") == facts()
    assert here(tmp_path, "memory", "import", "-", stdin=b"").stderr == "no fact in it\n"
    again = here(tmp_path, "memory", "import", "-", stdin=file.read_bytes())
    assert "2 repeated" in again.stderr


def test_an_import_names_what_it_refuses_and_takes_the_rest(tmp_path: Path) -> None:
    lines = [
        '{"text": "fine"}',
        "not json",
        "[1]",
        '{"key": "no text"}',
        '{"text": "api_key=abc123def"}',
        '{"text": "old", "expires_at": "2020-01-01T00:00:00Z"}',
    ]
    done = here(tmp_path, "memory", "import", "-", stdin="\n".join(lines).encode())
    assert done.exit_code == 2
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()[:4]] == [
        f"line {n}" for n in (2, 3, 4, 5)
    ]
    assert "1 new, 1 expired, 4 refused" in done.stderr
    assert "abc123def" not in done.stderr


def test_text_comes_down_a_pipe_and_a_hostile_one_moves_no_terminal(tmp_path: Path) -> None:
    done = shell(tmp_path, "memory", "add", stdin=b"from a pipe\x1b[2J\n")
    assert done.returncode == 0
    listed = shell(tmp_path, "memory", "list").stdout
    assert b"from a pipe" in listed
    assert b"\x1b" not in listed


def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    done = here(tmp_path, "memory", "recall", "x")
    assert done.exit_code == 4
    assert not (tmp_path / ".callslip").exists()
