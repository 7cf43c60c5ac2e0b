"""Fields as they are written in a query, and the columns that they mean.

What may live here: names to columns. Values and conditions are the compiler's.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callslip.errors import QueryError
from callslip.reading.query.columns import Column
from callslip.reading.query.pull import Path
from callslip.reading.query.table import Source, Table
from callslip.stacks.ops import Flow
from callslip.window.inert import shown

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Bound", "Names", "named", "spelled", "written"]

_FIELDS_SAID = 30
_FIELD_CHARS = 40


@dataclass(frozen=True, slots=True)
class Bound:
    """A field of one of the tables of a query."""

    alias: str
    path: Path
    column: Column


def written(node: Any) -> tuple[list[str | int], bool] | None:
    """(steps, a single quoted name?) of a field as written; None for any other expression.

    `a.b`, `a['b']`, `a->'b'`, `a->>'$.b[0]'`; places in arrays count from 0, as in every path.
    """
    from sqlglot import exp

    if isinstance(node, exp.Column):
        parts = node.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            return None
        return [part.name for part in parts], len(parts) == 1 and bool(parts[0].args.get("quoted"))
    if isinstance(node, exp.Paren):
        return written(node.this)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        inner = written(node.this)
        return None if inner is None else ([*inner[0], node.expression.name], False)
    if isinstance(node, exp.Bracket) and len(node.expressions) == 1:
        inner = written(node.this)
        step = _place(node.expressions[0])
        if inner is None or step is None:
            return None
        # The parser has taken one off: in its dialect places count from 1.
        return [*inner[0], step + 1 if isinstance(step, int) else step], False
    if isinstance(node, (exp.JSONExtract, exp.JSONExtractScalar)):
        inner = written(node.this)
        if inner is None or not isinstance(node.expression, exp.JSONPath):
            return None
        steps: list[str | int] = []
        for part in node.expression.expressions:
            if isinstance(part, exp.JSONPathRoot):
                continue
            if not isinstance(part, (exp.JSONPathKey, exp.JSONPathSubscript)):
                return None
            if not isinstance(part.this, (str, int)):
                return None
            steps.append(part.this)
        return [*inner[0], *steps], False
    return None


def _place(node: Any) -> str | int | None:
    from sqlglot import exp

    if isinstance(node, exp.Neg):
        inner = _place(node.this)
        return -inner if isinstance(inner, int) else None
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return str(node.this)
    return int(node.this) if node.this.isdecimal() and len(node.this) < 10 else None


def spelled(path: Path) -> str:
    """A path as a model would write it."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            plain = step.isidentifier()
            text += ("." if text else "") + (step if plain else '"' + step.replace('"', '""') + '"')
    return text


def named(names: list[str]) -> str:
    """Names of fields in a sentence, so many of them and so much of each."""
    said = ", ".join(shown(name)[:_FIELD_CHARS] for name in names[:_FIELDS_SAID])
    more = len(names) - _FIELDS_SAID
    return said + (f" and {more:,} more" if more > 0 else "")


