"""The verbs of a `Session` that ask its records: which match, how many, joined with what.

What may live here: opening the records that a query names, and keeping its outcome as a result.
The query itself is `callslip.reading.query`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, overload

from callslip import limits, offloading
from callslip.access import as_it_is_now
from callslip.errors import QueryError
from callslip.handle import Handle, Rows, Scope, Source
from callslip.reading.records import Records, open_records
from callslip.stacks.auditops import SubjectsOf
from callslip.stacks.ops import Flow, do
from callslip.window.inert import plain
from callslip.window.survey import DocumentOutline, outline_of

if TYPE_CHECKING:
    from callslip.access import Action
    from callslip.reading.query import Select
    from callslip.stacks.ops import Result
    from callslip.stacks.reader import Reader
    from callslip.stacks.writing import Call
    from callslip.store import ResultStore

__all__ = ["Queried"]

Where = str | Mapping[str, Any] | None
Names = str | Sequence[str] | None
_LISTS = 8
_PATH_CHARS = 60
_Groups = Iterator[Flow[list[bytes]]]


class Queried:
    """What `Session` inherits: it has the store, and opens what may be shown of a result by its id."""

    store: ResultStore
    scope: Scope
    subjects: tuple[str, ...]

    if TYPE_CHECKING:

        def _shown(self, id: str, action: Action) -> Flow[tuple[Result, Reader]]: ...

        def _call(self, tool: str, args: Any, call_id: str | None, status: str) -> Call: ...

    @overload
    def query(
        self,
        id: str,
        where: Where = None,
        fields: Names = None,
        order_by: Names = None,
        group_by: Names = None,
        *,
        limit: int | None = None,
        after: int = 0,
        path: str = "",
        save_as: None = None,
    ) -> Rows: ...

    @overload
    def query(
        self,
        id: str,
        where: Where = None,
        fields: Names = None,
        order_by: Names = None,
        group_by: Names = None,
        *,
        limit: int | None = None,
        after: int = 0,
        path: str = "",
        save_as: str,
    ) -> Handle: ...

    def query(
        self,
        id: str,
        where: Where = None,
        fields: Names = None,
        order_by: Names = None,
        group_by: Names = None,
        *,
        limit: int | None = None,
        after: int = 0,
        path: str = "",
        save_as: str | None = None,
    ) -> Rows | Handle:
        """Records of a result that match, in order, or totals over them.

        where      an SQL condition over the fields (`status = 'failed' and amount > 100`, `like`,
                   `in`, `is null`, nested `a.b`, `tags[0]`), or field -> value
        fields     names or expressions (`count(*)`, `sum(amount) as paid`); all fields by default
        order_by   `amount desc, name`; by default the records' own order
        group_by   fields: one record comes out for each group, the largest first
        path       another list in a document: `executions`, `data.items`
        save_as    the whole outcome becomes a result of that name, and its handle is the answer:
                   however many rows, none of them passes a window; `limit` and `after` say
                   what is shown, so they do not cut what is kept

        `rows.total` counts all that match; `limit` of them (8 by default, 0 to only count) are
        shown after skipping `after`. A whole record keeps its exact text. Raises `QueryError`, which
        says what there is, for a wrong field, a wrong type, what is not taken, more than 2 seconds.
        """
        given = (where, fields, order_by, group_by, limit, after, path, save_as)
        return self.store.run_flow(self._query(id, *given))

    @overload
    async def aquery(
        self,
        id: str,
        where: Where = None,
        fields: Names = None,
        order_by: Names = None,
        group_by: Names = None,
        *,
        limit: int | None = None,
        after: int = 0,
        path: str = "",
        save_as: None = None,
    ) -> Rows: ...

    @overload
    async def aquery(
        self,
        id: str,
        where: Where = None,
        fields: Names = None,
        order_by: Names = None,
        group_by: Names = None,
        *,
        limit: int | None = None,
        after: int = 0,
        path: str = "",
        save_as: str,
    ) -> Handle: ...

    async def aquery(
        self,
        id: str,
        where: Where = None,
        fields: Names = None,
        order_by: Names = None,
        group_by: Names = None,
        *,
        limit: int | None = None,
        after: int = 0,
        path: str = "",
        save_as: str | None = None,
    ) -> Rows | Handle:
        """`query`, off the event loop."""
        given = (where, fields, order_by, group_by, limit, after, path, save_as)
        return await self.store.arun_flow(self._query(id, *given))

    @as_it_is_now
    def _query(
        self,
        id: str,
        where: Where,
        fields: Names,
        order_by: Names,
        group_by: Names,
        limit: int | None,
        after: int,
        path: str,
        save_as: str | None,
    ) -> Flow[Rows | Handle]:
        from callslip.reading.query import export, query

        path = path.strip()
        row, source = yield from self._source(id, path)
        asked = (where, fields, order_by, group_by)
        if not save_as:
            found = query(source, row.id, self.store.tables, *asked, limit, after, path)
            return (yield from found)
        groups = yield from export(source, self.store.tables, *asked)
        names = ("where", "fields", "order_by", "group_by", "path")
        said: dict[str, Any] = {"of": row.id, **dict(zip(names, (*asked, path), strict=True))}
        table = source.texts and not group_by
        about = yield from self._about([row])
        return (yield from self._saved(groups, save_as, said, table, about))

    @overload
    def sql(
        self, sql: str, *, limit: int | None = None, after: int = 0, save_as: None = None
    ) -> Rows: ...

    @overload
    def sql(
        self, sql: str, *, limit: int | None = None, after: int = 0, save_as: str
    ) -> Handle: ...

    def sql(
        self, sql: str, *, limit: int | None = None, after: int = 0, save_as: str | None = None
    ) -> Rows | Handle:
        """One read-only `select` over results of this session, each by its id as a table.

        `select c.name, sum(o.amount) as paid from res_1f… o join res_a9… c on o.customer = c.id
        group by c.name order by paid desc`; `res_1f….data.items` is a list inside a document.
        `limit`, `after`, `save_as` and what it raises as for `query`.
        """
        return self.store.run_flow(self._sql(sql, limit, after, save_as))

    @overload
    async def asql(
        self, sql: str, *, limit: int | None = None, after: int = 0, save_as: None = None
    ) -> Rows: ...

    @overload
    async def asql(
        self, sql: str, *, limit: int | None = None, after: int = 0, save_as: str
    ) -> Handle: ...

    async def asql(
        self, sql: str, *, limit: int | None = None, after: int = 0, save_as: str | None = None
    ) -> Rows | Handle:
        """`sql`, off the event loop."""
        return await self.store.arun_flow(self._sql(sql, limit, after, save_as))

    @as_it_is_now
    def _sql(
        self, sql: str, limit: int | None, after: int, save_as: str | None
    ) -> Flow[Rows | Handle]:
        from callslip.reading.query import Select, export_select, select

        asked = Select.of(sql)
        rows, sources = yield from self._sources(asked)
        if not save_as:
            return (yield from select(asked, sources, self.store.tables, sql, limit, after))
        groups = yield from export_select(asked, sources, self.store.tables)
        about = yield from self._about(rows)
        return (yield from self._saved(groups, save_as, {"sql": sql}, False, about))

    def _source(self, id: str, path: str) -> Flow[tuple[Result, Records]]:
        row, reader = yield from self._shown(id, "query")
        if not path and row.shape.kind == "document" and row.shape.records is None:
            raise QueryError(_lists((yield from reader.body()), row.id))
        return row, (yield from open_records(reader, row.shape, path))

    def _sources(self, asked: Select) -> Flow[tuple[list[Result], list[Records]]]:
        rows, found = [], []
        for named in asked.tables:
            row, source = yield from self._source(named.id, named.path)
            rows.append(row)
            found.append(source)
        return rows, found

    def _about(self, rows: Sequence[Result]) -> Flow[tuple[str, ...]]:
        """Whom the outcome of a query over those results is about: whom any of them is about."""
        found = dict.fromkeys(self.subjects)
        for row in rows:
            found |= dict.fromkeys((yield from do(SubjectsOf(row.scope, row.id))))
        return tuple(found)

    def _saved(
        self,
        groups: _Groups,
        name: str,
        said: Mapping[str, Any],
        table: bool,
        about: tuple[str, ...],
    ) -> Flow[Handle]:
        """The outcome as a result of its own, written as it is read."""
        first: list[bytes] = []
        for flow in groups:
            first = yield from flow
            if first:
                break
        if not first:
            raise QueryError("Nothing comes out of this query, so nothing was saved.")
        rest = (self.store.run_flow(flow) for flow in groups)
        lines = chain([first], rest)
        name = name.strip()[: limits.TOOL_NAME_CHARS] or "query"
        args = {key: value for key, value in said.items() if value}
        call = replace(self._call(name, args, None, ""), subjects=about)
        return (
            yield from offloading.keep(self.store, self.scope, _Kept(lines, first, table), call)
        )


def _lists(body: bytes, id: str) -> str:
    """What to ask of a document, which has no records itself."""
    outline = outline_of(body, "application/json")
    found: dict[str, int] = {}
    if isinstance(outline, DocumentOutline):
        for part in (*outline.parts, *outline.around, *outline.largest):
            if part.type == "list" and part.names:
                found.setdefault(plain(part.path, _PATH_CHARS), part.count)
    if not found:
        return f'This document has no list of records; get a part with get_record("{id}", path).'
    (first, count), *rest = list(found.items())[:_LISTS]
    others = "".join(f", {path} ({many:,})" for path, many in rest)
    call = f'query_result("{id}", where, path="{first}")'
    return f"This is a document; its lists are asked by path: {call} of {count:,} records{others}."


class _Kept:
    """Rows on their way into the store, as blocks: one JSON text a line, or CSV where the rows are
    those of a CSV, so that their types go on being read off the texts."""

    source: Source = "str"
    twin: bytes | None = None

    def __init__(self, groups: Iterator[list[bytes]], first: list[bytes], table: bool) -> None:
        self._groups = groups
        cells = [json.loads(row) for row in first[:100]] if table else [None]
        plain = all(isinstance(row, dict) and _texts(row) for row in cells)
        self._names = list(cells[0]) if plain and cells[0] else None
        self.form = "items" if self._names is None else "str"

    def __iter__(self) -> Iterator[bytes]:
        if self._names is not None:
            yield _rows([self._names])
        for group in self._groups:
            if self._names is None:
                yield b"".join(line + b"\n" for line in group)
            else:
                records = map(json.loads, group)
                yield _rows([[record.get(n) for n in self._names] for record in records])


def _texts(row: Mapping[str, Any]) -> bool:
    return bool(row) and all(isinstance(cell, str) for cell in row.values())


def _rows(rows: Sequence[Sequence[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")
