"""The audit in PostgreSQL: transactions that are told, entries written in them and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from callslip.stacks.auditops import Audited, Entry, Record, Trail
from callslip.stacks.index.audit_rows import COLUMNS, entry_from, values_of, wanted
from callslip.stacks.index.postgres.transaction import Answer, Db
from callslip.stacks.index.rows import to_blob

_PENDING = (
    "(SELECT n, 0::float8 AS at, 'erasing' AS action, 'done' AS outcome, actor, tenant, \"user\","
    " session, id, ''::bytea AS tool, 1::bigint AS count, cause, ''::bytea AS detail FROM erasing) p"
)
_KINDS = ("float8", "text", "text", *["bytea"] * 6, "bigint", "bytea", "bytea")


class ToldDb(Db):
    """A transaction in which what goes is told by the triggers of the schema.

    What an operation takes for its last statement is not: its entries follow, and the end of what
    was erased with it.
    """

    about: Audited[Any]
    entries: Sequence[Entry] = ()
    """What the end of the transaction tells besides."""

    def finish(self, sql: str, values: Sequence[Any] = ()) -> Answer:
        return self.execute(sql, values)

    def commit(self) -> None:
        if self.entries or (self.open and not self.done):
            marks = ", ".join(f"%s::{kind}[]" for kind in _KINDS)
            columns = zip(*map(values_of, self.entries), strict=True)
            super().finish(f"SELECT tell({marks})", [list(c) for c in columns] or [[]] * 12)
        super().commit()

    def settings(self) -> dict[str, str]:
        return {
            **super().settings(),
            "callslip.auditing": repr(self.about.at),
            "callslip.actor": to_blob(self.about.actor).hex(),
            "callslip.cause": to_blob(self.about.cause).hex(),
        }


def telling(about: Audited[Any]) -> Callable[..., Db]:
    """What makes the transactions of an operation that is told."""

    def made(*args: Any) -> Db:
        db = ToldDb(*args)
        db.about = about
        return db

    return made


def write(db: Db, entries: Sequence[Entry]) -> None:
    """Append entries."""
    if not entries:
        return
    row = "(" + ", ".join(["%s"] * 12) + ")"
    rows = ", ".join([row] * len(entries))
    values = [value for entry in entries for value in values_of(entry)]
    db.finish(f"INSERT INTO audit ({COLUMNS}) VALUES {rows}", values)


def record(db: Db, op: Record) -> None:
    """Do `auditops.Record`."""
    write(db, op.entries)


def trail(db: Db, op: Trail) -> Sequence[Entry]:
    """Do `auditops.Trail`."""
    tests = wanted(op)
    where = [f"{test} %s" for test, _ in tests]
    if op.cause:
        where.append("cause <> ''")  # what its index is of
    table = _PENDING if op.pending else "audit"
    if not op.pending:
        # Numbers are given before the commit: who went on behind the last one that he saw would miss
        # those of transactions that were under way.
        db.execute("LOCK TABLE audit IN SHARE MODE")
    rows = db.finish(
        f"SELECT {COLUMNS}, n FROM {table} WHERE {' AND '.join(where)} ORDER BY n LIMIT %s",
        (*(value for _, value in tests), max(op.limit, 0)),
    )
    return [entry_from(row) for row in rows]


def erased(db: Db, keys: Sequence[bytes], now: float) -> None:
    """The objects of those keys are deleted, and so no garbage any more."""
    db.finish(
        "WITH gone AS (DELETE FROM erasing WHERE key = ANY(%s::bytea[]) RETURNING *),"
        ' told AS (INSERT INTO audit (at, action, actor, tenant, "user", session, id, cause)'
        " SELECT %s, 'erased', actor, tenant, \"user\", session, id, cause FROM gone ORDER BY n)"
        " DELETE FROM garbage WHERE key = ANY(%s::bytea[])",
        (list(keys), now, list(keys)),
    )
