"""An index in plain dicts and lists: what `callslip.stacks.ops` means, as short as it can be said.

The model has no sweep to wait for: a session ends the moment its ttl has run out. An index may do
that work later, and must answer readers the same all the while.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace

from callslip.handle import Scope, Why
from callslip.limits import TOMBSTONE_SECONDS
from callslip.stacks import fileops, ops
from callslip.stacks.index.rows import touch_after
from callslip.testing.index_shares_model import ModelShares


@dataclass(eq=False)
class ModelVersion:
    """One version of a scratch file, and the one it went on from."""

    file: fileops.File
    parent: ModelVersion | None
    line: str
    step: str
    call: bytes
    branch: object

    def states(self) -> list[ModelVersion]:
        """This version and all that led to it, the nearest first."""
        return [self, *(self.parent.states() if self.parent else [])]


@dataclass
class ModelSession:
    """A session: its rows oldest first, and its tombstones with call and digest by id."""

    active_at: float
    ttl: float | None
    closed: bool = False
    rows: list[ops.Result] = field(default_factory=list)
    tombstones: dict[str, tuple[ops.Tombstone, bytes, bytes]] = field(default_factory=dict)
    versions: list[ModelVersion] = field(default_factory=list)
    next_file: int = 1
    runs_out: dict[str, float] = field(default_factory=dict)
    """When rows run out by themselves, by id."""

    def view(self, view: fileops.View) -> ModelVersion | None | str:
        """The version that a view comes to; None before the first, or why there is no such view."""
        latest = self.versions[-1] if self.versions else None
        if view.version is None:
            return latest
        at: ModelVersion | None = None
        if view.version:
            known = [each for each in self.versions if each.file.version == view.version]
            if not known:
                return latest if view.line else "no such version"
            at = known[0]
        while view.line:
            after = [
                each
                for each in self.versions
                if each.parent is at
                and (each.line != view.line or (view.step != "" and each.step == view.step))
            ]
            if not after:
                break
            at = after[-1]
        return at

    def file_bytes(self) -> int:
        return sum(each.file.shape.size for each in self.versions if each.file.payload)

    def old_text(self) -> ModelVersion | None:
        """The oldest version with a text that a later one of its branch follows."""
        for n, each in enumerate(self.versions):
            if each.file.payload and any(
                (later.branch, later.file.path) == (each.branch, each.file.path)
                for later in self.versions[n + 1 :]
            ):
                return each
        return None

    def drop_files(self) -> None:
        self.versions.clear()
        self.next_file = 1

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
        self.shares = ModelShares()
        self.written: list[ModelVersion] = []
        """Versions of files of all sessions, oldest first."""

    def expire(self, now: float) -> None:
        """End what has run out."""
        for scope, session in list(self.sessions.items()):
            ended = now
            if not session.closed and session.ttl is not None:
                ended = min(now, session.active_at + session.ttl)
            for row in list(session.rows):
                if session.runs_out.get(row.id, now) < now:
                    session.bury(row, "expired", min(session.runs_out[row.id], ended))
            if session.closed or session.ttl is None or session.active_at + session.ttl >= now:
                continue
            for row in list(session.rows):
                session.bury(row, "expired", session.active_at + session.ttl)
            session.drop_files()
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
        session = self.sessions[scope]
        if not session.rows and not session.tombstones and not session.versions:
            del self.sessions[scope]

    def insert(self, op: ops.Insert) -> tuple[ops.Result, bool]:
        """The row as it stands after `Insert`, its payload's place aside; and whether it is new."""
        scope, call, digest = op.result.scope, op.result.call, op.result.payload.digest
        session = self._opened(scope, op.ttl, op.now)
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
        session.runs_out.pop(id, None)
        if op.expires_at is not None:
            session.runs_out[id] = op.expires_at
        session.rows.append(row)
        self.shares.born(scope, id)
        self.order = [(s, i) for s, i in self.order if (s, i) != (scope, id)] + [(scope, id)]
        self._enforce(op, row, scope)
        for earlier in session.rows:
            if earlier is not row and earlier.payload.digest == digest and not earlier.same_as:
                session.rows[-1] = row = replace(row, same_as=earlier.id)
                break
        return row, True

    def _opened(self, scope: Scope, ttl: float | None, now: float) -> ModelSession:
        self.expire(now)
        session = self.sessions.setdefault(scope, ModelSession(now, ttl))
        session.active_at = max(session.active_at, now)
        session.ttl, session.closed = ttl, False
        return session

    def _enforce(
        self, op: ops.Insert | fileops.WriteFile, new: ops.Result | None, scope: Scope
    ) -> bool:
        """Let go what the quota does not allow: oldest results, then old texts of files. Whether
        it holds then."""
        quota, holds = op.quota, True
        own = [self.sessions[scope]]
        of_tenant = [each for s, each in self.sessions.items() if s.tenant == scope.tenant]
        for sessions, most, most_bytes in (
            (own, quota.session_results, quota.session_bytes),
            (of_tenant, quota.tenant_results, quota.tenant_bytes),
        ):
            while True:
                # A session's rows go in its own order, a tenant's in that of all.
                rows = own[0].rows if sessions is own else self.live(scope.tenant)
                size = sum(row.shape.size for row in rows)
                size += sum(each.file_bytes() for each in sessions)
                bytes_over = most_bytes is not None and size > most_bytes
                if not bytes_over and (most is None or len(rows) <= most):
                    break
                others = [row for row in rows if row is not new]
                if others:
                    self.sessions[others[0].scope].bury(others[0], "evicted", op.now)
                    continue
                olds = [old for each in sessions if (old := each.old_text()) is not None]
                if not bytes_over or not olds:
                    holds = False
                    break
                oldest = min(olds, key=self.written.index)
                oldest.file = replace(oldest.file, payload=None)
        return holds

    def write(self, op: fileops.WriteFile) -> fileops.Wrote | None:
        """What `WriteFile` answers, its payload's place aside; None where a quota refuses it."""
        before = deepcopy(self.__dict__)
        session = self._opened(op.scope, op.ttl, op.now)
        for each in session.versions:
            if op.call and each.call == op.call:
                return fileops.Wrote("replayed", each.file)
        at = session.view(op.view)
        if isinstance(at, str):
            at = session.versions[-1] if session.versions else None
        found = _standing(at).get(op.path)
        if op.expect is not None and op.expect != (found.version if found else 0):
            return fileops.Wrote("stale", found)
        if found and found.payload and found.payload.digest == op.payload.digest:
            return fileops.Wrote("same", found)
        file = fileops.File(op.path, session.next_file, op.shape, op.payload, op.now)
        session.next_file += 1
        last = at is not None and not any(each.branch is at.branch for each in _after(session, at))
        version = ModelVersion(
            file, at, op.view.line, op.view.step, op.call, at.branch if at and last else object()
        )
        session.versions.append(version)
        self.written.append(version)
        if not self._enforce(op, None, op.scope):
            self.__dict__ = before
            return None
        return fileops.Wrote("written", file)

    def files(self, op: fileops.ListFiles) -> tuple[list[fileops.File], int | None]:
        """What `ListFiles` answers."""
        session = self._read(op.scope, op.now)
        at = (session or ModelSession(0.0, None)).view(op.view)
        if isinstance(at, str):
            return [], None
        standing = _standing(at)
        return [standing[path] for path in sorted(standing)], at.file.version if at else 0

    def wrote(self, op: fileops.FindWrite) -> fileops.File | None:
        """What `FindWrite` answers."""
        session = self._read(op.scope, op.now)
        found = [each.file for each in session.versions if each.call == op.call] if session else []
        return found[0] if found and op.call else None

    def _read(self, scope: Scope, now: float) -> ModelSession | None:
        self.expire(now)
        session = self.sessions.get(scope)
        if session is not None:
            session.touch(now)
        return session

    def live(self, tenant: str | None = None) -> list[ops.Result]:
        """Live rows of a tenant or of all, oldest first."""
        rows = {(s, row.id): row for s, each in self.sessions.items() for row in each.rows}
        return [
            rows[place]
            for place in self.order
            if place in rows and tenant in (None, place[0].tenant)
        ]

    def received(self, scope: Scope, now: float) -> list[ops.Result]:
        """The rows that are shared with a scope, in the order of their first share."""
        rows = {(owner, row.id): row for owner, each in self.sessions.items() for row in each.rows}
        return self.shares.received(scope, now, rows)

    def get(self, op: ops.Get) -> ops.Result | ops.Tombstone | None:
        """What `Get` answers."""
        session = self._read(op.scope, op.now)
        rows: list[ops.Result] = [*(session.rows if session else ())]
        for row in (*rows, *self.received(op.scope, op.now)):
            if row.id == op.id:
                return row
        if session is None:
            return None
        return session.tombstones[op.id][0] if op.id in session.tombstones else None

    def list(self, op: ops.List) -> tuple[list[ops.Result], int]:
        """What `List` answers."""
        session = self._read(op.scope, op.now)
        rows = [*session.rows] if session else []
        own = {row.id for row in rows}
        rows += [row for row in self.received(op.scope, op.now) if row.id not in own]
        return rows[op.after : op.after + op.limit], len(rows)

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
            if op.id is None:
                session.drop_files()
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
        for s, each in chosen.items():
            for version in each.versions:
                if (payload := version.file.payload) is not None:
                    packed[s.tenant, payload.digest] = payload.packed
        return ops.Totals(
            sessions=sum(not each.closed for each in chosen.values()),
            results=len(rows),
            tombstones=sum(len(each.tombstones) for each in chosen.values()),
            payloads=len(packed),
            content_bytes=sum(row.shape.size for row in rows),
            packed_bytes=sum(packed.values()),
            garbage=garbage,
            files=sum(len(each.versions) for each in chosen.values()),
            file_bytes=sum(each.file_bytes() for each in chosen.values()),
        )


def _standing(at: ModelVersion | None) -> dict[str, fileops.File]:
    """The files of a view by path."""
    found: dict[str, fileops.File] = {}
    for each in at.states() if at else []:
        found.setdefault(each.file.path, each.file)
    return found


def _after(session: ModelSession, at: ModelVersion) -> list[ModelVersion]:
    return [each for each in session.versions if each.parent is at]
