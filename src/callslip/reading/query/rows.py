"""The flow of a query over one list of records, and its reply."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from callslip.handle import Rows
from callslip.limits import (
    PAGE_CHARS,
    QUERY_SECONDS,
    ROWS_CAP,
    ROWS_DEFAULT,
)
from callslip.reading.page import whole
from callslip.reading.query.asked import Asked, fields_of, planned
from callslip.reading.query.engine import Run, streams
from callslip.reading.query.hints import way_on
from callslip.reading.query.pull import Path, tokens
from callslip.reading.query.reply import as_object, call_of, matched
from callslip.reading.query.table import Source, Tables
from callslip.stacks.ops import Flow
from callslip.window.inert import shown

__all__ = ["chosen_of", "query"]


def query(
    source: Source,
    id: str,
    tables: Tables,
    where: object = None,
    fields: object = None,
    order_by: object = None,
    group_by: object = None,
    limit: object = None,
    after: object = 0,
    path: str = "",
    page_chars: int = PAGE_CHARS,
    *,
    seconds: float = QUERY_SECONDS,
) -> Flow[Rows]:
    """Records that match, in order, or totals over them.

    `where` is an SQL condition, or field -> value (a list of values: any of them); `fields` names
    or expressions (`count(*)`, `sum(amount) as paid`), all by default; `order_by` such as
    `amount desc, name`; with `group_by` one record comes out for each group, the largest first.
    `total` counts all; `after` skips that many and up to `limit` are shown (0: only the count).
    Whole records and their fields are given as their exact text. `str(rows)` stays under
    `PAGE_CAP_CHARS`.

    Raises QueryError (wrong field, wrong type, not taken, more than `seconds`), PayloadDamaged and
    StoreUnavailable.
    """
    count = min(whole(limit, 0, ROWS_DEFAULT), ROWS_CAP)
    skip = whole(after, 0, 0)
    table = tables.of(source)
    known = yield from fields_of(source, table, fields, order_by, group_by)
    asked = Asked.of(where, fields, order_by, group_by, known)
    plan = yield from planned(asked, source, table)
    tables.trim()
    given = {"where": asked.said, "fields": fields, "order_by": order_by, "group_by": group_by}
    call = call_of(id, given | {"path": path})
    found: list[tuple[Any, ...]]
    hint = ""
    if plan.whole and not plan.condition and not asked.order_by:
        # Records in their own order: their numbers are known.
        total = source.count
        found = [(number,) for number in range(skip + 1, min(skip + count, total) + 1)]
    else:
        with Run(streams(plan.compiler, plan.names), seconds) as run:
            bound = plan.compiler.parameters
            total = run.rows(plan.counting, bound)[0][0]
            found = run.rows(plan.listing(count, skip), bound) if count and total > skip else []
            if total == 0:
                hint = way_on(plan, run)
    if plan.whole:
        records = yield from _records(source, [row[0] for row in found], plan.paths)
    else:
        rows = found if plan.grouped else [row[1:] for row in found]
        records = [as_object(plan.outputs, row) for row in rows]
    marks = [] if plan.grouped else [f"#{row[0]} " for row in found]
    return matched(
        records,
        marks,
        total,
        skip,
        count,
        id,
        source.count,
        asked.said,
        call,
        hint,
        page_chars,
        plan.grouped,
    )


def _records(
    source: Source, found: Sequence[int], paths: list[tuple[str, Path]] | None
) -> Flow[list[str]]:
    raw: list[bytes] = []
    for number in found:
        raw.append((yield from source.record(number)))
    return [shown(record.decode("utf-8", "surrogateescape")) for record in chosen_of(raw, paths)]


def chosen_of(records: list[bytes], paths: list[tuple[str, Path]] | None) -> list[bytes]:
    """The records themselves, or of each the fields at `paths`, in their exact text."""
    if paths is None:
        return records
    names = [json.dumps(name, ensure_ascii=False).encode() for name, _ in paths]
    columns = [tokens(records, path) for _, path in paths]
    return [
        b"{"
        + b", ".join(n + b": " + (c[p] or b"null") for n, c in zip(names, columns, strict=True))
        + b"}"
        for p in range(len(records))
    ]
