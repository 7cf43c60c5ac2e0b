"""The nodes of an expression that give values: arithmetic, functions, case, casts, totals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from callslip.errors import QueryError
from callslip.reading.query.guard import simple
from callslip.reading.query.nodes import Nodes
from callslip.reading.query.typed import Type, Typed, boolean, mismatch, numeric, together

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["ValueNodes"]

_ARITHMETIC: Final = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "//", "Mod": "%"}
_CASTS: Final[dict[str, tuple[str, Type]]] = {
    "TEXT": ("VARCHAR", "text"),
    "VARCHAR": ("VARCHAR", "text"),
    "DOUBLE": ("DOUBLE", "number"),
    "FLOAT": ("DOUBLE", "number"),
    "DECIMAL": ("DOUBLE", "number"),
    "INT": ("BIGINT", "number"),
    "BIGINT": ("BIGINT", "number"),
    "SMALLINT": ("BIGINT", "number"),
    "BOOLEAN": ("BOOLEAN", "boolean"),
    "DATE": ("DATE", "time"),
    "TIMESTAMP": ("TIMESTAMP", "time"),
    "TIMESTAMPNTZ": ("TIMESTAMP", "time"),
    "DATETIME": ("TIMESTAMP", "time"),
}
_UNITS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_PARTS: Final = {"Year", "Quarter", "Month", "Week", "Day", "Hour", "Minute", "Second"}


@dataclass(frozen=True, slots=True)
class _Function:
    """SQL name, the sqlglot argument names in order, their types ("?" after one that may lack)."""

    sql: str
    arguments: tuple[str, ...]
    takes: tuple[str, ...]
    gives: Type
    copies: int = 0


_TEXT: Final = ("text",)
_FUNCTIONS: Final[dict[str, _Function]] = {
    "Lower": _Function("lower", ("this",), _TEXT, "text", 1),
    "Upper": _Function("upper", ("this",), _TEXT, "text", 1),
    "Trim": _Function("trim", ("this",), _TEXT, "text", 1),
    "Substring": _Function(
        "substring", ("this", "start", "length"), ("text", "number", "number?"), "text", 1
    ),
    "Left": _Function("left", ("this", "expression"), ("text", "number"), "text", 1),
    "Right": _Function("right", ("this", "expression"), ("text", "number"), "text", 1),
    "StartsWith": _Function("starts_with", ("this", "expression"), ("text", "text"), "boolean"),
    "EndsWith": _Function("suffix", ("this", "expression"), ("text", "text"), "boolean"),
    "StrPosition": _Function("strpos", ("this", "substr"), ("text", "text"), "number"),
    "Abs": _Function("abs", ("this",), ("number",), "number"),
    "Round": _Function("round", ("this", "decimals"), ("number", "number?"), "number"),
    "Floor": _Function("floor", ("this",), ("number",), "number"),
    "Ceil": _Function("ceil", ("this",), ("number",), "number"),
    "Sqrt": _Function("sqrt", ("this",), ("number",), "number"),
    "Sign": _Function("sign", ("this",), ("number",), "number"),
}
_TOTALS: Final = {
    "Sum": "sum",
    "Avg": "avg",
    "Min": "min",
    "Max": "max",
    "Median": "median",
    "Stddev": "stddev_samp",
    "StddevSamp": "stddev_samp",
    "StddevPop": "stddev_pop",
    "Variance": "var_samp",
    "VariancePop": "var_pop",
}
_NAMES: Final = {"json_array_length": "Length", "array_size": "Length", "list_has": "ArrayContains"}


class ValueNodes(Nodes):
    """Mixed into the compiler."""

    def method_for(self, node: Any) -> Callable[[Any], Typed] | None:
        """What compiles a node of the tables above."""
        name = type(node).__name__
        if name in _ARITHMETIC:
            return self._arithmetic
        if name in _FUNCTIONS:
            return self._function
        if name in _TOTALS or name in ("Count", "CountIf"):
            return self._total
        if name in _PARTS:
            return self._date_part
        return None

    def _function(self, node: Any) -> Typed:
        function = _FUNCTIONS[type(node).__name__]
        simple(node, function.arguments)
        sides: list[Typed] = []
        for argument, takes in zip(function.arguments, function.takes, strict=True):
            inner = node.args.get(argument)
            if inner is None:
                if not takes.endswith("?"):
                    raise QueryError(f"{function.sql} lacks an argument.")
                continue
            side = self.typed(inner)
            sides.append(self.text(side, broad=True) if takes == "text" else self.number(side))
        first = sides[0]
        made = Typed(
            f"{function.sql}({', '.join(self.sql(side) for side in sides)})",
            function.gives,
            copies=function.copies and max(first.copies, 1),
            longest=first.longest if function.copies else 0,
            total=any(side.total for side in sides),
        )
        if function.copies:
            self.hold(made, made.copies)
        return made

    def _on_replace(self, node: Any) -> Typed:
        simple(node, ("this", "expression", "replacement"))
        value = self.text(self.typed(node.this), broad=True)
        old, new = self.typed(node.expression), self.typed(node.args["replacement"])
        if not (isinstance(old.literal, str) and isinstance(new.literal, str)):
            raise QueryError("replace takes two texts in quotes.")
        if not old.literal or len(new.literal.encode()) > len(old.literal.encode()):
            raise QueryError("replace takes no text that is longer than what it replaces.")
        self.hold(value, 1)
        sql = f"replace({self.sql(value)}, {self.sql(old)}, {self.sql(new)})"
        return Typed(sql, "text", copies=1, longest=value.longest, total=value.total)

    def _on_coalesce(self, node: Any) -> Typed:
        return self._any_of(node, "coalesce")

    def _on_greatest(self, node: Any) -> Typed:
        return self._any_of(node, "greatest")

    def _on_least(self, node: Any) -> Typed:
        return self._any_of(node, "least")

    def _any_of(self, node: Any, name: str) -> Typed:
        simple(node, ("this", "expressions", "ignore_nulls"))
        same, kind = self._alike([self.typed(item) for item in (node.this, *node.expressions)])
        sql = f"{name}({', '.join(self.sql(side) for side in same)})"
        return self._made(Typed(sql, kind, total=any(side.total for side in same)), same)

    def _on_nullif(self, node: Any) -> Typed:
        simple(node, ("this", "expression"))
        value = self.typed(node.this)
        one, two = together(value, self.typed(node.expression))
        sql = f"nullif({self.sql(one)}, {self.sql(two)})"
        return self._made(Typed(sql, one.type, total=value.total), [one])

    def _alike(self, sides: list[Typed]) -> tuple[list[Typed], Type]:
        """All of one type, and which."""
        kinds = [side for side in sides if side.type != "null"]
        if not kinds:
            return sides, "null"
        lead = next((side for side in kinds if side.column is not None), kinds[0])
        if lead.type == "mixed":
            lead = self.text(lead, broad=True)
        found = [lead if side is lead else together(lead, side)[1] for side in sides]
        leads = {together(lead, side)[0].type for side in kinds if side is not lead}
        if len(leads | {side.type for side in found if side.type != "null"}) > 1:
            raise mismatch(lead, next(s for s in kinds if s.type != lead.type))
        return found, lead.type

    def _made(self, made: Typed, of: list[Typed]) -> Typed:
        if made.type in ("text", "json"):
            copies = max((side.copies for side in of), default=0)
            made = replace(made, copies=max(copies, 1), longest=max(s.longest for s in of))
            self.hold(made, made.copies)
        return made

    def _date_part(self, node: Any) -> Typed:
        simple(node, ("this",))
        return self._part(type(node).__name__, node.this)

    # --- totals over many records -----------------------------------------------------------------

    def _total(self, node: Any) -> Typed:
        name = type(node).__name__
        said = _TOTALS.get(name, "count")
        if not self.totals:
            raise QueryError(
                f"{said}(…) is over many records: put it in fields, with group_by or without."
            )
        self.totals = False
        try:
            return self._over(node, name, said)
        finally:
            self.totals = True

    def _over(self, node: Any, name: str, said: str) -> Typed:
        simple(node, ("this", "expressions", "big_int"))
        inner = node.args.get("this")
        if name == "Count" and (inner is None or type(inner).__name__ == "Star"):
            return Typed("count(*)", "number", total=True)
        if name == "CountIf":
            condition = self.sql(self.truth(self.typed(inner)))
            return Typed(f"count(CASE WHEN {condition} THEN 1 END)", "number", total=True)
        distinct = type(inner).__name__ == "Distinct"
        if distinct:
            simple(inner, ("expressions",))
            if len(inner.expressions) != 1:
                raise QueryError(f"{said}(distinct …) takes one field.")
            inner = inner.expressions[0]
        side = self.typed(inner)
        word = "DISTINCT " if distinct else ""
        if name == "Count":
            return Typed(f"count({word}{self.sql(side)})", "number", total=True)
        if name in ("Min", "Max"):
            if side.type == "mixed" or numeric(side):
                side = self.number(side)
            if side.type not in ("number", "text", "time", "boolean", "null"):
                raise QueryError(f"{side.described()}: {said} takes numbers, text or dates.")
            sql = f"{said}({self.sql(side)})"
            return Typed(sql, side.type, longest=side.longest, total=True)
        whole = side.column is not None and side.column.kind in ("integer", "big")
        number = self.number(side)
        if not whole and name in ("Sum", "Avg") and side.column is not None:
            # Compensated summation: the total of prices is not off in its last digit.
            said = {"Sum": "fsum", "Avg": "favg"}[name] if not distinct else said
        return Typed(f"{said}({word}{self.sql(number)})", "number", total=True)

    def _arithmetic(self, node: Any) -> Typed:
        simple(node, ("this", "expression", "typed", "safe"))
        left, right = self.number(self.typed(node.this)), self.number(self.typed(node.expression))
        word = _ARITHMETIC[type(node).__name__]
        sql = f"({self.sql(left)} {word} {self.sql(right)})"
        return Typed(sql, "number", total=left.total or right.total)

    def _on_dpipe(self, node: Any) -> Typed:
        simple(node, ("this", "expression", "safe"))
        return self._joined([node.this, node.expression], " || ")

    def _on_concat(self, node: Any) -> Typed:
        simple(node, ("expressions", "safe", "coalesce"))
        return self._joined(node.expressions, ", ")

    def _joined(self, nodes: list[Any], between: str) -> Typed:
        sides = [self.text(self.typed(node), broad=True) for node in nodes]
        copies = sum(max(side.copies, 1) for side in sides if not side.is_literal)
        longest = sum(side.longest for side in sides)
        inner = between.join(self.sql(side) for side in sides)
        sql = f"({inner})" if between == " || " else f"concat({inner})"
        self.hold(Typed("", "text", longest=longest), copies)
        total = any(side.total for side in sides)
        return Typed(sql, "text", copies=copies, longest=longest, total=total)

    def _on_case(self, node: exp.Case) -> Typed:
        simple(node, ("this", "ifs", "default"))
        subject = node.args.get("this")
        sql, results, conditions = "CASE", [], []
        for branch in node.args["ifs"]:
            simple(branch, ("this", "true"))
            if subject is None:
                when = self.truth(self.typed(branch.this))
            else:
                one, two = together(self.typed(subject), self.typed(branch.this))
                when = boolean(f"({self.sql(one)} = {self.sql(two)})", one, two)
            conditions.append(when)
            results.append(self.typed(branch.args["true"]))
        if node.args.get("default") is not None:
            results.append(self.typed(node.args["default"]))
        same, kind = self._alike(results)
        for when, then in zip(conditions, same, strict=False):
            sql += f" WHEN {self.sql(when)} THEN {self.sql(then)}"
        if len(same) > len(conditions):
            sql += f" ELSE {self.sql(same[-1])}"
        total = any(side.total for side in (*same, *conditions))
        return self._made(Typed(f"({sql} END)", kind, total=total), same)

    def _on_if(self, node: exp.If) -> Typed:
        simple(node, ("this", "true", "false"))
        when = self.truth(self.typed(node.this))
        last = node.args.get("false")
        results = [self.typed(node.args["true"])] + ([] if last is None else [self.typed(last)])
        same, kind = self._alike(results)
        other = f" ELSE {self.sql(same[1])}" if last is not None else ""
        sql = f"(CASE WHEN {self.sql(when)} THEN {self.sql(same[0])}{other} END)"
        return self._made(Typed(sql, kind, total=when.total), same)

    def _on_cast(self, node: Any) -> Typed:
        target = _CASTS.get(node.args["to"].this.name)
        simple(node, ("this", "to", "safe"))
        if target is None or node.args["to"].expressions:
            raise QueryError("cast takes varchar, double, bigint, boolean, date or timestamp.")
        value = self.typed(node.this)
        if value.type == "mixed":
            number = target[1] == "number"
            source = f"coalesce(TRY_CAST({value.where}s AS DOUBLE), {value.where}n)"
            source = source if number else self.text(value, broad=True).sql
            return Typed(f"TRY_CAST({source} AS {target[0]})", target[1], longest=value.longest)
        self.hold(value, 1)
        sql = f"TRY_CAST({self.sql(value)} AS {target[0]})"
        return Typed(sql, target[1], copies=1, longest=value.longest, total=value.total)

    _on_trycast = _on_cast

    def _on_extract(self, node: Any) -> Typed:
        simple(node, ("this", "expression"))
        return self._part(str(node.this.name), node.expression)

    def _on_timestamptrunc(self, node: Any) -> Typed:
        simple(node, ("this", "unit"))
        unit = str(node.args["unit"].name).lower()
        if unit not in _UNITS:
            raise QueryError(f"date_trunc takes one of {', '.join(_UNITS)}.")
        value = self.time(self.typed(node.this))
        return Typed(f"date_trunc('{unit}', {self.sql(value)})", "time", total=value.total)

    _on_datetrunc = _on_timestamptrunc

    def _part(self, unit: str, node: Any) -> Typed:
        if unit.lower() not in _UNITS:
            raise QueryError(f"extract takes one of {', '.join(_UNITS)}.")
        value = self.time(self.typed(node))
        return Typed(f"extract({unit.lower()} FROM {self.sql(value)})", "number", total=value.total)
