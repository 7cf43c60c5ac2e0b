"""Killed in the middle of a delegation, the session goes on in a new process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

WORKER = Path(__file__).with_name("killed_worker.py")
ROOT = Path(__file__).parents[2]


def ran(folder: Path, what: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, WORKER, folder, what],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_killed_in_the_middle_of_a_delegation_nothing_is_lost_and_nothing_stored_twice(
    tmp_path: Path,
) -> None:
    assert ran(tmp_path, "begin").returncode == -signal.SIGKILL

    done = ran(tmp_path, "go-on")
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

    following = ran(tmp_path, "next")
    assert following.returncode == 0, following.stderr
    answer, _, stored, leaders, _ = following.stdout.splitlines()
    assert (answer, stored) == ("Next.", "3 3")
    assert literal_eval(leaders)[-2:] == [("ai", "Done."), ("human", "And?")]
    assert list(tmp_path.glob("team.db-payloads/**/*.tmp")) == []
