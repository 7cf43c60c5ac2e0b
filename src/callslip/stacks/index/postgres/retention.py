"""How rows go from PostgreSQL: a bounded number in each transaction."""

from __future__ import annotations

from callslip.errors import LegalHold, SettingsError, StoreUnavailable
from callslip.limits import TOMBSTONE_SECONDS
from callslip.stacks.index.postgres import holding, memory, shares
from callslip.stacks.index.postgres.server import Server
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import blob_if_any, to_blob
from callslip.stacks.ops import Remove, Sweep

BATCH = 1000
"""Rows that go in one transaction: some 50 ms. What is more goes on in the next, so that nobody
waits for the removal of a tenant; one that is cut short is ended by the same call once more."""


def remove(server: Server, op: Remove) -> int:
    """Do `ops.Remove`."""
    try:
        return _remove(server, op)
    except holding.Held:
        kept = server.transact(
            lambda db: holding.reaching(db, op.tenant, op.user, op.session),
            tenant=to_blob(op.tenant),
            again=True,
        )
        raise LegalHold(f"kept by {kept[0] if kept else 'a hold that was just lifted'}") from None


def _remove(server: Server, op: Remove) -> int:
    tenant, user, name = to_blob(op.tenant), blob_if_any(op.user), blob_if_any(op.session)
    if op.id is not None:
        if name is None:
            raise SettingsError("Remove: an id needs the session it is in")
        id = to_blob(op.id)

        def one(db: Db) -> int:
            values = (tenant, user, name, id, op.why, op.now, op.tombstones)
            return int(holding.unless_held(db, f"SELECT remove_one({_marks(7)})", values)[0])

        return server.transact(one, tenant=tenant, again=False)
    gone, after, last = 0, 0, None
    while after is not None and (last is None or after < last):

        def some(db: Db, after: int = after) -> tuple[int, int | None]:
            values = (tenant, user, name, op.why, op.now, op.tombstones, after, BATCH)
            row = holding.unless_held(db, f"SELECT * FROM remove_some({_marks(8)})", values)
            return row[0], row[1]

        went, after = server.transact(some, tenant=tenant, again=False)  # type: ignore[assignment]
        gone += went
        if last is None and after is not None:
            # What is opened from here on came after: who opens sessions all the time would be
            # followed for ever.
            last = server.transact(_last, tenant=None, again=True)
    if op.session is None and not op.tombstones:
        namespace = (op.tenant,) if op.user is None else (op.tenant, op.user)
        memory.forget_below(server, namespace)
    return gone


def _last(db: Db) -> int:
    return int(db.finish("SELECT coalesce(max(n), 0) FROM sessions")[0][0])


def sweep(server: Server, op: Sweep) -> bool:
    """Do `ops.Sweep`. It waits for nobody: what is locked is left to the next one."""
    seconds = max(op.milliseconds, 1.0) / 1000

    def work(db: Db) -> bool:
        db.patience = seconds
        old = op.now - TOMBSTONE_SECONDS
        if op.rows <= 0:
            return bool(db.finish("SELECT sweep_more(%s, %s)", (op.now, old))[0][0])
        values = (op.now, old, op.rows, seconds)
        return bool(db.finish(f"SELECT sweep({_marks(4)})", values)[0][0])

    def fold(db: Db) -> bool:
        db.patience = seconds
        ended = shares.more(db, op.now)
        if ended and op.rows > 0:
            ended = shares.sweep(db, op.now, op.rows) >= op.rows
        db.finish("SELECT fold(NULL, 5000)")
        return ended

    more = True
    try:
        more = server.transact(work, tenant=None, again=True)
        more = server.transact(fold, tenant=None, again=True) or more
    except StoreUnavailable as error:
        if error.reason != "locked":
            raise
    return more


def _marks(count: int) -> str:
    return ", ".join(["%s"] * count)
