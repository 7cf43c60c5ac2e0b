"""A way on where nothing matched: what the fields that were compared really hold."""

from __future__ import annotations

import difflib
import json

from callslip.errors import QueryError
from callslip.reading.query.asked import Plan
from callslip.reading.query.engine import Run
from callslip.reading.query.typed import Typed
from callslip.window.inert import inert, plain, shown

__all__ = ["way_on"]

_FIELDS = 2
_VALUES = 5
_VALUE_CHARS = 40
_LOOKED_AT = 2000


def way_on(plan: Plan, run: Run) -> str:
    """What the compared fields hold, in a sentence or two. Never raises on what is there."""
    said: list[str] = []
    seen: set[str] = set()
    for side, _, value in plan.compiler.compared:
        if side.where in seen or len(said) == _FIELDS:
            continue
        seen.add(side.where)
        try:
            holds = _holds(run, side, value)
        except QueryError:
            # No time or memory is left for advice; the answer itself stands.
            break
        if holds:
            said.append(inert(holds))
    return " ".join(said) or "Try another condition."


def _holds(run: Run, side: Typed, value: object) -> str:
    name = plain(shown(side.name), 60)
    column = side.column
    if column is None or column.kind == "null":
        return f"{name} is null in all of them."
    nulls = f" ({column.nulls:,} null)" if column.nulls else ""
    if column.kind in ("integer", "big", "number"):
        low, high = run.rows(f"SELECT min({side.where}), max({side.where}) FROM t0", [])[0]
        return f"{name} goes from {low} to {high}{nulls}."
    shown_as = side.sql if column.kind != "mixed" else side.where
    sql = f"SELECT {shown_as}, count(*) FROM t0 WHERE {side.where} IS NOT NULL GROUP BY 1"
    rows = run.rows(f"{sql} ORDER BY 2 DESC, 1 LIMIT {_LOOKED_AT}", [])
    if column.kind == "boolean":
        return f"{name}: {_counted([(str(v).lower(), n) for v, n in rows])}{nulls}."
    values = {str(v): n for v, n in rows}
    if isinstance(value, str) and column.kind == "text":
        wanted = value.strip("%").lower()
        like = [v for v in values if v.strip().lower() == wanted and wanted]
        near = like or difflib.get_close_matches(
            value.strip("%"), [v for v in values if len(v) < 100][:500], n=3, cutoff=0.6
        )
        if near and len(values) > _VALUES:
            return f"{name} holds values like it: {_counted([(v, values[v]) for v in near])}."
    more = "" if len(values) <= _VALUES else " and others"
    most = "holds" if not more else "holds most often"
    return f"{name} {most} {_counted(list(values.items())[:_VALUES])}{more}{nulls}."


def _counted(values: list[tuple[str, int]]) -> str:
    return ", ".join(
        f"{json.dumps(shown(value[:_VALUE_CHARS]), ensure_ascii=False)} ({count:,})"
        for value, count in values
    )
