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

_SET_SECONDS = 1.0
"""By how much a clock that was set differs from one that only went on."""


class SharedClock:
    """Seconds since the epoch by `own`, put right by what the index says; see `asked`."""

    def __init__(self, own: Callable[[], float], *, asks: bool) -> None:
        self._own = own
        self._asks = asks
        self._offset = 0.0
        self._asked_at: tuple[float, float] | None = None
        """When it was, by the clock that only goes on and by `own`."""

    def now(self) -> float:
        """The time. A second more or less is the network's, and left as it is."""
        own = self._own()
        if self._asked_at is not None:
            steady, then = self._asked_at
            due = then + time.monotonic() - steady
            if abs(own - due) > _SET_SECONDS:  # until the index is asked again
                own = due
        return own + (self._offset if abs(self._offset) > 1.0 else 0.0)

    def asked(self, flow: Flow[T]) -> Flow[T]:
        """The same flow; where it is time to, the index is asked for its clock first. So it is when
        `own` was set: by a person, a time server, or because the machine slept."""
        return self._ask(flow) if self._asks and not self._holds() else flow

    def sure(self) -> Flow[float]:
        """The time, for what ends other people's results by it. Raises what the index does where
        it has never told its clock: by one that is ahead, all would have expired."""
        if self._asks and self._asked_at is None:
            yield from self._look()
        return self.now()

    def _holds(self) -> bool:
        if self._asked_at is None:
            return False
        steady, then = self._asked_at
        since = time.monotonic() - steady
        return since < limits.CLOCK_SECONDS and abs(self._own() - then - since) <= _SET_SECONDS

    def _ask(self, flow: Flow[T]) -> Flow[T]:
        with suppress(Exception):  # whatever it is, the flow meets it, and decides
            yield from self._look()
        # Outside of the handler: what the flow raises does not come with the clock's error.
        return (yield from flow)

    def _look(self) -> Flow[None]:
        began = self._own()
        there = (yield from do(CheckIndex(write=False))).clock
        ended = self._own()
        self._offset = 0.0 if there is None else there - (began + ended) / 2
        self._asked_at = time.monotonic(), ended
