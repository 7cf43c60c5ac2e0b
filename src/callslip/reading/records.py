"""The records of a result: one by its number, or all of them in groups; exact bytes, always.

Three kinds of result have their records elsewhere than in the stored bytes: those of a text inside
a document, columns side by side, and another list that a path leads to. They are taken out once,
and then read like any other.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Hashable, Iterator, Sequence

import msgspec

from callslip.errors import QueryError
from callslip.handle import Shape
from callslip.reading.together import Together
from callslip.stacks.directory import Chunk
from callslip.stacks.layout import from_little
from callslip.stacks.ops import Flow
from callslip.stacks.paths import Dead, Found, find, string_of
from callslip.stacks.reader import Reader
from callslip.stacks.recognise import recognise, row_objects, transposed
from callslip.stacks.records import HEAD_BYTES
from callslip.stacks.sniff import delimiter
from callslip.window.inert import plain

__all__ = ["Records", "in_stead", "open_records"]

_PATH_CHARS = 60
GROUP_BYTES = 1024 * 1024


def in_stead(reader: Reader, shape: Shape) -> Flow[Reader]:
    """The reader of what is read of a result: the text inside a document, or the result itself."""
    if not shape.inside:
        return reader
    path = shape.inside
    return (yield from reader.derived(f"text {path}", lambda body: _string(body, path)))


def _string(body: bytes, path: str) -> bytes:
    found = find(body, path)
    assert isinstance(found, Found)  # it was found when the shape was made
    return string_of(found.raw).encode("utf-8", "surrogatepass")


def open_records(reader: Reader, shape: Shape, path: str = "") -> Flow[Records]:
    """The records of a result, or of the list at `path` inside it.

    Raises QueryError, which says what there is, where there are none.
    """
    path = path.strip()
    if path and path != shape.table:
        body = yield from reader.body()
        found = find(body, path)
        if isinstance(found, Dead) or found.raw[:1] not in (b"[", b'"'):
            raise QueryError(_no_list(path, found))
        below = yield from reader.derived(f"list {found.path}", lambda body: _list(body, path))
        shape = _shape_of((yield from below.part(0, HEAD_BYTES)), below)
        if shape.records is None:
            raise QueryError(f"{path} is no list of records.")
        return Records(below, shape, path)
    if shape.records is None:
        raise QueryError("This result has no records; read it, or search it for a word.")
    if shape.format == "columns" and not shape.inside:
        below = yield from reader.derived("rows", transposed)
        return Records(below, shape, path)
    inner = yield from in_stead(reader, shape)
    if shape.format == "columns":
        inner = yield from inner.derived("rows", transposed)
    table = Records(inner, shape, path)
    if shape.format == "csv":
        head = yield from inner.part(0, HEAD_BYTES)
        table.use_header(recognise(head, "str", "str").fields, delimiter(head))
    return table


def _list(body: bytes, path: str) -> bytes:
    found = find(body, path)
    assert isinstance(found, Found)
    return string_of(found.raw).encode() if found.raw[:1] == b'"' else found.raw


def _shape_of(head: bytes, reader: Reader) -> Shape:
    directory = reader.directory
    found = recognise(head, "str", "str")
    return Shape(
        kind="rows",
        size=directory.size,
        chars=directory.chars,
        lines=directory.lines,
        records=directory.records,
        fields=found.fields,
        by_record=directory.by_record,
        format=found.format or "json",
    )


def _no_list(path: str, found: Found | Dead) -> str:
    path = plain(path, _PATH_CHARS)
    if isinstance(found, Found):
        return f"{path} is no list; get it with get_record."
    place = plain(found.path, _PATH_CHARS) if found.path else ""
    where = f"{place} has" if place else "The top level has"
    if found.names:
        names = ", ".join(plain(name, _PATH_CHARS) for name in found.names[:20])
        return f"There is no {path}. {where} these keys: {names}."
    if found.size is not None:
        return f"There is no {path}: {place or 'the whole'} is a list of {found.size:,}."
    return f"There is no {path}: {place or 'the whole'} has no parts."


class Records:
    """The records of one list, in order. `key` is the same for the same bytes and path only."""

    def __init__(self, reader: Reader, shape: Shape, path: str) -> None:
        self.reader = reader
        self.shape = shape
        self._path = path
        self._names: tuple[str, ...] = shape.fields
        self._delimiter = ","

    def use_header(self, names: tuple[str, ...], mark: str) -> None:
        """Rows of a table become objects with these names."""
        self._names, self._delimiter = names, mark

    @property
    def key(self) -> Hashable:
        """Equal for equal records."""
        return (self.reader.digest, self._path)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields, as far as the first records have them."""
        return self._names

    @property
    def count(self) -> int:
        """How many records there are."""
        return self.shape.records or 0

    @property
    def texts(self) -> bool:
        """Whether every value is text whose type is read off it, as in CSV."""
        return self.shape.format == "csv"

    def exact(self, number: int) -> Flow[bytes]:
        """The record's bytes as they were stored."""
        directory = self.reader.directory
        index = directory.chunk_of_record(number)
        chunk = yield from self.reader.chunk(index)
        at = 2 * (number - 1 - directory.record_start(index))
        start, end = chunk.spans[at], chunk.spans[at + 1]
        if end <= len(chunk.raw):
            return chunk.raw[start:end]
        return (yield from self.reader.part(directory.raw_start(index) + start, end - start))

    def record(self, number: int) -> Flow[bytes]:
        """The record as JSON text: its own bytes, or a table's row as an object."""
        raw = yield from self.exact(number)
        return self.as_json([raw])[0]

    def groups(self) -> Iterator[Flow[Sequence[bytes]]]:
        """All records as JSON texts, some megabyte at a time."""
        return map(self._as_json, self._chunk_groups())

    def _chunk_groups(self) -> Iterator[Flow[list[Chunk]]]:
        """While one group is worked on, the next is decompressed by another thread."""
        ready: dict[int, Callable[[], list[Chunk]]] = {}
        bounds = list(self.reader.groups(GROUP_BYTES))
        for place, (start, end) in enumerate(bounds):
            yield self._chunks(start, end, bounds[place + 1 : place + 2], ready)

    def _chunks(
        self,
        start: int,
        end: int,
        following: Sequence[tuple[int, int]],
        ready: dict[int, Callable[[], list[Chunk]]],
    ) -> Flow[list[Chunk]]:
        here = ready.pop(start, None)
        if self.reader.long:
            for first, behind in following:
                ready[first] = yield from self.reader.ahead(first, behind)
        return here() if here else (yield from self.reader.chunks(start, end))

    def _as_json(self, group: Flow[list[Chunk]]) -> Flow[Sequence[bytes]]:
        chunks = yield from group
        if self.shape.format in ("json", "ndjson"):
            pieces = self._together(chunks)
            if pieces is not None:
                return pieces
        return self.as_json((yield from self._cut(chunks)))

    def _together(self, chunks: Sequence[Chunk]) -> Together | None:
        """The records of these chunks uncut; None where the last one goes on in another chunk."""
        held = [chunk for chunk in chunks if chunk.steps]
        if not held:
            return None
        first, last = held[0], held[-1]
        start, end = from_little(first.steps, "I")[0], sum(from_little(last.steps, "I"))
        if end > len(last.raw):
            return None
        inside = [chunk.raw for chunk in chunks if first.index <= chunk.index <= last.index]
        inside[-1] = inside[-1][:end]
        inside[0] = inside[0][start:]
        if self.shape.format == "ndjson":
            inside = [raw.replace(b"\n", b",") for raw in inside]
        count = sum(len(chunk.steps) // 8 for chunk in held)
        return Together(inside, count, lambda: _cut(chunks))

    def _group(self, start: int, end: int) -> Flow[list[bytes]]:
        return (yield from self._cut((yield from self.reader.chunks(start, end))))

    def _cut(self, chunks: Sequence[Chunk]) -> Flow[list[bytes]]:
        found = _cut(chunks)
        for chunk in reversed(chunks):
            if chunk.steps:
                start, end = chunk.spans[-2], chunk.spans[-1]
                if len(found[-1]) < end - start:
                    at = self.reader.directory.raw_start(chunk.index) + start
                    found[-1] = yield from self.reader.part(at, end - start)
                break
        return found

    def holding(self, needles: Sequence[bytes]) -> Iterator[Flow[list[tuple[int, bytes]]]]:
        """The records, with their numbers, whose stored bytes hold one of `needles`."""
        for start, end in self.reader.groups(GROUP_BYTES):
            yield self._holding(start, end, needles)

    def _holding(
        self, start: int, end: int, needles: Sequence[bytes]
    ) -> Flow[list[tuple[int, bytes]]]:
        found: list[tuple[int, bytes]] = []
        directory = self.reader.directory
        chunks = yield from self.reader.chunks(start, end)
        for chunk in chunks:
            # A record that goes on beyond its chunk may hold it there.
            spills = not chunk.steps or chunk.spans[-1] > len(chunk.raw)
            if not spills and not any(needle in chunk.raw for needle in needles):
                continue
            number = directory.record_start(chunk.index)
            for raw in (yield from self._group(chunk.index, chunk.index + 1)):
                number += 1
                if any(needle in raw for needle in needles):
                    found.append((number, raw))
        return found

    def as_json(self, records: Sequence[bytes]) -> list[bytes]:
        """These records as JSON texts."""
        if not self.texts:
            return list(records)
        rows = [row.decode("utf-8", "replace") for row in records]
        try:
            cells = list(csv.reader(rows, delimiter=self._delimiter))
        except csv.Error:
            cells = []
        if len(cells) != len(rows):
            return row_objects(records, self._names, self._delimiter)
        names = self._names
        if not all(len(row) == len(names) for row in cells):
            return row_objects(records, self._names, self._delimiter)
        encode = msgspec.json.Encoder().encode
        return [encode(dict(zip(names, row, strict=True))) for row in cells]


def _cut(chunks: Sequence[Chunk]) -> list[bytes]:
    """The records that start in these chunks, which follow each other; the last one as far as
    they reach."""
    found: list[bytes] = []
    for place, chunk in enumerate(chunks):
        raw, spans = chunk.raw, chunk.spans.tolist()
        found += [raw[a:b] for a, b in zip(spans[::2], spans[1::2], strict=True)]
        if spans and spans[-1] > len(raw):
            rest = b"".join(other.raw for other in chunks[place:])
            found[-1] = rest[spans[-2] : spans[-1]]
    return found
