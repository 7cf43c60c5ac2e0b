"""Flows of the audit, of legal holds and of subjects: read back, proven, removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from callslip.errors import StoreUnavailable
from callslip.stacks.auditops import Entry, RemoveSubject, Trail
from callslip.stacks.ops import Flow, do
from callslip.stacks.upkeep import drain
from callslip.stacks.writing import subject_cause

__all__ = ["Proof", "proof", "remove_subject", "walk"]

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Proof:
    """What the audit has of a deletion: the results and files that went, by whom and when, and of
    which of them nothing is left."""

    deleted: tuple[Entry, ...]
    """One for each result, file version and fact, in order."""
    erased: tuple[Entry, ...]
    """Those whose payload is gone, or (outcome `kept`) stays because another result has the very
    same content. A fact goes whole with its entry in `deleted`, and has none here."""
    pending: tuple[Entry, ...]
    """Those of `deleted` whose object is yet to be deleted: the payload store is away, or `gc` has
    not been there."""

    @property
    def complete(self) -> bool:
        """True if something was deleted, and nothing of it is left to erase."""
        return bool(self.deleted) and not self.pending


def walk(trail: Trail, each: Callable[[Entry], object]) -> Flow[int]:
    """Give all entries that a `Trail` asks for to a function, in order; answer how many."""
    count = 0
    while True:
        entries = yield from do(trail)
        for entry in entries:
            each(entry)
        count += len(entries)
        if len(entries) < trail.limit:
            return count
        trail = replace(trail, after=entries[-1].n)


def proof(trail: Trail) -> Flow[Proof]:
    """The proof of the deletions among those entries."""
    found: list[Entry] = []
    yield from walk(trail, found.append)
    # What had run out and was yet to be swept went with a delete by subject all the same.
    verbs = ("deleted", "closed") if trail.cause is None else ("deleted", "closed", "expired")
    # What a whole operation did is told beside, without an id.
    deleted = [
        each for each in found if each.action in verbs and each.id and each.outcome == "done"
    ]
    erased = [each for each in found if each.action == "erased"]
    # Asked of the index, not counted from the entries: a result may have gone before as well (and
    # its object with it, or not yet), by a quota or its time.
    left: set[tuple[str, str, str]] = set()
    waiting = replace(trail, cause=None, pending=True)
    yield from walk(waiting, lambda each: left.add((each.session, each.user, each.id)))
    pending = [each for each in deleted if (each.session, each.user, each.id) in left]
    return Proof(tuple(deleted), tuple(erased), tuple(pending))


def remove_subject(tenant: str, subject: str, now: float) -> Flow[int]:
    """Remove all that a tenant has about a subject, and the objects that only it referred to; how
    many results, versions of files and facts went."""
    gone = 0
    cause = yield from subject_cause(tenant, subject)
    while True:
        did = yield from do(RemoveSubject(tenant, subject, now, _BATCH, cause))
        gone += did.results + did.files + did.facts
        if not did.more:
            break
    try:
        yield from drain(now)
    except StoreUnavailable:
        return gone  # the objects are on the garbage list, and pending in the proof
    return gone
