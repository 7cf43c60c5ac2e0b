from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from callslip import ResultStore
from tests.cli.shell import CALLSLIP, environment, here, shell, start


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_put_that_is_killed_in_the_middle_leaves_a_clean_store(
    tmp_path: Path, number: signal.Signals
) -> None:
    ResultStore(tmp_path / ".callslip").session("cli").put("here before")
    process = start(tmp_path, "put", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    block = os.urandom(1 << 20)
    for _ in range(8):
        process.stdin.write(block)
    process.stdin.flush()
    unfinished = _until(lambda: _files(tmp_path))
    assert unfinished, "the put is under way"
    process.send_signal(number)
    process.wait(30)
    process.stdin.close()
    out, err = process.stdout, process.stderr
    assert out is not None and err is not None
    assert out.read() == b"" and err.read() == b""
    out.close()
    err.close()
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    assert len(here(tmp_path, "ls").stdout.splitlines()) == 1
    assert here(tmp_path, "verify").exit_code == 0
    if number == signal.SIGKILL:
        assert json.loads(here(tmp_path, "gc", "--grace", "0", "--json").stdout)["orphans"] == 1
    assert _files(tmp_path) == []


def _files(folder: Path) -> list[Path]:
    payloads = folder / ".callslip" / "payloads"
    return [path for path in payloads.rglob("*") if path.is_file() and path.stat().st_size]


def _until(ask: object) -> object:
    for _ in range(600):
        found = ask()  # type: ignore[operator]
        if found:
            return found
        time.sleep(0.05)
    return None


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nsys.argv = ['callslip', '--help']\n"
        "from callslip.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'obstore', 're2', 'rich', 'zstandard', 'asyncio', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n" and "Commands:" in done.stdout


def test_a_pipe_gets_no_rich_and_no_colour(tmp_path: Path) -> None:
    id = shell(tmp_path, "put", "-q", stdin=b"text\n" * 5000).stdout.decode().strip()
    for words in (["ls"], ["show", id], ["stats"], ["sessions"], ["verify"], ["read", id]):
        done = here(tmp_path, *words)
        assert done.exit_code == 0 and "\x1b" not in done.output, words
    code = (
        "import sys\nsys.argv = ['callslip', 'ls']\n"
        "from callslip.cli import main\n"
        "try: main()\n"
        "finally: print('rich' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "False\n"


def on_terminal(folder: Path, *words: str, columns: int = 80) -> str:
    """What a terminal of so many columns gets."""
    ours, theirs = pty.openpty()
    env = environment(folder) | {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "24"}
    env.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*CALLSLIP, *words],
        cwd=folder,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    got = b""
    try:
        while select.select([ours], [], [], 30)[0]:
            try:
                block = os.read(ours, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not block:
                break
            got += block
        process.wait(30)
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()
    return got.decode()


HOSTILE = "\x1b]0;owned\x07\x1b[2Jplain \x9b31m text\rover\n"


def test_stored_escapes_reach_a_pipe_but_no_terminal(tmp_path: Path) -> None:
    session = ResultStore(tmp_path / ".callslip").session("cli")
    id = session.put(HOSTILE * 3, tool="evil\x1b[2J", args="\x1b[2J").id
    assert here(tmp_path, "read", id, "--plain").stdout == HOSTILE * 3
    for words in (["read", id], ["export", id], ["search", id, "plain"], ["ls"], ["show", id]):
        shown = on_terminal(tmp_path, *words)
        ours = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", ours), (words, shown)
        assert "\x1b[31m\x07" not in shown


def test_a_terminal_gets_a_table_that_fits(tmp_path: Path) -> None:
    session = ResultStore(tmp_path / ".callslip").session("cli")
    session.put("text\n" * 50, tool="a_tool_with_quite_a_long_name", args={"query": "word " * 40})
    shown = on_terminal(tmp_path, "ls")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r", "").splitlines()
    assert len(lines) == 3 and all(len(line) <= 80 for line in lines)
    assert lines[0].split()[:2] == ["id", "tool"] and "res_" in lines[2]
    assert "\x1b[" in shown


def test_nothing_to_put_at_a_terminal_is_said_and_not_waited_for(tmp_path: Path) -> None:
    assert "give a FILE" in on_terminal(tmp_path, "put")


def test_a_long_run_shows_a_progress_line_that_goes_away(tmp_path: Path) -> None:
    shown = on_terminal(tmp_path, "run", "--", "sh", "-c", "sleep 1.5; echo the end")
    assert re.search("[\u2800-\u28ff]", shown), "a spinner"
    assert shown.rpartition("\x1b[2K")[2].endswith("the end\r\n")
    quiet = on_terminal(tmp_path, "run", "-q", "--", "sh", "-c", "sleep 1; echo the end")
    assert quiet == "the end\r\n"


@pytest.mark.parametrize("columns", [24, 40, 60])
def test_a_narrow_terminal_gets_ids_whole_and_fewer_columns(tmp_path: Path, columns: int) -> None:
    store = ResultStore(tmp_path / ".callslip", audit=True)
    id = store.session("cli").put("text\n" * 5_000, tool="a_tool", args={"query": "word " * 9}).id
    for words in (["ls"], ["sessions"], ["audit"]):
        shown = on_terminal(tmp_path, *words, columns=columns)
        lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r", "").splitlines()
        assert lines and all(len(line) <= columns for line in lines), shown
        assert ("cli" if words == ["sessions"] else id) in shown
        assert lines[0].split()[0] != "…"


def test_a_terminal_is_told_that_there_is_nothing(tmp_path: Path) -> None:
    ResultStore(tmp_path / ".callslip").migrate()
    for words, said in (
        (["ls"], "nothing is stored in session cli"),
        (["sessions"], "no session has anything stored"),
        (["holds"], "nothing is held"),
        (["memory", "list"], "no fact in namespace cli"),
        (["audit"], "CALLSLIP_AUDIT=1"),
    ):
        assert said in on_terminal(tmp_path, *words)
        assert here(tmp_path, *words).output == ""
