"""A part of the store that keeps its callers waiting is not asked for a while.

A run of a hundred tool calls must not wait for a hundred timeouts of a store that is away: the
first that waits in vain is the last for some time, the others fail at once (and their results go
to the spool). One call now and then finds out whether it is back. No I/O.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

from callslip import limits
from callslip.errors import StoreUnavailable
from callslip.stacks.ops import Count, Op, Payloads, PutObject, Remove, Repair, Runs, Sweep

T = TypeVar("T")

_HEAVY = (Count, Payloads, Remove, Repair, Sweep)
"""What may take longer than an operation is given, and so says nothing of the store if it does."""


class Breaker:
    """Runs operations on `inner`, but for the time after one that waited and failed.

    A failure counts where it took `limits.AWAY_SECONDS` or more; then for `limits.PAUSE_FACTOR`
    times as long (at most `limits.PAUSE_SECONDS`) every operation raises the same StoreUnavailable
    without asking. After that one goes through, and the others wait for what it finds. Any success
    ends it. `name` is what messages call it. A lock that was waited for in vain counts only where
    `locks_whole`: elsewhere it is that of a few rows.
    """

    def __init__(self, inner: Runs, name: str = "the store", *, locks_whole: bool = True) -> None:
        self.inner = inner
        self._name = name
        self._locks_whole = locks_whole
        self._lock = threading.Lock()
        self._closed_until = 0.0  # on the monotonic clock; 0 while all is well
        self._reason = ""

    def run(self, op: Op[T], /) -> T:
        """Run one operation, or raise at once."""
        if self._closed_until:
            self._admit()
        since = _Since()
        asked = since.handed(op) if isinstance(op, PutObject) else op
        try:
            answer = self.inner.run(asked)
        except StoreUnavailable as error:
            self._failed(op, since, error.reason)
            raise
        except OSError:
            self._failed(op, since, "failed")
            raise
        self._closed_until = 0.0
        return cast("T", answer)

    def close(self) -> None:
        """Close what is inside, if it can be closed."""
        if hasattr(self.inner, "close"):
            self.inner.close()

    def _admit(self) -> None:
        now = time.monotonic()
        with self._lock:
            left = self._closed_until - now
            if left <= 0:
                # This one finds out. Should it never say (its process was forked, its thread
                # killed), another one tries after it.
                if self._closed_until:
                    self._closed_until = now + limits.PAUSE_SECONDS
                return
        raise StoreUnavailable(
            f"{self._name} kept its last caller waiting ({self._reason}), and is asked again in "
            f"{left:.1f} s",
            reason=self._reason,
        )

    def _failed(self, op: Op[Any], since: _Since, reason: str) -> None:
        waited = time.monotonic() - since.when
        rows = reason == "locked" and not self._locks_whole
        if since.own or rows or isinstance(op, _HEAVY):
            return
        with self._lock:
            if waited >= limits.AWAY_SECONDS or self._closed_until:
                pause = min(limits.PAUSE_SECONDS, max(1.0, waited * limits.PAUSE_FACTOR))
                self._closed_until = time.monotonic() + pause
                self._reason = reason


class _Since:
    """Since when the store has been waited for. The parts of an object are made by others, and
    take their own time; what is raised in making them is not the store's failure."""

    def __init__(self) -> None:
        self.when = time.monotonic()
        self.own = False

    def handed(self, op: PutObject) -> PutObject:
        return replace(op, parts=self._parts(op.parts))

    def _parts(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        rest = iter(parts)
        while True:
            try:
                part = next(rest)
            except StopIteration:
                break
            except BaseException:
                self.own = True
                raise
            self.when = time.monotonic()
            yield part
        self.when = time.monotonic()
