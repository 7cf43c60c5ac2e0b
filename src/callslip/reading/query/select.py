"""One select over several results, joins included: read, looked at clause by clause, written anew.

What may live here: the clauses. Expressions are the compiler's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from callslip.errors import QueryError
from callslip.handle import Rows
from callslip.limits import PAGE_CHARS, QUERY_SECONDS, ROWS_CAP, ROWS_DEFAULT
from callslip.reading.page import whole
from callslip.reading.query import guard
from callslip.reading.query.asked import Output, name_of, over_many, shown_sql
from callslip.reading.query.asked import called as own_name
from callslip.reading.query.compile import Compiler
from callslip.reading.query.engine import Run, streams
from callslip.reading.query.names import Names, written
from callslip.reading.query.reply import as_object, selected
from callslip.reading.query.table import Source, Tables
from callslip.reading.query.typed import Typed
from callslip.stacks.ops import Flow

__all__ = ["Named", "Select", "Statement", "compiled", "select"]

_TABLES: Final = 6
_CLAUSES: Final = {
    "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
    "distinct",
}  # fmt: skip
_SIDES: Final = {"": "", "LEFT": "LEFT ", "RIGHT": "RIGHT ", "FULL": "FULL "}
_COLUMNS: Final = 200


@dataclass(frozen=True, slots=True)
class Named:
    """A table of a select: a result by its id, or a list inside one (`res_….items`)."""

    id: str
    path: str
    alias: str


@dataclass(slots=True)
class Select:
    """A select, parsed: which results it is over (`tables`), and the rest of it."""

    tree: Any
    tables: list[Named] = field(default_factory=list)

    @classmethod
    def of(cls, sql: object) -> Select:
        """Raises QueryError, with one sentence, for anything but one select over results."""
        if not isinstance(sql, str) or not sql.strip():
            raise QueryError("Give one select over results, each by its id as a table.")
        tree = guard.parse_select(sql)
        extra = [key for key, value in tree.args.items() if value and key not in _CLAUSES]
        if extra:
            word = extra[0].strip("_").replace("_", " ")
            raise QueryError(
                f"{word} is not taken: select, from, join, where, group, having, order."
            )
        start = tree.args.get("from_")
        if start is None:
            raise QueryError("A select needs a result to read: from the id of one.")
        guard.simple(start, ("this",))
        found = cls(tree)
        for node in (start.this, *(join.this for join in tree.args.get("joins") or ())):
            found.tables.append(_named(node))
        if len(found.tables) > _TABLES:
            raise QueryError(f"A select takes {_TABLES} tables at the most.")
        aliases = [table.alias.lower() for table in found.tables]
        if len(set(aliases)) < len(aliases):
            raise QueryError(
                "Two tables have one name: give each its own, as in from id a join id b."
            )
        return found


def _named(node: Any) -> Named:
    from sqlglot import exp

    if type(node) is not exp.Table or type(node.this) is not exp.Identifier:
        raise QueryError("A table is a result by its id: no file, function or select inside.")
    guard.simple(node, ("this", "db", "catalog", "alias"))
    alias = node.args.get("alias")
    if alias is not None:
        guard.simple(alias, ("this",))
    parts = [part for part in (node.catalog, node.db, node.name) if part]
    return Named(parts[0], ".".join(parts[1:]), str(node.alias) or parts[-1])


def select(
    asked: Select,
    sources: Sequence[Source],
    tables: Tables,
    sql: str,
    limit: object = None,
    after: object = 0,
    page_chars: int = PAGE_CHARS,
    *,
    seconds: float = QUERY_SECONDS,
) -> Flow[Rows]:
    """Answer a select over `sources`, which are those of `asked.tables`, in that order.

    `total` counts the rows that come out; `after` and `limit` as in `query`. Raises QueryError.
    """
    count = min(whole(limit, 0, ROWS_DEFAULT), ROWS_CAP)
    skip = whole(after, 0, 0)
    statement = yield from compiled(asked, sources, tables)
    most, before = statement.most, statement.before
    with Run(streams(statement.compiler, statement.names), seconds) as run:
        bound = statement.compiler.parameters
        held = run.rows(f"SELECT count(*) FROM ({statement.core})", bound)[0][0]
        total = max(held - before, 0)
        total = total if most is None else min(total, most)
        some = max(min(count, total - skip), 0)
        rows: list[tuple[Any, ...]] = []
        if some:
            page = f" LIMIT {some} OFFSET {before + skip}"
            rows = run.rows(statement.core + statement.order + page, bound)
    records = [as_object(statement.outputs, row) for row in rows]
    return selected(records, total, skip, count, sql, [t.id for t in asked.tables], page_chars)


@dataclass(slots=True)
class Statement:
    """A select as SQL of our own: without its order, which comes behind it, and its limits."""

    names: Names
    compiler: Compiler
    most: int | None
    before: int
    core: str = ""
    order: str = ""
    outputs: list[Output] = field(default_factory=list)


def compiled(asked: Select, sources: Sequence[Source], tables: Tables) -> Flow[Statement]:
    """Find its fields and write it. Raises QueryError."""
    tree = asked.tree
    names = Names(
        {
            named.alias: (source, tables.of(source))
            for named, source in zip(asked.tables, sources, strict=True)
        }
    )
    joins = [_joined(join, asked, place) for place, join in enumerate(tree.args.get("joins") or ())]
    chosen = yield from _expanded(tree.expressions, names)
    where = tree.args["where"].this if tree.args.get("where") else None
    having = tree.args["having"].this if tree.args.get("having") else None
    group = tree.args["group"] if tree.args.get("group") else None
    if group is not None:
        guard.simple(group, ("expressions",))
    order = list(tree.args["order"].expressions) if tree.args.get("order") else []
    keys = [_place(node, chosen) for node in (group.expressions if group else [])]
    called = _called(chosen, names)
    outputs = frozenset(name.lower() for name in called)
    yield from names.resolve(
        [n for n in (*chosen, where, *(on for _, on in joins)) if n is not None]
    )
    yield from names.resolve([n for n in (*keys, having, *order) if n is not None], outputs)
    for source, table in names.tables.values():
        yield from table.ensure(source, [])
    tables.trim()

    most, before = _number(tree, "limit"), _number(tree, "offset") or 0
    made = Statement(names, Compiler(names), most, before)
    compiler = made.compiler
    grouped = bool(keys) or having is not None or any(map(over_many, chosen))
    known: list[tuple[Any, Typed]] = []
    parts: list[str] = []
    for place, node in enumerate(chosen):
        side = compiler.compile(_bare(node), totals=grouped)
        known.append((_bare(node), side))
        name = called[place]
        made.outputs.append(Output(name, side.type in ("mixed", "json")))
        compiler.outputs.setdefault(name.lower(), side)
        parts.append(f"{shown_sql(side, compiler.sql(side))} AS o{place}")
    core = f"SELECT {_distinct(tree)}{', '.join(parts)} FROM t0"
    for place, (word, on) in enumerate(joins, 1):
        core += f" {word}t{place}" + ("" if on is None else f" ON {compiler.condition(on)}")
    if where is not None:
        core += f" WHERE {compiler.condition(where)}"
    if keys:
        core += f" GROUP BY {', '.join(_key(node, known, compiler) for node in keys)}"
    if having is not None:
        core += f" HAVING {compiler.condition(having, totals=True)}"
    made.core = core
    ordered = [_ordered(item, chosen, compiler, grouped) for item in order]
    if tree.args.get("distinct") and order:
        ordered = [_by_place(item, chosen) for item in order]
    # The same rows in the same order each time: ties by what comes out, or by where it lies.
    if grouped or tree.args.get("distinct"):
        ordered += [f"{place} ASC NULLS LAST" for place in range(1, len(parts) + 1)]
    elif ordered or joins:
        ordered += [f"t{place}.n" for place in range(len(asked.tables))]
    made.order = f" ORDER BY {', '.join(ordered)}" if ordered else ""
    return made


def _called(chosen: Sequence[Any], names: Names) -> list[str]:
    """What each of the selected is called: a field by itself, where only one has that name."""
    short: list[str] = []
    for node in chosen:
        steps = None if node.alias else written(node)
        prefixed = steps and len(steps[0]) > 1 and str(steps[0][0]) in names.tables
        short.append(own_name(tuple(steps[0][1:])) if steps and prefixed else name_of(node))
    found: list[str] = []
    for node, name in zip(chosen, short, strict=True):
        called = name if short.count(name) == 1 else name_of(node)
        while called in found:
            called += "_2"
        found.append(called)
    return found


def _bare(node: Any) -> Any:
    return node.this if type(node).__name__ == "Alias" else node


def _distinct(tree: Any) -> str:
    node = tree.args.get("distinct")
    if not node:
        return ""
    guard.simple(node, ())
    return "DISTINCT "


def _joined(join: Any, asked: Select, place: int) -> tuple[str, Any]:
    """The words of a join, and its condition as a tree."""
    from sqlglot import exp

    guard.simple(join, ("this", "side", "kind", "on", "using"))
    kind, side = str(join.args.get("kind") or ""), str(join.args.get("side") or "")
    if kind not in ("", "INNER", "OUTER", "CROSS") or side not in _SIDES:
        raise QueryError("Of joins there are join, left join, right join, full join, cross join.")
    on = join.args.get("on")
    for column in join.args.get("using") or ():
        left, right = asked.tables[0].alias, asked.tables[place + 1].alias
        pair = exp.EQ(
            this=exp.column(column.name, table=left, quoted=True),
            expression=exp.column(column.name, table=right, quoted=True),
        )
        on = pair if on is None else exp.And(this=on, expression=pair)
    if on is None:
        if side:
            raise QueryError("A left, right or full join needs a condition: on a.id = b.id.")
        return "CROSS JOIN ", None
    return f"{_SIDES[side]}JOIN ", on


def _expanded(nodes: Sequence[Any], names: Names) -> Flow[list[Any]]:
    """What is selected, with the fields of a table in the place of its star."""
    from sqlglot import exp

    found: list[Any] = []
    for node in nodes:
        star = node if isinstance(node, exp.Star) else node.this if _is_star(node) else None
        if star is None:
            found.append(node)
            continue
        guard.simple(star, ())
        only = node.table if isinstance(node, exp.Column) else ""
        for alias, (source, table) in names.tables.items():
            if only and alias.lower() != only.lower():
                continue
            for name in (yield from table.all_names(source)):
                found.append(exp.column(name, table=alias, quoted=True))
    if len(found) > _COLUMNS:
        raise QueryError(f"This selects {len(found):,} fields; name up to {_COLUMNS} of them.")
    return found


def _is_star(node: Any) -> bool:
    return type(node).__name__ == "Column" and type(node.this).__name__ == "Star"


def _place(node: Any, chosen: Sequence[Any]) -> Any:
    """`group by 1` and `order by 2` name what is selected by its place."""
    if type(node).__name__ == "Literal" and not node.is_string:
        text = str(node.this)
        if not text.isdecimal() or not 1 <= int(text[:9]) <= len(chosen):
            raise QueryError(f"{text[:20]} is no place among the {len(chosen)} that are selected.")
        return _bare(chosen[int(text) - 1])
    return node


def _key(node: Any, known: list[tuple[Any, Typed]], compiler: Compiler) -> str:
    for place, (selected_node, _) in enumerate(known, 1):
        if selected_node == node:
            return str(place)
    side = compiler.compile(node)
    for place, (_, of) in enumerate(known, 1):
        if of is side:
            return str(place)
    return compiler.sql(side)


def _ordered(item: Any, chosen: Sequence[Any], compiler: Compiler, grouped: bool) -> str:
    item = item.copy()
    item.set("this", _place(item.this, chosen))
    return compiler.order(item, totals=grouped)


def _by_place(item: Any, chosen: Sequence[Any]) -> str:
    wanted = _place(item.this, chosen)
    for place, node in enumerate(chosen, 1):
        if _bare(node) == wanted or name_of(node).lower() == name_of(wanted).lower():
            return f"{place} {'DESC' if item.args.get('desc') else 'ASC'} NULLS LAST"
    raise QueryError("With distinct, order by what is selected.")


def _number(tree: Any, clause: str) -> int | None:
    node = tree.args.get(clause)
    if node is None:
        return None
    guard.simple(node, ("expression",))
    text = str(node.expression.this) if type(node.expression).__name__ == "Literal" else ""
    if not text.isdecimal() or len(text) > 12:
        raise QueryError(f"{clause} takes a whole number.")
    return int(text)
