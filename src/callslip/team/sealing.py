"""Runs and checkpoints of a database with keys: sealed before they are stored.

Their keys stand with those of the results, as of a tenant of their own: a session's go when its runs
do, whatever becomes of its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from callslip.errors import PayloadDamaged, StoreUnavailable
from callslip.handle import Scope
from callslip.stacks.index.runs import StoredRun
from callslip.stacks.index.sealed.cipher import Box, Unopened, derived
from callslip.stacks.index.sealed.holders import SessionKey, Tenant
from callslip.stacks.index.sealed.ring import Ring, Stale

if TYPE_CHECKING:
    from callslip.team.db import Runs

__all__ = ["SealedRuns", "seal_saver"]

_CONFIGURED = ("thread_id", "checkpoint_ns", "checkpoint_id")
_DESCRIBED = ("source", "step", "parents")


class SealedRuns:
    """Runs in `inner`, which sees ids of runs and their status, and nothing else."""

    def __init__(self, inner: Runs, ring: Ring) -> None:
        self._inner = inner
        self._ring = ring

    def put(self, run: StoredRun) -> None:
        # Once more with new keys, where another process has destroyed those that are known here.
        for _ in range(2):
            try:
                tenant, scope = self._place(run.user, run.session)
                key = self._ring.make_session(scope, tenant)
            except Stale:
                continue
            self._put(run, tenant, scope, key)
            if self._ring.stands(key):
                return
            self._inner.remove(scope.user, scope.session, run.run)
        raise StoreUnavailable("the session was deleted while its run was written", reason="failed")

    def _put(self, run: StoredRun, tenant: Tenant, scope: Scope, key: SessionKey) -> None:
        sealed = replace(
            run,
            user=scope.user,
            session=scope.session,
            owner=tenant.names.token(run.owner),
            data=key.box.seal(run.data, _about(run)),
        )
        self._inner.put(sealed)

    def get(self, user: str, session: str, run: str) -> StoredRun | None:
        tenant, scope = self._place(user, session)
        found = self._inner.get(scope.user, scope.session, run)
        return None if found is None else self._opened(found, user, session, tenant, scope)

    def list(
        self,
        user: str,
        session: str,
        *,
        owner: str | None = None,
        parent: str | None = None,
        status: Sequence[str] = (),
        last: int | None = None,
    ) -> Sequence[StoredRun]:
        tenant, scope = self._place(user, session)
        rows = self._inner.list(
            scope.user,
            scope.session,
            owner=None if owner is None else tenant.names.token(owner),
            parent=parent,
            status=status,
            last=last,
        )
        return [self._opened(row, user, session, tenant, scope) for row in rows]

    def remove(self, user: str, session: str, run: str | None = None) -> Sequence[StoredRun]:
        tenant, scope = self._place(user, session)
        rows = self._inner.remove(scope.user, scope.session, run)
        gone = [self._opened(row, user, session, tenant, scope) for row in rows]
        if run is None:
            key = self._ring.session(scope, tenant)
            if key is not None:
                self._ring.destroy(key)
        return gone

    def _place(self, user: str, session: str) -> tuple[Tenant, Scope]:
        tenant = self._ring.runs()
        return tenant, self._ring.scope(Scope(session, user), tenant)

    def _opened(
        self, row: StoredRun, user: str, session: str, tenant: Tenant, scope: Scope
    ) -> StoredRun:
        key: SessionKey | None = self._ring.session(scope, tenant)
        opened = replace(row, user=user, session=session)
        try:
            if key is None:
                raise Unopened
            data = key.box.open(row.data, _about(row))
            return replace(opened, owner=tenant.names.text(row.owner), data=data)
        except Unopened:
            raise PayloadDamaged("a stored run does not open with its session's key") from None


def _about(run: StoredRun) -> bytes:
    return b"run " + run.run.encode("utf-8", "surrogatepass")


class _Cipher:
    """What LangGraph's serializer seals with."""

    def __init__(self, ring: Ring) -> None:
        self._box: Callable[[], Box] = lambda: Box(derived(ring.runs().secret, "checkpoints"))

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "callslip", self._box().seal(plaintext, b"checkpoint")

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        try:
            return self._box().open(ciphertext, b"checkpoint")
        except Unopened:
            raise PayloadDamaged("a checkpoint does not open with its key") from None


def seal_saver(
    saver: BaseCheckpointSaver[Any], ring: Ring, hide: Callable[[Any], Any] = lambda value: value
) -> BaseCheckpointSaver[Any]:
    """Let a saver seal what it stores. `hide` is done to each text of a checkpoint's values, for a
    saver that stores texts beside what it serializes."""
    saver.serde = EncryptedSerializer(_Cipher(ring), saver.serde)
    put = saver.put

    def sealed(config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        # What LangGraph says of a checkpoint it stores as it is: no more of it than it needs.
        given = config.get("configurable", {})
        config = {"configurable": {name: given[name] for name in _CONFIGURED if name in given}}
        metadata = {name: metadata[name] for name in _DESCRIBED if name in metadata}
        values = {name: hide(value) for name, value in checkpoint["channel_values"].items()}
        checkpoint = {**checkpoint, "channel_values": values}
        return put(config, checkpoint, metadata, new_versions)

    saver.put = sealed  # type: ignore[method-assign]
    return saver