class Names:
    """The tables of a query by the names they go by, and the fields it may name.

    `resolve` makes the columns of all fields that some expressions name, in one pass over each
    table; after it, `bound` answers for each of those fields.
    """

    def __init__(self, tables: dict[str, tuple[Source, Table]]) -> None:
        self.tables = tables
        self._known: dict[Path, Bound | None] = {}

    def resolve(self, trees: list[Any], outputs: frozenset[str] = frozenset()) -> Flow[None]:
        """Find the fields that these expressions name. A name in `outputs` may be missing.

        Raises QueryError for one that no record has, with the fields there are.
        """
        seen: dict[Path, bool] = {}
        for tree in trees:
            for name, quoted in _fields_in(tree):
                seen.setdefault(tuple(name), quoted)
        asked: dict[str, dict[Path, Path]] = {name: {} for name in self.tables}
        for steps in seen:
            if steps not in self._known:
                for alias, path in self._places(steps):
                    asked[alias][steps] = path
        for alias, paths in asked.items():
            if paths:
                source, table = self.tables[alias]
                yield from table.ensure(source, list(paths.values()))
        for steps, quoted in seen.items():
            if steps in self._known:
                continue
            found = [
                Bound(alias, paths[steps], self.tables[alias][1].columns[paths[steps]])
                for alias, paths in asked.items()
                if steps in paths
            ]
            present = [bound for bound in found if bound.column.present]
            if len(present) > 1:
                each = " or ".join(f"{bound.alias}.{spelled(bound.path)}" for bound in present)
                raise QueryError(f"{spelled(steps)} is in several of the tables: write {each}.")
            empty = not present and all(self.tables[b.alias][0].count == 0 for b in found)
            if present or (empty and found):
                self._known[steps] = (present or found)[0]
            elif quoted or (len(steps) == 1 and str(steps[0]).lower() in outputs):
                self._known[steps] = None
            else:
                raise QueryError((yield from self._unknown(steps)))

    def known_path(self, steps: Sequence[str | int]) -> Path | None:
        """A field of the first record: where it is, without a look at all the others."""
        (alias,) = self.tables
        path = self._path(alias, tuple(steps))
        return path if len(path) == 1 and path[0] in self.tables[alias][0].fields else None

    def alias_sql(self, alias: str) -> str:
        """What a table is called in our SQL."""
        return f"t{list(self.tables).index(alias)}"

    def bound(self, steps: list[str | int]) -> Bound | None:
        """The field; None for a quoted name that is no field, which is then text."""
        return self._known[tuple(steps)]

    def _places(self, steps: Path) -> list[tuple[str, Path]]:
        """Where a field may be: in the table it is prefixed with, else in any."""
        if len(self.tables) > 1 or str(steps[0]) in self.tables:
            alias = next((a for a in self.tables if a.lower() == str(steps[0]).lower()), None)
            own = alias is not None and not (
                len(steps) == 1 or steps[0] in self.tables[alias][0].fields
            )
            if alias is not None and own:
                return [(alias, self._path(alias, steps[1:]))]
        return [(alias, self._path(alias, steps)) for alias in self.tables]

    def _path(self, alias: str, steps: Path) -> Path:
        source, table = self.tables[alias]
        fields = list(source.fields)
        if table.names:
            fields = list(table.names)
        whole = ".".join(str(step) for step in steps)
        if len(steps) > 1 and whole in fields:
            return (whole,)
        first = steps[0]
        if isinstance(first, str) and first not in fields:
            like = [name for name in fields if name.lower() == first.lower()]
            if len(like) == 1:
                return (like[0], *steps[1:])
        return steps

    def _unknown(self, steps: Path) -> Flow[str]:
        said = spelled(steps)[: 2 * _FIELD_CHARS]
        every: list[str] = []
        for source, table in self.tables.values():
            names = yield from table.all_names(source)
            every += [name for name in names if name not in every]
        near = difflib.get_close_matches(str(steps[0]), every, n=1, cutoff=0.6)
        if len(steps) > 1 and str(steps[0]) in every:
            return f"{shown(said)} is in no record, though {shown(str(steps[0]))} is."
        if not every:
            return f"There is no field {shown(said)}: these records have no fields."
        like = f"; perhaps {spelled((near[0],))[:_FIELD_CHARS]}" if near else ""
        return f"There is no field {shown(said)}{shown(like)}. Fields: {named(every)}."


def _fields_in(tree: exp.Expression) -> list[tuple[list[str | int], bool]]:
    found: list[tuple[list[str | int], bool]] = []
    stack: list[Any] = [tree]
    while stack:
        node = stack.pop()
        steps = written(node)
        if steps is not None:
            found.append(steps)
        else:
            stack += list(node.iter_expressions())
    return found
