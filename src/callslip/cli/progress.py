"""A line on the terminal for what takes long: nothing for the first moment, nothing in a pipe."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from callslip.cli import out
from callslip.window.envelope import human_size

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_QUIET_SECONDS = 0.5


class Meter:
    """Counts bytes, and shows them once they take long."""

    def __init__(self, title: str, total: int | None, shown: bool) -> None:
        self._title = title
        self._total = total
        self._shown = shown
        self._done = 0
        self._since = time.monotonic()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def add(self, size: int) -> None:
        """So many bytes more."""
        self.at(self._done + size)

    def at(self, done: int) -> None:
        """So many bytes in all."""
        self._done = done
        self.tick()

    def tick(self) -> None:
        """A moment passed."""
        if not self._shown:
            return
        if self._progress is None:
            if time.monotonic() - self._since < _QUIET_SECONDS:
                return
            self._progress = _progress(self._total)
            self._task = self._progress.add_task(self._title, total=self._total, size="")
            self._progress.start()
        if self._task is not None:
            size = human_size(self._done)
            if self._total is not None:
                size += f" of {human_size(self._total)}"
            self._progress.update(self._task, completed=self._done, size=size)

    def end(self) -> None:
        """Take the line away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            self._shown = False


def _progress(total: int | None) -> Progress:
    # Here, so that rich is imported only where something is drawn.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    name = TextColumn("{task.description}", markup=False)
    spinner = SpinnerColumn("dots", style="cyan")
    size = TextColumn("{task.fields[size]}", style="dim", markup=False)
    if total is None:
        return Progress(
            spinner, name, size, TimeElapsedColumn(), console=Console(stderr=True), transient=True
        )
    bar = BarColumn(bar_width=24, style="bright_black", complete_style="cyan")
    return Progress(
        spinner,
        name,
        bar,
        size,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


@contextmanager
def meter(title: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Meter]:
    """A meter that is gone when the block ends. `total` in bytes, None if nobody knows."""
    made = Meter(out.harmless(title)[:40], total, out.watched() and not quiet)
    try:
        yield made
    finally:
        made.end()
