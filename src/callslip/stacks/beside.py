"""Work beside the packing: in one other thread, in order, a few blocks behind at the most.

What looks at a content (the sampler, the profiler) needs nothing of what packs it, and both spend
their time outside of the interpreter's lock. No I/O.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

_BEHIND = 4


class Beside:
    """A context; `do` hands work over, `wait` returns when all of it is done.

    The first work is done at once, in this thread: a content of one block needs no other. What
    work raises is raised by `wait` or by a later `do`.
    """

    def __init__(self) -> None:
        self._work: queue.Queue[Callable[[], object] | None] = queue.Queue(_BEHIND)
        self._thread: threading.Thread | None = None
        self._begun = False
        self._error: BaseException | None = None

    def do(self, work: Callable[[], object]) -> None:
        """Do this after what was handed over before."""
        if not self._begun:
            self._begun = True
            work()
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="callslip-beside", daemon=True)
            self._thread.start()
        self._raise()
        self._work.put(work)

    def wait(self) -> None:
        """Return when all is done."""
        self._end()
        self._raise()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            if self._error is None:
                try:
                    work()
                except BaseException as error:  # noqa: BLE001 - raised where the work came from
                    self._error = error

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _end(self) -> None:
        thread, self._thread = self._thread, None
        # What is left over when the interpreter ends finds no thread running that could be joined.
        if thread is not None and not sys.is_finalizing():
            self._work.put(None)
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
