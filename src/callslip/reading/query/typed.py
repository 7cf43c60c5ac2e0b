"""A compiled expression, and how two of them are brought to one type before they are compared.

What may live here: types and their mending. Pure.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from callslip.errors import QueryError
from callslip.reading.query.columns import Column, with_numbers
from callslip.window.inert import shown

__all__ = [
    "TYPES",
    "Type",
    "Typed",
    "absent",
    "boolean",
    "in_order",
    "is_null",
    "literal",
    "mismatch",
    "number_of",
    "numeric",
    "text_of",
    "timed",
    "together",
    "truth_of",
    "whole",
]

Type = Literal["number", "text", "boolean", "json", "mixed", "time", "null"]

TYPES: Final[dict[str, str]] = {
    "null": "always null",
    "integer": "a whole number",
    "big": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "text": "text",
    "json": "a list or an object",
    "mixed": "of several types",
    "time": "a date or time",
}
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?\s*")

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DIGITS: Final = 38


@dataclass(frozen=True, slots=True)
class Typed:
    """SQL of our own, the type of what it gives, and what is known about it.

    `literal` is the value where it is one; `column` and `where` the field where it is one (`where`
    is the SQL of its numbered column); `copies` how many texts it holds at once, in an engine's
    step, besides the columns themselves; `total` whether it is computed over many records.
    """

    sql: str
    type: Type
    literal: Any = None
    column: Column | None = None
    where: str = ""
    name: str = ""
    copies: int = 0
    longest: int = 0
    total: bool = False

    @property
    def is_literal(self) -> bool:
        return self.literal is not None

    def described(self) -> str:
        if self.column is not None:
            return f"{shown(self.name)[:60]} is {TYPES[self.column.kind]}"
        if self.is_literal:
            return f"{shown(repr(self.literal))[:40]} is {TYPES[self.type]}"
        return f"one side is {TYPES[self.type]}"


def number_of(side: Typed) -> Typed | None:
    """The same as a number, where that is what it is."""
    if side.type == "number":
        return side
    if side.column is not None and side.type in ("mixed", "text") and with_numbers(side.column):
        return replace(side, sql=f"{side.where}n", type="number", column=None)
    if side.is_literal and isinstance(side.literal, str) and _NUMBER.fullmatch(side.literal):
        text = side.literal.strip()
        return whole(text) if _WHOLE.fullmatch(text) else literal(float(text))
    return None


def whole(digits: str) -> Typed:
    """An integer as it is written. Raises QueryError where the engine could not tell neighbours."""
    if len(digits.lstrip("+-0")) > _DIGITS:
        raise QueryError(
            f"Whole numbers of more than {_DIGITS} digits are not compared; search for the digits."
        )
    return literal(int(digits))


def numeric(side: Typed) -> bool:
    """Whether it is a field of a table of texts that is read as numbers: most are, some are words.

    A string in JSON is a string, and stays one.
    """
    column = side.column
    return side.type == "text" and column is not None and column.texts and with_numbers(column)


def absent(side: Typed) -> str:
    """SQL that holds where there is no value. "N/A" is a text, as `csv` and DuckDB have it."""
    return f"({side.sql} IS NULL)"


def in_order(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """Both sides as one type for < and >: numbers wherever a field is read as numbers.

    Raises QueryError.
    """
    for one, other in ((left, right), (right, left)):
        if numeric(one) and (other.is_literal or numeric(other)):
            first, second = number_of(left), number_of(right)
            if first is not None and second is not None:
                return first, second
    return together(left, right)


def text_of(side: Typed) -> Typed | None:
    """The same as text, where that is what it is."""
    if side.type == "mixed" and side.column is not None:
        return replace(side, sql=f"{side.where}s", type="text", column=None)
    return side if side.type in ("text", "json") else None


def literal(value: Any) -> Typed:
    """A value; its SQL is a mark that the compiler turns into a parameter."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**38:
        value = float(value) if abs(value) < 10**308 else math.copysign(math.inf, value)
    kind: Type = (
        "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
    )
    return Typed("", kind, literal=value)


def together(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """Both sides as one type. Raises QueryError that says of which type the field is."""
    if "null" in (left.type, right.type):
        return left, right
    if left.type == right.type and left.type != "mixed":
        return left, right
    kinds = {left.type, right.type}
    if kinds == {"mixed"}:
        return left, right
    if "time" in kinds and kinds <= {"time", "text"}:
        return timed(left), timed(right)
    if "boolean" in kinds:
        one, two = truth_of(left), truth_of(right)
        if one is not None and two is not None:
            return one, two
        raise mismatch(left, right)
    if "number" in kinds:
        first, second = number_of(left), number_of(right)
        if first is not None and second is not None:
            return first, second
    elif "text" in kinds:
        first, second = text_of(left), text_of(right)
        if first is not None and second is not None and "json" not in (first.type, second.type):
            return first, second
    raise mismatch(left, right)


def boolean(sql: str, *of: Typed) -> Typed:
    """A condition made of these."""
    return Typed(sql, "boolean", total=any(side.total for side in of))


def is_null(side: Typed) -> bool:
    """Whether it is the word null, and not a field that is always so."""
    return side.type == "null" and side.column is None


def truth_of(side: Typed) -> Typed | None:
    """The same as true or false: a text or a number that says it, or a field that is."""
    if side.type == "boolean":
        return side
    if side.type == "mixed" and side.column is not None:
        # Its keys are JSON: a text that reads true has quotes around it there.
        sql = f"(CASE {side.where} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END)"
        return replace(side, sql=sql, type="boolean", column=None)
    if isinstance(side.literal, str) and side.literal.lower() in ("true", "false"):
        return literal(side.literal.lower() == "true")
    if side.is_literal and side.literal in (0, 1):
        return literal(bool(side.literal))
    return None


def timed(side: Typed) -> Typed:
    """The same as a moment; text that is none is null."""
    if side.type == "time":
        return side
    if side.is_literal:
        return replace(side, type="time")
    return replace(side, sql=f"TRY_CAST({side.sql} AS TIMESTAMP)", type="time", column=None)


def mismatch(left: Typed, right: Typed) -> QueryError:
    """One sentence: the field's type, and how to write it."""
    field, other = (left, right) if left.column is not None else (right, left)
    said = field.described()
    if field.type == "json":
        return QueryError(f"{said}: use list_contains(field, value), len(field) or a path into it.")
    if other.column is not None:
        return QueryError(f"{said}, {other.described()}: these cannot be compared.")
    if field.type == "text" and other.is_literal:
        return QueryError(f"{said}: compare it with '{str(other.literal)[:40]}', in quotes.")
    if field.type == "number":
        return QueryError(f"{said}: compare it with a number, without quotes.")
    if field.type == "boolean":
        return QueryError(f"{said}: compare it with true or false.")
    return QueryError(f"{said}, {other.described()}: these cannot be compared.")
