"""Keys that were unwrapped, kept in memory for a while."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, TypeVar

from callslip.limits import KEYS_CACHED

T = TypeVar("T")


class Known:
    """Keys by the names of their rows, each for so many seconds at the most. For many threads."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: OrderedDict[str, tuple[Any, float]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str) -> Any:
        """The key of that name; None if it is not known, or was for too long."""
        with self._lock:
            kept = self._kept.get(name)
            if kept is None:
                return None
            if kept[1] < time.monotonic():
                del self._kept[name]
                return None
            self._kept.move_to_end(name)
            return kept[0]

    def keep(self, name: str, value: T) -> T:
        """Know it from now on; answer it."""
        with self._lock:
            self._kept[name] = value, time.monotonic() + self._seconds
            while len(self._kept) > KEYS_CACHED:
                self._kept.popitem(last=False)
        return value

    def drop(self, names: Sequence[str]) -> None:
        """Know those no longer."""
        with self._lock:
            for name in names:
                self._kept.pop(name, None)

    def clear(self) -> None:
        """Know none any longer."""
        with self._lock:
            self._kept.clear()
