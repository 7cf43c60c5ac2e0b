"""A query as it is asked, in whatever shape a model gives it, and as it is compiled.

What may live here: arguments to statements. Running them and wording the reply is the flow's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from callslip.errors import QueryError
from callslip.reading.query import guard
from callslip.reading.query.compile import Compiler
from callslip.reading.query.names import Names, spelled, written
from callslip.reading.query.pull import Path
from callslip.reading.query.table import Source, Table
from callslip.reading.query.typed import Typed
from callslip.stacks.ops import Flow

__all__ = [
    "Asked",
    "Output",
    "Plan",
    "called",
    "fields_of",
    "name_of",
    "over_many",
    "planned",
    "shown_sql",
]

_NAME_CHARS = 60
_PLAIN = re.compile(r"\s*-?\s*[^\W\d][\w.]*(\s+(asc|desc))?\s*", re.IGNORECASE)
ALIAS = "r"
"""What the one table of a query is called; its fields may be written with it or without."""


@dataclass(frozen=True, slots=True)
class Output:
    """One field of what comes out. `json` values are JSON already."""

    name: str
    json: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of a query, parsed."""

    where: Any = None
    """A tree, a mapping of field to value, or None."""
    said: str = ""
    """The condition as it was given, for the reply and the call that goes on."""
    fields: tuple[Any, ...] = ()
    order_by: tuple[Any, ...] = ()
    group_by: tuple[Any, ...] = ()

    @classmethod
    def of(
        cls,
        where: object,
        fields: object,
        order_by: object,
        group_by: object,
        known: Collection[str] = (),
    ) -> Asked:
        """`known` are the fields there are: what is given as one of them is it. Raises QueryError."""
        mapping = guard.mapping_of(where)
        tree: Any = None
        said = ""
        if mapping is not None:
            said = json.dumps(mapping, ensure_ascii=False, default=str)
            tree = _of_mapping(mapping)
        elif isinstance(where, str) and where.strip():
            said = " ".join(where.split())
            try:
                tree = guard.parse_expression(where)
            except QueryError as error:
                raise guard.keyword_field(where, known) or error from error
        elif where not in (None, "") and not isinstance(where, str):
            raise QueryError(
                "`where` takes a condition such as field = 'text', or field and value."
            )
        chosen = () if fields in ("*", ["*"]) else tuple(guard.parse_list(fields, "fields", known))
        if any(type(node).__name__ == "Star" for node in chosen):
            chosen = ()
        return cls(
            tree,
            said,
            chosen,
            tuple(guard.parse_order(order_by, known)),
            tuple(guard.parse_list(group_by, "group_by", known)),
        )


def fields_of(source: Source, table: Table, *lists: object) -> Flow[Collection[str]]:
    """The names of fields: those of the first record, or of all where a list may need them."""
    known: Collection[str] = source.fields if table.names is None else table.names
    for names in map(guard.given_list, lists):
        for name in names or ():
            text = str(name)
            if text not in known and "(" not in text and not _PLAIN.fullmatch(text):
                return (yield from table.all_names(source))
    return known


def _of_mapping(mapping: dict[str, Any]) -> Any:
    from sqlglot import exp

    def literal(value: Any) -> Any:
        if isinstance(value, bool):
            return exp.Boolean(this=value)
        if isinstance(value, (int, float)):
            text = repr(abs(value))
            number = exp.Literal(this=text, is_string=False)
            return exp.Neg(this=number) if value < 0 else number
        if isinstance(value, str):
            return exp.Literal(this=value, is_string=True)
        raise QueryError(
            "A mapping gives each field a text, a number, true, false, null or a list."
        )

    found: Any = None
    for name, value in mapping.items():
        field_: Any = exp.Column(this=exp.Identifier(this=name, quoted=False))
        if "." in name:
            parts = name.split(".")
            field_ = exp.Column(this=exp.Identifier(this=parts[0], quoted=False))
            for part in parts[1:]:
                field_ = exp.Dot(this=field_, expression=exp.Identifier(this=part, quoted=False))
        node: Any
        if value is None:
            node = exp.Is(this=field_, expression=exp.Null())
        elif isinstance(value, (list, tuple)):
            node = exp.In(this=field_, expressions=[literal(item) for item in value])
        else:
            node = exp.EQ(this=field_, expression=literal(value))
        found = node if found is None else exp.And(this=found, expression=node)
    return found


