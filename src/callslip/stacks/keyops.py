"""The operations on wrapped keys, beside those of `callslip.stacks.ops`: small rows, by name.

Kept apart from what they open, so that a backup of the index holds no key: SQLite has a file of
their own for them, PostgreSQL a table of their own. What is in a row, and what seals it, is for
`callslip.stacks.index.sealed` to know.

What may live here: operations and the rows they carry, nothing that acts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from callslip.stacks.ops import IndexOp

__all__ = [
    "AddKey",
    "DropKeys",
    "GetKey",
    "KeyRow",
    "ListKeys",
    "Rewrap",
    "SealMark",
    "Shred",
    "SwapKey",
]


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key, wrapped by another one."""

    name: str
    """ASCII without blanks."""
    wrapped: bytes = field(repr=False)
    made_at: float
    """Seconds since the epoch, by the clock of who made it."""


@dataclass(frozen=True, slots=True)
class GetKey(IndexOp["KeyRow | None"]):
    """The row of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class AddKey(IndexOp["KeyRow | None"]):
    """Add a row, unless one of its name is there; answer the one that is: the first decides.

    With `under` only while that row is there, just so: else None, and nothing is added. Who destroys
    that row with all `below` it leaves none that was added so, and who has exchanged what it holds
    finds all that ever will be by what it held before."""

    row: KeyRow
    under: KeyRow | None = None


@dataclass(frozen=True, slots=True)
class SwapKey(IndexOp[bool]):
    """Wrap a key anew: True if the row of that name was still `old`, and is `new` now."""

    name: str
    old: bytes = field(repr=False)
    new: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class DropKeys(IndexOp[int]):
    """Destroy rows by name and time, so that nothing of them is left in the file; answer how many
    went. One of that name that was made at another time stays: it is another key's.

    With `below`, all whose names begin with it go as well, if any of the others went."""

    names: Sequence[tuple[str, float]]
    below: str = ""


@dataclass(frozen=True, slots=True)
class ListKeys(IndexOp["Sequence[KeyRow]"]):
    """Up to `limit` rows whose names begin with `prefix`, by name, after the name `after`."""

    prefix: str
    after: str
    limit: int


@dataclass(frozen=True, slots=True)
class SealMark(IndexOp["bytes | None"]):
    """What the index says of the keys that it is sealed with, None if it is in the clear. With
    `mark`, that is recorded if nothing is: the first to ask so decides for all."""

    mark: bytes | None = None


@dataclass(frozen=True, slots=True)
class Shred(IndexOp[int]):
    """Destroy the keys of a tenant, a user or a session of which the index holds nothing any more;
    answer how many. Only an index with keys runs it."""

    tenant: str
    user: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Rewrap(IndexOp[int]):
    """Wrap the tenants' keys under the current master key, and with `sessions` those of sessions
    under a new key of their tenant; answer how many. Only an index with keys runs it."""

    sessions: bool = False
