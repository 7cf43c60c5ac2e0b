"""Running `callslip` the way people do: as a process, or where that adds nothing, in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from callslip.cli.app import cli

CALLSLIP = [sys.executable, "-m", "callslip"]


def environment(folder: Path) -> dict[str, str]:
    """This environment, with nothing of the user's and the store in `folder`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CALLSLIP_")}
    return kept | {"XDG_STATE_HOME": str(folder / "state"), "PYTHONUTF8": "1"}


def start(folder: Path, *words: str, **more: Any) -> subprocess.Popen[bytes]:
    """A process in a session of its own, so that a signal to it is from nobody's terminal."""
    given: dict[str, Any] = {
        "cwd": folder,
        "env": environment(folder),
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "start_new_session": True,
    }
    return subprocess.Popen([*CALLSLIP, *words], **(given | more))


def shell(
    folder: Path, *words: str, stdin: bytes | None = None, **more: Any
) -> subprocess.CompletedProcess[bytes]:
    """A process that ran to its end."""
    process = start(folder, *words, stdin=subprocess.PIPE, **more)
    out, err = process.communicate(stdin, timeout=60)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def here(folder: Path, *words: str, stdin: bytes | None = None) -> Result:
    """The same in this process, with the store in `folder`."""
    env = {"CALLSLIP_STORE": str(folder / ".callslip"), "CALLSLIP_SESSION": None}
    env["XDG_STATE_HOME"] = str(folder / "state")
    return CliRunner(env=env).invoke(cli, list(words), input=stdin)
