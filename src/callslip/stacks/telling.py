"""A flow whose operations are told to the audit, each in its own transaction.

What may live here: which operation makes which entries, and the flow that sees to it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from callslip.errors import LegalHold
from callslip.handle import Scope
from callslip.stacks import auditops, fileops, keyops, memoryops, ops, shareops
from callslip.stacks.auditops import FILE_ID, Audited, Entry, Record
from callslip.stacks.flows import through
from callslip.stacks.ops import Flow, Op

__all__ = ["Teller", "entry_of", "told", "told_of"]

T = TypeVar("T")
Tells = Callable[[Any, Any, Entry], Sequence[Entry]]

_TOLD_BY_ITSELF = frozenset({"delete", "share"})
"""What a look-up is for that another operation follows, which is told."""

_SAID = {"list": "listed", "share": "shared", "delete": "deleted"}
"""What the audit calls an action of `authorize=` that has another name there."""


def told(flow: Flow[T], teller: Teller) -> Flow[T]:
    """The same flow; what it stores, shows or removes is in the audit, and what a hold refused."""

    def each(op: Op[Any]) -> Flow[Any]:
        try:
            result = yield teller.audited(op)
            if type(op) in _AFTER:
                yield Record(_AFTER[type(op)](op, result, teller.blank(op)))
        except LegalHold:
            yield Record(teller.refused(op))
            raise
        return result

    return through(flow, each)


@dataclass(frozen=True, slots=True)
class Teller:
    """Whose doing it is; "" for the user of each operation's own scope. `now` is the store's clock.

    `asks`: an `authorize=` hook decides over look-ups, so they are told once it has (`entry_of`).
    """

    actor: str
    now: Callable[[], float] = field(repr=False)
    asks: bool = False

    def audited(self, op: Op[Any]) -> Op[Any]:
        """The operation with its entries, if it is one to be told of."""
        tells = _TELLS.get(type(op))
        if tells is None or (self.asks and isinstance(op, ops.Get)):
            return op
        if getattr(op, "action", None) == "":
            return op
        blank, known = self.blank(op), cast("ops.IndexOp[Any]", op)
        return Audited(
            known, blank.actor, blank.at, lambda answer: tells(op, answer, blank), blank.cause
        )

    def blank(self, op: Op[Any]) -> Entry:
        """What every entry of an operation has: when, who, and whose it is."""
        at = getattr(op, "now", None) or self.now()
        entry = entry_of("", whose(op), self.actor, at, getattr(op, "cause", ""))
        # What is done to a user's results from the store's side, the user did not do.
        return entry if _by_its_user(op) else replace(entry, actor=self.actor)

    def refused(self, op: Op[Any]) -> list[Entry]:
        """What is told of an operation that a legal hold refused."""
        verb = getattr(op, "why", "deleted")
        id = getattr(op, "id", None) or ""
        return [_made(self.blank(op), action=verb, id=id, outcome="held", count=0)]


def entry_of(action: str, scope: Scope, actor: str, at: float, cause: str = "") -> Entry:
    """An entry about a scope; by its user, if nobody else is named."""
    return Entry(
        action=_SAID.get(action, action),
        at=at,
        actor=actor or scope.user,
        tenant=scope.tenant,
        user=scope.user,
        session=scope.session,
        cause=cause,
    )


def _by_its_user(op: Op[Any]) -> bool:
    if isinstance(op, ops.Remove):
        return op.tombstones
    return not isinstance(op, auditops.PlaceHold | auditops.Release | auditops.RemoveSubject)


def looked_up(found: object, entry: Entry) -> Entry:
    """The entry of a look-up by id, by what it found."""
    if isinstance(found, ops.Result):
        shared = found.scope != Scope(entry.session, entry.user, entry.tenant)
        return _made(entry, tool=found.tool, detail="shared" if shared else "")
    if isinstance(found, ops.Tombstone):
        return _made(entry, tool=found.tool, outcome="gone", count=0)
    return _made(entry, outcome="unknown", count=0)


def told_of(action: str, found: object, entry: Entry, may: bool = True) -> Sequence[Entry]:
    """The entries of a look-up by id that is made for `action`, as `authorize=` calls it; `may` is
    what that said of it. None where an operation follows that is told itself."""
    made = looked_up(found, entry)
    refused = found is not None and not may
    if action in _TOLD_BY_ITSELF and not refused and isinstance(found, ops.Result):
        if action == "delete" or not made.detail:
            return ()
        refused = True  # only its owner shares it on
    return [_made(made, outcome="denied", count=0) if refused else made]


def whose(op: Op[Any]) -> Scope:
    """The scope that an operation is about, as far as it says so."""
    scope = getattr(op, "scope", None)
    if scope is None and isinstance(op, ops.Insert):
        scope = op.result.scope
    if isinstance(scope, Scope):
        return scope
    namespace = getattr(op, "namespace", None)
    if namespace is None and isinstance(which := getattr(op, "which", None), memoryops.Which):
        namespace = which.namespace
    if namespace is not None:
        tenant, user = (*namespace, "", "")[:2]
        return Scope("", user, tenant)
    names = (getattr(op, name, None) or "" for name in ("session", "user", "tenant"))
    return Scope(*names)


def _made(entry: Entry, **changes: Any) -> Entry:
    return replace(entry, **changes)


# --- which operation makes which entries ----------------------------------------------------------


def _insert(op: ops.Insert, answer: ops.Inserted | None, entry: Entry) -> list[Entry]:
    if answer is None:
        return []
    row, again = answer.result, "" if answer.created else "again"
    return [
        _made(entry, action="stored", id=row.id, tool=row.tool, count=row.shape.size, detail=again)
    ]


def _get(op: ops.Get, answer: object, entry: Entry) -> Sequence[Entry]:
    said = _SAID.get(op.action, op.action)
    return told_of(op.action, answer, _made(entry, action=said, id=op.id))


def _list(op: ops.List, answer: tuple[Sequence[object], int], entry: Entry) -> list[Entry]:
    return [_made(entry, action=op.action, count=len(answer[0]))]


def _remove(op: ops.Remove, answer: int, entry: Entry) -> list[Entry]:
    if op.id is not None:
        # One that was here is told by the index.
        if answer:
            return []
        return [_made(entry, action=op.why, id=op.id, outcome="unknown", count=0)]
    reach = "session" if op.session is not None else "user" if op.user is not None else "tenant"
    return [_made(entry, action=op.why, count=answer, detail=reach)]


def _remove_subject(
    op: auditops.RemoveSubject, answer: auditops.Removed, entry: Entry
) -> list[Entry]:
    gone = answer.results + answer.files + answer.facts
    return [_made(entry, action="deleted", count=gone, detail="subject")]


def _write_file(op: fileops.WriteFile, answer: fileops.Wrote | None, entry: Entry) -> list[Entry]:
    if answer is None or answer.outcome != "written" or answer.file is None:
        return []
    id = f"{FILE_ID}{answer.file.version}"
    return [_made(entry, action="stored", id=id, count=op.shape.size)]


def _read_file(op: fileops.ReadFile, answer: fileops.File | None, entry: Entry) -> list[Entry]:
    if answer is None:
        return [_made(entry, action="read", id=FILE_ID, outcome="unknown", count=0)]
    return [_made(entry, action="read", id=f"{FILE_ID}{answer.version}")]


def _list_files(op: object, answer: tuple[Sequence[object], object], entry: Entry) -> list[Entry]:
    return [_made(entry, action="listed", id=FILE_ID, count=len(answer[0]))]


def _remembered(op: object, answer: memoryops.Remembered | None, entry: Entry) -> list[Entry]:
    if answer is None:
        return [_made(entry, action="remembered", id=op.id, outcome="unknown", count=0)]  # type: ignore[attr-defined]
    return [_made(entry, action="remembered", id=answer.fact.id, detail=answer.outcome)]


def _recalled(op: object, answer: Any, entry: Entry) -> list[Entry]:
    if isinstance(answer, tuple) and len(answer) == 2:
        answer = answer[0]  # facts, and how many there are in all
    if answer is None or isinstance(answer, memoryops.Fact):
        id = answer.id if answer else getattr(op, "id", None) or ""
        outcome = "done" if answer else "unknown"
        return [_made(entry, action="recalled", id=id, outcome=outcome, count=int(bool(answer)))]
    id = op.id if isinstance(op, memoryops.PastOf) else ""
    return [_made(entry, action="recalled", id=id, count=len(answer))]


def _forgot(op: memoryops.ForgetFacts, answer: int, entry: Entry) -> list[Entry]:
    # Each that was here is told by the index.
    outcome = "done" if answer else "unknown"
    return [_made(entry, action="forgot", id=op.id or "", outcome=outcome, count=answer)]


def _held(op: auditops.PlaceHold, answer: auditops.Hold, entry: Entry) -> list[Entry]:
    return [_made(entry, action="held", id=f"hold:{answer.n}", detail=answer.reason)]


def _released(op: auditops.Release, answer: Sequence[auditops.Hold], entry: Entry) -> list[Entry]:
    if not answer:
        return [_made(entry, action="released", outcome="unknown", count=0)]
    return [
        _made(entry, action="released", id=f"hold:{each.n}", detail=each.reason) for each in answer
    ]


def _shared(op: shareops.Share, answer: object, entry: Entry) -> list[Entry]:
    outcome = "done" if answer is not None else "unknown"
    where = "all sessions" if op.session is None else f"session {op.session}"
    detail = f"{op.name} with {where} of user {op.user} until {op.until:.0f}"
    return [_made(entry, action="shared", id=op.id, outcome=outcome, detail=detail)]


def _revoked(op: shareops.Revoke, answer: int, entry: Entry) -> list[Entry]:
    return [_made(entry, action="revoked", id=op.id or "", count=answer, detail=op.name or "")]


def _nothing(op: object, answer: object, entry: Entry) -> list[Entry]:
    return []  # the index tells what goes


def _shredded(op: keyops.Shred, answer: int, entry: Entry) -> list[Entry]:
    return [_made(entry, action="shredded", count=answer)]


_TELLS: dict[type, Tells] = {
    ops.Insert: _insert,
    ops.Get: _get,
    ops.List: _list,
    ops.Remove: _remove,
    ops.Sweep: _nothing,
    auditops.RemoveSubject: _remove_subject,
    auditops.PlaceHold: _held,
    auditops.Release: _released,
    fileops.WriteFile: _write_file,
    fileops.ReadFile: _read_file,
    fileops.ListFiles: _list_files,
    shareops.Share: _shared,
    shareops.Revoke: _revoked,
    memoryops.Remember: _remembered,
    memoryops.Revise: _remembered,
    memoryops.ForgetFacts: _forgot,
    memoryops.SweepFacts: _nothing,
    **dict.fromkeys(
        (
            memoryops.GetFact,
            memoryops.PastOf,
            memoryops.ListFacts,
            memoryops.FindFacts,
            memoryops.NearFacts,
        ),
        _recalled,
    ),
}
_AFTER: dict[type, Tells] = {keyops.Shred: _shredded}
"""What is done beside the index's own transaction: told by one that follows."""
