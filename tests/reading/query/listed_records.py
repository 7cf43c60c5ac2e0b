"""Records held in a list, as a source of queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from callslip.handle import Rows
from callslip.reading.query import Tables, numbers, query
from callslip.stacks.ops import Flow

T = TypeVar("T")


class Listed:
    """A source over exact record texts, in groups of `group` records."""

    def __init__(self, records: Sequence[bytes], *, group: int = 1000, texts: bool = False) -> None:
        self.records = list(records)
        self.key = object()
        self.count = len(self.records)
        self.texts = texts
        self.fields: tuple[str, ...] = ()
        self.read = 0
        self._group = group
        if self.records:
            try:
                first = json.loads(self.records[0])
            except ValueError:
                first = None
            if isinstance(first, dict):
                self.fields = tuple(first)

    def groups(self) -> Iterator[Flow[list[bytes]]]:
        for start in range(0, self.count, self._group):
            yield self._some(start)

    def _some(self, start: int) -> Flow[list[bytes]]:
        self.read += 1
        return self.records[start : start + self._group]
        yield

    def record(self, number: int) -> Flow[bytes]:
        return self.records[number - 1]
        yield


def listed(*values: Any, **how: Any) -> Listed:
    return Listed([json.dumps(value).encode() for value in values], **how)


def run(flow: Flow[T]) -> T:
    """Drive a flow that asks for no operation."""
    try:
        next(flow)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("a query asks for no operation of its own")


def ask(source: Listed, where: object = None, tables: Tables | None = None, **how: Any) -> Rows:
    return run(query(source, "res_abc12345", tables or Tables(), where, **how))


def matching(source: Listed, where: object, **how: Any) -> list[int]:
    return list(run(numbers(source, Tables(), where, **how)))


def values(rows: Rows) -> list[Any]:
    return [json.loads(record) for record in rows.records]
