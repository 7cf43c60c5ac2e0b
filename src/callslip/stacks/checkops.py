"""The operations that ask an index about itself, beside those of `callslip.stacks.ops`.

What may live here: operations, the facts they answer, nothing that acts.
"""

from __future__ import annotations

from dataclasses import dataclass

from callslip.stacks.ops import IndexOp


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What an index says of itself."""

    server: str
    """Which database, with its version: `SQLite 3.45.1`."""
    schema: int
    """The version of the tables; an index that is used has the newest one."""
    clock: float | None
    """Seconds since the epoch by the database's own clock; None where that is this machine's."""
    sealed: bool = False
    """Whether what is stored is sealed; then the master key at hand has opened the store's own."""


@dataclass(frozen=True, slots=True)
class CheckIndex(IndexOp[IndexFacts]):
    """Whether the index can be read and, with `write`, written: a change is made and taken back.

    Raises `StoreUnavailable` like any other operation, and within the same bounds."""

    write: bool
