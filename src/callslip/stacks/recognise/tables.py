"""CSV and TSV: a record is a row as it stands, without its line end; the header is none."""

from __future__ import annotations

import csv
import json
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate

from callslip.stacks.recognise.base import Recogniser, bounded_names
from callslip.stacks.records import MAX_RECORD_BYTES

__all__ = ["Table", "cells_of", "header_of", "row_objects"]

_WINDOW = 256 * 1024
_BOM = b"\xef\xbb\xbf"


class Table(Recogniser):
    """Rows as Python's csv module sees them; quoted line ends are part of their row."""

    def __init__(self, head: bytes, mime: str, delimiter: str) -> None:
        super().__init__("rows", mime)
        self.format = "csv"
        self.delimiter = delimiter
        self.fields = bounded_names(header_of(head, delimiter))
        self._rest = b""
        self._base = 0
        self._rows = 0
        self._given_up = False

    def feed(self, block: bytes) -> array[int] | None:
        if self._given_up:
            return None
        data = self._rest + block if self._rest else block
        found: array[int] = array("Q")
        at = 0
        while not self._given_up:
            cut = data.rfind(b"\n", at, at + _WINDOW) + 1 or data.find(b"\n", at) + 1
            if not cut:
                break
            taken = self._take(data[at:cut], self._base + at, found, last=False)
            if taken == 0:
                # One row goes on beyond the window: look at all there is.
                cut = data.rfind(b"\n", at) + 1
                taken = self._take(data[at:cut], self._base + at, found, last=False)
                if taken == 0:
                    break
            at += taken
        self._rest = data[at:]
        self._base += at
        self._given_up = self._given_up or len(self._rest) > MAX_RECORD_BYTES
        return found

    def finish(self) -> array[int] | None:
        found: array[int] = array("Q")
        if self._rest and not self._given_up:
            self._take(self._rest, self._base, found, last=True)
        if self._given_up or self._rows < 2:
            self.kind, self.mime, self.format, self.fields = "text", "text/plain", "", ()
            return found
        self.records = self._rows - 1
        return found

    def _take(self, window: bytes, base: int, found: array[int], *, last: bool) -> int:
        """Enter the rows that are complete in these lines; how many bytes they are."""
        lines = window.removesuffix(b"\n").split(b"\n")
        sizes = [len(line) + 1 for line in lines]
        starts = list(accumulate(sizes, initial=base))
        if b'"' not in window and b"\r" not in window and b"" not in lines:
            rows: Sequence[tuple[int, int]] = [(n, n + 1) for n in range(len(lines))]
        else:
            rows = self._rows_of(lines, last)
        if not rows:
            return 0
        behind_all = rows[-1][1]
        if not self._rows:
            self._rows, rows = 1, rows[1:]
        for first, behind in rows:
            end = starts[behind] - 1
            if lines[behind - 1].endswith(b"\r"):
                end -= 1
            found.extend((starts[first], end))
        self._rows += len(rows)
        return min(starts[behind_all] - base, len(window))

    def _rows_of(self, lines: list[bytes], last: bool) -> list[tuple[int, int]]:
        """(first line, line behind) of each row that is not blank."""
        over = False

        def given() -> Iterator[str]:
            nonlocal over
            for line in lines:
                # A byte is a character here: what csv looks for is ASCII.
                yield line.decode("latin-1") + "\n"
            over = True

        rows: list[tuple[int, int]] = []
        reader = csv.reader(given(), delimiter=self.delimiter)
        at = 0
        try:
            for row in reader:
                if over and not last:
                    break
                if row:
                    rows.append((at, reader.line_num))
                at = reader.line_num
        except csv.Error:
            # A cell beyond the module's limit, or a lone carriage return: no table of this kind.
            self._given_up = True
            return []
        return rows


def cells_of(row: bytes, delimiter: str) -> list[str]:
    """The cells of one row."""
    text = row.decode("utf-8", "replace")
    try:
        return next(csv.reader(_kept_lines(text), delimiter=delimiter), [])
    except csv.Error:
        return [text]


def header_of(head: bytes, delimiter: str) -> list[str]:
    """The names in a table's first row; where two are the same, the later gets a number."""
    text = head.removeprefix(_BOM).decode("utf-8", "replace")
    try:
        names = next((row for row in csv.reader(_kept_lines(text), delimiter=delimiter) if row), [])
    except csv.Error:
        return []
    seen: dict[str, int] = {}
    for at, name in enumerate(names, 1):
        name = name.strip() or f"column {at}"
        number, unique = seen.get(name, 1), name
        while unique in seen:
            number += 1
            unique = f"{name} {number}"
        seen[name] = number  # where to go on: a header may have one name many times
        seen.setdefault(unique, 1)
    return list(seen)


def row_objects(rows: Sequence[bytes], names: Sequence[str], delimiter: str) -> list[bytes]:
    """Each row as the JSON text of an object; an empty cell stays an empty string.

    A row that is too short lacks its last fields; what is beyond the header is a list under `+`.
    """
    made = []
    for row in rows:
        cells = cells_of(row, delimiter)
        record: dict[str, object] = dict(zip(names, cells, strict=False))
        if len(cells) > len(names):
            record["+"] = cells[len(names) :]
        made.append(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))
    return made


def _kept_lines(text: str) -> Iterator[str]:
    """Lines by newline alone, ends kept: `splitlines` knows more line ends than csv does."""
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield text[at:end]
        at = end
