"""What can be said of a field from its values: types, how many are null, range or common values.

Values are as `json` reads them, or the cells of a CSV table, whose types are derived. Pure.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

__all__ = ["Field", "describe", "literal", "typed"]

_SHOWN: Final = 60
"""A value is kept to be shown in so many characters."""

_COMMON: Final = 4
_FEW: Final = 12
"""A field with no more values than this is described by them."""

_NAMES: Final = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "list",
}
_DATE = re.compile(
    r"\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?)?"
)
_INTEGER = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)?\.\d+|(?:0|[1-9]\d*)\.?)(?:[eE][+-]?\d{1,3})?")
_EMPTY: Final = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the records looked at.

    `types` are the JSON types of its values and how many have each, the most frequent first;
    `nulls` counts null, absent and (in CSV) empty values. `low` and `high` are the range of
    numbers, dates and list lengths, `common` the most frequent values of a field that has few, all
    as JSON text cut to be shown. `distinct` is 0 where values were not told apart. `inner` are the
    keys of objects or the type of a list's elements; `shortest` and `longest` are string lengths.
    """

    name: str
    types: tuple[tuple[str, int], ...] = ()
    nulls: int = 0
    distinct: int = 0
    low: str = ""
    high: str = ""
    common: tuple[tuple[str, int], ...] = ()
    example: str = ""
    inner: tuple[str, ...] = ()
    shortest: int = 0
    longest: int = 0

    @property
    def count(self) -> int:
        """How many of the records looked at have a value here."""
        return sum(count for _, count in self.types)


def describe(name: str, values: Sequence[Any], records: int) -> Field:
    """The field called `name`, from its values in the records that have it, of `records` in all."""
    kinds = Counter(map(type, values))
    nulls = records - len(values) + kinds.pop(type(None), 0)
    types = tuple((_NAMES.get(kind, "number"), count) for kind, count in kinds.most_common())
    if len(kinds) > 1 and set(kinds) != {int, float}:
        return Field(name, types, nulls, example=literal(_first(values)))
    given = [value for value in values if value is not None] if len(kinds) else []
    kind = next(iter(kinds), None)
    if set(kinds) == {int, float}:
        types = (("number", len(given)),)
        return _numbers(Field(name, types, nulls), given)
    field = Field(name, types, nulls)
    if kind is int or kind is float:
        return _numbers(field, given)
    if kind is bool:
        return _common(field, Counter(given), len(given))
    if kind is str:
        return _strings(field, given)
    if kind is dict:
        keys = dict.fromkeys(key for value in given[:20] for key in value)
        return _with(field, inner=tuple(key[:_SHOWN] for key in list(keys)[:_FEW]))
    if kind is list:
        sizes = list(map(len, given))
        inner = Counter(
            _NAMES.get(type(item), "null" if item is None else "number")
            for value in given[:50]
            for item in value[:5]
        )
        names = tuple(name for name, _ in inner.most_common(2))
        return _with(field, low=str(min(sizes)), high=str(max(sizes)), inner=names)
    return field


def typed(cells: Sequence[str]) -> list[Any]:
    """The cells of a CSV column with their derived types: all numbers, or as they are.

    An empty cell and the usual words for it are null. `00501` is no number: it is an address.
    """
    seen = set(cells) - _EMPTY
    convert: Any = None
    if seen:
        if all(map(_INTEGER.fullmatch, seen)):
            convert = int
        elif all(map(_NUMBER.fullmatch, seen)):
            convert = float
    if convert is not None:
        return [None if cell in _EMPTY else convert(cell) for cell in cells]
    # Only a really empty cell is null in a column of words: there NA may be a country.
    return [None if not cell else cell for cell in cells]


def literal(value: Any) -> str:
    """`value` as JSON text cut to be shown; a long string keeps its quotes."""
    if type(value) is str:
        # Escapes may make it longer; it is cut before, and is bounded all the same.
        short = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
        return json.dumps(short, ensure_ascii=False)
    if type(value) is int and value.bit_length() > 4_000:
        return f"an integer of {value.bit_length() * 3 // 10:,} digits"
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return "…"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _numbers(field: Field, given: Sequence[Any]) -> Field:
    finite = [value for value in given if type(value) is int or isfinite(value)]
    if not finite:
        return _with(field, example=literal(given[0]) if given else "")
    distinct = len(set(given))
    if distinct == 1 or (distinct <= _COMMON and distinct * 4 <= len(given)):
        return _common(field, Counter(given), distinct)
    low, high = literal(min(finite)), literal(max(finite))
    return _with(field, low=low, high=high, distinct=distinct)


def _strings(field: Field, given: Sequence[str]) -> Field:
    distinct = len(set(given))
    sizes = set(map(len, given))
    field = _with(field, shortest=min(sizes), longest=max(sizes), distinct=distinct)
    if max(sizes) <= 40 and all(map(_DATE.fullmatch, given[:50])):
        low, high = min(given), max(given)
        if _DATE.fullmatch(low) and _DATE.fullmatch(high):
            return _with(field, low=literal(low), high=literal(high))
    if distinct <= _FEW and distinct * 2 <= len(given):
        return _common(field, Counter(given), distinct)
    if distinct * 5 <= len(given):
        # Many values, but some of them often.
        return _with(field, common=_most(Counter(given), 3))
    return _with(field, example=literal(given[0]))


def _common(field: Field, counts: Counter[Any], distinct: int) -> Field:
    return _with(field, common=_most(counts, _COMMON), distinct=len(counts) or distinct)


def _most(counts: Mapping[Any, int], most: int) -> tuple[tuple[str, int], ...]:
    # Equal counts in the order of the values' text, so that the order of records does not matter.
    ranked = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))[:most]
    return tuple((literal(value), count) for value, count in ranked)


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _with(field: Field, **changed: Any) -> Field:
    from dataclasses import replace

    return replace(field, **changed)
