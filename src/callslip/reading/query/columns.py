"""Typed columns, derived from the exact text of records. They answer questions; they are never
the truth: what is shown of a record is always its own bytes.

A column is made by decoding one field of every record, in blocks, straight to Python values. The
types are Python's, so what a query compares is what `json.loads` gives. Where a field's values are
of several types the column is `mixed` and keeps the numbers, the texts and a key of each value
apart. Three rules: a missing field is null, NaN is null, and a lone surrogate is U+FFFD.

What may live here: values in, buffers out. No engine, no clock.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, repeat
from operator import is_not
from typing import Any, Final, Literal

import msgspec

from callslip.reading.query.pull import Token

__all__ = ["FORMATS", "Buffers", "Builder", "Column", "Kind", "with_numbers"]

Kind = Literal["null", "integer", "big", "number", "boolean", "text", "json", "mixed"]

FORMATS: Final[dict[Kind, str]] = {
    "null": "l",
    "integer": "l",
    "big": "d:38,0",
    "number": "g",
    "boolean": "c",
    "text": "u",
    "json": "u",
    "mixed": "u",
}
_INT64: Final = 1 << 63
_DECIMAL: Final = 10**38
_DIGITS = bytes.maketrans(b"\x00\x01", b"01")
_NUMBER = re.compile(r"\s*[+-]?(?:0|[1-9]\d*|\d*\.\d+|\d+\.\d*)(?:[eE][+-]?\d{1,4})?\s*")
_INTEGER = re.compile(r"\s*[+-]?(?:0|[1-9]\d{0,37})\s*")

Buffers = tuple[Any, ...]


@dataclass(slots=True)
class Column:
    """One field of all records. `batches` hold the Arrow buffers, in the order of the records."""

    kind: Kind
    batches: list[Buffers]
    present: int
    """How many records have the field, null or not."""
    nulls: int
    """How many have no value: missing, null or NaN."""
    size: int
    """Bytes of its buffers, variants included."""
    longest: int = 0
    """Bytes of text in the largest batch: what an expression has in its hands at once."""
    variants: dict[str, tuple[Kind, list[Buffers]]] = field(default_factory=dict)
    """`number`: the values that are numbers. `text`: those that are text."""
    words: bool = False
    """A column of text that was looked at, and most of it is no number."""
    texts: bool = False
    """From a table that has nothing but text (CSV), where digits may well be meant as numbers."""


def _validity(values: Sequence[object]) -> bytes | None:
    """The bitmap of what is not None; None if everything is."""
    bits = bytes(map(is_not, values, repeat(None)))
    if 0 not in bits:
        return None
    return int(bits.translate(_DIGITS)[::-1], 2).to_bytes((len(bits) + 7) // 8, "little")


def encoded(values: list[Any], kind: Kind) -> Buffers:
    """The Arrow buffers of values that are all None or of the kind."""
    valid = _validity(values)
    if kind in ("integer", "null"):
        return valid, array("q", values if valid is None else [v or 0 for v in values])
    if kind == "number":
        return valid, array("d", values if valid is None else [v or 0.0 for v in values])
    if kind == "boolean":
        return valid, bytes(map(bool, values))
    if kind == "big":
        return valid, b"".join((v or 0).to_bytes(16, "little", signed=True) for v in values)
    texts = values if valid is None else [v or "" for v in values]
    whole = "".join(texts)
    if whole.isascii():
        return valid, array("i", accumulate(map(len, texts), initial=0)), whole.encode()
    parts = [text.encode() for text in texts]
    return valid, array("i", accumulate(map(len, parts), initial=0)), b"".join(parts)


def _weight(buffers: Buffers) -> int:
    return sum(
        len(part) if isinstance(part, bytes) else len(part) * part.itemsize
        for part in buffers
        if part is not None
    )


def _settled(values: list[Any]) -> tuple[list[Any], set[type], int]:
    """Values with None for what is missing, their types, and how many were there."""
    types = set(map(type, values))
    present = len(values)
    if msgspec.UnsetType in types:
        present -= values.count(msgspec.UNSET)
        values = [None if value is msgspec.UNSET else value for value in values]
        types.discard(msgspec.UnsetType)
    types.discard(type(None))
    return values, types, present


def _kind(types: set[type], values: list[Any]) -> Kind:
    if not types:
        return "null"
    if types == {int}:
        low = min(value for value in values if value is not None)
        high = max(value for value in values if value is not None)
        if -_INT64 <= low and high < _INT64:
            return "integer"
        return "big" if -_DECIMAL < low and high < _DECIMAL else "number"
    if types <= {int, float}:
        return "number"
    if types == {bool}:
        return "boolean"
    if types == {str}:
        return "text"
    return "json" if types == {Token} else "mixed"


_WIDER: Final[dict[frozenset[Kind], Kind]] = {
    frozenset({"integer", "big"}): "big",
    frozenset({"integer", "number"}): "number",
    frozenset({"big", "number"}): "number",
    frozenset({"integer", "big", "number"}): "number",
}


class Builder:
    """Makes a column of the values of one field, block by block.

    With `texts` (CSV) every value came as text: an empty one is null, and a column whose other
    values are all written as numbers is one of numbers. Leading zeros are no number: "007" is text.
    """

    def __init__(self, *, texts: bool = False) -> None:
        self.size = 0
        """About how many bytes are held by now."""
        self._texts = texts
        self._held: list[tuple[Kind, list[Any] | None, Buffers | None]] = []
        self._present = 0

    def add(self, block: list[Any]) -> None:
        """The values of the next records: str, int, float, bool, None, Token or UNSET."""
        values, types, there = _settled(block)
        self._present += there
        if self._texts:
            values = [value or None for value in values]
            types = set(map(type, values)) - {type(None)}
        kind = _kind(types, values)
        if kind in ("text", "json"):
            # Text is the bulk: as buffers at once, it is held once and not twice.
            buffers = encoded(values, kind)
            self._held.append((kind, None, buffers))
            self.size += _weight(buffers)
        else:
            if kind == "number" and int in types:
                values = _floats(values)
            self._held.append((kind, values, None))
            self.size += 32 * len(values)

    def finish(self) -> Column:
        """The column. Its kind is the narrowest that holds all values as they are."""
        kinds = frozenset(kind for kind, _, _ in self._held) - {"null"}
        kind: Kind = "null"
        if kinds:
            kind = next(iter(kinds)) if len(kinds) == 1 else _WIDER.get(kinds, "mixed")
        if kind == "mixed":
            return _mixed([_values(*part) for part in self._held], self._present)
        if self._texts and kind == "text":
            number = _numeric([_values(*part) for part in self._held])
            if number is not None:
                return _finished(number[0], number[1], self._present)
        batches = []
        for own, given, buffers in self._held:
            if buffers is None or own != kind:
                values = _values(own, given, buffers)
                if kind == "number" and own != kind:
                    values = _floats(values)
                buffers = encoded(values, kind)
            batches.append(buffers)
        column = _finished(kind, batches, self._present)
        column.texts = self._texts
        return column


def _floats(values: list[Any]) -> list[float | None]:
    return [value if type(value) is float or value is None else _float(value) for value in values]


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _finished(kind: Kind, batches: list[Buffers], present: int) -> Column:
    rows = nulls = longest = 0
    for batch in batches:
        count = _rows(kind, batch)
        rows += count
        if batch[0] is not None:
            nulls += count - int.from_bytes(batch[0], "little").bit_count()
        if kind in ("text", "json", "mixed"):
            longest = max(longest, len(batch[2]))
    if kind == "null":
        nulls = rows
    return Column(kind, batches, present, nulls, sum(map(_weight, batches)), longest)


def _rows(kind: Kind, batch: Buffers) -> int:
    if kind in ("text", "json", "mixed"):
        return len(batch[1]) - 1
    return len(batch[1]) // 16 if kind == "big" else len(batch[1])


def _values(kind: Kind, values: list[Any] | None, buffers: Buffers | None) -> list[Any]:
    if values is not None:
        return values
    assert buffers is not None
    valid, offsets, data = buffers
    cut = data.decode() if data.isascii() else data
    texts: list[Any] = [cut[a:b] for a, b in pairwise(offsets)]
    if isinstance(cut, bytes):
        texts = [text.decode() for text in texts]
    if kind == "json":
        texts = [Token(text) for text in texts]
    if valid is not None:
        bits = int.from_bytes(valid, "little")
        texts = [text if bits >> at & 1 else None for at, text in enumerate(texts)]
    return texts


def _mixed(blocks: list[list[Any]], present: int) -> Column:
    """Values of several types: a key of each, and the numbers and the texts by themselves.

    Equal values have equal keys, and those of one type only: 1 and 1.0 do, 1 and "1" do not.
    """
    column = _finished("mixed", [encoded(list(map(_key, b)), "mixed") for b in blocks], present)
    numbers = [_floats([v if type(v) in (int, float) else None for v in block]) for block in blocks]
    texts = [[v if type(v) is str else None for v in block] for block in blocks]
    column.variants["number"] = ("number", [encoded(block, "number") for block in numbers])
    column.variants["text"] = ("text", [encoded(block, "text") for block in texts])
    for _, batches in column.variants.values():
        column.size += sum(map(_weight, batches))
    return column


def _key(value: object) -> str | None:
    if value is None or type(value) is Token:
        return value
    if type(value) is float and value.is_integer() and abs(value) < 1e300:
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def _numeric(blocks: list[list[Any]]) -> tuple[Kind, list[Buffers]] | None:
    """Texts as numbers, if each of them is written as one."""
    whole = True
    for block in blocks:
        for text in block:
            if text is None or (whole and _INTEGER.fullmatch(text)):
                continue
            if _NUMBER.fullmatch(text) is None:
                return None
            whole = False
    if not whole:
        floats = [[t if t is None else float(t) for t in block] for block in blocks]
        return "number", [encoded(block, "number") for block in floats]
    read = [[t if t is None else int(t) for t in block] for block in blocks]
    # Beyond 64 bits a float would take neighbours for one.
    kind: Kind = "integer"
    if any(v is not None and not -_INT64 <= v < _INT64 for block in read for v in block):
        kind = "big"
    return kind, [encoded(block, kind) for block in read]


def with_numbers(column: Column) -> bool:
    """Give a text column its variant of numbers. False if most of its values are none.

    What is no number ("NA", "n/a") is null there, so that a comparison with a number passes it by.
    """
    if "number" in column.variants:
        return True
    if column.kind != "text" or column.words:
        return False
    read: list[list[float | None]] = []
    numbers = words = 0
    for batch in column.batches:
        block = _values("text", None, batch)
        values = [float(t) if t is not None and _NUMBER.fullmatch(t) else None for t in block]
        found = len(values) - values.count(None)
        numbers += found
        words += len(block) - block.count(None) - found
        read.append(values)
        if 2 * words >= _rows_of(column) - column.nulls:
            break
    if numbers <= words or len(read) < len(column.batches):
        column.words = True
        return False
    buffers = [encoded(block, "number") for block in read]
    column.variants["number"] = ("number", buffers)
    column.size += sum(map(_weight, buffers))
    return True


def _rows_of(column: Column) -> int:
    return sum(_rows(column.kind, batch) for batch in column.batches)
