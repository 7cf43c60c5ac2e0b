"""The index in a PostgreSQL database: every `IndexOp`, each in one transaction.

Safe from many threads, processes and machines. What may live here: the functions that run the
operations on a `Db` (one transaction), their tables as migrations, connections and their faults.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from callslip.errors import SettingsError
from callslip.stacks import ops

try:
    from callslip.stacks.index.postgres import memory
    from callslip.stacks.index.postgres.server import Server
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.split(".")[0] != "psycopg":
        raise
    raise SettingsError(
        "an index in PostgreSQL needs psycopg: pip install 'callslip[postgres]'"
    ) from missing

from callslip.stacks.index.postgres.memory import Does
from callslip.stacks.index.rows import to_blob

T = TypeVar("T")

READS: dict[type, Does] = {**memory.READS}
"""What changes nothing that matters: it may be run anew after any failure."""

WRITES: dict[type, Does] = {**memory.WRITES}

AGAIN: frozenset[type] = frozenset()
"""Writes that may be run anew though the first may have been done: the answer is the same."""


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
        kind = type(op)
        does = READS.get(kind) or WRITES.get(kind)
        if does is None:
            raise TypeError(f"not an index operation: {op!r}")
        again = kind in READS or kind in AGAIN
        answer = self.server.transact(lambda db: does(db, op), tenant=tenant_of(op), again=again)
        return cast("T", answer)

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
    return None if tenant is None else to_blob(tenant)
