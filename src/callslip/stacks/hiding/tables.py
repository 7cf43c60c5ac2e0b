"""Columns of CSV and TSV by name, and their cells replaced row by row. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from callslip.stacks.hiding.fields import Fields, Said
from callslip.stacks.hiding.scan import HIDDEN, decoded
from callslip.stacks.recognise.tables import cells_of

__all__ = ["Columns", "mark_of"]

_LINE = 64 * 1024


_MARKS = ("\t", ";", "|", ",")


def mark_of(fields: Fields, head: bytes) -> str:
    """What stands between the cells of a text whose first line has a masked name as one of them;
    empty if there is none."""
    lines = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")[:_LINE].splitlines()
    if not lines or not fields.near(lines[0]):
        return ""
    for mark in _MARKS:
        if any(fields.of(name) is not None for name in cells_of(lines[0], mark)):
            return mark
    return ""


class Columns:
    """The masked columns of one table: what its rows are shown as.

    `head` is the beginning of the table, its header first. A row with more or fewer cells than the
    header is hidden as a whole: which of its cells stands under which name cannot be told.
    """

    def __init__(self, fields: Fields, head: bytes, delimiter: str) -> None:
        header = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        names = cells_of(header, delimiter)
        self._fields = fields
        self._count = len(names)
        self._mark = delimiter.encode()
        self._masked: dict[int, tuple[str, Said]] = {}
        for place, name in enumerate(names):
            said = fields.of(name)
            if said is not None:
                self._masked[place] = (name, said)
        mark = re.escape(self._mark)
        self._cell = re.compile(
            rb'(?:"(?:[^"]|"")*+"[^' + mark + rb"]*|[^" + mark + rb"]*)(?:" + mark + rb"|\Z)",
            re.DOTALL,
        )

    def rows(self, raw: bytes, spans: Sequence[int], *, first: bool) -> bytes:
        """These bytes with their rows, which stand at the flat (start, end) `spans`, replaced.

        `first` says that they begin with the header. What else is no row is hidden.
        """
        out: list[bytes] = []
        done = 0
        for start, end in zip(spans[::2], spans[1::2], strict=True):
            row = raw[start:end]
            plain = not self._masked and not self._fields.near(row)
            out += self._between(raw[done:start], first), row if plain else self._row(row)
            done, first = end, False
        return b"".join([*out, self._between(raw[done:], first)])

    def _between(self, raw: bytes, header: bool) -> bytes:
        if not raw.strip():
            return raw
        if not self._masked:
            return self._fields.text(raw)[0]
        blank = len(raw) - len(raw.lstrip())
        end = raw.find(b"\n", blank) + 1 or len(raw)
        if not header:
            return HIDDEN.encode() + b"\n"
        return raw if not raw[end:].strip() else raw[:end] + HIDDEN.encode() + b"\n"

    def _row(self, row: bytes) -> bytes:
        cells = row.split(self._mark) if b'"' not in row else self._cells(row)
        if self._masked and len(cells) != self._count:
            return self._mark.join([HIDDEN.encode()] * self._count)
        near = self._fields.near(row)
        for place, cell in enumerate(cells):
            masked = self._masked.get(place)
            if masked is not None:
                cells[place] = self._written(self._fields.shown(*masked, _text(cell)))
            elif near and self._fields.near(cell):
                text = _text(cell).encode("utf-8", "surrogatepass")
                new = self._fields.text(text)[0]
                if new != text:
                    cells[place] = self._written(decoded(new))
        return self._mark.join(cells)

    def _cells(self, row: bytes) -> list[bytes]:
        found: list[bytes] = []
        at = 0
        while True:
            match = self._cell.match(row, at)
            if match is None:
                return []  # a quote that is not closed
            at = match.end()
            cell = match[0]
            if cell.endswith(self._mark) and (at < len(row) or row.endswith(self._mark)):
                found.append(cell[: -len(self._mark)])
                if at < len(row):
                    continue
                return [*found, b""]
            return [*found, cell]

    def _written(self, value: Any) -> bytes:
        text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
        raw = text.encode("utf-8", "surrogatepass")
        if any(mark in raw for mark in (b'"', b"\n", b"\r", self._mark)):
            return b'"' + raw.replace(b'"', b'""') + b'"'
        return raw


def _text(cell: bytes) -> str:
    text = decoded(cell)
    if text[:1] != '"':
        return text
    end = len(text)
    while end > 1 and text[end - 1] != '"':
        end -= 1
    return text[1 : end - 1].replace('""', '"') + text[end:]
