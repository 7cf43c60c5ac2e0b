"""What is kept in memory of what was read lately: bounded, and safe to share between threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from callslip.limits import CHUNKS_CACHED, DERIVED_CACHED_BYTES, DIRECTORIES_CACHED
from callslip.stacks.directory import Chunk, Directory
from callslip.stacks.ops import Payload

__all__ = ["Caches", "Key", "key_of"]

K = TypeVar("K")
V = TypeVar("V")
Key = tuple[bytes, str | None, int, int]
"""A payload: its digest, where it is, its packed size and its trailer's place."""


def key_of(payload: Payload) -> Key:
    """What tells a payload from any other that is read with the same caches."""
    return payload.digest, payload.key, payload.packed, payload.trailer


class _Recent(Generic[K, V]):
    """The last things that were used, `room` of them, or what weighs so much together. Safe to
    share between threads."""

    def __init__(self, room: int, weigh: Callable[[V], int] = lambda value: 1) -> None:
        self._room = room
        self._weigh = weigh
        self._weight = 0
        self._items: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._items.get(key)
            if found is not None:
                self._items.move_to_end(key)
            return found

    def put(self, key: K, value: V) -> None:
        with self._lock:
            if key in self._items:
                self._weight -= self._weigh(self._items.pop(key))
            self._items[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._room:
                self._weight -= self._weigh(self._items.popitem(last=False)[1])

    def drop(self, wanted: Callable[[K], bool]) -> None:
        with self._lock:
            for key in [key for key in self._items if wanted(key)]:
                self._weight -= self._weigh(self._items.pop(key))


class Caches:
    """What a store keeps of what was read lately: directories, and decompressed chunks.

    It holds `chunks` × 128 KiB at the most. What it returns was checked when it was read.
    """

    def __init__(self, directories: int = DIRECTORIES_CACHED, chunks: int = CHUNKS_CACHED) -> None:
        self.directories: _Recent[Key, Directory] = _Recent(directories)
        self.chunks: _Recent[tuple[Key, int], Chunk] = _Recent(chunks)
        self.derived: _Recent[tuple[Key, str], Payload] = _Recent(
            DERIVED_CACHED_BYTES, lambda payload: payload.packed
        )
        self.views: _Recent[tuple[Key, bool], Any] = _Recent(
            DERIVED_CACHED_BYTES, lambda seeing: seeing.weight
        )
        """What of a payload may be seen (`callslip.stacks.hiding`)."""

    def clear(self) -> None:
        """Drop all of it."""
        for kept in (self.derived, self.views, self.directories, self.chunks):
            kept.drop(lambda key: True)

    def forget(self, digest: bytes) -> None:
        """Drop what is kept of one payload, so that deleted content does not stay in memory."""
        self.derived.drop(lambda key: key[0][0] == digest)
        self.views.drop(lambda key: key[0][0] == digest)
        self.directories.drop(lambda key: key[0] == digest)
        self.chunks.drop(lambda key: key[0][0] == digest)
