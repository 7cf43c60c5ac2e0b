"""Memory in SQLite: the facts that share words with a query, best first.

The full-text index tells which facts have a word, latest first, and no more. First the rare words
of the query, with all their facts; then, of those, which have the common ones too; then the facts
that have several common words. Only the best of what was met so is read and scored.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappush, heappushpop

from callslip.limits import RECALL_LOOKED_AT, RECALL_SCORED
from callslip.stacks.index import memory_words
from callslip.stacks.index.memory_rows import COLUMNS, Row, Space, find_space, names_of, row_of
from callslip.stacks.memoryops import Fact, FindFacts, Namespace, Which
from callslip.stacks.ranking import holds, in_order, rarity, score
from callslip.stacks.stems import stem
from callslip.stacks.words import COMMON, Asked, field_word, kind_word, near

_COMMON_LOOKED_AT = 3
"""Common words of a query that are looked for together."""

_ENOUGH = 100
"""Facts with several common words of which those with fewer need not be looked for."""

_AT_MOST = 1.3
"""What a word may count in a very short fact, beside what it weighs."""

_SELECTIVE = 20_000
"""A kind or a field that so many facts have is looked at in the facts, not in the index."""

_BUILT_IN = frozenset({"text", "kind", "source"})
_ALIKE = 3
_USUAL_WORDS = 15.0


def find(db: sqlite3.Connection, op: FindFacts) -> Sequence[Fact]:
    """Do `memoryops.FindFacts`."""
    place = _place(db, op.which)
    if place is None or not op.asked.words:
        return ()
    counts, weights = _weights(db, place, op.asked)
    filters = _filters(db, place, op.which)
    if filters is None or not weights:
        return ()
    met, unseen = _met(_Look(db, place, filters), counts, weights)
    scored = _scored(db, met, unseen, weights, place.usual, _wanted(op.limit))
    return in_order(_facts(db, op, scored), op.asked)[: op.limit]


# --- where ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Which part of the full-text index is asked."""

    space: Space
    exact: bool
    """One namespace, whose words stand apart; else the words of all, and its mark beside."""
    facts: int
    usual: float

    @property
    def number(self) -> int:
        return self.space.n if self.exact else memory_words.EVERYWHERE

    def word(self, word: str) -> str:
        return f'"{memory_words.within(self.space.n, word) if self.exact else word}"'


def _place(db: sqlite3.Connection, which: Which) -> _Place | None:
    space = find_space(db, which.namespace)
    if space is None:
        return None
    facts, below, words = db.execute(
        "SELECT facts, below, words FROM memory_spaces WHERE n = ?", (space.n,)
    ).fetchone()
    exact = not which.deep or facts == below
    found = facts if exact else below
    usual = words / facts if facts else _USUAL_WORDS
    return _Place(space, exact, found, usual) if found else None


def _filters(db: sqlite3.Connection, place: _Place, which: Which) -> list[str] | None:
    """Words that every fact meant has, where they are worth a look; None if no fact has them."""
    words = [] if which.kind is None else [kind_word(which.kind)]
    for name, wanted in which.where.items():
        word = None if name in _BUILT_IN or "." in name else field_word(name, wanted)
        words += [] if word is None else [word]
    having = memory_words.having(db, place.number, words)
    if len(having) < len(set(words)):
        return None
    return [word for word, facts in having.items() if facts <= _SELECTIVE]


# --- what the words weigh -------------------------------------------------------------------------


def _weights(
    db: sqlite3.Connection, place: _Place, asked: Asked
) -> tuple[dict[str, int], dict[str, float]]:
    """The words to look for: how many facts have each, and what it counts."""
    counts = memory_words.having(db, place.number, (*asked.words, *asked.joined))
    weights = {word: asked.weight(word) * rarity(place.facts, n) for word, n in counts.items()}
    whole = {
        half
        for word, halves in zip(asked.joined, asked.halves, strict=True)
        if word in counts
        for half in halves
    }
    for word in asked.words:
        if word in counts or word in COMMON or word in whole:
            continue
        for alike, share in _alike(db, place, word):
            if alike not in counts:
                counts |= memory_words.having(db, place.number, [alike])
                weights[alike] = share * rarity(place.facts, counts[alike])
    return counts, weights


def _alike(db: sqlite3.Connection, place: _Place, word: str) -> list[tuple[str, float]]:
    """What stands for a word that no fact has: words a slip away, else the two it is made of."""
    slips = {
        other: near(word, other)
        for other in memory_words.spelt_alike(db, word)
        # Of short words the first letter is rarely wrong, and many are a letter apart.
        if len(word) > 5 or other[0] == word[0]
    }
    most = 1 if len(word) < 7 else 2
    known = memory_words.having(
        db, place.number, [other for other, far in slips.items() if far <= most]
    )
    if known:
        best = sorted(known, key=lambda other: (slips[other], -known[other], other))[:_ALIKE]
        nearest = slips[best[0]]
        return [(other, 0.7 / slips[other]) for other in best if slips[other] == nearest]
    if not word.isalpha() or not word.isascii():
        return []
    for at in range(3, len(word) - 2):
        first, second = stem(word[:at]), [stem(word[at:]), stem(word[at:] + "e")]
        found = memory_words.having(db, place.number, [first, *second])
        if first in found and len(found) > 1:
            return [(part, 0.5) for part in found]
    return []


