"""By which words a fact is found in SQLite: the inverted index, its counts, and the spellings."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from callslip.stacks.words import forms

EVERYWHERE = 0
"""The number that stands for all namespaces together in `memory_terms`."""


def add(
    db: sqlite3.Connection,
    fact: int,
    space: int,
    above: Sequence[int],
    words: Sequence[str],
    filters: Sequence[str],
) -> None:
    """Make a fact of a namespace, itself below those of `above`, found by these words."""
    if not words:
        return
    kept = " ".join([*words, *filters])
    db.execute(
        "INSERT INTO memory_words (fact, filters, words) VALUES (?, ?, ?)",
        (fact, len(filters), kept),
    )
    each = set(words) | set(filters)
    db.execute(
        "INSERT INTO memory_found (rowid, words) VALUES (?, ?)",
        (fact, _found_by(each, space, above)),
    )
    fresh = _counted(db, EVERYWHERE, each)
    _counted(db, space, each)
    db.executemany(
        "INSERT OR IGNORE INTO memory_forms (form, word) VALUES (?, ?)",
        [(form, word) for word in fresh for form in forms(word)],
    )
    db.execute("UPDATE memory_spaces SET words = words + ? WHERE n = ?", (len(words), space))


def drop(db: sqlite3.Connection, fact: int, space: int, above: Sequence[int]) -> None:
    """Make a fact found by nothing any more."""
    row = db.execute("SELECT words, filters FROM memory_words WHERE fact = ?", (fact,)).fetchone()
    if row is None:
        return
    words = row[0].split(" ")
    each = set(words)
    db.execute(
        "INSERT INTO memory_found (memory_found, rowid, words) VALUES ('delete', ?, ?)",
        (fact, _found_by(each, space, above)),
    )
    db.execute("DELETE FROM memory_words WHERE fact = ?", (fact,))
    for where in (EVERYWHERE, space):
        for word in each:
            db.execute(
                "UPDATE memory_terms SET facts = facts - 1 WHERE space = ? AND word = ?",
                (where, word),
            )
            gone = db.execute(
                "DELETE FROM memory_terms WHERE space = ? AND word = ? AND facts <= 0",
                (where, word),
            ).rowcount
            if gone and where == EVERYWHERE:
                db.executemany(
                    "DELETE FROM memory_forms WHERE form = ? AND word = ?",
                    [(form, word) for form in forms(word)],
                )
    db.execute(
        "UPDATE memory_spaces SET words = words - ? WHERE n = ?", (len(words) - row[1], space)
    )


def within(space: int, word: str) -> str:
    """A word as it stands for the facts of one namespace."""
    return f"{space}_{word}"


def below(space: int) -> str:
    """The word of every fact of a namespace and below."""
    return f"_s{space}"


def having(db: sqlite3.Connection, space: int, words: Iterable[str]) -> dict[str, int]:
    """How many facts have each of those words; a word that none has is left out."""
    found = {}
    for word in words:
        row = db.execute(
            "SELECT facts FROM memory_terms WHERE space = ? AND word = ?", (space, word)
        ).fetchone()
        if row is not None:
            found[word] = row[0]
    return found


def spelt_alike(db: sqlite3.Connection, word: str) -> list[str]:
    """Words of any namespace that share a form with this one."""
    asked = forms(word)
    marks = ", ".join("?" * len(asked))
    rows = db.execute(
        f"SELECT DISTINCT word FROM memory_forms WHERE form IN ({marks}) LIMIT 200", asked
    )
    return [alike for (alike,) in rows]


def _found_by(each: set[str], space: int, above: Sequence[int]) -> str:
    told = sorted(each)
    return " ".join([*told, *(within(space, word) for word in told), *map(below, (space, *above))])


def _counted(db: sqlite3.Connection, space: int, each: set[str]) -> list[str]:
    """Count one fact more for each word; answer the words that are new."""
    fresh = []
    for word in sorted(each):
        (facts,) = db.execute(
            "INSERT INTO memory_terms (space, word, facts) VALUES (?, ?, 1)"
            " ON CONFLICT DO UPDATE SET facts = facts + 1 RETURNING facts",
            (space, word),
        ).fetchone()
        if facts == 1:
            fresh.append(word)
    return fresh
