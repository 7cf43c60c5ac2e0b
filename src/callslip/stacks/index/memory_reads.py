"""Memory in SQLite: facts looked up and listed. To find them by a query: `memory_find`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from callslip.stacks.index.memory_rows import (
    COLUMNS,
    LIVE,
    Row,
    below,
    find_space,
    names_of,
    namespaces_for,
    one,
    parts_of,
    past_of,
    path_of,
    row_of,
)
from callslip.stacks.index.rows import to_blob
from callslip.stacks.memoryops import (
    Fact,
    GetFact,
    ListFacts,
    Namespace,
    Namespaces,
    Past,
    PastOf,
    Which,
)
from callslip.stacks.ranking import holds


def get(db: sqlite3.Connection, op: GetFact) -> Fact | None:
    """Do `memoryops.GetFact`."""
    found = _row(db, op)
    return None if found is None else found.fact


def _row(db: sqlite3.Connection, op: GetFact) -> Row | None:
    space = find_space(db, op.namespace)
    if space is None:
        return None
    column, value = ("id", op.id) if op.id is not None else ("key", op.key)
    found = one(db, op.namespace, space.n, column, to_blob(value or ""))
    return None if found is None or found.gone(op.now) else found


def past(db: sqlite3.Connection, op: PastOf) -> Sequence[Past]:
    """Do `memoryops.PastOf`."""
    found = _row(db, GetFact(op.namespace, op.now, id=op.id))
    if found is None:
        return ()
    rows = db.execute(
        "SELECT version, text, kind, source, metadata, since, until, why FROM memory_past"
        " WHERE fact = ? ORDER BY version DESC",
        (found.n,),
    )
    return [past_of(row) for row in rows]


def meant(db: sqlite3.Connection, which: Which, now: float) -> Iterator[Row]:
    """The facts that are meant, the last told first."""
    if which.deep:
        spaces = "m.space IN (SELECT n FROM memory_spaces WHERE path >= ? AND path < ?)"
        values: list[object] = list(below(which.namespace))
    else:
        spaces = "m.space = (SELECT n FROM memory_spaces WHERE path = ?)"
        values = [path_of(which.namespace)]
    if which.kind is not None:
        spaces += " AND m.kind = ?"
        values.append(to_blob(which.kind))
    rows = db.execute(
        f"SELECT {COLUMNS} FROM memories m WHERE {spaces} AND {LIVE}"
        " ORDER BY m.updated_at DESC, m.n DESC",
        (*values, now),
    )
    names: dict[int, Namespace] = {}
    for columns in rows:
        space = columns[13]
        if space not in names:
            names |= names_of(db, [space])
        row = row_of(names[space], columns)
        if holds(which.where, row.fact.value):
            yield row


def list_facts(db: sqlite3.Connection, op: ListFacts) -> tuple[Sequence[Fact], int]:
    """Do `memoryops.ListFacts`."""
    total = _total(db, op.which, op.now)
    end = op.after + op.limit
    if total is not None and (op.limit <= 0 or op.after >= total):
        return (), total
    found: list[Row] = []
    seen = 0
    for row in meant(db, op.which, op.now):
        if op.after <= seen < end:
            found.append(row)
        seen += 1
        if total is not None and seen >= end:
            break
    return [row.fact for row in found], seen if total is None else total


def _total(db: sqlite3.Connection, which: Which, now: float) -> int | None:
    """How many there are, where the counts tell; None where each must be looked at."""
    if which.where or which.kind is not None:
        return None
    row = db.execute(
        f"SELECT {'below' if which.deep else 'facts'}, n FROM memory_spaces WHERE path = ?",
        (path_of(which.namespace),),
    ).fetchone()
    if row is None:
        return 0
    where, values = "+space = ?", [row[1]]
    if which.deep:
        where = "+space IN (SELECT n FROM memory_spaces WHERE path >= ? AND path < ?)"
        values = list(below(which.namespace))
    # The + keeps SQLite to the index of expiry: few facts have one, many may be in the namespace.
    (gone,) = db.execute(
        f"SELECT count(*) FROM memories WHERE expires_at <= ? AND {where}", (now, *values)
    ).fetchone()
    return int(row[0]) - int(gone)


def namespaces(db: sqlite3.Connection, op: Namespaces) -> Sequence[Namespace]:
    """Do `memoryops.Namespaces`."""
    rows = db.execute(
        "SELECT s.parts FROM memory_spaces s WHERE s.facts > 0 AND EXISTS"
        f" (SELECT 1 FROM memories m WHERE m.space = s.n AND {LIVE})",
        (op.now,),
    )
    return namespaces_for(op, (parts_of(blob) for (blob,) in rows))
