"""A command whose output is read as it comes, and its end told apart from its output's end."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

LINGER_SECONDS = 2.0
"""How long a command's output may stay open after the command has ended."""

BLOCK_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024
_F_SETPIPE_SZ = 1031
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FROM_TERMINAL = ("SIGINT", "SIGQUIT")


class Command:
    """A running command. Iterate over it once for its output, stdout and stderr in one pipe, so in
    the order in which they were written; then `status` holds.

    Raises `OSError` if it cannot be started.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.left_open = False
        """True if something that the command left behind still held its output at the end."""
        self._output, theirs = os.pipe()
        self._woken, self._wake = os.pipe()
        _widen(theirs)
        try:
            self.child = subprocess.Popen(words, stdout=theirs, stderr=theirs)
        except BaseException:
            for end in (self._output, self._woken, self._wake):
                os.close(end)
            raise
        finally:
            os.close(theirs)
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        self.child.wait()
        os.write(self._wake, b".")

    def blocks(self, tick: float | None = None) -> Iterator[bytes]:
        """The output. With `tick`, an empty block each so many seconds in which nothing came."""
        ended: float | None = None
        behind = 0
        with selectors.DefaultSelector() as ready:
            ready.register(self._output, selectors.EVENT_READ)
            ready.register(self._woken, selectors.EVENT_READ)
            while True:
                left = None if ended is None else max(ended + LINGER_SECONDS - time.monotonic(), 0)
                wait = tick if left is None else left if tick is None else min(left, tick)
                events = {key.fd for key, _ in ready.select(wait)}
                if self._woken in events:
                    ready.unregister(self._woken)
                    ended = time.monotonic()
                if self._output in events:
                    block = os.read(self._output, BLOCK_BYTES)
                    if not block:
                        break
                    behind += len(block) if ended is not None else 0
                    yield block
                elif not events and left is None:
                    yield b""
                # What the command itself wrote is in the pipe, so no more than the pipe holds.
                drained = self._output not in events or behind > _PIPE_BYTES
                if left == 0 and drained:
                    self.left_open = True
                    break

    def finish(self) -> int:
        """Wait for the command, and answer its status as a shell would: 128 + n for a signal."""
        os.close(self._output)
        code = self.child.wait()
        return code if code >= 0 else 128 - code


def _widen(pipe: int) -> None:
    with suppress(ImportError, OSError):  # a small pipe only makes for more and smaller blocks
        import fcntl

        fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE_BYTES)


class Signals:
    """Signals that reach us while a command runs are the command's: it decides what they mean."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._seen = False

    def belong_to(self, child: subprocess.Popen[bytes]) -> None:
        """Forward what has come and what comes."""
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        again, self._seen = self._seen, True
        # A key at the terminal goes to the whole foreground group, and so to the command already:
        # a second one from us would be taken for impatience. Unless it really is the second.
        if name in _FROM_TERMINAL and not again and _in_foreground():
            return
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)


def _in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@contextmanager
def forwarded() -> Iterator[Signals]:
    """Take signals for a command. What was ignored before (nohup) stays ignored, by both."""
    signals = Signals()
    before: dict[int, object] = {}
    for name in _FORWARDED:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, signals)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
