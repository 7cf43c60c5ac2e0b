"""Memory in PostgreSQL: facts looked up and listed. To find them by a query: `memory_find`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from callslip.stacks.index.memory_rows import LIVE as _LIVE
from callslip.stacks.index.memory_rows import Row, namespaces_for, parts_of, past_of
from callslip.stacks.index.postgres import memory_spaces
from callslip.stacks.index.postgres.memory_spaces import RANGE, one, place_of, where, within
from callslip.stacks.index.postgres.transaction import Db
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

LIVE = _LIVE.replace("?", "%s")
_LATEST = "ORDER BY m.updated_at DESC, m.n DESC"
_TOGETHER = 500
"""Facts that are fetched together where each must be looked at."""


def get(db: Db, op: GetFact) -> Fact | None:
    """Do `memoryops.GetFact`."""
    found = one(db, op.namespace, id=op.id, key=op.key)
    return None if found is None or found.gone(op.now) else found.fact


def past(db: Db, op: PastOf) -> Sequence[Past]:
    """Do `memoryops.PastOf`."""
    answer = db.finish(
        "SELECT p.version, p.text, p.kind, p.source, p.metadata, p.since, p.until, p.why"
        " FROM memory_past p JOIN memories m ON m.n = p.fact JOIN memory_spaces s ON s.n = m.space"
        f" WHERE s.mark = %s AND s.path = %s AND m.id = %s AND {LIVE} ORDER BY p.version DESC",
        (*where(op.namespace), to_blob(op.id), op.now),
    )
    return [past_of(row) for row in answer]


def meant(
    db: Db, which: Which, now: float, more: str = "", values: tuple[Any, ...] = ()
) -> Iterator[Row]:
    """The facts that are meant, the last told first; `more` is one more condition."""
    conditions, given = _conditions(which, now)
    conditions, given = conditions + more, (*given, *values)
    after: tuple[Any, ...] = ()
    while True:
        behind = " AND (m.updated_at, m.n) < (%s, %s)" if after else ""
        found = memory_spaces.rows(
            db, conditions + behind, (*given, *after), f"{_LATEST} LIMIT {_TOGETHER}"
        )
        for row in found:
            if holds(which.where, row.fact.value):
                yield row
        if len(found) < _TOGETHER:
            return
        after = (found[-1].fact.updated_at, found[-1].n)


def _conditions(which: Which, now: float) -> tuple[str, tuple[Any, ...]]:
    """Which facts are meant, but for `where`."""
    conditions, values = place_of(which)
    if not which.deep:
        # By number, so that the index of a namespace's facts is walked in their order.
        conditions = f"m.space = (SELECT s.n FROM memory_spaces s WHERE {conditions})"
    if which.kind is not None:
        return f"{conditions} AND m.kind = %s AND {LIVE}", (*values, to_blob(which.kind), now)
    return f"{conditions} AND {LIVE}", (*values, now)


def list_facts(db: Db, op: ListFacts) -> tuple[Sequence[Fact], int]:
    """Do `memoryops.ListFacts`."""
    if not op.which.where:
        return _listed(db, op)
    found: list[Fact] = []
    seen = 0
    for row in meant(db, op.which, op.now):
        if op.after <= seen < op.after + op.limit:
            found.append(row.fact)
        seen += 1
    return found, seen


def _listed(db: Db, op: ListFacts) -> tuple[Sequence[Fact], int]:
    conditions, values = _conditions(op.which, op.now)
    if op.which.kind is None:
        place, named = place_of(op.which)
        # The counts tell how many there are; few facts run out, and those have an index.
        ask = db.finish if op.limit <= 0 else db.execute
        ((total,),) = ask(
            f"SELECT coalesce(sum(s.facts), 0)::bigint - (SELECT count(*) FROM memories m"
            f" JOIN memory_spaces s ON s.n = m.space WHERE m.expires_at <= %s AND {place})"
            f" FROM memory_spaces s WHERE {place}",
            (op.now, *named, *named),
        )
    else:
        ((total,),) = db.execute(
            "SELECT count(*) FROM memories m JOIN memory_spaces s ON s.n = m.space"
            f" WHERE {conditions}",
            values,
        )
    if op.limit <= 0 or op.after >= total:
        return (), int(total)
    found = memory_spaces.rows(
        db, conditions, (*values, op.limit, op.after), f"{_LATEST} LIMIT %s OFFSET %s"
    )
    return [row.fact for row in found], int(total)


def namespaces(db: Db, op: Namespaces) -> Sequence[Namespace]:
    """Do `memoryops.Namespaces`."""
    fixed = op.prefix[: op.prefix.index("*")] if "*" in op.prefix else op.prefix
    answer = db.finish(
        f"SELECT s.parts FROM memory_spaces s WHERE {RANGE} AND EXISTS"
        f" (SELECT 1 FROM memories m WHERE m.space = s.n AND {LIVE})",
        (*within(fixed), op.now),
    )
    return namespaces_for(op, (parts_of(blob) for (blob,) in answer))
