"""What a model may write: one expression, or one select, read into a tree and looked at node by node.

Nothing of its text reaches the engine. sqlglot parses it, the compiler (`compile.py`) writes SQL of
its own for the nodes it knows, values go as parameters and fields by numbers; whatever it does not
know is refused. So the list of what is allowed is the code that writes it.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from callslip.errors import QueryError
from callslip.limits import QUERY_CHARS

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = [
    "check_size",
    "field_node",
    "given_list",
    "keyword_field",
    "mapping_of",
    "parse_expression",
    "parse_list",
    "parse_order",
    "parse_select",
    "refused",
    "simple",
]

_NESTED = 40
"""Brackets inside brackets, at the most; the parser recurses."""

_DEPTH = 200
_STRINGS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_WAY = re.compile(r"(.*\S)\s+(asc|desc)\s*", re.IGNORECASE | re.DOTALL)
_LEADING = re.compile(r"\s*(?:where|having)\b", re.IGNORECASE)
_CLAUSE = re.compile(r"\b(order\s+by|group\s+by|limit|offset)\b", re.IGNORECASE)


_SQL = (
    "all and any as asc between by case cast create cross current_date current_time "
    "current_timestamp default delete desc distinct drop else end except exists false fetch filter "
    "for from full group having ilike in inner insert intersect interval into is join lateral left "
    "like limit map natural not null offset on or order outer over partition pivot qualify right "
    "rows row select set show similar some struct table then to true union unique unnest update "
    "use using values when where window with"
)
_WORDS = frozenset(_SQL.split())
"""Words that mean something else to SQL than a field of that name."""


class _Quiet(logging.Filter):
    """Keeps the parser's own remarks off the terminal: what it does not take is refused here."""

    def __init__(self) -> None:
        super().__init__()
        self.here = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(self.here, "parsing", False)


_quiet = _Quiet()


def _sqlglot() -> Any:
    try:
        import sqlglot
    except ImportError as error:
        raise QueryError("Queries need the package sqlglot: pip install sqlglot.") from error
    logging.getLogger("sqlglot").addFilter(_quiet)
    return sqlglot


def keyword_field(text: str, known: Collection[str], tree: Any = None) -> QueryError | None:
    """Where a condition names a field bare that is a word of SQL: how to write it.

    A word that `tree` has as a field was understood, and is not what is wrong.
    """
    nodes = () if tree is None else tree.find_all(_sqlglot().exp.Identifier)
    taken = {str(node.name).lower() for node in nodes}
    bare = re.findall(r"[^\W\d]\w*", _STRINGS.sub("''", text))
    fields = {name.lower(): name for name in known if name.lower() in _WORDS}
    for word in bare:
        name = word if word in known and word.lower() in fields else fields.get(word.lower())
        if name is not None and name.lower() not in taken:
            return QueryError(f'{name} is a word of SQL: write "{name}" in double quotes.')
    return None


def check_size(text: str) -> None:
    """Refuse what is too long or too deeply nested before anything reads it."""
    if len(text) > QUERY_CHARS:
        raise QueryError(f"This query has {len(text):,} characters; {QUERY_CHARS:,} are the most.")
    depth = deepest = 0
    for char in _STRINGS.sub("", text):
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth -= 1
    # Each bracket behind a bracket costs the parser a walk over all of them.
    if deepest > _NESTED or text.count("[") > _NESTED:
        raise QueryError("This query is nested too deeply; write it flatter.")


def _parsed(text: str, what: str) -> exp.Expression:
    check_size(text)
    sqlglot = _sqlglot()
    _quiet.here.parsing = True
    try:
        trees = sqlglot.parse(text, dialect="duckdb")
        if len(trees) != 1 or trees[0] is None:
            raise QueryError(f"Give {what} and nothing else.")
        _check_depth(trees[0])
        return cast("exp.Expression", trees[0])
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError) as error:
        if isinstance(error, QueryError):
            raise
        raise QueryError(_unreadable(text, what)) from error
    except Exception as error:
        # A parser that stumbles has not understood it, whatever the exception.
        raise QueryError(_unreadable(text, what)) from error
    finally:
        _quiet.here.parsing = False


def _check_depth(tree: exp.Expression) -> None:
    level: list[Any] = [tree]
    for _ in range(_DEPTH):
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return
    raise QueryError("This query is nested too deeply; write it flatter, or use in (…).")


def _unreadable(text: str, what: str) -> str:
    said = f"This is not {what} in SQL"
    if _STRINGS.sub("", text).count("'") % 2:
        return f"{said}: a quote is left open; write a quote inside text twice ('it''s')."
    return f"{said}: a field with odd characters stands in double quotes, text in single ones."


def parse_expression(text: str) -> exp.Expression:
    """A condition over fields. Raises QueryError with one sentence."""
    text = text.strip().rstrip(";").strip()
    leading = _LEADING.match(text)
    if leading:
        text = text[leading.end() :]
    if not text.strip():
        raise QueryError("The condition is empty: leave `where` out for all records.")
    found = _CLAUSE.search(_STRINGS.sub("''", text))
    if found:
        name = "_".join(found[1].lower().split())
        name = "after" if name == "offset" else name
        raise QueryError(f"`where` takes a condition alone; {name} is an argument of its own.")
    return _parsed(text, "a condition such as field = 'text'")