@dataclass(slots=True)
class Plan:
    """What is to be run. `paths` is set where whole records, or fields of them, are answered."""

    names: Names
    compiler: Compiler
    condition: str = ""
    order: str = ""
    paths: list[tuple[str, Path]] | None = None
    outputs: list[Output] = field(default_factory=list)
    select: str = ""
    grouped: bool = False
    group: str = ""
    """The places of the keys among what is selected."""

    @property
    def whole(self) -> bool:
        """Records by their numbers: nothing is computed."""
        return not self.select

    @property
    def matched(self) -> str:
        """The table, the condition and the groups."""
        sql = "FROM t0" + (f" WHERE {self.condition}" if self.condition else "")
        return sql + (f" GROUP BY {self.group}" if self.group else "")

    @property
    def counting(self) -> str:
        """How many come out in all."""
        if self.grouped:
            return f"SELECT count(*) FROM (SELECT {self.select} {self.matched})"
        return f"SELECT count(*) {self.matched}"

    def listing(self, limit: int, after: int) -> str:
        """So many of them."""
        what = self.select if self.grouped else f"t0.n{', ' if self.select else ''}{self.select}"
        return f"SELECT {what} {self.matched}{self.order} LIMIT {limit} OFFSET {after}"


def planned(asked: Asked, source: Source, table: Table) -> Flow[Plan]:
    """Find the fields that are asked for and compile the rest. Raises QueryError."""
    names = Names({ALIAS: (source, table)})
    outputs = frozenset(
        [str(node.alias).lower() for node in asked.fields if node.alias]
        + ["count", "n"]
        + [name_of(node).lower() for node in asked.fields]
    )
    plain = _plain(asked, names)
    chosen = asked.fields if plain is None else ()
    trees = [tree for tree in (asked.where, *chosen, *asked.group_by) if tree is not None]
    try:
        yield from names.resolve(trees)
    except QueryError as error:
        raise guard.keyword_field(asked.said, source.fields, asked.where) or error from error
    yield from names.resolve(list(asked.order_by), outputs)
    if trees or asked.order_by:
        yield from table.ensure(source, [])
    compiler = Compiler(names)
    plan = Plan(names, compiler)
    if asked.where is not None:
        try:
            plan.condition = compiler.condition(asked.where)
        except QueryError as error:
            raise guard.keyword_field(asked.said, source.fields, asked.where) or error from error
    if asked.group_by or any(over_many(node) for node in asked.fields):
        _grouped(plan, asked)
    elif plain is not None:
        plan.paths = plain or None
    else:
        _chosen(plan, asked)
    order = [compiler.order(item, totals=plan.grouped) for item in asked.order_by]
    if not plan.grouped:
        # Without an order they come as they are stored, and the engine stops at the last one.
        order += ["t0.n"] if order else []
    elif asked.group_by:
        order += _group_order(plan, bool(order))
    plan.order = f" ORDER BY {', '.join(order)}" if order else ""
    return plan


def _plain(asked: Asked, names: Names) -> list[tuple[str, Path]] | None:
    """Where the fields are that are asked for, if all of them are fields of the first record.

    Their columns are not needed then: a long text is answered from its record.
    """
    found: list[tuple[str, Path]] = []
    for node in asked.fields:
        steps = written(_bare(node))
        path = names.known_path(steps[0]) if steps and not asked.group_by else None
        if path is None:
            return None
        found.append((name_of(node), path))
    return found


def over_many(node: Any) -> bool:
    """Whether a total over many records is in it."""
    from sqlglot import exp

    return any(isinstance(part, exp.AggFunc) for part in node.walk())


