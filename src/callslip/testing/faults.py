"""A backend that fails when it is told to: for tests of what happens then."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, TypeVar

from callslip.errors import StoreUnavailable
from callslip.stacks.auditops import Audited
from callslip.stacks.ops import Op, PutObject, Runs

T = TypeVar("T")
When = Literal["before", "half", "after"]


class FaultyBackend:
    """Runs operations on `inner`, and at the `at`-th of them (from 1) does what `fault` says.

    `fault` is an error to raise, or "kill": the process ends at once, as with kill -9. `when`:
    `before` the operation; `half` way through the parts of a PutObject (any other operation:
    before); or `after` it was done, when its answer is lost. `only` counts operations of these
    types alone, told to the audit or not. `times` says how many operations in a row fail, None meaning all from then on.
    Operations that were asked for are in `seen`, in order, with what fails among them.
    """

    def __init__(
        self,
        inner: Runs,
        *,
        at: int = 1,
        fault: Exception | Literal["kill"] | None = None,
        when: When = "before",
        only: type[Op[Any]] | tuple[type[Op[Any]], ...] = Op,
        times: int | None = 1,
    ) -> None:
        self.inner = inner
        self.at = at
        self.fault = fault or StoreUnavailable("a fault was injected", reason="failed")
        self.when = when
        self.only = only
        self.times = times
        self.seen: list[Op[Any]] = []
        self._count = 0
        self._lock = threading.Lock()

    def run(self, op: Op[T], /) -> T:
        """Run one operation, or fail at it."""
        with self._lock:
            self.seen.append(op)
            meant = isinstance(op.op if isinstance(op, Audited) else op, self.only)
            self._count += meant
            late = self._count - self.at
            due = meant and late >= 0 and (self.times is None or late < self.times)
        if not due:
            return self.inner.run(op)
        if self.when == "after":
            self.inner.run(op)
        elif self.when == "half" and isinstance(op, PutObject):
            broken: Any = replace(op, parts=_half(op, self._fail))
            self.inner.run(broken)
        self._fail()
        raise AssertionError("unreachable")

    def _fail(self) -> None:
        if isinstance(self.fault, Exception):
            raise self.fault
        os.kill(os.getpid(), signal.SIGKILL)


def _half(op: PutObject, fail: Callable[[], None]) -> Iterator[bytes]:
    for part in op.parts:
        yield part[: len(part) // 2]
        fail()
