"""The flow of a query over one list of records, and its reply."""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Sequence
from typing import Any

from callslip.handle import Rows
from callslip.limits import (
    FRAME_CHARS,
    PAGE_CAP_CHARS,
    PAGE_CHARS,
    QUERY_SECONDS,
    ROWS_CAP,
    ROWS_DEFAULT,
)
from callslip.reading.page import STORED_DATA, whole
from callslip.reading.query.asked import Asked, Output, Plan, planned
from callslip.reading.query.engine import Run, streams
from callslip.reading.query.hints import way_on
from callslip.reading.query.pull import Path, tokens
from callslip.reading.query.table import Source, Tables
from callslip.reading.suggest import quoted
from callslip.stacks.ops import Flow
from callslip.window.inert import attr, inert, shown

__all__ = ["numbers", "query"]

_ID_CHARS = 80
_SAID_CHARS = 80
_RECORD_CHARS = 400
"""What a reply shows of one record at least, where several share its room."""


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
    asked = Asked.of(where, fields, order_by, group_by)
    table = tables.of(source)
    plan = yield from planned(asked, source, table)
    tables.trim()
    call = _call(id, asked, path, fields, order_by, group_by)
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
        records = [_object(plan.outputs, row) for row in rows]
    marks = [] if plan.grouped else [f"#{row[0]} " for row in found]
    return _reply(
        source, id, asked, plan, records, marks, total, skip, count, call, hint, page_chars
    )


def numbers(
    source: Source,
    tables: Tables,
    where: object = None,
    order_by: object = None,
    *,
    seconds: float = QUERY_SECONDS,
) -> Flow[list[int]]:
    """The numbers (from 1) of all records that match, for `save_as` and for Python code."""
    asked = Asked.of(where, None, order_by, None)
    plan = yield from planned(asked, source, tables.of(source))
    tables.trim()
    if not plan.condition and not asked.order_by:
        return list(range(1, source.count + 1))
    with Run(streams(plan.compiler, plan.names), seconds) as run:
        sql = f"SELECT t0.n {plan.matched}{plan.order}"
        return [row[0] for row in run.rows(sql, plan.compiler.parameters)]


def _records(
    source: Source, found: Sequence[int], paths: list[tuple[str, Path]] | None
) -> Flow[list[str]]:
    raw: list[bytes] = []
    for number in found:
        raw.append((yield from source.record(number)))
    if paths is None:
        return [_text(record) for record in raw]
    columns = [(json.dumps(name, ensure_ascii=False), tokens(raw, path)) for name, path in paths]
    return [
        "{" + ", ".join(f"{name}: {_text(each[place]) or 'null'}" for name, each in columns) + "}"
        for place in range(len(raw))
    ]


def _text(raw: bytes) -> str:
    return shown(raw.decode("utf-8", "surrogateescape"))


def _object(outputs: list[Output], row: Sequence[Any]) -> str:
    parts = []
    for output, value in zip(outputs, row, strict=True):
        text = value if output.json and value is not None else _json(value)
        parts.append(f"{json.dumps(output.name, ensure_ascii=False)}: {text}")
    return "{" + ", ".join(parts) + "}"


def _json(value: Any) -> str:
    if isinstance(value, decimal.Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "null" if math.isnan(value) else "1e999" if value > 0 else "-1e999"
    return json.dumps(value, ensure_ascii=False, default=str)


# --- the reply ------------------------------------------------------------------------------------


def _call(
    id: str, asked: Asked, path: str, fields: object, order_by: object, group_by: object
) -> str:
    """The call as it was made, without its end: `query_result("id", where=…`."""
    call = f'query_result("{attr(id, _ID_CHARS)}"'
    given = {"where": asked.said, "fields": fields, "order_by": order_by, "group_by": group_by}
    given["path"] = path
    for name, value in given.items():
        if value:
            text = value if isinstance(value, str) else ", ".join(map(str, value))  # type: ignore[call-overload]
            said = quoted(text)
            call += f", {name}={said if said.startswith(chr(34)) else 'the same'}"
    return call


def _reply(
    source: Source,
    id: str,
    asked: Asked,
    plan: Plan,
    records: list[str],
    marks: list[str],
    total: int,
    skip: int,
    count: int,
    call: str,
    hint: str,
    page_chars: int,
) -> Rows:
    name = attr(id, _ID_CHARS)
    what = "group" if plan.grouped else "record"
    held = f"{source.count:,} record{'s' * (source.count != 1)}"
    condition = f" where {attr(shown(asked.said), _SAID_CHARS)}" if asked.said else ""
    plural = "" if total == 1 else "s"
    if plan.grouped:
        said = f"{total:,} {what}{plural} in the {held} of {name}{condition}."
    elif asked.said:
        said = f"{total:,} of the {held} of {name} match{'es' * (total == 1)}{condition}."
    else:
        said = f"{name} has {held}."
    if total == 0:
        return Rows((), "", 0, None, f"{said} {hint}".strip())
    if count == 0:
        return Rows((), "", total, None, f"{said} See them with {call}).")
    if not records:
        return Rows((), "", total, None, f"{said} None is left after {skip:,}; see {call}).")

    most = PAGE_CAP_CHARS - FRAME_CHARS
    room = most if count > ROWS_DEFAULT else min(most, page_chars)
    lines, cut = _lines(records, marks, room)
    taken = len(lines)
    last = skip + taken
    following = {"after": last} if last < total else None
    reach = f"{skip + 1}-{last}" if taken > 1 else f"{last}"
    counted = "groups" if plan.grouped else "matched"
    tag = f'<rows {counted}="{total}" shown="{reach}" of="{held}" id="{name}"'
    if asked.said:
        tag += f' where="{attr(shown(asked.said), _SAID_CHARS)}"'
    notes = [STORED_DATA]
    if cut:
        number = marks[cut[0]][1:-1] if marks else ""
        notes.append(
            f'Longer records are cut: get_record("{name}", {number}) has #{number} whole.'
            if marks
            else "Longer values are cut."
        )
    if following is not None:
        notes.append(f"{total - last:,} more: {call}, after={last}).")
    rendered = "\n".join([tag + ">", *lines, "</rows>", " ".join(notes)])
    text = "\n".join(" ".join(record.split("\n")) for record in records[:taken])
    return Rows(tuple(records[:taken]), text, total, following, rendered)


def _lines(records: list[str], marks: list[str], room: int) -> tuple[list[str], list[int]]:
    """As many records as the room holds, one a line, and the places of those that are cut."""
    lines: list[str] = []
    cut: list[int] = []
    used = 0
    each = max(_RECORD_CHARS, room // len(records))
    for place, record in enumerate(records):
        mark = marks[place] if marks else ""
        text = inert(" ".join(record.splitlines()))
        most = min(each, room) - len(mark) - 1
        if len(text) > most:
            # Room that shorter ones leave is for the longer ones.
            left = room - used - sum(min(len(other) + 8, each) for other in records[place + 1 :])
            most = max(most, left - len(mark) - 1)
        if len(text) > most:
            text = text[: most - 1] + "…"
        if used + len(mark) + len(text) + 1 > room and lines:
            break
        if text.endswith("…") and len(text) == most:
            cut.append(place)
        lines.append(mark + text)
        used += len(mark) + len(text) + 1
    return lines, cut
