"""Columns of CSV and TSV by name, and their cells replaced row by row. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from callslip.stacks.hiding.fields import Fields
from callslip.stacks.hiding.scan import HIDDEN, decoded
from callslip.stacks.recognise.tables import Table, cells_of

__all__ = ["Columns", "mark_of"]

_LINE = 64 * 1024
_BEFORE = 20
_MARKS = ("\t", ";", "|", ",")
_LONE = re.compile(rb"\r(?!\n)")
_LINE_END = re.compile(rb"\r\n|[\r\n]")


def mark_of(fields: Fields, head: bytes) -> str:
    """What stands between the cells of a text in whose first line a masked name is one of them, or
    in a later one that the next line is like; empty if there is none."""
    lines = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")[:_LINE].splitlines()
    for at, line in enumerate(lines[:_BEFORE]):
        if not fields.near(line):
            continue
        for mark in _MARKS:
            cells = cells_of(line, mark)
            if not any(fields.holds(name) for name in cells):
                continue
            after = next((below for below in lines[at + 1 :] if below.strip()), b"")
            if not at or (cells[1:] and len(cells_of(after, mark)) == len(cells)):
                return mark
    return ""


def shown_table(fields: Fields, raw: bytes) -> bytes | None:
    """What is shown of a text that is a table with a masked name in its header; else None."""
    mark = mark_of(fields, raw)
    if not mark:
        return None
    table = Table(raw, "text/plain", mark)
    spans = [*(table.feed(raw) or ()), *(table.finish() or ())]
    return Columns(fields, raw, mark).rows(raw, spans, first=True)


class Columns:
    """The masked columns of one table: what its rows are shown as.

    `head` is the beginning of the table, its header first. A row with more or fewer cells than the
    header is hidden as a whole: which of its cells stands under which name cannot be told. A row in
    which a masked name stands may be the header of another table: its columns are masked as well.
    """

    def __init__(self, fields: Fields, head: bytes, delimiter: str) -> None:
        header = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        if b'"' not in header:
            header = _LONE.split(header, 1)[0]
        self._fields = fields
        self._mark = delimiter.encode()
        self._masked: dict[int, dict[int, str]] = {}
        names = cells_of(header, delimiter)
        self._learn(len(names), {at: name for at, name in enumerate(names) if fields.holds(name)})
        mark = re.escape(self._mark)
        self._cell = re.compile(
            rb'(?:"(?:[^"]|"")*+"[^' + mark + rb"]*|[^" + mark + rb"]*)(?:" + mark + rb"|\Z)",
            re.DOTALL,
        )

    def _learn(self, count: int, names: dict[int, str]) -> None:
        if names:
            self._masked.setdefault(count, {}).update(names)

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
        match = _LINE_END.search(raw, blank)
        end = match.end() if match else len(raw)
        if not header:
            return HIDDEN.encode() + b"\n"
        return raw if not raw[end:].strip() else raw[:end] + HIDDEN.encode() + b"\n"

    def _row(self, row: bytes) -> bytes:
        cells = row.split(self._mark) if b'"' not in row else self._cells(row)
        near = self._fields.near(row)
        texts = [_text(cell) for cell in cells] if near else []
        names = {at: text for at, text in enumerate(texts) if self._fields.holds(text)}
        self._learn(len(cells), names)
        if self._masked and len(cells) not in self._masked:
            return self._mark.join([HIDDEN.encode()] * max(self._masked))
        masked = self._masked.get(len(cells), {})
        for place, cell in enumerate(cells):
            if place in names:
                continue
            name = masked.get(place)
            if name is not None:
                cells[place] = self._shown(name, cell)
            elif near and self._fields.near(cell):
                text = _text(cell).encode("utf-8", "surrogatepass")
                new = self._fields.text(text)[0]
                if new != text:
                    cells[place] = self._written(decoded(new))
        return self._mark.join(cells)

    def _shown(self, name: str, cell: bytes) -> bytes:
        said, text = self._fields.of(name), _text(cell)
        if said is not None:
            return self._written(self._fields.shown(name, said, text))
        raw = text.strip().encode("utf-8", "surrogatepass")
        if not self._fields.near(raw):
            return cell
        return self._written(decoded(self._fields.value(name, raw)))

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
