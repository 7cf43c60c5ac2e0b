"""Records as a table whose columns are made when a query first names them, and kept.

What may live here: which columns there are and how long they are kept. No engine.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Protocol

from callslip.errors import QueryError
from callslip.limits import COLUMNS_CACHED_BYTES
from callslip.reading.query.columns import Builder, Column
from callslip.reading.query.pull import Path, field_names, pull
from callslip.reading.together import bytes_of, united
from callslip.stacks.ops import Flow

__all__ = ["Source", "Table", "Tables"]

_BLOCK_ROWS = 32 * 1024
_BLOCK_BYTES = 4 * 1024 * 1024
"""Records that are decoded at once. It bounds how long the interpreter's lock is held (some 6 ms),
what one step of the engine works on, and how soon it can be interrupted."""


class Source(Protocol):
    """The records of a result, or of one list inside a document."""

    @property
    def key(self) -> Hashable:
        """The same for the same bytes, and for nothing else: (digest, path)."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of fields, as far as they are known without reading."""

    @property
    def count(self) -> int:
        """How many records there are."""

    @property
    def texts(self) -> bool:
        """True for CSV: every value came as text, and types are read off it."""

    def groups(self) -> Iterator[Flow[Sequence[bytes]]]:
        """The exact text of all records, in order, some megabyte at a time."""

    def record(self, number: int) -> Flow[bytes]:
        """The exact text of one record, from 1."""


class Table:
    """The columns of one source, as far as they were asked for."""

    def __init__(self) -> None:
        self.rows: list[int] | None = None
        """How many records each batch of a column holds. The same for all columns."""
        self.numbers: list[array[int]] = []
        self.columns: dict[Path, Column] = {}
        self.names: dict[str, None] | None = None
        """Every field of every record, once somebody had to know."""

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        columns = sum(column.size for column in self.columns.values())
        return columns + 8 * sum(self.rows or ())

    def ensure(self, source: Source, paths: Sequence[Path]) -> Flow[None]:
        """Make the columns of these paths that are not there yet: one pass over the records.

        Raises QueryError if they would take more than `COLUMNS_CACHED_BYTES`.
        """
        wanted = [path for path in dict.fromkeys(paths) if path not in self.columns]
        if not wanted and self.rows is not None:
            return
        builders = [Builder(texts=source.texts) for _ in wanted]
        rows: list[int] = []
        for block in _blocks(source):
            records = yield from block
            if not records:
                continue
            rows.append(len(records))
            if wanted:
                for builder, values in zip(builders, pull(records, wanted), strict=True):
                    builder.add(values)
                if sum(builder.size for builder in builders) > COLUMNS_CACHED_BYTES:
                    raise QueryError(
                        "These fields are too large to be queried; name fewer or shorter ones, "
                        "or search the result for a word."
                    )
        if self.rows is None:
            ends = list(accumulate(rows, initial=1))
            # Several threads may be here at once, with the same: each sets all of it, or none.
            self.numbers = [array("q", range(a, b)) for a, b in pairwise(ends)]
            self.rows = rows
        for path, builder in zip(wanted, builders, strict=True):
            self.columns[path] = builder.finish()

    def all_names(self, source: Source) -> Flow[dict[str, None]]:
        """The names of all fields of all records: a pass of its own, for when one is not found."""
        if self.names is None:
            names = dict.fromkeys(source.fields)
            for block in _blocks(source):
                field_names((yield from block), names)
            self.names = names
        return self.names


def _blocks(source: Source) -> Iterator[Flow[Sequence[bytes]]]:
    """Groups of the source, joined until they are worth a step. Always cut in the same places."""
    groups = source.groups()
    done = False

    def block() -> Flow[Sequence[bytes]]:
        nonlocal done
        held: list[Sequence[bytes]] = []
        size = rows = 0
        while rows < _BLOCK_ROWS and size < _BLOCK_BYTES:
            group = next(groups, None)
            if group is None:
                done = True
                break
            found = yield from group
            if found:
                held.append(found)
                rows += len(found)
                size += bytes_of(found)
        return united(held) if held else ()

    while not done:
        yield block()


class Tables:
    """The tables that were used lately, of all results, within `COLUMNS_CACHED_BYTES`."""

    def __init__(self, room: int = COLUMNS_CACHED_BYTES) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._tables: OrderedDict[Hashable, Table] = OrderedDict()

    def of(self, source: Source) -> Table:
        """The table of a source, new or with the columns it has by now."""
        with self._lock:
            table = self._tables.get(source.key)
            if table is None:
                table = self._tables[source.key] = Table()
            self._tables.move_to_end(source.key)
            return table

    def trim(self) -> None:
        """Let go of what was not used for longest, until the rest fits."""
        with self._lock:
            size = sum(table.size for table in self._tables.values())
            while size > self._room and self._tables:
                _, table = self._tables.popitem(last=False)
                size -= table.size

    def forget(self, digest: bytes) -> None:
        """Drop what is kept of one payload: every key that is this digest, or starts with it."""
        with self._lock:
            for key in list(self._tables):
                if key == digest or (isinstance(key, tuple) and digest in key[:1]):
                    del self._tables[key]
