"""Killed in the middle of a delegation, the session goes on in a new process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from ast import literal_eval
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from callslip.stacks.index.runs import SqliteRuns
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.team import Agent, SqliteDb, Team
from tests.team.team_helpers import REPORT, call, delegate, scripted

WORKER = Path(__file__).with_name("killed_worker.py")
ROOT = Path(__file__).parents[2]


def ran(folder: Path, what: str, *url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, WORKER, folder, what, *url],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_killed_in_the_middle_of_a_delegation_nothing_is_lost_and_nothing_stored_twice(
    tmp_path: Path,
) -> None:
    killed_and_gone_on_with(tmp_path)

    following = ran(tmp_path, "next")
    assert following.returncode == 0, following.stderr
    answer, _, stored, leaders, _ = following.stdout.splitlines()
    assert (answer, stored) == ("Next.", "3 3")
    assert literal_eval(leaders)[-2:] == [("ai", "Done."), ("human", "And?")]


def killed_and_gone_on_with(tmp_path: Path, *url: str) -> None:
    """The law, for the database of a URL or a file in the folder."""
    assert ran(tmp_path, "begin", *url).returncode == -signal.SIGKILL

    done = ran(tmp_path, "go-on", *url)
    assert done.returncode == 0, done.stderr
    answer, whole, stored, leaders, members = done.stdout.splitlines()
    assert answer == "Done."
    assert whole == "True"  # what was answered before the kill, and after
    assert stored == "3 3"  # two answers and one fetched result; each once
    assert literal_eval(leaders) == [
        ("human", "Go."), ("ai", ""), ("tool", "<result "), ("ai", ""), ("tool", "ok"),
        ("tool", "<result "),
    ]  # fmt: skip
    assert literal_eval(members) == [
        "system",
        "human",
        "ai",
        "tool",
        "ai",
        "tool",
    ]  # from where it was
    assert (tmp_path / "fetched").read_text() == "x"  # and what was done is not done again

    assert list(tmp_path.glob("team.db-payloads/**/*.tmp")) == []


class Killed(BaseException):
    """What no code of ours or LangGraph's may catch and go on from."""


def test_cut_off_at_any_write_the_run_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Before and after each write of a checkpoint, a record or a result, one after the other."""
    writes = (
        (SqliteSaver, "put"),
        (SqliteSaver, "put_writes"),
        (SqliteSaver, "delete_thread"),
        (SqliteRuns, "put"),
        (SqliteIndex, "_run"),
    )
    cut_off(writes, lambda points: SqliteDb(tmp_path / f"{points}.db"), 3)


def cut_off(writes: Sequence[tuple[Any, str]], database: Callable[[int], Any], step: int) -> None:
    """The law: at every `step`th of the moments before and after the writes, on a database each."""

    def leads(messages: Sequence[BaseMessage]) -> AIMessage | str:
        return delegate("a") if messages[-1].type == "human" else "Done."

    def works(messages: Sequence[BaseMessage]) -> AIMessage | str:
        return call("fetch") if messages[-1].type == "human" else REPORT

    def fetch() -> str:
        """The data."""
        return REPORT + "raw"

    def team() -> Team:
        model = scripted(*[works] * 9)
        member = Agent(id="a", model=model, tools=[fetch])
        db = database(points)
        return Team(
            model=scripted(*[leads] * 9), members=[member], db=db, offload_tool_results=True
        )

    left = 0

    def counted(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        done = getattr(owner, name)

        def counting(*given: Any, **named: Any) -> Any:
            nonlocal left
            for moment in ("before", "after"):
                if moment == "after":
                    result = done(*given, **named)
                left -= 1
                if left == 0:
                    raise Killed
            return result

        monkeypatch.setattr(owner, name, counting)

    points = 0
    while True:
        points += step  # odd: before and after in turn, of each kind of write
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in writes:
                counted(owner, name, patch)
            left = points
            try:
                team().run("Go.", session_id="s1")
            except Killed:
                pass
            else:
                break
        again = team()
        rows = again.db.runs.list("", "s1", status=("running",))  # type: ignore[union-attr]
        if rows and not rows[0].parent:
            out = again.continue_run(session_id="s1")
            assert out.content == "Done.", points
            assert [each.content for each in out.member_responses] == [REPORT], points
        assert again.result_store is None or again.result_store.stats().payloads == 2, points
        statuses = [(run.agent_id, run.status) for run in again.runs("s1")]
        # The first moments are before the run is written: whether it may be in the clear is asked.
        assert points <= step or statuses == [("team", "completed"), ("a", "completed")], points
    assert points > 60
