"""`make demo`: right answers, readable anywhere, and an exit status that says so."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from callslip import ResultStore
from callslip.testing.model import Call, id_shown
from demo import __main__ as program
from demo import outputs, questions
from demo.agent import both
from demo.questions import Question, found
from demo.show import Screen, parts_of

ROOT = Path(__file__).parents[2]


def printed() -> Screen:
    return Screen(Console(file=io.StringIO(), width=80))


def lines_to_find(truth: str) -> Question:
    """A question that costs nothing to ask."""

    def lines() -> str:
        """Many lines."""
        return "\n".join(f"line {n} holds {n * n}" for n in range(2000))

    return Question(
        "lines",
        "What does line 77 hold?",
        lines,
        (
            Call(
                "search_result", lambda seen: {"result_id": id_shown(seen), "pattern": "^line 77 "}
            ),
        ),
        lambda replies: found(r"line 77 holds (\d+)", replies[-1])[1],
        lambda: truth,
        "arithmetic",
    )


def test_the_demo_answers_right_and_fits_80_columns_without_colour() -> None:
    environment = {**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-m", "demo"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("✓") == 4
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""


def test_a_wrong_answer_is_shown_and_ends_the_demo_with_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert program.main([], lambda folder: [lines_to_find("5929")]) == 0
    assert "✓ 5929" in capsys.readouterr().out
    assert program.main([], lambda folder: [lines_to_find("5930")]) == 1
    assert re.search(r"✗ 5929\s+WRONG: with arithmetic it is 5930", capsys.readouterr().out)


def test_a_terminal_without_the_signs_gets_others(tmp_path: Path) -> None:
    raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    screen = Screen(Console(file=raw, width=80))
    session = ResultStore(tmp_path, spool="").session("s")
    asked = [lines_to_find("5929")]
    screen.opening()
    offloaded, plain, right = both(asked, session, screen)
    parts = parts_of(asked, offloaded, plain)
    screen.table(parts)
    screen.chart(parts, offloaded, plain)
    screen.sums(parts, offloaded, plain)
    screen.end(right, 1)
    raw.flush()


def test_the_figures_are_those_of_the_two_runs(tmp_path: Path) -> None:
    session = ResultStore(tmp_path, spool="").session("s")
    asked = [lines_to_find("5929"), lines_to_find("5929")]
    asked[1].tool.__name__ = "more_lines"
    offloaded, plain, _ = both(asked, session, printed())
    parts = parts_of(asked, offloaded, plain)
    # A part is its call, the result, the read-backs and their replies: all that was added.
    for run, held in ((offloaded, [p.held for p in parts]), (plain, [p.without for p in parts])):
        calls = sum(m.chars for m in run.messages if m.role == "assistant" and m.calls)
        replies = sum(m.chars for m in run.replies)
        assert sum(held) == replies + (0 if run is plain else calls)
    assert [part.read_backs for part in parts] == [1, 1] and offloaded.read_backs == 2
    assert plain.largest > parts[0].without + parts[1].without
    assert offloaded.largest < plain.largest / 5


def is_answered(question: Question, folder: Path) -> bool:
    session = ResultStore(folder / "store", spool="").session("s")
    return both([question], session, printed())[2]


def test_where_there_is_no_repository_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "ROOT", tmp_path)
    tools = outputs.made(tmp_path)
    assert tools.repository == tmp_path / "history"
    assert len(outputs.commits(tools.repository)) > outputs.FEW_COMMITS
    assert len(tools.git_log()) > 100_000
    assert is_answered(questions.history(tools), tmp_path)


def test_where_no_bill_of_materials_is_installed_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs.metadata, "files", lambda name: [])
    tools = outputs.Outputs(tmp_path, "", tmp_path)
    assert len(str(tools.sbom())) > 20_000
    assert is_answered(questions.materials(tools), tmp_path)


def test_a_command_that_breaks_is_an_error_and_no_result() -> None:
    with pytest.raises(RuntimeError, match="ended with 3:\nno such thing"):
        outputs.ran([sys.executable, "-c", "import sys; print('no such thing'); sys.exit(3)"])
