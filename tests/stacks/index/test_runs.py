"""The table of stored runs: order, scopes, and what goes with what."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from callslip.stacks.index.runs import SqliteRuns, StoredRun
from callslip.team.db import InMemoryDb, Runs


@pytest.fixture(params=["sqlite", "memory"])
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> Runs:
    return SqliteRuns(tmp_path / "team.db") if request.param == "sqlite" else InMemoryDb().runs


def run(id: str, session: str = "s", user: str = "", **given: str) -> StoredRun:
    made = {"owner": "team", "status": "completed", **given}
    return StoredRun(user, session, id, made["owner"], made["status"], made.get("parent", ""), b"x")


def test_runs_come_in_the_order_they_began_whatever_became_of_them(runs: Runs) -> None:
    for id in ("c", "a", "b"):
        runs.put(run(id, status="running"))
    runs.put(run("a"))
    assert [each.run for each in runs.list("", "s")] == ["c", "a", "b"]
    assert [each.run for each in runs.list("", "s", last=2)] == ["a", "b"]
    assert [each.run for each in runs.list("", "s", last=0)] == []
    assert [each.run for each in runs.list("", "s", status=("completed",))] == ["a"]
    assert runs.get("", "s", "a") == run("a")
    assert runs.get("", "s", "z") is None


def test_owner_and_parent_choose(runs: Runs) -> None:
    runs.put(run("1"))
    runs.put(run("2", owner="team/a", parent="1"))
    assert [each.run for each in runs.list("", "s", owner="team/a")] == ["2"]
    assert [each.run for each in runs.list("", "s", parent="1")] == ["2"]


def test_names_that_look_alike_are_not_the_same(runs: Runs) -> None:
    names = ["é", "e\u0301", "s", "S", "s ", "s\0", "\ud800", "\udc80", "a/b", "a", "x" * 10_000]
    for name in names:
        runs.put(run("1", session=name))
        runs.put(run("1", session="s1", user=name))
    for name in names:
        [found] = runs.list("", name)
        assert found.session == name
        assert runs.get(name, "s1", "1") == run("1", session="s1", user=name)


def test_a_removal_takes_what_a_run_delegated_and_nothing_of_anybody_else(runs: Runs) -> None:
    for user in ("", "ana"):
        runs.put(run("1", user=user))
        runs.put(run("2", user=user, parent="1"))
        runs.put(run("3", user=user, parent="2"))
        runs.put(run("4", user=user))
    assert {each.run for each in runs.remove("ana", "s", "1")} == {"1", "2", "3"}
    assert [each.run for each in runs.list("ana", "s")] == ["4"]
    assert {each.run for each in runs.remove("", "s")} == {"1", "2", "3", "4"}
    assert [each.run for each in runs.list("ana", "s")] == ["4"]
    assert not runs.remove("ana", "s", "nothing")


def test_the_file_is_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        SqliteRuns(tmp_path / "new" / "team.db").put(run("1"))
    finally:
        os.umask(before)
    assert (tmp_path / "new" / "team.db").stat().st_mode & 0o777 == 0o600