# --- which facts ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Look:
    """One look into the full-text index."""

    db: sqlite3.Connection
    place: _Place
    filters: Sequence[str]

    def having(self, *groups: Iterable[str], limit: int) -> list[int]:
        """The latest facts that have a word of every group."""
        parts = [" OR ".join(self.place.word(word) for word in group) for group in groups]
        parts += [self.place.word(word) for word in self.filters]
        if not self.place.exact and self.place.space.above:
            parts.append(f'"{memory_words.below(self.place.space.n)}"')
        match = " AND ".join(f"({part})" for part in parts)
        rows = self.db.execute(
            "SELECT rowid FROM memory_found WHERE memory_found MATCH ? ORDER BY rowid DESC LIMIT ?",
            (match, limit),
        )
        return [fact for (fact,) in rows]


def _met(
    look: _Look, counts: Mapping[str, int], weights: Mapping[str, float]
) -> tuple[list[tuple[float, int]], float]:
    """The facts worth reading, those whose words weigh most first; and what the words weigh at the
    most that were not looked for in all of them."""
    order = sorted(weights, key=lambda word: (word in COMMON, counts[word], word))
    met: dict[int, float] = {}
    left = RECALL_LOOKED_AT
    rare: list[str] = []
    while order and counts[order[0]] <= left and not (rare and order[0] in COMMON):
        word = order.pop(0)
        left -= counts[word]
        rare.append(word)
        for fact in look.having([word], limit=RECALL_LOOKED_AT):
            met[fact] = met.get(fact, 0.0) + weights[word]
    common = [word for word in order if word not in COMMON][:_COMMON_LOOKED_AT]
    if len(met) > RECALL_SCORED:
        # More than can be read: those that have the common words as well come first.
        for word in common:
            for fact in look.having(rare, [word], limit=RECALL_LOOKED_AT):
                met[fact] = met.get(fact, 0.0) + weights[word]
    if not rare or max(met.values(), default=0.0) < sum(weights[word] for word in common):
        _met_by_common(look, common or order[:_COMMON_LOOKED_AT], weights, met)
    best = sorted(((weight, fact) for fact, weight in met.items()), reverse=True)
    return best[:RECALL_SCORED], sum(weights[word] for word in order)


def _met_by_common(
    look: _Look, common: Sequence[str], weights: Mapping[str, float], met: dict[int, float]
) -> None:
    """Facts that have several common words; the latest that have one, where little else is met."""
    pairs = [(one, two) for at, one in enumerate(common) for two in common[at + 1 :]]
    for together in (*([tuple(common)] if len(common) > 2 else []), *pairs):
        weight = sum(weights[word] for word in together)
        found = look.having(*([word] for word in together), limit=RECALL_SCORED)
        for fact in found:
            met[fact] = max(met.get(fact, 0.0), weight)
        if len(found) >= _ENOUGH:
            break
    if common and len(met) < _ENOUGH:
        for fact in look.having([common[0]], limit=RECALL_SCORED):
            met.setdefault(fact, weights[common[0]])


def _scored(
    db: sqlite3.Connection,
    met: Sequence[tuple[float, int]],
    unseen: float,
    weights: Mapping[str, float],
    usual: float,
    wanted: int,
) -> list[tuple[float, int]]:
    """The facts with their scores, best first; none is read that cannot be among those wanted."""
    found: list[tuple[float, int]] = []
    best: list[float] = []
    for weight, fact in met:
        if len(best) == wanted and _AT_MOST * (weight + unseen) < best[0]:
            break
        kept, filters = db.execute(
            "SELECT words, filters FROM memory_words WHERE fact = ?", (fact,)
        ).fetchone()
        words = kept.split(" ")
        points = score(weights, words[: len(words) - filters], usual)
        found.append((points, fact))
        (heappush if len(best) < wanted else heappushpop)(best, points)
    found.sort(reverse=True)
    return found


def _facts(
    db: sqlite3.Connection, op: FindFacts, scored: Sequence[tuple[float, int]]
) -> list[Fact]:
    """The best that are meant and have not run out, some more than asked for: ties are broken."""
    found: list[Fact] = []
    names: dict[int, Namespace] = {}
    for points, n in scored:
        row = load_row(db, n, names)
        if row.gone(op.now) or not is_meant(op.which, row):
            continue
        found.append(replace(row.fact, score=points))
        if len(found) >= _wanted(op.limit):
            break
    return found


def _wanted(limit: int) -> int:
    """How many are looked at for so many answers: ties are broken, some have run out."""
    return 2 * limit + 10


def load_row(db: sqlite3.Connection, n: int, names: dict[int, Namespace]) -> Row:
    """A fact by its number; `names` keeps the namespaces that were met."""
    columns = db.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.n = ?", (n,)).fetchone()
    if columns[13] not in names:
        names |= names_of(db, [columns[13]])
    return row_of(names[columns[13]], columns)


def is_meant(which: Which, row: Row) -> bool:
    """Whether a fact of the right namespace is of the kind, and holds the conditions."""
    kind = which.kind is None or row.fact.kind == which.kind
    return kind and holds(which.where, row.fact.value)
