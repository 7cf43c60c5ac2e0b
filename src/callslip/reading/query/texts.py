"""The nodes of an expression that look into text and lists: like, patterns, contains, len.

A `like` becomes an equality, a prefix, a suffix, a substring or a pattern of RE2: the engine's own
goes back and forth, and `'%a%a%a%a%a%'` over one long text would take it for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from callslip.errors import QueryError
from callslip.reading.query.guard import refused, simple
from callslip.reading.query.nodes import Nodes
from callslip.reading.query.typed import Typed, boolean

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["TextNodes"]

_PATTERN_CHARS: Final = 200
_REPEATS = re.compile(r"\{\s*\d*\s*,?\s*\d*\s*\}")
_REPEATS_MOST: Final = 50
_BIG_TEXT: Final = 8 * 1024 * 1024


class TextNodes(Nodes):
    """Mixed into the compiler."""

    def _on_escape(self, node: exp.Escape) -> Typed:
        mark = self.typed(node.expression)
        if not isinstance(mark.literal, str) or len(mark.literal) != 1:
            raise QueryError("escape takes one character in quotes.")
        if type(node.this).__name__ not in ("Like", "ILike"):
            raise refused(node)
        return self._like(node.this, mark.literal)

    def _on_like(self, node: Any) -> Typed:
        return self._like(node, "")

    def _on_ilike(self, node: Any) -> Typed:
        return self._like(node, "")

    def _like(self, node: Any, escape: str) -> Typed:
        simple(node, ("this", "expression", "negate"))
        value, pattern = self.typed(node.this), self.typed(node.expression)
        if not isinstance(pattern.literal, str) or len(pattern.literal) > _PATTERN_CHARS:
            raise QueryError(f"like takes a pattern in quotes of {_PATTERN_CHARS} characters.")
        self.note(value, "like", pattern)
        if value.longest > _BIG_TEXT and "_" in pattern.literal and "%" in pattern.literal:
            raise QueryError("_ in a pattern takes too long in texts of this size; use % alone.")
        side = self.text(value, broad=True)
        sql = _like_sql(
            pattern.literal, escape, type(node).__name__ == "ILike", self.sql(side), self.bind
        )
        self.hold(side, 1)
        return boolean(f"(NOT {sql})" if node.args.get("negate") else sql, value)

    def _on_regexplike(self, node: exp.Expression) -> Typed:
        simple(node, ("this", "expression"))
        return self._pattern(node, "regexp_matches")

    def _on_regexpfullmatch(self, node: exp.Expression) -> Typed:
        simple(node, ("this", "expression"))
        return self._pattern(node, "regexp_full_match")

    def _pattern(self, node: Any, function: str) -> Typed:
        value, pattern = self.text(self.typed(node.this), broad=True), self.typed(node.expression)
        text = pattern.literal
        if not isinstance(text, str) or len(text) > _PATTERN_CHARS:
            raise QueryError(f"A pattern is text in quotes, {_PATTERN_CHARS} characters at most.")
        counts = [int(n) for found in _REPEATS.findall(text) for n in re.findall(r"\d+", found)]
        if sum(counts) > _REPEATS_MOST or (
            value.longest > _BIG_TEXT and (counts or len(text) > 50)
        ):
            raise QueryError("This pattern repeats too much; use search_result for patterns.")
        return boolean(f"{function}({self.sql(value)}, {self.sql(pattern)})", value)

    def contains(self, values: Typed, one: Typed) -> Typed:
        """Whether a list field holds a value."""
        if values.type == "text" and isinstance(one.literal, str):
            self.note(values, "like", one)
            return boolean(f"contains({values.sql}, {self.sql(one)})", values)
        if values.type == "null":
            return Typed("NULL", "boolean")
        if values.column is None or values.type not in ("json", "mixed") or not one.is_literal:
            raise QueryError(f"{values.described()}: this asks for a value in a list.")
        listed = f"from_json(CASE WHEN left({values.where}, 1) = '[' THEN {values.where} END, "
        self.hold(values, 2)
        return boolean(f"list_contains({listed}'[\"JSON\"]'), to_json({self.sql(one)}))", values)

    def _on_arraycontains(self, node: Any) -> Typed:
        simple(node, ("this", "expression"))
        return self.contains(self.typed(node.this), self.typed(node.expression))

    _on_contains = _on_arraycontains

    def _on_length(self, node: Any) -> Typed:
        simple(node, ("this", "expression"))
        value = self.typed(node.this)
        if value.type in ("json", "mixed") and value.column is not None:
            column = value.where
            sql = (
                f"(CASE left({column}, 1) WHEN '[' THEN CAST(json_array_length({column}) AS BIGINT)"
                f" WHEN '{{' THEN len(json_keys({column}))"
            )
            text = "" if value.type == "json" else f" ELSE length({column}s)"
            return Typed(f"{sql}{text} END)", "number")
        return Typed(f"length({self.text(value, broad=True).sql})", "number", total=value.total)

    _on_arraysize = _on_length


def _like_sql(pattern: str, escape: str, fold: bool, value: str, bind: Callable[[str], str]) -> str:
    """A `like` as what it means, in time that grows with the text and with nothing else."""
    parts: list[str | None] = []  # None is %, "" is _, other text is itself
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if escape and char == escape and at + 1 < len(pattern):
            at += 1
            parts.append(pattern[at])
        else:
            parts.append(None if char == "%" else "" if char == "_" else char)
        at += 1
    inner = [part for part in parts if part is not None]
    if not fold and "" not in inner:
        start = 1 if parts[:1] == [None] else 0
        end = len(parts) - (1 if len(parts) > start and parts[-1] is None else 0)
        middle = parts[start:end]
        if None not in middle:
            text = bind("".join(part for part in middle if part))
            before, behind = start == 1, end < len(parts)
            if before and (behind or len(parts) == 1):
                return f"contains({value}, {text})"
            if before:
                return f"suffix({value}, {text})"
            return f"starts_with({value}, {text})" if behind else f"({value} = {text})"
    if inner.count("") > 20:
        raise QueryError("like takes 20 times _ at the most.")
    regex = "".join(".*" if p is None else "." if p == "" else re2_escaped(p) for p in parts)
    return f"regexp_full_match({value}, {bind(('(?is)' if fold else '(?s)') + regex)})"


def re2_escaped(text: str) -> str:
    """Text as a pattern that matches it and nothing else."""
    return "".join(c if c.isalnum() or ord(c) > 127 else f"\\x{{{ord(c):x}}}" for c in text)
