"""What is known of rows: how many, their fields, the first, the top and the odd ones.

The exact texts of the records go in as they stream by. Up to `EXACT_BYTES` of them every record is
looked at; beyond, an evenly spread part, and the profile says so. What is looked for everywhere
nevertheless: a record that fared unlike nearly all others, and the top ones by a field that the
caller names. Bounded in memory and, by the megabyte, in time. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate, chain
from math import isfinite
from typing import Any, Final, Literal

from callslip.window.columns import Field, describe
from callslip.window.cut import Cut
from callslip.window.odd import Usual, Watch, usual_of
from callslip.window.rowtext import Row, csv_rows, exact_row, json_rows, row_of

__all__ = ["Cut", "Field", "Profile", "Profiler", "Row", "Top", "top"]

Format = Literal["json", "ndjson", "csv"]

EXACT_BYTES: Final = 2 * 1024 * 1024
"""Records up to so many bytes in all are every one looked at."""

_SAMPLED: Final = 1_000
_SAMPLED_BYTES: Final = 512 * 1024
_JUDGED: Final = 500
_RECORD_BYTES: Final = 512 * 1024
_FIELDS: Final = 200
_FIRST: Final = 6
_TOP: Final = 5
_ODD: Final = 6

_SCORE = re.compile(
    r"_?(?:.*[_.\- ])?(?:score|relevance|similarity|confidence)|.*(?:Score|Relevance|Similarity)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Profile:
    """What a preview of rows is chosen from.

    `looked` of the `records` were looked at, all where the two are equal; `fields` tells of those.
    `odd` are the first of the `odd_count` records whose `odd_field` is not one of `odd_usual`
    (-1: how many is not known); they were looked for in every record where `odd_everywhere`. `top`
    are those with the largest `top_field`, of every record where `top_everywhere`.
    """

    records: int = 0
    looked: int = 0
    format: Format = "json"
    fields: tuple[Field, ...] = ()
    more_fields: int = 0
    first: tuple[Row, ...] = ()
    top: tuple[Row, ...] = ()
    top_field: str = ""
    top_everywhere: bool = True
    odd: tuple[Row, ...] = ()
    odd_count: int = 0
    odd_field: str = ""
    odd_usual: tuple[str, ...] = ()
    odd_everywhere: bool = True

    @property
    def exact(self) -> bool:
        """Whether every record was looked at."""
        return self.looked == self.records


@dataclass(frozen=True, slots=True)
class Top:
    """A wish for a preview: the records with the largest value of one field."""

    field: str


def top(field: str) -> Top:
    """For `offloaded(preview=top("score"))`: show the records with the largest `field`, not the
    first ones. A result that is no rows gets its usual preview."""
    return Top(field)


class Profiler:
    """Takes the exact texts of records, in order, and tells what they are like.

    `format` says what a record's text is: JSON, or a CSV row with the cells of `fields` apart by
    `delimiter`. `top` names the field whose largest values are wanted, of every record; without it
    a field with the name of a score is taken where every record is looked at. With
    `everywhere=False` the odd ones are looked for in the same part as the rest, at half the cost.
    """

    def __init__(
        self,
        format: Format = "json",
        fields: Sequence[str] = (),
        delimiter: str = ",",
        top: str = "",
        exact_bytes: int = EXACT_BYTES,
        everywhere: bool = True,
    ) -> None:
        self._format: Format = format
        self._fields = _unique(fields)
        self._delimiter = delimiter
        self._top = top
        self._exact_bytes = exact_bytes
        self._everywhere = everywhere
        self._records = 0
        self._held: list[bytes] = []
        self._size = 0
        self._stride = 0
        """0 while every record is held; then every so many-th is."""
        self._target = _SAMPLED
        self._first: list[bytes] = []
        self._watch: Watch | None = None
        self._usual: Usual | None = None
        self._best: list[tuple[float, int, bytes]] = []

    def add(self, records: Sequence[bytes]) -> None:
        """The next records. A `Cut` costs least: what is not looked at is not cut out either."""
        count = len(records)
        at = 0
        looked = False
        while at < count and not self._stride:
            part = records[at : at + 256]
            totals = list(accumulate(map(len, part), initial=self._size))
            if totals[-1] <= self._exact_bytes:
                self._held += part
                self._size = totals[-1]
                at += len(part)
                continue
            # The one that goes beyond is the first not to be held: however the records came.
            fit = next(i for i, total in enumerate(totals) if total > self._exact_bytes) - 1
            self._held += part[:fit]
            self._size = totals[fit]
            at += fit
            earlier = self._held[: len(self._held) - at]
            self._sample()
            # What is held from earlier, then these where they lie: a `Cut` is not cut for it.
            self._look(earlier, 0, 1)
            self._look(records, 0, self._records + 1)
            looked = True
        if at < count and self._stride:
            # How far the part held reaches hangs on its sizes alone, so this does not depend on
            # how the records were handed in.
            if not looked:
                self._look(records, at, self._records + at + 1)
            self._spread(records, at)
        self._records += count

    def finish(self) -> Profile:
        """The profile of all that was added."""
        if not self._stride:
            return self._whole()
        numbers = [at * self._stride + 1 for at in range(len(self._held))]
        kept = [(n, raw) for n, raw in zip(numbers, self._held, strict=True) if raw]
        read = self._read([raw for _, raw in kept])
        pairs = zip(kept, read, strict=True)
        rows = [(number, row) for (number, _), row in pairs if row is not None]
        fields, more = self._columns([row for _, row in rows])
        odd, odd_count, usual = self._watched(rows)
        best = [(number, raw) for _, number, raw in self._best]
        return Profile(
            records=self._records,
            looked=len(rows),
            format=self._format,
            fields=fields,
            more_fields=more,
            first=self._rows(list(enumerate(self._first, 1))),
            top=self._rows(best),
            top_field=self._top if best else "",
            odd=odd,
            odd_count=odd_count,
            odd_field=usual.field if usual else "",
            odd_usual=usual.values if usual else (),
            odd_everywhere=self._watch is not None,
        )

    # --- every record ----------------------------------------------------------------------------

    def _whole(self) -> Profile:
        read = self._read(self._held)
        rows = [(n, row) for n, row in enumerate(read, 1) if row is not None]
        records = [row for _, row in rows]
        fields, more = self._columns(records)
        usual = usual_of(records)
        odd = [n for n, row in rows if usual.is_odd(row)] if usual else []
        field = self._top or next((f.name for f in fields if _is_score(f)), "")
        best = _best([(n, row.get(field)) for n, row in rows]) if field else []
        if not self._top and best == list(range(1, len(best) + 1)):
            best = []
        return Profile(
            records=self._records,
            looked=len(rows),
            format=self._format,
            fields=fields,
            more_fields=more,
            first=self._rows(list(enumerate(self._held[:_FIRST], 1))),
            top=self._rows([(n, self._held[n - 1]) for n in best]),
            top_field=field if best else "",
            odd=self._rows([(n, self._held[n - 1]) for n in odd[:_ODD]]),
            odd_count=len(odd),
            odd_field=usual.field if usual and odd else "",
            odd_usual=usual.values if usual and odd else (),
        )

    # --- a part of them --------------------------------------------------------------------------

    def _sample(self) -> None:
        """From now on, hold an evenly spread part: every `_stride`-th record."""
        held = self._held
        self._first = held[:_FIRST]
        average = max(self._size // max(len(held), 1), 1)
        self._target = max(8, min(_SAMPLED, _SAMPLED_BYTES // average))
        self._stride = 1
        while len(held) // self._stride > self._target:
            self._stride *= 2
        part = held[:: self._stride]
        if self._format != "csv" and self._everywhere:
            judged = self._read(part[:: max(len(part) // _JUDGED, 1)])
            self._usual = usual_of([row for row in judged if row is not None])
            separator = _separator(self._usual.field, part) if self._usual else None
            if self._usual is not None and separator is not None:
                self._watch = Watch(self._usual, separator)
        self._held = [raw if len(raw) <= _RECORD_BYTES else b"" for raw in part]

    def _spread(self, records: Sequence[bytes], at: int) -> None:
        if len(self._first) < _FIRST:
            self._first += records[at : at + _FIRST - len(self._first)]
        while True:
            # The next to hold has a number (from 0) that the stride divides.
            start = len(self._held) * self._stride - self._records
            room = 2 * self._target - len(self._held)
            part = records[start : start + room * self._stride : self._stride]
            self._held += [raw if len(raw) <= _RECORD_BYTES else b"" for raw in part]
            if len(self._held) < 2 * self._target:
                return
            self._stride *= 2
            self._held = self._held[::2]

    def _look(self, records: Sequence[bytes], at: int, first: int) -> None:
        """Look for odd and top ones among `records` from `at` on; that one has number `first`."""
        if at >= len(records):
            return
        if self._watch is not None:
            if isinstance(records, Cut):
                block, starts, ends = records.block, records.starts[at:], records.ends[at:]
            else:
                block = b"\n".join(records[at:])
                ends = [e - 1 for e in accumulate(len(raw) + 1 for raw in records[at:])]
                starts = [0, *(end + 1 for end in ends[:-1])]
            self._watch.look(block, starts, ends, first)
        if self._top:
            part = records[at:]
            scores = self._scores(part)
            best = [(s, -(first + i), part[i]) for i, s in enumerate(scores) if s is not None]
            merged = [*((s, -n, raw) for s, n, raw in self._best), *nlargest(_TOP, best)]
            self._best = [(s, -n, raw) for s, n, raw in nlargest(_TOP, merged)]

    def _scores(self, part: Sequence[bytes]) -> list[float | None]:
        """The field to rank by, of each record; only that field is read."""
        if self._format == "csv":
            return [_number(row.get(self._top)) if row else None for row in self._read(part)]
        import msgspec

        shape: Any = msgspec.defstruct(
            "_Ranked", [("value", Any, None)], rename={"value": self._top}, gc=False
        )
        found: list[float | None] = []
        for start in range(0, len(part), 4096):
            some = part[start : start + 4096]
            try:
                ranked = msgspec.json.decode(b"[%b]" % b",".join(some), type=list[shape])
                found += [_number(one.value) for one in ranked]
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                found += [_number(row.get(self._top)) if row else None for row in self._read(some)]
        return found

    def _watched(
        self, rows: Sequence[tuple[int, dict[str, Any]]]
    ) -> tuple[tuple[Row, ...], int, Usual | None]:
        usual, watch = self._usual, self._watch
        if usual is None:
            # No look at every record, so what the part holds.
            usual = usual_of([row for _, row in rows])
            if usual is None:
                return (), 0, None
        if watch is None:
            odd = [(n, row) for n, row in rows if usual.is_odd(row)]
            if not odd:
                return (), 0, None
            return tuple(row_of(n, row) for n, row in odd[:_ODD]), -1, usual
        if not watch.kept:
            return (), 0, None
        return self._rows(watch.kept[:_ODD]), -1 if watch.more else watch.found, usual

    # --- reading ---------------------------------------------------------------------------------

    def _read(self, raws: Sequence[bytes]) -> list[dict[str, Any] | None]:
        """The records as objects; None for one that is none, or cannot be read."""
        if self._format == "csv":
            return csv_rows(raws, self._fields, self._delimiter)
        return json_rows(raws)

    def _columns(self, rows: Sequence[dict[str, Any]]) -> tuple[tuple[Field, ...], int]:
        names = dict.fromkeys(self._fields if self._format == "csv" else ())
        names.update(dict.fromkeys(chain.from_iterable(rows)))
        fields = []
        for name in list(names)[:_FIELDS]:
            values = [row[name] for row in rows if name in row]
            fields.append(describe(name, values, len(rows)))
        return tuple(fields), len(names) - len(fields)

    def _rows(self, raws: Sequence[tuple[int, bytes]]) -> tuple[Row, ...]:
        """Records to show; a JSON one by its own exact text."""
        if self._format == "csv":
            read = self._read([raw for _, raw in raws])
            return tuple(
                row_of(n, row) for (n, _), row in zip(raws, read, strict=True) if row is not None
            )
        return tuple(row for n, raw in raws if (row := exact_row(n, raw)) is not None)


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, of which two may not be the same: the second `x` is `x_2`."""
    seen: dict[str, None] = {}
    for name in names:
        free, number = name, 2
        while free in seen:
            free, number = f"{name}_{number}", number + 1
        seen[free] = None
    return tuple(seen)


def _separator(field: str, records: Sequence[bytes]) -> bytes | None:
    """What stands between a field's name and its value; None where the records do not agree."""
    key = re.escape(json.dumps(field, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    pattern = re.compile(key + rb"([ \t\r\n]*:[ \t\r\n]*)")
    seen = {match[1] for record in records[:50] if (match := pattern.search(record))}
    return seen.pop() if len(seen) == 1 else None


def _is_score(field: Field) -> bool:
    numeric = {name for name, _ in field.types} <= {"integer", "number"}
    return bool(field.types) and numeric and bool(_SCORE.fullmatch(field.name))


def _best(values: Iterable[tuple[int, Any]]) -> list[int]:
    """The numbers of those with the largest values, the earlier first among equals."""
    scored = [(value, -n) for n, value in values if _number(value) is not None]
    return [-n for _, n in nlargest(_TOP, scored)]


def _number(value: Any) -> float | None:
    if type(value) is int or (type(value) is float and isfinite(value)):
        return value
    return None
