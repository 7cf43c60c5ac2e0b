"""By which words a fact is found in PostgreSQL: an inverted index in a plain table, its counts, and
the spellings.

A namespace's counts are changed by who holds its lock (`memory_spaces.lock`), so writers of different
namespaces never wait for each other's. Spellings are a tenant's; who adds some and who drops some
take turns, see `spell`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from callslip.stacks.index.memory_rows import path_of
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import to_blob, to_text
from callslip.stacks.memoryops import Namespace
from callslip.stacks.words import forms

_SPELLINGS = 1876
"""Names the lock of a tenant's spellings among PostgreSQL's advisory locks."""


def mark(namespace: Namespace) -> bytes:
    """A hash that stands for a namespace."""
    return blake2b(path_of(namespace), digest_size=16, person=b"space").digest()


def wide(namespace: Namespace) -> bytes:
    """One that stands for all namespaces of its tenant together."""
    return blake2b(path_of(namespace[:1]), digest_size=16, person=b"tenant").digest()


def owner(namespace: Namespace) -> str:
    """The number of its tenant, as an expression: that of `memory_schema`'s policies."""
    tenant = to_blob(namespace[0]).hex() if namespace else ""
    return f"hashtextextended('{tenant}', 1874)"


def token(within: bytes, word: str) -> int:
    """A word, within what a `mark` or `wide` stands for, as a number of 64 bits."""
    digest = blake2b(word.encode(), digest_size=8, key=within).digest()
    return int.from_bytes(digest, "big", signed=True)


class Changes:
    """The words that come and go in one namespace in one transaction."""

    def __init__(self, namespace: Namespace, space: int) -> None:
        self.namespace = namespace
        self.space = space
        self.within = (mark(namespace), wide(namespace))
        self.owner = owner(namespace)
        self._fresh: set[str] = set()
        self._gone: set[str] = set()

    def add(self, db: Db, fact: int, words: Iterable[str]) -> None:
        """Make a fact found by these words."""
        found, given = self.adding(words)
        answer = db.execute(
            f"WITH fact AS (SELECT %s::bigint AS n), {found}"
            " SELECT word FROM terms WHERE facts = 1",
            (fact, *given),
        )
        self.added([word for (word,) in answer])

    def adding(self, words: Iterable[str]) -> tuple[str, tuple[Any, ...]]:
        """The same as parts of a statement, with their values: what comes of the row `n` of `fact`.
        `terms` is how many facts have each word then; those with one are for `added`."""
        each = sorted(set(words))
        sql = (
            "found AS (INSERT INTO memory_found (token, fact, owner)"
            f" SELECT t, fact.n, {self.owner} FROM fact, unnest(%s::bigint[]) t),"
            " terms AS (INSERT INTO memory_terms AS m (owner, space, word, facts)"
            f" SELECT {self.owner}, %s, w, 1 FROM fact, unnest(%s::bytea[]) w"
            " ON CONFLICT (space, word) DO UPDATE SET facts = m.facts + 1 RETURNING word, facts)"
        )
        return sql, (self._tokens(each), self.space, [to_blob(word) for word in each])

    def added(self, fresh: Iterable[bytes]) -> None:
        """Note the words that the namespace did not have."""
        texts = {to_text(word) for word in fresh}
        self._fresh |= texts - self._gone
        self._gone -= texts

    def drop(self, db: Db, facts: Sequence[tuple[int, Iterable[str]]]) -> None:
        """Make facts found by nothing any more; each with the words that it was found by."""
        tokens: list[int] = []
        having: list[int] = []
        counts: Counter[str] = Counter()
        for fact, words in facts:
            each = set(words)
            counts.update(each)
            of_fact = self._tokens(each)
            tokens += of_fact
            having += [fact] * len(of_fact)
        if not tokens:
            return
        ordered = sorted(counts)
        answer = db.execute(
            "WITH gone AS (DELETE FROM memory_found f"
            " USING unnest(%s::bigint[], %s::bigint[]) AS g (token, fact)"
            " WHERE f.token = g.token AND f.fact = g.fact)"
            " UPDATE memory_terms m SET facts = m.facts - c.facts"
            " FROM unnest(%s::bytea[], %s::bigint[]) AS c (word, facts)"
            " WHERE m.space = %s AND m.word = c.word RETURNING m.word, m.facts",
            (
                tokens,
                having,
                [to_blob(word) for word in ordered],
                [counts[word] for word in ordered],
                self.space,
            ),
        )
        gone = [word for word, left in answer if left <= 0]
        if gone:
            db.execute(
                "DELETE FROM memory_terms WHERE space = %s AND word = ANY(%s::bytea[])",
                (self.space, gone),
            )
            texts = {to_text(word) for word in gone}
            self._gone |= texts - self._fresh
            self._fresh -= texts

    def spell(self, db: Db) -> None:
        """Keep the tenant's spellings to the words it has. The last thing in a transaction.

        Who only adds holds a lock that all adders may hold; who drops looks, alone, whether any other
        namespace has the word. Taken last and at once in the right strength, it cannot deadlock.
        """
        fresh = _pairs(self._fresh)
        gone = _pairs(self._gone)
        if not fresh and not gone:
            return
        shared = "" if gone else "_shared"
        name = f"hashtext(current_schema() || ' ' || {self.owner})"
        parts = [f"SELECT pg_advisory_xact_lock{shared}({_SPELLINGS}, {name})"]
        if gone:
            parts.append(
                "DELETE FROM memory_forms f USING unnest(%s::bytea[], %s::bytea[]) AS g (form, word)"
                f" WHERE f.owner = {self.owner} AND f.form = g.form AND f.word = g.word"
                " AND NOT EXISTS (SELECT FROM memory_terms m"
                f" WHERE m.owner = {self.owner} AND m.word = g.word)"
            )
        if fresh:
            parts.append(
                "INSERT INTO memory_forms (owner, form, word)"
                f" SELECT {self.owner}, g.form, g.word"
                " FROM unnest(%s::bytea[], %s::bytea[]) AS g (form, word)"
                " ORDER BY g.form, g.word ON CONFLICT DO NOTHING"
            )
        # One round trip; each statement sees what was committed before it began.
        db.execute("; ".join(parts), (*(gone or ()), *(fresh or ())))

    def _tokens(self, words: Iterable[str]) -> list[int]:
        return [token(within, word) for word in words for within in self.within]


def _pairs(words: Iterable[str]) -> tuple[list[bytes], list[bytes]] | None:
    pairs = [(to_blob(form), to_blob(word)) for word in sorted(words) for form in forms(word)]
    if not pairs:
        return None
    return [form for form, _ in pairs], [word for _, word in pairs]
