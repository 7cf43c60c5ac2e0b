"""What tests ask of the machine itself: a small file system, a forked process."""

from __future__ import annotations

import os
import signal
import subprocess
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(place: Path, options: str) -> Iterator[None]:
    """A file system of its own at a folder, `size=1m`; skips the test where none can be mounted."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    try:
        refused = subprocess.run(command, capture_output=True, check=False).returncode != 0
    except FileNotFoundError:
        refused = True
    if refused:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True, check=True)


def forked(act: Callable[[], object]) -> int:
    """The exit status of a forked child that ran `act`; -14 if it hung for 20 seconds."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        status = 1
        try:
            act()
            status = 0
        except BaseException:  # noqa: BLE001 - the parent sees the status
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
