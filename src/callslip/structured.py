"""The verbs of a `Session` that go by record, field and path rather than by line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Literal

from callslip.access import as_it_is_now
from callslip.handle import Record
from callslip.reading.record import get
from callslip.reading.records import Records, open_records
from callslip.stacks.ops import Flow
from callslip.stacks.paths import chars_of

if TYPE_CHECKING:
    from callslip.access import Action
    from callslip.stacks.ops import Result
    from callslip.stacks.reader import Reader
    from callslip.store import ResultStore

FrameKind = Literal["pandas", "polars", "arrow"]


class Structured:
    """What `Session` inherits: it has the store, and opens a result by its id."""

    store: ResultStore

    if TYPE_CHECKING:

        def _whole(self, id: str, action: Action) -> Flow[tuple[Result, Reader]]: ...

        def _shown(self, id: str, action: Action) -> Flow[tuple[Result, Reader]]: ...

        @staticmethod
        def _value(row: Result, reader: Reader) -> Flow[Any]: ...

    def get(
        self,
        id: str,
        key: str | int,
        field: str | None = None,
        *,
        start: int = 1,
        limit: int | None = None,
        column: int = 0,
    ) -> Record:
        """One record by its number (from 1), by the value of an id-like field, or by
        `field=value`; digits in a string are an id first, and a number where no record has it; of a document one value by its path: `info.version`, `items[3].name`,
        `/items/3/name`. `field` is a path inside what was found.

        `record.value` is the value, `record.text` its exact text. A long string comes in pages,
        with its real line ends: `start`, `limit` and `column` are as for `read`, and `record.next`
        continues. Base64 comes as bytes. A key that leads nowhere gives `total` 0 and, as
        `str(record)`, what there is instead.
        """
        return self.store.run_flow(self._get(id, key, field, start, limit, column))

    async def aget(
        self,
        id: str,
        key: str | int,
        field: str | None = None,
        *,
        start: int = 1,
        limit: int | None = None,
        column: int = 0,
    ) -> Record:
        """`get`, off the event loop."""
        return await self.store.arun_flow(self._get(id, key, field, start, limit, column))

    @as_it_is_now
    def _get(
        self,
        id: str,
        key: str | int,
        field: str | None,
        start: int,
        limit: int | None,
        column: int,
    ) -> Flow[Record]:
        row, reader = yield from self._shown(id, "get")
        return (yield from get(reader, row.shape, row.id, key, field, start, limit, column))

    def records(self, id: str, path: str = "") -> Iterator[Any]:
        """All records in order, as `json.loads` reads them; a CSV row as a dict of strings.

        `path` leads to another list in a document. Read some megabyte at a time. Raises
        `QueryError` where there are no records.
        """
        for group in self.store.run_flow(self._records(id, path)).groups():
            yield from map(_loads, self.store.run_flow(group))

    async def arecords(self, id: str, path: str = "") -> AsyncIterator[Any]:
        """`records`, each group of them read off the event loop."""
        for group in (await self.store.arun_flow(self._records(id, path))).groups():
            for record in await self.store.arun_flow(group):
                yield _loads(record)

    @as_it_is_now
    def _records(self, id: str, path: str) -> Flow[Records]:
        row, reader = yield from self._whole(id, "export")
        return (yield from open_records(reader, row.shape, path))

    def frame(self, id: str, kind: FrameKind = "pandas", path: str = "") -> Any:
        """The records as a pandas or polars DataFrame, or as an Arrow table.

        A table that was stored as one of these comes back equal to it; of other rows the types are
        derived. Raises `QueryError` where there are no records, and ImportError where the library
        is not installed.
        """
        from callslip.reading import frames

        row, reader = self.store.run_flow(self._whole(id, "export"))
        if row.payload.form == kind and not path:
            return self.store.run_flow(self._value(row, reader))
        table = self.store.run_flow(open_records(reader, row.shape, path))
        texts = [text for group in table.groups() for text in self.store.run_flow(group)]
        return frames.made(kind, texts, table.fields, texts_only=table.texts)

    async def aframe(self, id: str, kind: FrameKind = "pandas", path: str = "") -> Any:
        """`frame`, off the event loop."""
        import asyncio

        return await asyncio.to_thread(self.frame, id, kind, path)


def _loads(text: bytes) -> Any:
    return json.loads(chars_of(text))
