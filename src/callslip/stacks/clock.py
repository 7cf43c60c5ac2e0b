"""One clock for all workers: the index's own, where that is a server's.

Retention goes by time, and a worker whose clock is hours ahead would take the living sessions of
all others for expired, and sweep them. No I/O.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from callslip import limits
from callslip.stacks.checkops import CheckIndex
from callslip.stacks.ops import Flow, do

T = TypeVar("T")


class SharedClock:
    """Seconds since the epoch by `own`, put right by what the index says; see `asked`."""

    def __init__(self, own: Callable[[], float], *, asks: bool) -> None:
        self._own = own
        self._asks = asks
        self._offset = 0.0
        self._asked_at = float("-inf")

    def now(self) -> float:
        """The time. A second more or less is the network's, and left as it is."""
        return self._own() + (self._offset if abs(self._offset) > 1.0 else 0.0)

    def asked(self, flow: Flow[T]) -> Flow[T]:
        """The same flow; where it is time to, the index is asked for its clock first."""
        if not self._asks or time.monotonic() - self._asked_at < limits.CLOCK_SECONDS:
            return flow
        return self._ask(flow)

    def _ask(self, flow: Flow[T]) -> Flow[T]:
        began = self._own()
        with suppress(Exception):  # whatever it is, the flow meets it, and decides
            there = (yield from do(CheckIndex(write=False))).clock
            self._offset = 0.0 if there is None else there - (began + self._own()) / 2
            self._asked_at = time.monotonic()
        # Outside of the handler: what the flow raises does not come with the clock's error.
        return (yield from flow)
