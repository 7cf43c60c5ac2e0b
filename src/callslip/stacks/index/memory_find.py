"""Memory in SQLite: a look into the words of the facts, for `memory_search`.

The full-text index tells which facts have a word, latest first, and no more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from callslip.stacks.index import memory_words
from callslip.stacks.index.memory_rows import COLUMNS, Row, find_space, names_of, row_of
from callslip.stacks.index.memory_search import USUAL_WORDS, search
from callslip.stacks.memoryops import Fact, FindFacts, Namespace, Which


def find(db: sqlite3.Connection, op: FindFacts) -> Sequence[Fact]:
    """Do `memoryops.FindFacts`."""
    return search(_Look(db, op.which), op)


class _Look:
    """Which part of the full-text index is asked: a namespace's own, whose words stand apart; else
    the words of all, and the namespace's mark beside."""

    facts = 0
    usual = USUAL_WORDS
    together = 1  # nothing is between here and there

    def __init__(self, db: sqlite3.Connection, which: Which) -> None:
        self.db = db
        self.filters: list[str] = []
        self.names: dict[int, Namespace] = {}
        space = find_space(db, which.namespace)
        if space is None:
            return
        facts, below, words = db.execute(
            "SELECT facts, below, words FROM memory_spaces WHERE n = ?", (space.n,)
        ).fetchone()
        self.space = space
        self.exact = not which.deep or facts == below
        self.facts = facts if self.exact else below
        self.usual = words / facts if facts else USUAL_WORDS

    @property
    def _number(self) -> int:
        return self.space.n if self.exact else memory_words.EVERYWHERE

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        return memory_words.having(self.db, self._number, words)

    def spelt_alike(self, word: str) -> Sequence[str]:
        return memory_words.spelt_alike(self.db, word)

    def only(self, filters: Sequence[str]) -> None:
        self.filters = [self._word(word) for word in filters]

    def having_each(self, words: Sequence[str], limit: int) -> Iterator[tuple[str, int]]:
        for word in words:
            for fact in self._having([word], limit=limit):
                yield word, fact

    def having_all(self, words: Sequence[str], limit: int) -> list[int]:
        return self._having(*([word] for word in words), limit=limit)

    def having_too(
        self, rare: Sequence[str], met: Iterable[int], words: Sequence[str], limit: int
    ) -> Iterator[tuple[str, int]]:
        for word in words:
            for fact in self._having(rare, [word], limit=limit):
                yield word, fact

    def _having(self, *groups: Iterable[str], limit: int) -> list[int]:
        """The latest facts that have a word of every group."""
        parts = [" OR ".join(self._word(word) for word in group) for group in groups]
        parts += self.filters
        if not self.exact and self.space.above:
            parts.append(f'"{memory_words.below(self.space.n)}"')
        match = " AND ".join(f"({part})" for part in parts)
        rows = self.db.execute(
            "SELECT rowid FROM memory_found WHERE memory_found MATCH ? ORDER BY rowid DESC LIMIT ?",
            (match, limit),
        )
        return [fact for (fact,) in rows]

    def _word(self, word: str) -> str:
        return f'"{memory_words.within(self.space.n, word) if self.exact else word}"'

    def words_of(self, facts: Sequence[int]) -> Iterator[tuple[int, str, int]]:
        for fact in facts:
            words, filters = self.db.execute(
                "SELECT words, filters FROM memory_words WHERE fact = ?", (fact,)
            ).fetchone()
            yield fact, words, filters

    def rows(self, facts: Sequence[int]) -> Iterator[Row]:
        return (load_row(self.db, n, self.names) for n in facts)


def load_row(db: sqlite3.Connection, n: int, names: dict[int, Namespace]) -> Row:
    """A fact by its number; `names` keeps the namespaces that were met."""
    columns = db.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.n = ?", (n,)).fetchone()
    if columns[13] not in names:
        names |= names_of(db, [columns[13]])
    return row_of(names[columns[13]], columns)
