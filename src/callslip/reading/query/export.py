"""The whole outcome of a query, for `save_as` and for Python code: nothing of it passes a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from callslip.errors import QueryError
from callslip.limits import COLUMNS_CACHED_BYTES, QUERY_SECONDS
from callslip.reading.query.asked import Asked, fields_of, planned
from callslip.reading.query.engine import Run, streams
from callslip.reading.query.pull import Path
from callslip.reading.query.reply import as_object
from callslip.reading.query.rows import chosen_of
from callslip.reading.query.select import Select, compiled
from callslip.reading.query.table import Source, Tables
from callslip.stacks.ops import Flow

__all__ = ["export", "export_select", "numbers"]

_COMPUTED: Final = 1_000_000
"""Rows that are computed rather than taken as they are: the engine hands them over at once."""

Groups = Iterator[Flow[list[bytes]]]


def numbers(
    source: Source,
    tables: Tables,
    where: object = None,
    order_by: object = None,
    *,
    seconds: float = QUERY_SECONDS,
) -> Flow[Sequence[int]]:
    """The numbers (from 1) of all records that match, in order. Raises QueryError."""
    table = tables.of(source)
    known = yield from fields_of(source, table, order_by)
    asked = Asked.of(where, None, order_by, None, known)
    plan = yield from planned(asked, source, table)
    tables.trim()
    if not plan.condition and not plan.order:
        return range(1, source.count + 1)
    with Run(streams(plan.compiler, plan.names), seconds) as run:
        sql = f"SELECT t0.n {plan.matched}{plan.order}"
        return [row[0] for row in run.rows(sql, plan.compiler.parameters)]


def export(
    source: Source,
    tables: Tables,
    where: object = None,
    fields: object = None,
    order_by: object = None,
    group_by: object = None,
    *,
    seconds: float = QUERY_SECONDS,
) -> Flow[Groups]:
    """All that `query` would answer: groups of JSON texts, one record each, without line ends.

    Whole records and their fields keep their exact text. In their own order they stream, some
    megabyte at a time; in another order they are held. Raises QueryError, also for more than
    a million computed rows.
    """
    table = tables.of(source)
    known = yield from fields_of(source, table, fields, order_by, group_by)
    asked = Asked.of(where, fields, order_by, group_by, known)
    plan = yield from planned(asked, source, table)
    tables.trim()
    wanted: Sequence[int] = range(1, source.count + 1)
    if plan.whole and not plan.condition and not plan.order:
        return _picked(source, wanted, plan.paths)
    with Run(streams(plan.compiler, plan.names), seconds) as run:
        bound = plan.compiler.parameters
        if not plan.whole:
            rows = run.rows(plan.listing(_COMPUTED + 1, 0), bound)
            if not plan.grouped:
                rows = [row[1:] for row in rows]
            return _computed([as_object(plan.outputs, row) for row in rows])
        sql = f"SELECT t0.n {plan.matched}{plan.order}"
        wanted = [row[0] for row in run.rows(sql, bound)]
    return _picked(source, wanted, plan.paths)


def export_select(
    asked: Select, sources: Sequence[Source], tables: Tables, *, seconds: float = QUERY_SECONDS
) -> Flow[Groups]:
    """All rows of a select, as JSON texts. Raises QueryError."""
    made = yield from compiled(asked, sources, tables)
    most, before = made.most, made.before
    with Run(streams(made.compiler, made.names), seconds) as run:
        count = _COMPUTED + 1 if most is None else min(most, _COMPUTED + 1)
        page = f" LIMIT {count} OFFSET {before}"
        rows = run.rows(made.core + made.order + page, made.compiler.parameters)
    return _computed([as_object(made.outputs, row) for row in rows])


def _computed(texts: list[str]) -> Groups:
    if len(texts) > _COMPUTED:
        raise QueryError(f"More than {_COMPUTED:,} rows come out; narrow it with a condition.")

    def group(start: int) -> Flow[list[bytes]]:
        return [_line(text.encode()) for text in texts[start : start + 10_000]]
        yield

    return (group(start) for start in range(0, len(texts), 10_000))


def _picked(source: Source, wanted: Sequence[int], paths: list[tuple[str, Path]] | None) -> Groups:
    ordered = isinstance(wanted, range) or all(a < b for a, b in pairwise(wanted))
    if ordered:
        return _streamed(source, wanted, paths)
    return iter([_gathered(source, wanted, paths)])


def _streamed(
    source: Source, wanted: Sequence[int], paths: list[tuple[str, Path]] | None
) -> Groups:
    number = place = 0

    def group(flow: Flow[Sequence[bytes]]) -> Flow[list[bytes]]:
        nonlocal number, place
        records = yield from flow
        found: list[bytes] = []
        while place < len(wanted) and wanted[place] <= number + len(records):
            found.append(records[wanted[place] - number - 1])
            place += 1
        number += len(records)
        return [_line(record) for record in chosen_of(found, paths)]

    for flow in source.groups():
        if place >= len(wanted):
            return
        yield group(flow)


def _gathered(
    source: Source, wanted: Sequence[int], paths: list[tuple[str, Path]] | None
) -> Flow[list[bytes]]:
    held: dict[int, bytes] = {}
    size = 0
    for flow in _streamed(source, sorted(wanted), paths):
        for record in (yield from flow):
            held[len(held)] = record
            size += len(record)
        if size > COLUMNS_CACHED_BYTES:
            raise QueryError("These records are too large to be put in order; save them without.")
    at = {number: place for place, number in enumerate(sorted(wanted))}
    return [held[at[number]] for number in wanted]


def _line(record: bytes) -> bytes:
    """A record in one line: outside of strings a line end is but a blank, inside there is none."""
    if b"\n" in record or b"\r" in record:
        return record.replace(b"\r", b" ").replace(b"\n", b" ")
    return record
