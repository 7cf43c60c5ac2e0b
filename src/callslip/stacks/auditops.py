"""The operations of the audit, of legal holds and of subjects, beside those of `callslip.stacks.ops`.

What may live here: operations, the rows they carry, nothing that acts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from callslip.handle import Scope
from callslip.stacks.ops import IndexOp

T_co = TypeVar("T_co", covariant=True)

FILE_ID = "file:"
"""A version of a scratch file is `file:3` in the audit, and where subjects are noted."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the audit. It never holds content: no pattern, no query, no path, no value."""

    action: str
    """`stored`, `read`, `search`, `query`, `load`, `listed`, `deleted`, `expired`, `erased` …"""
    at: float
    """Seconds since the epoch, on the store's clock."""
    actor: str = ""
    """Who did it: what `ResultStore.acting` said, else the scope's user."""
    tenant: str = ""
    user: str = ""
    session: str = ""
    id: str = ""
    """Of the result (`res_…`), the version of a file (`file:3`), the fact, the hold (`hold:2`)."""
    tool: str = ""
    outcome: str = "done"
    """`done`; `unknown` (no such id in that scope), `gone` (it was here), `denied` (by
    `authorize`), `held` (a legal hold refused it); of `erased`: `kept`, where another result has
    the very same content."""
    count: int = 1
    """Results, facts; of `stored` the bytes of the content."""
    cause: str = ""
    """What it was part of: `subject:…` of a delete by subject."""
    detail: str = ""
    n: int = 0
    """Its number: given by the index, rising."""


@dataclass(frozen=True, slots=True)
class Audited(IndexOp[T_co]):
    """An operation on the index and its entries in the audit, in one transaction: both, or neither.
    A backend that does it in several (a removal of many) writes `entries` with the last.

    `entries` makes them of the operation's answer. Besides, as long as the operation is under way,
    the index itself writes an entry for every result and file version that goes (action `expired`,
    `evicted`, `closed` or `deleted`), and for each result an `erased` one: in the same transaction
    where its payload went with it (or, with outcome `kept`, where another result still has it);
    else by the `Forget` that says that the payload's object is deleted.
    """

    op: IndexOp[T_co]
    actor: str
    at: float
    entries: Callable[[T_co], Sequence[Entry]]
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Record(IndexOp[None]):
    """Write entries that go with no other operation: what was refused."""

    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Trail(IndexOp["Sequence[Entry]"]):
    """Up to `limit` entries after the number `after`, by number. A field left None means all.

    None is ever found later before the last of them: one that is under way is waited for.

    `since` and `until` are times: `since <= at < until`.
    """

    after: int
    limit: int
    tenant: str | None = None
    user: str | None = None
    session: str | None = None
    id: str | None = None
    action: str | None = None
    cause: str | None = None
    since: float | None = None
    until: float | None = None
    pending: bool = False
    """True: not the audit's own entries, but one of action `erasing` for each result and file version
    that went and whose payload's object is yet to be deleted."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A legal hold: nothing of what it covers goes. `user` or `session` None covers all of them."""

    n: int
    tenant: str
    user: str | None
    session: str | None
    reason: str
    actor: str
    since: float

    def __str__(self) -> str:
        named = {"tenant": self.tenant, "user": self.user, "session": self.session}
        where = ", ".join(f"{name}={value!r}" for name, value in named.items() if value is not None)
        why = f" ({self.reason})" if self.reason else ""
        return f"hold {self.n}{why}; to lift it: store.release({where})"


@dataclass(frozen=True, slots=True)
class PlaceHold(IndexOp[Hold]):
    """Hold a tenant, a user or a session, there or yet to come. While it is held

    - `Sweep` and quotas leave its results, files, tombstones and facts, and what has run out of time
      can be read: it runs out when it is released. A quota that only held results exceed refuses
      the insert: StoreUnavailable, reason "over quota".
    - `Remove`, `RemoveSubject` and `ForgetFacts` that reach into it raise `LegalHold`, and nothing
      of them is done.

    The very same reach held twice is two holds.
    """

    tenant: str
    user: str | None
    session: str | None
    reason: str
    actor: str
    now: float


@dataclass(frozen=True, slots=True)
class Release(IndexOp["Sequence[Hold]"]):
    """Lift the holds of exactly that reach, and answer them. Others that cover it go on."""

    tenant: str
    user: str | None
    session: str | None


@dataclass(frozen=True, slots=True)
class Holds(IndexOp["Sequence[Hold]"]):
    """All holds, or those of a tenant, the oldest first."""

    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class HeldBy(IndexOp["Sequence[Hold]"]):
    """The holds that an operation on that tenant, user or session would reach into."""

    tenant: str
    user: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """What `RemoveSubject` removed: results (tombstones are not counted), files, facts."""

    results: int = 0
    files: int = 0
    facts: int = 0
    more: bool = False
    """True if there is more to remove."""


@dataclass(frozen=True, slots=True)
class RemoveSubject(IndexOp[Removed]):
    """Remove up to `limit` results, tombstones and file versions of a tenant that are about a
    subject, whatever session they are in, and with the last of them the facts. No trace remains of
    them but in the audit. Raises `LegalHold`, and removes nothing, if any of them is held."""

    tenant: str
    subject: str
    now: float
    limit: int
    cause: str = ""
    """What the audit calls it: `subject:` and a digest."""


@dataclass(frozen=True, slots=True)
class SubjectsOf(IndexOp["tuple[str, ...]"]):
    """The subjects of a result, or of a version of a file (`file:3`), in order."""

    scope: Scope
    id: str


@dataclass(frozen=True, slots=True)
class Holders(IndexOp["Sequence[tuple[Scope, str, str]]"]):
    """(scope, id, tool) of up to `limit` results that have the tenant's payload of that digest."""

    tenant: str
    digest: bytes
    limit: int
