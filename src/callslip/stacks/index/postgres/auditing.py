"""The audit in PostgreSQL: transactions that are told, entries written in them and read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from callslip.stacks.auditops import Audited, Entry, Record, Trail
from callslip.stacks.index.postgres.transaction import Answer, Db
from callslip.stacks.index.rows import to_blob, to_text

_COLUMNS = (
    'at, action, outcome, actor, tenant, "user", session, id, tool, count, cause, detail'  # and n
)
_PENDING = (
    "(SELECT n, 0::float8 AS at, 'erasing' AS action, 'done' AS outcome, actor, tenant, \"user\","
    " session, id, ''::bytea AS tool, 1::bigint AS count, cause, ''::bytea AS detail FROM erasing) p"
)
_KINDS = ("float8", "text", "text", *["bytea"] * 6, "bigint", "bytea", "bytea")
_TEXTS = ("actor", "tenant", "user", "session", "id", "tool")


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
            columns = zip(*map(_values, self.entries), strict=True)
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
    values = [value for entry in entries for value in _values(entry)]
    db.finish(f"INSERT INTO audit ({_COLUMNS}) VALUES {rows}", values)


def _values(entry: Entry) -> tuple[Any, ...]:
    texts = (to_blob(getattr(entry, name)) for name in _TEXTS)
    rest = (entry.count, to_blob(entry.cause), to_blob(entry.detail))
    return entry.at, entry.action, entry.outcome, *texts, *rest


def record(db: Db, op: Record) -> None:
    """Do `auditops.Record`."""
    write(db, op.entries)


def trail(db: Db, op: Trail) -> Sequence[Entry]:
    """Do `auditops.Trail`."""
    where: list[str] = ["n > %s"]
    values: list[object] = [op.after]
    for name in ("tenant", "user", "session", "id", "cause"):
        if (given := getattr(op, name)) is not None:
            where.append(f'"{name}" = %s')
            values.append(to_blob(given))
    if op.cause:
        where.append("cause <> ''")  # what its index is of
    for test, limit in (("action =", op.action), ("at >=", op.since), ("at <", op.until)):
        if limit is not None:
            where.append(f"{test} %s")
            values.append(limit)
    table = _PENDING if op.pending else "audit"
    if not op.pending:
        # Numbers are given before the commit: who went on behind the last one that he saw would miss
        # those of transactions that were under way.
        db.execute("LOCK TABLE audit IN SHARE MODE")
    rows = db.finish(
        f"SELECT {_COLUMNS}, n FROM {table} WHERE {' AND '.join(where)} ORDER BY n LIMIT %s",
        (*values, max(op.limit, 0)),
    )
    return [_entry(row) for row in rows]


def _entry(row: Sequence[Any]) -> Entry:
    at, action, outcome, *texts = row[:9]
    count, cause, detail, n = row[9:]
    named = dict(zip(_TEXTS, map(to_text, texts), strict=True))
    return Entry(
        action=action,
        at=at,
        outcome=outcome,
        count=count,
        cause=to_text(cause),
        detail=to_text(detail),
        n=n,
        **named,
    )


def erased(db: Db, keys: Sequence[bytes], now: float) -> None:
    """The objects of those keys are deleted, and so no garbage any more."""
    db.finish(
        "WITH gone AS (DELETE FROM erasing WHERE key = ANY(%s::bytea[]) RETURNING *),"
        ' told AS (INSERT INTO audit (at, action, actor, tenant, "user", session, id, cause)'
        " SELECT %s, 'erased', actor, tenant, \"user\", session, id, cause FROM gone ORDER BY n)"
        " DELETE FROM garbage WHERE key = ANY(%s::bytea[])",
        (list(keys), now, list(keys)),
    )
