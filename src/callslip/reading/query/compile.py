"""Expressions of a parsed query as SQL of our own.

Every node that is allowed has a method here that writes it; any other is refused by name. Values
become parameters, fields become `t0.c3`. What is written takes time and memory in proportion to
what it reads: no function makes more text than it is given (`_COPIES` bounds how often), and a
pattern is always a constant, matched in linear time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from callslip.errors import QueryError
from callslip.reading.query.guard import refused, simple
from callslip.reading.query.names import Bound, Names, spelled, written
from callslip.reading.query.pull import Path
from callslip.reading.query.texts import TextNodes
from callslip.reading.query.typed import (
    Type,
    Typed,
    absent,
    boolean,
    in_order,
    is_null,
    literal,
    numeric,
    together,
    truth_of,
    whole,
)
from callslip.reading.query.values import ValueNodes
from callslip.window.inert import shown

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Compiler"]

_COMPARE: Final = {"EQ": "=", "NEQ": "<>", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<="}
_NULL_SAFE: Final = {"NullSafeEQ": "IS NOT DISTINCT FROM", "NullSafeNEQ": "IS DISTINCT FROM"}
_KINDS: Final[dict[str, Type]] = {
    "null": "null",
    "integer": "number",
    "big": "number",
    "number": "number",
    "boolean": "boolean",
    "text": "text",
    "json": "json",
    "mixed": "mixed",
}


class Compiler(TextNodes, ValueNodes):
    """Compiles the expressions of one query, after `Names.resolve` has found their fields.

    `parameters` are the values, to be bound as $1, $2 …; `used` the columns the SQL reads;
    `compared` the (field, operator, value) of its comparisons, for a way on where nothing matches.
    """

    def __init__(self, names: Names, outputs: dict[str, Typed] | None = None) -> None:
        super().__init__()
        self.used: dict[tuple[str, Path], tuple[Bound, str]] = {}
        self.outputs = outputs or {}
        """What a select gives, by lower-case name: an order may name those too."""
        self._names = names
        self._denied = False
        """Whether what is compiled stands under a `not`."""

    # --- what others ask for ----------------------------------------------------------------------

    def condition(self, node: exp.Expression, *, totals: bool = False) -> str:
        """SQL that is true, false or null. Raises QueryError."""
        return self.sql(self.truth(self.compile(node, totals=totals)))

    def compile(self, node: exp.Expression, *, totals: bool = False) -> Typed:
        """Any expression; one over many records (`sum(…)`) only with `totals`."""
        self.totals = totals
        return self.typed(node)

    def order(self, ordered: Any, *, totals: bool = False) -> str:
        """One item of an order. Null comes last, whichever way; of several types, numbers first."""
        simple(ordered, ("this", "desc", "nulls_first"))
        side = self.compile(ordered.this, totals=totals)
        way = "DESC" if ordered.args.get("desc") else "ASC"
        parts = [self.sql(side)]
        if side.type == "mixed":
            parts = [f"{side.where}n", f"{side.where}s", side.where]
        elif numeric(side):
            parts = [f"{side.where}n", side.sql]
        if totals and len(parts) > 1:
            # In a group all values are the same one, and only itself may stand bare in an order.
            parts = [f"any_value({part})" for part in parts]
        return ", ".join(f"{part} {way} NULLS LAST" for part in parts)

    # --- nodes ------------------------------------------------------------------------------------

    def typed(self, node: Any) -> Typed:
        steps = written(node)
        if steps is not None:
            return self._field(steps[0])
        name = type(node).__name__
        method: Callable[[Any], Typed] | None = getattr(self, f"_on_{name.lower()}", None)
        if method is None and name in _COMPARE | _NULL_SAFE:
            method = self._compare
        if method is None:
            method = self.method_for(node)
        if method is None:
            raise refused(node)
        return method(node)

    def _field(self, steps: list[str | int]) -> Typed:
        if len(steps) == 1 and str(steps[0]).lower() in self.outputs:
            return self.outputs[str(steps[0]).lower()]
        bound = self._names.bound(steps)
        if bound is None:
            return literal(str(steps[0]))
        key = (bound.alias, bound.path)
        if key not in self.used:
            self.used[key] = (bound, f"c{len(self.used)}")
        where = f"{self._names.alias_sql(bound.alias)}.{self.used[key][1]}"
        kind = bound.column.kind
        sql = {"boolean": f"({where} <> 0)", "null": "NULL"}.get(kind, where)
        return Typed(
            sql,
            _KINDS[kind],
            column=bound.column,
            where=where,
            name=spelled(bound.path),
            longest=bound.column.longest,
        )

    def _on_literal(self, node: exp.Literal) -> Typed:
        text = str(node.this)
        if node.is_string:
            return literal(text)
        if text.isdecimal():
            return whole(text)
        try:
            return literal(float(text))
        except ValueError as error:
            raise QueryError(f"{shown(text)[:40]} is no number.") from error

    def _on_null(self, node: object) -> Typed:
        return Typed("NULL", "null")

    def _on_boolean(self, node: exp.Boolean) -> Typed:
        return literal(bool(node.this))

    def _on_paren(self, node: exp.Paren) -> Typed:
        simple(node, ("this",))
        return self.typed(node.this)

    def truth(self, side: Typed) -> Typed:
        """It as a condition. Raises QueryError where it is none."""
        if side.type == "null":
            return replace(side, sql="CAST(NULL AS BOOLEAN)", type="boolean")
        found = truth_of(side)
        if found is None:
            raise QueryError(f"{side.described()}: a condition compares it with something.")
        return found

    def _on_neg(self, node: exp.Neg) -> Typed:
        inner = self.number(self.typed(node.this))
        if inner.is_literal:
            return literal(-inner.literal)
        return Typed(f"(-{inner.sql})", "number", total=inner.total)

    def _on_not(self, node: exp.Not) -> Typed:
        before, self._denied = self._denied, True
        try:
            inner = self.truth(self.typed(node.this))
        finally:
            self._denied = before
        return boolean(f"(NOT {self.sql(inner)})", inner)

    def _decided(self, sql: str, *sides: Typed) -> str:
        """An equality that is false, and not unknown, for values of another type.

        Without it `code <> 'ERR'` and `not in` would pass by every number among the codes. Columns
        are compared as they are where nothing denies it, so that a join on them stays a quick one.
        """
        fields = [side for side in sides if side.column is not None]
        if not any(side.type == "mixed" or numeric(side) for side in fields):
            return sql
        if len(fields) > 1 and not self._denied:
            return sql
        there = " AND ".join(f"NOT {absent(replace(side, sql=side.where))}" for side in fields)
        return f"coalesce({sql}, CASE WHEN {there} THEN FALSE END)"

    def _on_and(self, node: exp.Expression) -> Typed:
        return self._connected(node, " AND ")

    def _on_or(self, node: exp.Expression) -> Typed:
        return self._connected(node, " OR ")

    def _connected(self, node: Any, word: str) -> Typed:
        # A long chain leans to the left; walked, it is not as deep as it is long.
        parts: list[Any] = []
        current = node
        while type(current) is type(node):
            simple(current, ("this", "expression"))
            parts.append(current.expression)
            current = current.this
        sides = [self.truth(self.typed(part)) for part in (current, *reversed(parts))]
        return boolean(f"({word.join(self.sql(side) for side in sides)})", *sides)

    def _compare(self, node: Any) -> Typed:
        simple(node, ("this", "expression"))
        name = type(node).__name__
        if type(node.expression).__name__ == "Any":
            if name != "EQ":
                raise refused(node)
            return self.contains(self.typed(node.expression.this), self.typed(node.this))
        left, right = self.typed(node.this), self.typed(node.expression)
        if name in ("EQ", "NEQ") and is_null(right):
            # `= null` never holds in SQL, and nobody who writes it means that.
            sql = absent(left) if left.column is not None else f"({self.sql(left)} IS NULL)"
            return boolean(sql if name == "EQ" else f"(NOT {sql})", left)
        if name in _COMPARE:
            self.note(left, _COMPARE[name], right)
        ordering = name in ("GT", "GTE", "LT", "LTE")
        one, two = in_order(left, right) if ordering else together(left, right)
        if name in ("EQ", "NEQ") and "null" not in (one.type, two.type):
            denied, self._denied = self._denied, self._denied or name == "NEQ"
            sql = self._decided(f"({self.sql(one)} = {self.sql(two)})", left, right)
            self._denied = denied
            return boolean(f"(NOT {sql})" if name == "NEQ" else sql, left, right)
        word = _COMPARE.get(name) or _NULL_SAFE[name]
        return boolean(f"({self.sql(one)} {word} {self.sql(two)})", left, right)

    def _on_between(self, node: exp.Between) -> Typed:
        simple(node, ("this", "low", "high"))
        value = self.typed(node.this)
        low, high = self.typed(node.args["low"]), self.typed(node.args["high"])
        self.note(value, ">=", low)
        first, least = in_order(value, low)
        second, most = in_order(value, high)
        sql = f"({self.sql(first)} >= {self.sql(least)} AND {self.sql(second)} <= {self.sql(most)})"
        return boolean(sql, value, low, high)

    def _on_in(self, node: exp.In) -> Typed:
        simple(node, ("this", "expressions", "field"))
        value = self.typed(node.this)
        if node.args.get("field") is not None:
            return self.contains(self.typed(node.args["field"]), value)
        found: list[str] = []
        sides = [self.typed(item) for item in node.expressions]
        for side in sides:
            self.note(value, "=", side)
            one, two = together(value, side)
            found.append(f"{self.sql(one)} = {self.sql(two)}")
        if not found:
            raise QueryError("in (…) needs at least one value.")
        sql = f"({' OR '.join(found)})"
        unknown = any(side.type == "null" for side in sides)
        return boolean(sql if unknown else self._decided(sql, value, *sides), value)

    def _on_is(self, node: exp.Is) -> Typed:
        simple(node, ("this", "expression"))
        value, what = self.typed(node.this), type(node.expression).__name__
        if what == "Null":
            sql = absent(value) if value.column is not None else f"({self.sql(value)} IS NULL)"
            return boolean(sql, value)
        if what == "Boolean":
            side = self.truth(value)
            word = "TRUE" if node.expression.this else "FALSE"
            return boolean(f"(({self.sql(side)}) IS {word})", value)
        raise refused(node)