def called(path: Path) -> str:
    """What a field is called where it comes out: by its own name, a path as it is written."""
    return str(path[0]) if len(path) == 1 else spelled(path)


def name_of(node: Any) -> str:
    """What comes out of it is called: its alias, its field, or itself."""
    if node.alias:
        return str(node.alias)
    steps = written(node)
    if steps is not None:
        return called(tuple(steps[0]))
    return str(node.sql(dialect="duckdb"))[:_NAME_CHARS].lower()


def _bare(node: Any) -> Any:
    return node.this if type(node).__name__ == "Alias" else node


def _chosen(plan: Plan, asked: Asked) -> None:
    """Fields of records: their exact text if they are fields and nothing else."""
    steps = [written(_bare(node)) for node in asked.fields]
    if all(steps):
        paths: list[tuple[str, Path]] = []
        for node, found in zip(asked.fields, steps, strict=True):
            bound = plan.names.bound(found[0]) if found else None
            if bound is None:
                raise QueryError(f"There is no field {name_of(node)[:40]}.")
            paths.append((str(node.alias) or name_of(_bare(node)), bound.path))
        plan.paths = paths
        return
    typed = [(node, plan.compiler.compile(_bare(node))) for node in asked.fields]
    _select(plan, typed)


def _select(plan: Plan, typed: list[tuple[Any, Typed]]) -> None:
    parts: list[str] = []
    for place, (node, side) in enumerate(typed):
        name = name_of(node)
        while any(output.name == name for output in plan.outputs):
            name += "_2"
        plan.outputs.append(Output(name, side.type in ("mixed", "json")))
        plan.compiler.outputs.setdefault(name.lower(), side)
        sql = plan.compiler.sql(side)
        parts.append(f"{shown_sql(side, sql)} AS o{place}")
    plan.select = ", ".join(parts)


def shown_sql(side: Typed, sql: str) -> str:
    """The SQL of what a result shows of it."""
    return f"CAST({sql} AS VARCHAR)" if side.type == "time" else sql


def _grouped(plan: Plan, asked: Asked) -> None:
    from sqlglot import exp

    compiler = plan.compiler
    keys = [(node, compiler.compile(_bare(node))) for node in asked.group_by]
    known = {_said(node, plan.names): side for node, side in keys}
    typed: list[tuple[Any, Typed]] = []
    chosen = [_said(node, plan.names) for node in asked.fields]
    typed += [(node, side) for node, side in keys if _said(node, plan.names) not in chosen]
    total = False
    for node in asked.fields:
        text = _said(node, plan.names)
        if text in known:
            typed.append((node, known[text]))
            continue
        side = compiler.compile(_bare(node), totals=True)
        if not side.total and not side.is_literal:
            raise QueryError(
                f"{name_of(node)[:40]} is neither grouped by nor a total: use max({name_of(node)[:40]}) "
                "or name it in group_by."
            )
        total = True
        typed.append((node, side))
    if not total:
        typed.append(
            (
                exp.alias_(exp.Count(this=exp.Star()), "count"),
                Typed("count(*)", "number", total=True),
            )
        )
    _select(plan, typed)
    plan.grouped = True
    places = [
        str(place) for place, (_, side) in enumerate(typed, 1) if any(side is k for _, k in keys)
    ]
    plan.group = ", ".join(places)


def _said(node: Any, names: Names) -> Path | str:
    """The same for the same field or expression, however it is written."""
    steps = written(_bare(node))
    bound = names.bound(steps[0]) if steps else None
    return bound.path if bound else _bare(node).sql(dialect="duckdb").lower()


def _group_order(plan: Plan, ordered: bool) -> list[str]:
    """The largest group first, unless another order was asked for; then by what they have."""
    first = [] if ordered else ["count(*) DESC"]
    return first + [f"{place} ASC NULLS LAST" for place in range(1, len(plan.outputs) + 1)]
