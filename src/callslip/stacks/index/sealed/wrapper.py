"""The index around the index: seals what goes in, opens what comes out, and keeps the keys."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

from callslip.errors import LegalHold, PayloadDamaged
from callslip.handle import Scope
from callslip.limits import KEYS_IDLE_SECONDS
from callslip.stacks import auditops, fileops, ops, shareops
from callslip.stacks.checkops import CheckIndex
from callslip.stacks.index.sealed.master import Master
from callslip.stacks.index.sealed.recalling import Recalling
from callslip.stacks.index.sealed.results import Dead, Results
from callslip.stacks.index.sealed.ring import RUNS, Ring, Stale
from callslip.stacks.index.sealed.step import Names, Step
from callslip.stacks.index.sealed.trail import Trails
from callslip.stacks.index.sealed.wrapping import Anew
from callslip.stacks.keyops import AddKey, Rewrap, Shred
from callslip.stacks.memoryops import ForgetFacts, ListFacts, Remembered, Which

T = TypeVar("T")

_TRIES = 4
"""How often an operation is done whose keys were destroyed meanwhile."""
_UNDONE_SECONDS = 0.05
_STORES = (ops.Insert, ops.FindPayload, fileops.WriteFile)

_AS_THEY_ARE = (
    ops.PayloadPlace,
    ops.Sweep,
    ops.Garbage,
    ops.Forget,
    ops.KnownKeys,
)
"""What holds no more than keys of objects, numbers and times."""


class Sealed:
    """An index of which the one inside, `inner`, stores nothing that can be read without the keys
    that `master` unwraps. Errors are those of the index, and `SettingsError` for a wrong key."""

    def __init__(self, inner: ops.Runs, master: Master) -> None:
        self.inner = inner
        self.ring = Ring(inner, master)
        if hasattr(inner, "anew"):
            inner.anew = self._anew
        names = Names(self.ring)
        results, trails = Results(names, inner), Trails(names)
        self._names = names
        self._trails = trails
        self._memory = Recalling(names, inner)
        self._steps: dict[type, Callable[[Any], Step]] = {
            ops.Insert: results.insert,
            ops.Replace: results.replace,
            ops.FindPayload: results.find_payload,
            ops.Get: results.get,
            ops.List: results.list,
            ops.Remove: results.remove,
            ops.Count: results.count,
            ops.Sessions: results.sessions,
            ops.Repair: Step,
            fileops.WriteFile: results.write_file,
            fileops.ReadFile: results.read_file,
            fileops.ListFiles: results.list_files,
            fileops.FindWrite: results.find_write,
            auditops.Audited: self._audited,
            auditops.Record: trails.record,
            auditops.PlaceHold: trails.place_hold,
            auditops.Release: trails.reach,
            auditops.HeldBy: trails.reach,
            auditops.Holds: trails.holds,
            auditops.RemoveSubject: trails.remove_subject,
            auditops.SubjectsOf: trails.subjects_of,
            auditops.Holders: trails.holders,
            shareops.Share: trails.share,
            shareops.Revoke: trails.revoke,
            shareops.Shares: trails.shares,
            **self._memory.steps,
            CheckIndex: lambda op: Step(op, lambda facts: replace(facts, sealed=True)),
            **dict.fromkeys(_AS_THEY_ARE, Step),
        }
        self._whole: dict[type, Callable[[Any], Any]] = {
            ops.Secret: lambda op: self.ring.tenant(op.tenant).digests,
            ops.Payloads: results.payloads,
            Shred: self._shred,
            Rewrap: lambda op: self.ring.rewrap(op.sessions),
            **self._memory.whole,
        }

    def run(self, op: ops.Op[T], /) -> T:
        """Run one operation. One that is not known here is refused: it might store in the clear."""
        for turn in range(1, _TRIES):
            try:
                return self._run(op)
            except (Anew, Stale):  # nothing of it was done, or is left
                continue
            except PayloadDamaged:
                if not isinstance(getattr(op, "op", op), _STORES):
                    raise
                # Or another worker is about to undo what it sealed with keys that were destroyed.
                time.sleep(turn * _UNDONE_SECONDS)
            except Dead as dead:
                scope = dead.scope
                self._remove(op, scope.tenant, scope.user, scope.session, dead.id)
        return self._run(op)

    def _run(self, op: ops.Op[T]) -> T:
        self.ring.root()
        whole = self._whole.get(type(op))
        if whole is not None:
            return cast("T", whole(op))
        if isinstance(op, auditops.Audited) and type(op.op) in self._whole:
            return cast("T", self._told(op))
        if isinstance(op, auditops.Trail):
            return cast("T", self._trail(op))
        step = self._step(op)
        try:
            answer = step.open(self.inner.run(step.op))
        except LegalHold:
            raise self._held(op) from None
        self._after(op, step, answer)
        # One, or some of them with more beside.
        missed = not answer[0] if isinstance(answer, tuple) and answer else answer is None
        looked = step.looked if missed else None
        if looked is not None and looked.made_at and not self.ring.stands(looked):
            raise Stale
        return cast("T", answer)

    def close(self) -> None:
        """Close the index inside, and forget the keys of tenants and sessions."""
        self.ring.clear()
        if hasattr(self.inner, "close"):
            self.inner.close()

    def _step(self, op: Any) -> Step:
        step = self._steps.get(type(op))
        if step is None:
            raise TypeError(f"an index with keys does not run {type(op).__name__}")
        while True:
            root = self.ring.root()
            made = step(op)
            if self.ring.root() is root:  # else it is of two, one of which is gone
                return made

    def _anew(self) -> None:
        """The index inside is about to be made anew, and what is under way is sealed for the one
        before."""
        self.ring.forget()
        raise Anew("the index was made anew while it was used", reason="failed")

    # --- the audit ----------------------------------------------------------------------------------

    def _audited(self, op: auditops.Audited[Any]) -> Step:
        return self._trails.audited(op, self._step(op.op))

    def _told(self, op: auditops.Audited[Any]) -> Any:
        """An operation that takes several steps, and then its entries."""
        answer = self.run(op.op)
        entries = op.entries(answer)
        if entries:
            self.run(auditops.Record(entries))
        return answer

    def _trail(self, op: auditops.Trail) -> Any:
        step = self._trails.trail(op)
        if step is not None:
            return step.open(self.inner.run(step.op))
        # Users of every tenant: tokens differ by tenant, so the opened entries tell.
        found: list[auditops.Entry] = []
        whole = replace(op, user=None, session=None)
        while len(found) < op.limit:
            entries = self._trail(whole)
            found += [
                entry
                for entry in entries
                if op.user in (None, entry.user) and op.session in (None, entry.session)
            ]
            if len(entries) < whole.limit:
                break
            whole = replace(whole, after=entries[-1].n)
        return found[: op.limit]

    def _held(self, op: Any) -> LegalHold:
        """What holds it, in its names."""
        op = op.op if isinstance(op, auditops.Audited) else op
        tenant = getattr(op, "tenant", None)
        if isinstance(tenant, str):
            reach = auditops.HeldBy(tenant, getattr(op, "user", None), getattr(op, "session", None))
            for hold in self.run(reach):
                return LegalHold(f"kept by {hold}")
        return LegalHold("kept by a legal hold; store.holds() tells which")

    # --- keys that go -------------------------------------------------------------------------------

    def _after(self, op: Any, step: Step, answer: Any) -> None:
        if step.key is not None and not self.ring.stands(step.key):
            self._undo(op, step, answer)
            raise Stale
        inner = op.op if isinstance(op, auditops.Audited) else op
        if isinstance(inner, ops.Remove) and inner.id is None and not inner.tombstones:
            self._shred(Shred(inner.tenant, inner.user, inner.session), op)
        elif isinstance(inner, ops.Repair) and inner.mend:
            for tenant in list(self.ring.tenants()):
                if tenant.token != self.ring.token("", RUNS):
                    self.ring.shred(tenant.name, None, None, KEYS_IDLE_SECONDS)

    def _undo(self, op: Any, step: Step, answer: Any) -> None:
        """What was just sealed cannot be opened again: its key was destroyed meanwhile."""
        sealed: Any = step.op.op if isinstance(step.op, auditops.Audited) else step.op
        scope: Scope | None = getattr(getattr(sealed, "result", sealed), "scope", None)
        id: str | None = answer.result.id if isinstance(answer, ops.Inserted) else ""
        if isinstance(answer, Remembered):
            self.inner.run(ForgetFacts(sealed.namespace, answer.fact.id))
        if not self.ring.rooted():
            # With the keys the whole index went: only we know of such a session, and an empty one
            # would stand in the way of who seals the index anew.
            id = None
        if scope is None or id == "":
            return
        if id:
            # Another may have stored it since, under the same id and with a key that is there.
            stood = self.inner.run(ops.Get(scope, id, 0.0, ""))
            if not isinstance(stood, ops.Result) or stood.preview != sealed.result.preview:
                return
        self._remove(op, scope.tenant, scope.user, scope.session, id)

    def _remove(
        self,
        op: Any,
        tenant: str,
        user: str | None = None,
        session: str | None = None,
        id: str | None = None,
    ) -> None:
        """Remove what nobody can open, by the way of an operation: it is told as that is."""
        made: ops.IndexOp[int] = ops.Remove(
            "deleted", 0.0, tenant, user, session, id, tombstones=False
        )
        if isinstance(op, auditops.Audited):
            store = self._names.store
            actor, cause = store.token(op.actor), store.token(op.cause)
            made = auditops.Audited(made, actor, op.at, lambda answer: (), cause)
        self.inner.run(made)

    def _shred(self, op: Shred, by: Any = None) -> int:
        gone, late = self.ring.shred(op.tenant, op.user, op.session)
        for scope in late:  # what came in between went with the rest
            self._remove(by, scope.tenant, scope.user, scope.session)
        if op.user is None and op.session is None:
            tenant = self._names.anew(op.tenant)
            if tenant.made_at and not self._holds_any(op.tenant):
                row, went = self.ring.destroy_tenant(tenant)
                gone += went
                try:
                    if went and self._holds_any(op.tenant):
                        self._remove(by, tenant.token)
                except LegalHold:  # placed in between, and in names of these keys
                    self.inner.run(AddKey(row))
        return gone

    def _holds_any(self, tenant: str) -> bool:
        token = self.ring.token(tenant)
        held = self.inner.run(ops.Count(token))
        if held.results or held.tombstones or held.files:
            return True
        if self.inner.run(auditops.HeldBy(token)):
            return True
        facts = ListFacts(Which((token,), deep=True), 0, 0, 0.0)
        return self.inner.run(facts)[1] > 0
