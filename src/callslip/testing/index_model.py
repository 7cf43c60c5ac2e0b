"""An index in plain dicts and lists: what `callslip.stacks.ops` means, as short as it can be said.

The model has no sweep to wait for: a session ends the moment its ttl has run out. An index may do
that work later, and must answer readers the same all the while.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from callslip.handle import Scope, Why
from callslip.limits import TOMBSTONE_SECONDS
from callslip.stacks import ops
from callslip.stacks.index.rows import touch_after


@dataclass
class ModelSession:
    """A session: its rows oldest first, and its tombstones with call and digest by id."""

    active_at: float
    ttl: float | None
    closed: bool = False
    rows: list[ops.Result] = field(default_factory=list)
    tombstones: dict[str, tuple[ops.Tombstone, bytes, bytes]] = field(default_factory=dict)

    def bury(self, row: ops.Result, why: Why, at: float) -> None:
        self.rows.remove(row)
        tombstone = ops.Tombstone(row.id, row.tool, row.args, row.shape, why, at)
        self.tombstones[row.id] = (tombstone, row.call, row.payload.digest)

    def touch(self, now: float) -> None:
        if not self.closed and now - self.active_at >= touch_after(self.ttl):
            self.active_at = now


class Model:
    """The state, and the operations that change or read it."""

    def __init__(self) -> None:
        self.sessions: dict[Scope, ModelSession] = {}
        self.order: list[tuple[Scope, str]] = []
        """Rows of all sessions, oldest first."""

    def expire(self, now: float) -> None:
        """End what has run out."""
        for scope, session in list(self.sessions.items()):
            if session.closed or session.ttl is None or session.active_at + session.ttl >= now:
                continue
            for row in list(session.rows):
                session.bury(row, "expired", session.active_at + session.ttl)
            session.closed = True
            self._drop_if_empty(scope)

    def sweep(self, now: float) -> None:
        """End what has run out, and forget old tombstones."""
        self.expire(now)
        for scope, session in list(self.sessions.items()):
            for id, (tombstone, _, _) in list(session.tombstones.items()):
                if tombstone.gone_at < now - TOMBSTONE_SECONDS:
                    del session.tombstones[id]
            if session.closed:
                self._drop_if_empty(scope)

    def _drop_if_empty(self, scope: Scope) -> None:
        if not self.sessions[scope].rows and not self.sessions[scope].tombstones:
            del self.sessions[scope]

    def insert(self, op: ops.Insert) -> tuple[ops.Result, bool]:
        """The row as it stands after `Insert`, its payload's place aside; and whether it is new."""
        self.expire(op.now)
        scope, call, digest = op.result.scope, op.result.call, op.result.payload.digest
        session = self.sessions.setdefault(scope, ModelSession(op.now, op.ttl))
        session.active_at = max(session.active_at, op.now)
        session.ttl, session.closed = op.ttl, False
        owners = {row.id: (row.call, row.payload.digest) for row in session.rows}
        owners |= {id: (c, d) for id, (_, c, d) in session.tombstones.items()}
        ids = sorted(op.ids, key=len)
        own = [id for id in ids if owners.get(id) == (call, digest)]
        id = (own or [id for id in ids if id not in owners])[0]
        for row in session.rows:
            if row.id == id:
                return row, False
        session.tombstones.pop(id, None)
        row = replace(op.result, id=id, same_as="")
        session.rows.append(row)
        self.order = [(s, i) for s, i in self.order if (s, i) != (scope, id)] + [(scope, id)]
        self._enforce(op, row)
        for earlier in session.rows:
            if earlier is not row and earlier.payload.digest == digest:
                session.rows[-1] = row = replace(row, same_as=earlier.id)
                break
        return row, True

    def _enforce(self, op: ops.Insert, new: ops.Result) -> None:
        def over(rows: list[ops.Result], results: int | None, size: int | None) -> bool:
            return (results is not None and len(rows) > results) or (
                size is not None and sum(row.shape.size for row in rows) > size
            )

        quota, session = op.quota, self.sessions[new.scope]
        while over(session.rows, quota.session_results, quota.session_bytes):
            if session.rows[0] is new:
                break
            session.bury(session.rows[0], "evicted", op.now)
        while True:
            rows = self.live(new.scope.tenant)
            if not over(rows, quota.tenant_results, quota.tenant_bytes) or rows == [new]:
                break
            oldest = next(row for row in rows if row is not new)
            self.sessions[oldest.scope].bury(oldest, "evicted", op.now)

    def live(self, tenant: str | None = None) -> list[ops.Result]:
        """Live rows of a tenant or of all, oldest first."""
        rows = {(s, row.id): row for s, each in self.sessions.items() for row in each.rows}
        return [
            rows[place]
            for place in self.order
            if place in rows and tenant in (None, place[0].tenant)
        ]

    def get(self, op: ops.Get) -> ops.Result | ops.Tombstone | None:
        """What `Get` answers."""
        self.expire(op.now)
        session = self.sessions.get(op.scope)
        if session is None:
            return None
        session.touch(op.now)
        for row in session.rows:
            if row.id == op.id:
                return row
        return session.tombstones[op.id][0] if op.id in session.tombstones else None

    def list(self, op: ops.List) -> tuple[list[ops.Result], int]:
        """What `List` answers."""
        self.expire(op.now)
        session = self.sessions.get(op.scope)
        if session is None:
            return [], 0
        session.touch(op.now)
        return session.rows[op.after : op.after + op.limit], len(session.rows)

    def remove(self, op: ops.Remove) -> int:
        """What `Remove` answers."""
        self.expire(op.now)
        gone = 0
        for scope, session in list(self.sessions.items()):
            if scope.tenant != op.tenant or op.user not in (None, scope.user):
                continue
            if op.session not in (None, scope.session):
                continue
            for row in list(session.rows):
                if op.id in (None, row.id):
                    session.bury(row, op.why, op.now)
                    gone += 1
            if not op.tombstones:
                if op.id is None:
                    session.tombstones.clear()
                else:
                    session.tombstones.pop(op.id, None)
                self._drop_if_empty(scope)
            elif op.id is None:
                session.closed = True
                self._drop_if_empty(scope)
        return gone

    def totals(self, tenant: str | None, scope: Scope | None, garbage: int) -> ops.Totals:
        """What `Count` answers once everything that ran out is swept."""
        chosen = {
            s: each
            for s, each in self.sessions.items()
            if tenant in (None, s.tenant) and scope in (None, s)
        }
        rows = [row for each in chosen.values() for row in each.rows]
        packed = {(row.scope.tenant, row.payload.digest): row.payload.packed for row in rows}
        return ops.Totals(
            sessions=sum(not each.closed for each in chosen.values()),
            results=len(rows),
            tombstones=sum(len(each.tombstones) for each in chosen.values()),
            payloads=len(packed),
            content_bytes=sum(row.shape.size for row in rows),
            packed_bytes=sum(packed.values()),
            garbage=garbage,
        )