def field_node(name: str) -> exp.Expression:
    """A field by its exact name, whatever SQL would read in it."""
    nodes = _sqlglot().exp
    return cast("exp.Expression", nodes.Column(this=nodes.Identifier(this=name, quoted=True)))


def given_list(value: object) -> list[object] | None:
    """A list of names, or the JSON text of one; None for anything else."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            loaded = json.loads(value)
        except (ValueError, RecursionError):
            return None
        return loaded if isinstance(loaded, list) else None
    return None


def parse_list(value: object, what: str, known: Collection[str] = ()) -> list[exp.Expression]:
    """Expressions as a comma-separated text, a JSON list or a list of texts.

    What a list names exactly as a field of `known` is that field.
    """
    if value is None or value == "" or value == []:
        return []
    listed = given_list(value)
    if listed is None and not isinstance(value, str):
        raise QueryError(f"`{what}` takes names of fields, separated by commas.")
    texts = [str(item) for item in ([value] if listed is None else listed)]
    check_size(", ".join(text for text in texts if text not in known))
    found: list[exp.Expression] = []
    for text in texts:
        if text in known and (listed is not None or what == "group_by"):
            found.append(field_node(text))
        elif text.strip():
            tree = _parsed(f"SELECT {text}", f"a list of fields for `{what}`")
            _only(tree, {"expressions"}, what)
            found += tree.expressions
        elif listed is not None:
            raise _no_name(what)
    return found


def _no_name(what: str) -> QueryError:
    return QueryError(f"A name in `{what}` is empty: leave it out.")


def parse_order(value: object, known: Collection[str] = ()) -> list[exp.Expression]:
    """`amount desc, name`, `-amount`, or a list of those: Ordered nodes."""
    if value is None or value == "" or value == []:
        return []
    listed = given_list(value)
    if listed is None and not isinstance(value, str):
        raise QueryError("`order_by` takes names of fields, each with desc or not.")
    texts = [str(item) for item in ([value] if listed is None else listed)]
    check_size(", ".join(text for text in texts if text not in known))
    found: list[exp.Expression] = []
    for given in texts:
        exact = _field_order(given, known)
        if exact is not None:
            found.append(exact)
            continue
        text = given.strip()
        if not text and listed is not None:
            raise _no_name("order_by")
        minus = re.fullmatch(r"-\s*([^\W\d][\w.]*)", text)
        text = f"{minus[1]} DESC" if minus else re.sub(r"(?i)^order\s+by\b", "", text)
        tree = _parsed(f"SELECT 1 ORDER BY {text}", "a list of fields for `order_by`")
        _only(tree, {"expressions", "order"}, "order_by")
        found += tree.args["order"].expressions
    return found


def _field_order(text: str, known: Collection[str]) -> exp.Expression | None:
    """An item of an order that is a field by its exact name, with asc, desc, a minus or not."""
    way = _WAY.fullmatch(text)
    name, down = (way[1], way[2].lower() == "desc") if way else (text, False)
    if text in known:
        name, down = text, False
    elif name not in known and text[:1] == "-" and text[1:] in known:
        name, down = text[1:], True
    if name not in known:
        return None
    ordered = _sqlglot().exp.Ordered(this=field_node(name), desc=down)
    return cast("exp.Expression", ordered)


def _only(tree: exp.Expression, allowed: set[str], what: str) -> None:
    sqlglot = _sqlglot()
    extra = any(value for key, value in tree.args.items() if key not in allowed)
    if not isinstance(tree, sqlglot.exp.Select) or extra:
        raise QueryError(f"`{what}` takes fields alone; where, order_by, limit are arguments.")


def parse_select(sql: str) -> exp.Expression:
    """One select. Raises QueryError for anything else."""
    sqlglot = _sqlglot()
    tree = _parsed(sql.strip().rstrip(";"), "one select")
    if type(tree) is not sqlglot.exp.Select:
        raise QueryError("Only one select is taken: nothing that writes, attaches or sets.")
    return tree


def mapping_of(where: object) -> dict[str, Any] | None:
    """`where` as field -> value, if that is what it is: a mapping, or the JSON text of one."""
    if isinstance(where, Mapping):
        return {str(key): value for key, value in where.items()}
    if isinstance(where, str) and where.lstrip().startswith("{"):
        check_size(where)
        try:
            loaded = json.loads(where)
        except (ValueError, RecursionError):
            return None
        return loaded if isinstance(loaded, dict) else None
    return None


def simple(node: Any, allowed: Iterator[str] | tuple[str, ...]) -> None:
    """Refuse a node with an argument that the compiler does not write."""
    known = set(allowed)
    for key, value in node.args.items():
        if value and key not in known:
            raise QueryError(f"{type(node).__name__} with {key} is not taken in a query.")


def refused(node: Any) -> QueryError:
    """For a node that the compiler does not write: what it is, in SQL's own words."""
    name = type(node).__name__
    if name in ("Anonymous", "AnonymousAggFunc"):
        return QueryError(f"The function {str(node.this)[:40]} is not taken in a query.")
    if name in ("Select", "Subquery", "Exists", "Union"):
        return QueryError("A select inside a condition is not taken; ask in two calls.")
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return QueryError(f"{words} is not taken in a query: fields, values and comparisons are.")
