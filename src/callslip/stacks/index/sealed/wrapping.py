"""Rows of keys under the master key: wrapped, tried out before anything relies on them, opened."""

from __future__ import annotations

import json
from collections.abc import Callable

from callslip.errors import SettingsError, StoreUnavailable
from callslip.stacks.index.sealed.cipher import Box, Unopened, fresh, from_token, to_token
from callslip.stacks.index.sealed.master import Master
from callslip.stacks.keyops import AddKey, KeyRow
from callslip.stacks.ops import Runs

__all__ = ["Anew", "Wrapping"]


class Anew(StoreUnavailable):
    """The index was emptied since it was looked at. Nothing was done; it may be done again."""


class Wrapping:
    """What a row holds, bound to its name and sealed with a key that the master key wraps."""

    def __init__(self, master: Master, clock: Callable[[], float]) -> None:
        self._master = master
        self._clock = clock

    def wrapped(self, name: str, blob: bytes) -> KeyRow:
        """A row of that name. Raises `SettingsError` where the master key does not give back what it
        wrapped: whatever such a row replaced or sealed would be lost."""
        key = fresh()
        by, wrapped = self._master.wrap(key)
        if self._master.unwrap(by, wrapped) != key:
            raise SettingsError("keys=: unwrap() does not give back the key that wrap() was given")
        sealed = Box(key).seal(blob, name.encode())
        told = {"by": by, "key": to_token(wrapped), "box": to_token(sealed)}
        return KeyRow(name, json.dumps(told).encode(), self._clock())

    def added(
        self, index: Runs, name: str, blob: bytes, beside: KeyRow | None = None
    ) -> tuple[KeyRow, bytes]:
        """Add a row, or take the one that another was first with; and what is in it.

        Raises `SettingsError` where the keys, as they are now, do not open the row that is `beside`:
        a key file that was exchanged for another would seal what its store's own cannot open.
        """
        own = self.wrapped(name, blob)  # which reads the file
        if beside is not None:
            self.opened(beside)
        row = index.run(AddKey(own))
        assert row is not None
        return row, blob if row.wrapped == own.wrapped else self.opened(row)

    def opened(self, row: KeyRow) -> bytes:
        """What a row holds."""
        try:
            held = json.loads(row.wrapped)
            key = self._master.unwrap(held["by"], from_token(held["key"]))
            return Box(key).open(from_token(held["box"]), row.name.encode())
        except (Unopened, ValueError, KeyError) as error:
            if isinstance(error, SettingsError):
                raise
            raise SettingsError(
                "keys=: a wrapped key does not open: the keys file (or table) beside the index was "
                "changed, or is damaged, or keys= is not what it was sealed with"
            ) from None
