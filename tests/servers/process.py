"""A server as a child process: started, waited for, and gone when this process is."""

from __future__ import annotations

import atexit
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

START_SECONDS = 60
"""How long a server may take to answer: a cold machine with two cores at work, not a measure."""

MEMORY_BYTES = 6 * 1024**3
"""Two test processes make some hundred databases each, of 8 MB and what is in them."""

# Outlives a test run that is killed, and then ends what that left behind. A line of its input is
# `+ pid signal folder` for what was started, `- pid` for what has been stopped.
_WATCH = """
import os, shutil, sys, time
left = {}
for line in sys.stdin:
    sign, pid, *rest = line.rstrip("\\n").split(" ", 3)
    if sign == "+":
        left[int(pid)] = rest
    else:
        left.pop(int(pid), None)
for last in (False, True):
    for pid, (number, _) in left.items():
        try:
            os.killpg(pid, 9 if last else int(number))
        except OSError:
            pass
    time.sleep(0 if last else 1.5)
for _, folder in left.values():
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
"""


class Server:
    """One child process in a group of its own, with a folder that goes with it.

    A subclass says what to run, and how to tell that it is up. `signal` is what asks it to end.
    """

    signal = signal.SIGTERM
    refuses_root = False

    def __init__(self, name: str, place: str | None = None) -> None:
        self.name = name
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"callslip-{name}-", dir=place))
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        atexit.register(self.close)

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    def is_up(self) -> bool:
        return answers(self.port)

    def environment(self) -> Mapping[str, str]:
        return {}

    def start(self) -> None:
        """Start it, or start it again, on the same port; returns when it answers."""
        if self._process is not None and self._process.poll() is None:
            return
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                list(self.command()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **self.environment()},
                start_new_session=True,
                **(unprivileged() if self.refuses_root else {}),
            )
        _watch(f"+ {self._process.pid} {int(self.signal)} {self.folder}")
        wait_for(self._is_up_or_gone, f"{self.name} on port {self.port}", self.told)

    def stop(self) -> None:
        """Ask it to end, and see that it has."""
        self._end(self.signal)

    def kill(self) -> None:
        """End it as a crash does: nothing is said, nothing is flushed."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it and remove its folder."""
        if os.getpid() != self._owner:  # a forked child ends too, and owns nothing
            return
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def told(self) -> str:
        """The end of what it wrote."""
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""

    def _is_up_or_gone(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended as it started: {self.told()}")
        return self.is_up()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for number in (how, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
            try:
                process.wait(10)
                break
            except subprocess.TimeoutExpired:
                continue
        _watch(f"- {process.pid}")


def memory_place() -> str | None:
    """Where files never wait for a disk; None where that has no room for what tests make of them,
    or programs in it may not run."""
    place = "/dev/shm"
    try:
        found = os.statvfs(place)
    except OSError:
        return None
    roomy = found.f_bavail * found.f_frsize > MEMORY_BYTES
    return place if roomy and not found.f_flag & os.ST_NOEXEC else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int) -> bool:
    """Whether something listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 0.5).close()
    except OSError:
        return False
    return True


def wait_for(ready: Callable[[], bool], what: str, told: Callable[[], str] = str) -> None:
    until = time.monotonic() + START_SECONDS
    while not ready():
        if time.monotonic() > until:
            raise RuntimeError(f"{what} did not come up in {START_SECONDS} s: {told()}")
        time.sleep(0.02)


def unprivileged() -> dict[str, object]:
    """What makes `subprocess` run a command as nobody, where this runs as root.

    PostgreSQL and pgbouncer refuse to run as root.
    """
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def give_away(folder: Path) -> None:
    """Let the one that the servers run as write there."""
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)


_watcher: subprocess.Popen[bytes] | None = None
_watching = threading.Lock()


def _watch(line: str) -> None:
    global _watcher
    with _watching:
        if _watcher is None:
            _watcher = subprocess.Popen(
                [sys.executable, "-c", _WATCH],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        assert _watcher.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            _watcher.stdin.write(line.encode() + b"\n")
            _watcher.stdin.flush()
