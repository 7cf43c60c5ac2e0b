"""The audit, legal holds, subjects and shares: names sealed on their way in, opened on their way out.

What the audit tells of who did what, and why, is sealed for the store: it outlives a tenant whose keys
are destroyed. Names of users and sessions go with their tenant's keys; what is left of them are
tokens, still equal where they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from callslip.handle import Scope
from callslip.stacks import auditops, shareops
from callslip.stacks.auditops import Entry, Hold
from callslip.stacks.index.sealed.cipher import Unopened
from callslip.stacks.index.sealed.holders import Tenant
from callslip.stacks.index.sealed.step import Names, Step, maybe


class Trails:
    """The steps of `callslip.stacks.auditops` and `shareops`."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._ring = names.ring

    # --- the audit ----------------------------------------------------------------------------------

    def audited(self, op: auditops.Audited[Any], step: Step) -> Step:
        """An operation with its entries: these are made of the opened answer, and sealed."""
        last: list[Any] = []

        def opened(answer: Any) -> Any:
            # For the entries, and then for who asked: the same rows, which are opened once.
            if not last or last[0] is not answer:
                last[:] = answer, step.open(answer)
            return last[1]

        def entries(answer: Any) -> Sequence[Entry]:
            return self.sealed(op.entries(opened(answer)))

        store = self._names.store
        sealed = auditops.Audited(
            step.op, store.token(op.actor), op.at, entries, store.token(op.cause)
        )
        return Step(sealed, opened, step.key, step.looked)

    def record(self, op: auditops.Record) -> Step:
        return Step(auditops.Record(self.sealed(op.entries)))

    def sealed(self, entries: Sequence[Entry]) -> list[Entry]:
        """Entries as they stand in the index."""
        return [self._sealed(entry) for entry in entries]

    def _sealed(self, entry: Entry) -> Entry:
        tenant, store = self._names.there(entry.tenant), self._names.store
        names = tenant.names
        return replace(
            entry,
            actor=store.token(entry.actor),
            tenant=tenant.token,
            user=names.token(entry.user),
            session=names.token(entry.session),
            tool=names.token(entry.tool),
            cause=store.token(entry.cause),
            detail=store.token(entry.detail),
        )

    def _opened(self, entry: Entry, named: str | None) -> Entry:
        """An entry again; of a tenant whose keys were destroyed as far as who asks `named` it."""
        store = self._names.store
        tenant = self._names.of_token(entry.tenant)
        if tenant is None and named:
            tenant = self._names.there(named)
        known = {
            "actor": _text(store, entry.actor),
            "cause": _text(store, entry.cause),
            "detail": _text(store, entry.detail),
        }
        if entry.tenant == self._ring.token(""):
            # Of no tenant: it may have no keys, and its name is none.
            tenant = self._names.there("")
        if tenant is not None:
            names = tenant.names
            known |= {
                "tenant": tenant.name,
                "user": _text(names, entry.user),
                "session": _text(names, entry.session),
                "tool": _text(names, entry.tool),
            }
        return replace(entry, **known)  # type: ignore[arg-type]

    def trail(self, op: auditops.Trail) -> Step | None:
        """The step; None where users or sessions of every tenant are asked for: see `whole`."""
        if op.tenant is None and (op.user is not None or op.session is not None):
            return None
        sealed = replace(op, cause=maybe(self._names.store, op.cause))
        if op.tenant is not None:
            tenant = self._names.there(op.tenant)
            sealed = replace(
                sealed,
                tenant=tenant.token,
                user=maybe(tenant.names, op.user),
                session=maybe(tenant.names, op.session),
            )
        return Step(sealed, lambda answer: [self._opened(entry, op.tenant) for entry in answer])

    # --- legal holds --------------------------------------------------------------------------------

    def place_hold(self, op: auditops.PlaceHold) -> Step:
        # A hold may come before the first result: the tenant gets its keys now.
        # And no keys that another process has destroyed: in their names it would hold nothing.
        self._ring.drop([f"t:{self._ring.token(op.tenant)}"])
        tenant, store = self._ring.tenant(op.tenant), self._names.store
        sealed = replace(
            self._reach(op, tenant), reason=store.token(op.reason), actor=store.token(op.actor)
        )
        return Step(sealed, self._hold)

    def reach(self, op: Any) -> Step:
        """`Release` and `HeldBy`."""
        return Step(self._reach(op, self._names.anew(op.tenant)), self._holds)

    def holds(self, op: auditops.Holds) -> Step:
        token = None if op.tenant is None else self._ring.token(op.tenant)
        return Step(auditops.Holds(token), self._holds)

    def _reach(self, op: Any, tenant: Tenant) -> Any:
        names = tenant.names
        user, session = maybe(names, op.user), maybe(names, op.session)
        return replace(op, tenant=tenant.token, user=user, session=session)

    def _holds(self, answer: Sequence[Hold]) -> list[Hold]:
        return [self._hold(hold) for hold in answer]

    def _hold(self, hold: Hold) -> Hold:
        tenant, store = self._names.of_token(hold.tenant), self._names.store
        hold = replace(hold, reason=_text(store, hold.reason), actor=_text(store, hold.actor))
        if tenant is None:
            return hold
        user, session = (
            None if each is None else _text(tenant.names, each)
            for each in (hold.user, hold.session)
        )
        return replace(hold, tenant=tenant.name, user=user, session=session)

    # --- subjects -----------------------------------------------------------------------------------

    def remove_subject(self, op: auditops.RemoveSubject) -> Step:
        tenant = self._names.anew(op.tenant)
        subject, cause = tenant.names.token(op.subject), self._names.store.token(op.cause)
        return Step(replace(op, tenant=tenant.token, subject=subject, cause=cause))

    def subjects_of(self, op: auditops.SubjectsOf) -> Step:
        tenant = self._names.there(op.scope.tenant)
        scope = self._ring.scope(op.scope, tenant)
        return Step(
            replace(op, scope=scope),
            lambda answer: tuple(sorted(_text(tenant.names, each) for each in answer)),
        )

    def holders(self, op: auditops.Holders) -> Step:
        tenant = self._names.there(op.tenant)

        def opened(answer: Sequence[tuple[Scope, str, str]]) -> list[tuple[Scope, str, str]]:
            return [
                (self._names.opened(scope, tenant), id, _text(tenant.names, tool))
                for scope, id, tool in answer
            ]

        return Step(replace(op, tenant=tenant.token), opened)

    # --- shares -------------------------------------------------------------------------------------

    def share(self, op: shareops.Share) -> Step:
        tenant = self._names.there(op.scope.tenant)
        names = tenant.names
        sealed = replace(
            op,
            scope=self._ring.scope(op.scope, tenant),
            user=names.token(op.user),
            session=maybe(names, op.session),
        )
        return Step(sealed, lambda answer: None if answer is None else _shared(answer, tenant))

    def revoke(self, op: shareops.Revoke) -> Step:
        tenant = self._names.there(op.scope.tenant)
        return Step(replace(op, scope=self._ring.scope(op.scope, tenant)))

    def shares(self, op: shareops.Shares) -> Step:
        tenant = self._names.there(op.scope.tenant)
        return Step(
            replace(op, scope=self._ring.scope(op.scope, tenant)),
            lambda answer: [_shared(each, tenant) for each in answer],
        )


def _shared(shared: shareops.Shared, tenant: Tenant) -> shareops.Shared:
    session = None if shared.session is None else _text(tenant.names, shared.session)
    return replace(shared, user=_text(tenant.names, shared.user), session=session)


def _text(fixed: Any, token: str) -> str:
    """The text of a token; the token itself where its key was destroyed."""
    try:
        return str(fixed.text(token))
    except Unopened:
        return token
