"""The operations on shares: a result that another session of its tenant may read for a time.

What may live here: operations and the rows they carry, as in `callslip.stacks.ops`. Nothing that acts.

A share is read-only and goes no further than its tenant, because payloads and keys are a tenant's.
`Get` and `List` themselves answer a shared row to its receiver, with the owner's scope in it; a
share that has ended, by its time, by `Revoke` or with its result, is to a receiver as if it had
never been.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callslip.handle import Scope, Shared
from callslip.stacks.ops import IndexOp

__all__ = ["Revoke", "Share", "Shared", "Shares"]


@dataclass(frozen=True, slots=True)
class Share(IndexOp[Shared | None]):
    """Let `user` read a result until `until`: in the session of that name, or in all of them where
    `session` is None. The receiver is of the owner's tenant.

    Only a live row of `scope` itself can be shared: a row that it received is no row of it. None,
    and nothing written, if there is none. The same result shared with the same receiver again is
    the same share, with its name, and with `until` of now on.
    """

    scope: Scope
    id: str
    name: str
    user: str
    session: str | None
    until: float
    now: float


@dataclass(frozen=True, slots=True)
class Revoke(IndexOp[int]):
    """End shares of results of `scope`, and answer how many of them had not ended by themselves:
    the one of `name`, or all of the result `id`, or with neither all that `scope` has given."""

    scope: Scope
    now: float
    name: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Shares(IndexOp[Sequence[Shared]]):
    """The shares of live results of `scope` that have not ended, oldest first, `limit` of them after
    skipping `after`; of one result only, if `id` is given."""

    scope: Scope
    now: float
    id: str | None = None
    limit: int = 100
    after: int = 0
