"""Memory in PostgreSQL: a look into the words of the facts, for `memory_search`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

from callslip.limits import RECALL_SCORED
from callslip.stacks.index.memory_rows import Row, parts_of
from callslip.stacks.index.memory_search import USUAL_WORDS, search
from callslip.stacks.index.postgres import memory_spaces
from callslip.stacks.index.postgres.memory_spaces import RANGE, place_of, within
from callslip.stacks.index.postgres.memory_words import mark, owner, token, wide
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import to_blob, to_text
from callslip.stacks.memoryops import Fact, FindFacts, Which
from callslip.stacks.words import forms

_FEW = 64
"""Namespaces below one that are looked into one by one; more of them by their tenant's words."""


def find(db: Db, op: FindFacts) -> Sequence[Fact]:
    """Do `memoryops.FindFacts`."""
    return search(_Look(db, op.which), op)


class _Look:
    """Which words are looked for: those of a few namespaces, each by its own, or those of a whole
    tenant, of which the facts of other namespaces are left out."""

    together = RECALL_SCORED  # a round trip costs more than what is read in vain

    def __init__(self, db: Db, which: Which) -> None:
        self.db = db
        self.filters: Sequence[str] = ()
        self.namespace = which.namespace
        place, values = place_of(which)
        spaces = db.execute(
            f"SELECT s.n, s.parts, s.facts, s.words FROM memory_spaces s WHERE {place}"
            " ORDER BY s.path LIMIT %s",
            (*values, _FEW + 1),
        )
        self.spaces: list[int] | None = [n for n, *_ in spaces]
        names = [parts_of(parts) for _, parts, *_ in spaces]
        self.within = [mark(name) for name in names]
        self.facts, words = (sum(row[at] for row in spaces) for at in (2, 3))
        self.tenants = {name[:1] for name in names}
        self.beyond = False
        if len(spaces) > _FEW:
            self.spaces = None
            ((self.facts, words, tenants),) = db.execute(
                "SELECT sum(s.facts)::bigint, sum(s.words)::bigint, array_agg(DISTINCT s.tenant)"
                f" FROM memory_spaces s WHERE {place}",
                values,
            )
            named = which.namespace[:1]
            self.tenants = {named} if named else {(to_text(t),) for t in tenants}
            self.within = [wide(name) for name in self.tenants]
            self.beyond = len(which.namespace) > 1
        self.usual = words / self.facts if self.facts else USUAL_WORDS

    # --- counts ---

    @property
    def _owners(self) -> str:
        return f"ARRAY[{', '.join(owner(name) for name in sorted(self.tenants))}]::bigint[]"

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        asked = [to_blob(word) for word in dict.fromkeys(words)]
        if self.spaces is not None:
            place = "m.space = ANY(%s::bigint[])"
            values: tuple[Any, ...] = (self.spaces,)
        else:
            place, values = f"m.owner = ANY({self._owners})", ()
            if self.beyond:
                place += (
                    f" AND EXISTS (SELECT FROM memory_spaces s WHERE s.n = m.space AND {RANGE})"
                )
                values = within(self.namespace)
        answer = self.db.execute(
            f"SELECT m.word, sum(m.facts)::bigint FROM memory_terms m"
            f" WHERE {place} AND m.word = ANY(%s::bytea[]) GROUP BY m.word",
            (*values, asked),
        )
        return {to_text(word): facts for word, facts in answer}

    def spelt_alike(self, word: str) -> Sequence[str]:
        asked = [to_blob(form) for form in forms(word)]
        if not asked:
            return []
        answer = self.db.execute(
            f"SELECT DISTINCT word FROM memory_forms WHERE owner = ANY({self._owners})"
            " AND form = ANY(%s::bytea[]) LIMIT 200",
            (asked,),
        )
        return [to_text(alike) for (alike,) in answer]

    # --- facts ---

    def only(self, filters: Sequence[str]) -> None:
        self.filters = filters

    def _tokens(self, word: str) -> list[int]:
        return [token(within, word) for within in self.within]

    def _has(self, name: str, word: str) -> tuple[str, list[Any]]:
        tokens = self._tokens(word)
        # One number as such: then the index has its facts in order.
        if len(tokens) == 1:
            return f"{name}.token = %s", [tokens[0]]
        return f"{name}.token = ANY(%s::bigint[])", [tokens]

    def _narrowed(self, fact: str) -> tuple[str, list[Any]]:
        """The conditions on a fact besides the words of the query."""
        conditions, values = "", []
        for at, word in zip(count(), self.filters, strict=False):
            has, given = self._has(f"w{at}", word)
            conditions += (
                f" AND EXISTS (SELECT FROM memory_found w{at} WHERE w{at}.fact = {fact} AND {has})"
            )
            values += given
        if self.beyond:
            conditions += (
                " AND EXISTS (SELECT FROM memories m JOIN memory_spaces s ON s.n = m.space"
                f" WHERE m.n = {fact} AND {RANGE})"
            )
            values += within(self.namespace)
        return conditions, values

    def having_each(self, words: Sequence[str], limit: int) -> Iterator[tuple[str, int]]:
        # Rare ones: together they have no more than `limit`.
        named = {each: word for word in words for each in self._tokens(word)}
        narrowed, values = self._narrowed("f.fact")
        answer = self.db.execute(
            f"SELECT f.token, f.fact FROM memory_found f WHERE f.token = ANY(%s::bigint[]){narrowed}",
            (list(named), *values),
        )
        return ((named[each], fact) for each, fact in answer)

    def having_all(self, words: Sequence[str], limit: int) -> Iterator[int]:
        tables, conditions, values = "", [], []
        for at, word in enumerate(words):
            tables += f" JOIN memory_found f{at} USING (fact)" if at else " memory_found f0"
            has, given = self._has(f"f{at}", word)
            conditions.append(has)
            values += given
        narrowed, more = self._narrowed("f0.fact")
        answer = self.db.execute(
            f"SELECT fact FROM{tables} WHERE {' AND '.join(conditions)}{narrowed}"
            " ORDER BY fact DESC LIMIT %s",
            (*values, *more, limit),
        )
        return (fact for (fact,) in answer)

    def having_too(
        self, rare: Sequence[str], met: Iterable[int], words: Sequence[str], limit: int
    ) -> Iterator[tuple[str, int]]:
        named = {each: word for word in words for each in self._tokens(word)}
        answer = self.db.execute(
            "SELECT f.token, f.fact FROM memory_found f WHERE f.token = ANY(%s::bigint[])"
            " AND f.fact = ANY(%s::bigint[])",
            (list(named), sorted(met, reverse=True)[:limit]),
        )
        return ((named[each], fact) for each, fact in answer)

    def words_of(self, facts: Sequence[int]) -> Iterator[tuple[int, str, int]]:
        answer = self.db.execute(
            "SELECT n, words, filters FROM memories WHERE n = ANY(%s::bigint[])", (list(facts),)
        )
        return ((n, words.decode(), filters) for n, words, filters in answer)

    def rows(self, facts: Sequence[int]) -> list[Row]:
        return rows_of(self.db, facts)


def rows_of(db: Db, facts: Sequence[int]) -> list[Row]:
    """Those facts, in that order."""
    order = {n: at for at, n in enumerate(facts)}
    found = memory_spaces.rows(db, "m.n = ANY(%s::bigint[])", (list(facts),))
    return sorted(found, key=lambda row: order[row.n])
