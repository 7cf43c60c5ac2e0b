"""Results and files: each operation sealed on its way in, and its answer opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from callslip.errors import PayloadDamaged
from callslip.handle import Scope
from callslip.stacks import auditops, fileops, ops
from callslip.stacks.index.sealed import rows
from callslip.stacks.index.sealed.cipher import Unopened, to_bytes
from callslip.stacks.index.sealed.holders import SessionKey, Tenant
from callslip.stacks.index.sealed.ring import Stale
from callslip.stacks.index.sealed.step import Names, Step, maybe
from callslip.stacks.layout import UNOPENED

_HOLDERS = 20


class Dead(Exception):
    """A row stands in the way that a destroyed key sealed. Never leaves this package."""

    def __init__(self, scope: Scope, id: str) -> None:
        super().__init__(scope, id)
        self.scope = scope
        self.id = id


class Results:
    """The steps of `callslip.stacks.ops` and `fileops`."""

    def __init__(self, names: Names, inner: ops.Runs) -> None:
        self._names = names
        self._inner = inner
        self._ring = names.ring

    # --- in -----------------------------------------------------------------------------------------

    def insert(self, op: ops.Insert) -> Step:
        tenant = self._ring.tenant(op.result.scope.tenant)
        scope = self._ring.scope(op.result.scope, tenant)
        key = self._ring.make_session(scope, tenant)
        sealed = rows.seal_result(op.result, op.ids, scope, tenant, key)
        subjects = [tenant.names.token(each) for each in op.subjects]

        def opened(answer: ops.Inserted | None) -> ops.Inserted | None:
            if answer is None:
                return None
            try:
                result = rows.open_result(answer.result, op.result.scope, tenant, key)
            except Unopened as error:
                if self._ring.stands(key) and isinstance(error, rows.Gone):
                    raise Dead(scope, answer.result.id) from None
                raise self._unopened(key) from None
            return replace(answer, result=result)

        return Step(replace(op, result=sealed, subjects=subjects), opened, key)

    def write_file(self, op: fileops.WriteFile) -> Step:
        tenant = self._ring.tenant(op.scope.tenant)
        scope = self._ring.scope(op.scope, tenant)
        key = self._ring.make_session(scope, tenant)
        path = key.paths.token(op.path)
        sealed = replace(
            op,
            scope=scope,
            path=path,
            shape=rows.seal_file(op.shape, op.payload.lock, key, path),
            payload=rows.seal_payload(op.payload, tenant, rows.owned(op.payload, key)),
            view=rows.seal_view(op.view, key),
            call=key.call(op.call),
            subjects=[tenant.names.token(each) for each in op.subjects],
        )

        def opened(answer: fileops.Wrote | None) -> fileops.Wrote | None:
            if answer is None or answer.file is None:
                return answer
            return replace(answer, file=self._file(answer.file, tenant, key))

        return Step(sealed, opened, key)

    def replace(self, op: ops.Replace) -> Step:
        tenant = self._ring.tenant(op.tenant)
        # The lock is of the content: who could open it before can open it in its new place.
        before = self._inner.run(ops.FindPayload(tenant.token, op.payload.digest))
        sealed = rows.seal_payload(op.payload, tenant, rows.owner_of(before))
        return Step(ops.Replace(tenant.token, sealed))

    # --- out ----------------------------------------------------------------------------------------

    def find_payload(self, op: ops.FindPayload) -> Step:
        tenant = self._names.there(op.tenant)

        def opened(answer: ops.Payload | None) -> ops.Payload | None:
            try:
                return None if answer is None else rows.open_payload(answer, tenant, op.lock)
            except Unopened:
                raise self._unopened(tenant) from None

        return Step(ops.FindPayload(tenant.token, op.digest), opened)

    def get(self, op: ops.Get) -> Step:
        tenant = self._names.there(op.scope.tenant)
        scope = self._ring.scope(op.scope, tenant)

        def opened(
            answer: ops.Result | ops.Tombstone | None,
        ) -> ops.Result | ops.Tombstone | None:
            if isinstance(answer, ops.Result):
                return self._result(answer, scope, op.scope, tenant)
            key = self._ring.session(scope, tenant)
            if answer is None or key is None:
                return None
            try:
                return rows.open_tombstone(answer, tenant, key)
            except rows.Gone:
                self._pass_by(key)
                return None
            except Unopened:
                raise self._unopened(key) from None

        return Step(replace(op, scope=scope), opened, looked=tenant)

    def list(self, op: ops.List) -> Step:
        tenant = self._names.there(op.scope.tenant)
        scope = self._ring.scope(op.scope, tenant)

        def opened(
            answer: tuple[Sequence[ops.Result], int],
        ) -> tuple[Sequence[ops.Result], int]:
            listed, total = answer
            found = [self._result(row, scope, op.scope, tenant) for row in listed]
            kept = [row for row in found if row is not None]
            return kept or (), total - (len(listed) - len(kept))

        return Step(replace(op, scope=scope), opened, looked=tenant)

    def _result(
        self, row: ops.Result, scope: Scope, named: Scope, tenant: Tenant
    ) -> ops.Result | None:
        """A row, its own session's or one that was shared; None if its key was destroyed."""
        key = self._ring.session(row.scope, tenant)
        if key is None:
            return None
        try:
            if row.scope != scope:
                named = self._names.opened(row.scope, tenant)
            return rows.open_result(row, named, tenant, key)
        except rows.Gone:
            self._pass_by(key)
            return None
        except Unopened:
            raise self._unopened(key) from None

    def _pass_by(self, key: SessionKey) -> None:
        """What a destroyed key sealed is not there, unless that key is ours: then it is looked up
        again."""
        if not self._ring.stands(key):
            raise Stale

    def _unopened(self, key: SessionKey | Tenant) -> Exception:
        """Why a row does not open: it was changed, or it is of a newer key than ours."""
        return _changed() if self._ring.stands(key) else Stale()

    # --- files --------------------------------------------------------------------------------------

    def read_file(self, op: fileops.ReadFile) -> Step:
        tenant, scope, key = self._place(op.scope)
        path, view = key.paths.token(op.path), rows.seal_view(op.view, key)
        sealed = replace(op, scope=scope, path=path, view=view)
        return Step(sealed, self._opens_file(tenant, key), looked=key if key.name else tenant)

    def find_write(self, op: fileops.FindWrite) -> Step:
        tenant, scope, key = self._place(op.scope)
        sealed = replace(op, scope=scope, call=key.call(op.call))
        return Step(sealed, self._opens_file(tenant, key), looked=key if key.name else tenant)

    def list_files(self, op: fileops.ListFiles) -> Step:
        tenant, scope, key = self._place(op.scope)

        def opened(
            answer: tuple[Sequence[fileops.File], int | None],
        ) -> tuple[Sequence[fileops.File], int | None]:
            found = [file for each in answer[0] if (file := self._file_if_any(each, tenant, key))]
            return sorted(found, key=lambda file: to_bytes(file.path)) or (), answer[1]

        sealed = replace(op, scope=scope, view=rows.seal_view(op.view, key))
        return Step(sealed, opened, looked=key if key.name else tenant)

    def _file(self, file: fileops.File, tenant: Tenant, key: SessionKey) -> fileops.File:
        try:
            return rows.open_file(file, tenant, key)
        except Unopened:
            raise self._unopened(key) from None

    def _file_if_any(
        self, file: fileops.File, tenant: Tenant, key: SessionKey
    ) -> fileops.File | None:
        """A file; None for one that was written while its session, and the key, were destroyed."""
        try:
            return rows.open_file(file, tenant, key)
        except rows.Gone:
            if key.name:
                self._pass_by(key)
            return None
        except Unopened:
            raise self._unopened(key) from None

    def _opens_file(
        self, tenant: Tenant, key: SessionKey
    ) -> Callable[[fileops.File | None], fileops.File | None]:
        return lambda answer: None if answer is None else self._file(answer, tenant, key)

    def _place(self, named: Scope) -> tuple[Tenant, Scope, SessionKey]:
        tenant = self._names.there(named.tenant)
        scope = self._ring.scope(named, tenant)
        key = self._ring.session(scope, tenant)
        # Of a session without keys nothing is found; the look-up takes the same way.
        return tenant, scope, key or SessionKey("", 0.0, tenant.digests)

    # --- upkeep -------------------------------------------------------------------------------------

    def remove(self, op: ops.Remove) -> Step:
        names = self._names.anew(op.tenant).names
        token = self._ring.token(op.tenant)
        user, session = maybe(names, op.user), maybe(names, op.session)
        return Step(replace(op, tenant=token, user=user, session=session))

    def count(self, op: ops.Count) -> Step:
        if op.scope is not None:
            tenant = self._names.there(op.scope.tenant)
            return Step(ops.Count(scope=self._ring.scope(op.scope, tenant)))
        return Step(ops.Count(None if op.tenant is None else self._ring.token(op.tenant)))

    def sessions(self, op: ops.Sessions) -> Step:
        token = None if op.tenant is None else self._ring.token(op.tenant)

        def opened(answer: Sequence[tuple[Scope, float, int]]) -> list[tuple[Scope, float, int]]:
            found = []
            for scope, active_at, live in answer:
                tenant = self._names.of_token(scope.tenant)
                if tenant is None:
                    continue
                try:
                    found.append((self._names.opened(scope, tenant), active_at, live))
                except Unopened:
                    if not self._ring.stands(tenant):
                        raise Stale from None
            return found

        return Step(replace(op, tenant=token), opened)

    def payloads(self, op: ops.Payloads) -> Sequence[tuple[str, ops.Payload, int]]:
        """Do `ops.Payloads`. Of what no living session can open there is no more than the row."""
        after = None if op.after is None else (self._ring.token(op.after[0]), op.after[1])
        while True:
            listed = self._inner.run(ops.Payloads(after, op.limit))
            found = []
            for token, payload, references in listed:
                after = (token, payload.digest)
                tenant = self._names.of_token(token)
                if tenant is None:
                    continue  # its keys were destroyed, and its rows follow
                lock = self._lock(payload, tenant) or self._lock_by_a_row(payload, tenant)
                opened = (
                    _payload(payload, tenant, lock) if lock else replace(payload, form=UNOPENED)
                )
                found.append((tenant.name, opened, references))
            if found or len(listed) < op.limit:
                return found

    def _lock_by_a_row(self, payload: ops.Payload, tenant: Tenant) -> bytes:
        """The lock of a payload by a result that has it: its writer's keys were destroyed."""
        holders = auditops.Holders(tenant.token, payload.digest, _HOLDERS)
        for scope, id, _ in self._inner.run(holders):
            key = self._ring.session(scope, tenant)
            # At no time at all: that counts as no activity.
            row = None if key is None else self._inner.run(ops.Get(scope, id, 0.0, ""))
            if isinstance(row, ops.Result) and key is not None:
                with suppress(rows.Gone):
                    return rows.open_result(row, scope, tenant, key).payload.lock
        return b""

    def _lock(self, payload: ops.Payload, tenant: Tenant) -> bytes:
        """The lock of a payload, by the key of the session that wrote it, while that has keys."""
        writer = rows.writer_of(payload)
        if writer is None:
            return b""
        name, sealed = writer
        _, token, user, session = name.split(":")
        key = self._ring.session(Scope(session, user, token), tenant)
        try:
            return b"" if key is None else key.box.open(sealed, b"lock" + payload.digest)
        except Unopened:
            return b""


def _payload(payload: ops.Payload, tenant: Tenant, lock: bytes) -> ops.Payload:
    try:
        return rows.open_payload(payload, tenant, lock)
    except Unopened:
        raise _changed() from None


def _changed() -> PayloadDamaged:
    return PayloadDamaged("a row of the index does not open with its key: it was changed")
