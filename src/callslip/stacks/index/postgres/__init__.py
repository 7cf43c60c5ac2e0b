"""The index in a PostgreSQL database: every `IndexOp`, each in one transaction.

Safe from many threads, processes and machines. What may live here: the functions that run the
operations on a `Db` (one transaction), their tables as migrations, connections and their faults.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

from callslip.errors import SettingsError, StoreUnavailable
from callslip.limits import MIGRATION_SECONDS
from callslip.stacks import fileops, ops
from callslip.stacks.auditops import Audited
from callslip.stacks.checkops import CheckIndex

try:
    from callslip.stacks.index.postgres import (
        about,
        auditing,
        files,
        governing,
        inserting,
        keys,
        memory,
        repairing,
        results,
        retention,
        sessions,
        shares,
        upkeep,
    )
    from callslip.stacks.index.postgres.server import Server
except ImportError as missing:
    # psycopg without its binary part and without libpq is there, and raises one without a name.
    if (missing.name or "psycopg").split(".")[0] != "psycopg":
        raise
    raise SettingsError(
        "an index in PostgreSQL needs psycopg: pip install 'callslip[postgres]'"
    ) from missing

from callslip.stacks.index.postgres.memory import Does
from callslip.stacks.index.rows import blob_if_any, to_blob

T = TypeVar("T")

TOUCH_SECONDS = 1.0
"""How long a read waits to note its activity, before it leaves that out."""

READS: dict[type, Does] = {
    ops.FindPayload: inserting.find,
    ops.Garbage: upkeep.garbage,
    ops.Payloads: upkeep.payloads,
    ops.KnownKeys: upkeep.known_keys,
    ops.Count: upkeep.count,
    ops.Sessions: upkeep.list_sessions,
    CheckIndex: about.facts,
    **governing.READS,
    **memory.READS,
    **keys.READS,
    **shares.READS,
}
"""What changes nothing: it may be run anew after any failure."""

ACTIVITIES: dict[type, Callable[[Any, Any], tuple[Any, sessions.Session | None]]] = {
    ops.Get: results.get,
    ops.List: results.list_live,
    fileops.ReadFile: files.read,
    fileops.ListFiles: files.list_all,
    fileops.FindWrite: files.find_write,
}
"""Reads that count as activity of their session: they answer it, too."""

WRITES: dict[type, Does] = {
    ops.Insert: inserting.insert,
    ops.Replace: inserting.replace,
    ops.PayloadPlace: inserting.place,
    ops.Forget: upkeep.forget,
    ops.Repair: repairing.repair,
    fileops.WriteFile: files.write,
    **governing.WRITES,
    **memory.WRITES,
    **keys.WRITES,
    **shares.WRITES,
}

AGAIN: frozenset[type] = frozenset(
    {ops.Insert, ops.Replace, ops.PayloadPlace, ops.Forget, ops.Repair, *keys.AGAIN, *shares.AGAIN}
)
"""Writes that may be run anew though the first may have been done: the answer is the same."""

LONG: dict[type, Callable[[Server, Any], Any]] = {
    ops.Remove: retention.remove,
    ops.Sweep: retention.sweep,
    **memory.LONG,
}
"""What takes several transactions, each of a bounded number of rows."""

_logger = logging.getLogger(__name__)


class PostgresIndex:
    """An index in the database of a `postgresql://` URL, in the schema of its `?schema=`.

    Nothing is opened before the first operation, which makes the schema. An operation takes at most
    `limits.INDEX_SECONDS`. Errors: `StoreUnavailable` for what may pass or be mended;
    `SettingsError` for a wrong URL, missing rights on the schema, or one of a newer callslip.
    """

    def __init__(self, url: str) -> None:
        self.server = Server(url)

    def run(self, op: ops.Op[T], /) -> T:
        """Do one operation, as its docstring in `callslip.stacks.ops` says."""
        if isinstance(op, Audited):
            return cast("T", self._told(op))
        kind = type(op)
        if kind in ACTIVITIES:
            return cast("T", self._active(ACTIVITIES[kind], op))
        if kind in LONG:
            return cast("T", LONG[kind](self.server, op))
        does = READS.get(kind) or WRITES.get(kind)
        if does is None:
            raise TypeError(f"not an index operation: {op!r}")
        again = kind in READS or kind in AGAIN or bool(getattr(op, "call", b""))
        seconds = MIGRATION_SECONDS if kind is ops.Repair else None
        answer = self.server.transact(
            lambda db: does(db, op), tenant=tenant_of(op), again=again, seconds=seconds
        )
        return cast("T", answer)

    def _active(self, read: Callable[[Any, Any], tuple[Any, Any]], op: Any) -> Any:
        tenant = tenant_of(op)
        answer, session = self.server.transact(lambda db: read(db, op), tenant=tenant, again=True)
        if session is not None and session.due(op.now):
            try:
                self.server.transact(
                    lambda db: sessions.touch(db, session, op.now),
                    tenant=tenant,
                    again=True,
                    seconds=TOUCH_SECONDS,
                )
            except StoreUnavailable as error:
                # What was asked for has been read; the next read tries again. On a read-only
                # replica, too, going on reading is worth more than the note.
                _logger.warning("activity of a session could not be noted: %s", error.reason)
        return answer

    def _told(self, op: Audited[Any]) -> Any:
        """An operation and its entries. One of several transactions is told at their end; what goes
        with each is told in it."""
        inner, server = op.op, self.server.making(auditing.telling(op))
        kind = type(inner)

        def entries(db: Any, answer: Any) -> Any:
            db.entries = op.entries(answer)
            return answer

        def work(db: Any) -> Any:
            if kind not in ACTIVITIES:
                return entries(db, {**READS, **WRITES}[kind](db, inner))
            answer, session = ACTIVITIES[kind](db, inner)
            if session is not None and session.due(op.at):
                sessions.touch(db, session, op.at)
            return entries(db, answer)

        tenant = tenant_of(inner)
        if kind in LONG:
            answer = LONG[kind](server, inner)
            server.transact(lambda db: entries(db, answer), tenant=tenant, again=True)
            return answer
        again = kind in ACTIVITIES or kind in READS or kind in AGAIN
        return server.transact(work, tenant=tenant, again=again)

    @property
    def anew(self) -> Callable[[], None] | None:
        """Called once what was there is found to be gone, before it is made anew."""
        return self.server.anew

    @anew.setter
    def anew(self, called: Callable[[], None]) -> None:
        self.server.anew = called

    def close(self) -> None:
        """Let go of the connections; a later operation opens them again."""
        self.server.close()


def tenant_of(op: Any) -> bytes | None:
    """The tenant that an operation is about, None for one about the whole store."""
    scope = getattr(op, "scope", None) or getattr(getattr(op, "result", None), "scope", None)
    if scope is not None:
        return to_blob(scope.tenant)
    namespace = getattr(getattr(op, "which", op), "namespace", None) or (None,)
    tenant = getattr(op, "tenant", namespace[0])
    return blob_if_any(tenant)
