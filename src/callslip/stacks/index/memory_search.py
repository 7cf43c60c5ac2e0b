"""Which facts share words with a query, best first: how it is looked, whatever index is looked into.

First the rare words of the query, with all their facts; then, of those, which have the common ones
too; then the facts that have several common words. Only the best of what was met so is read and
scored. What may live here: the search itself, without a word of SQL.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heappush, heappushpop
from typing import Protocol

from callslip.limits import RECALL_LOOKED_AT, RECALL_SCORED
from callslip.stacks.index.memory_rows import Row
from callslip.stacks.memoryops import Fact, FindFacts, Which
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
USUAL_WORDS = 15.0
"""How long a fact is where none is known."""


class Spelling(Protocol):
    """Words that facts have, to find those a slip away from another."""

    def counts(self, words: Sequence[str]) -> dict[str, int]: ...

    def spelt_alike(self, word: str) -> Sequence[str]: ...


class Look(Protocol):
    """One look into the words of the facts that are meant. Facts are their numbers, words as in
    `stacks.words`; a later fact has a higher number."""

    @property
    def facts(self) -> int:
        """How many facts there are to look into."""
        ...

    @property
    def usual(self) -> float:
        """How many words they have, usually."""
        ...

    @property
    def together(self) -> int:
        """How many facts are best read together, though not all may be needed."""
        ...

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        """How many facts have each of those words; a word that none has is left out."""
        ...

    def spelt_alike(self, word: str) -> Sequence[str]:
        """Words that share a form with this one (`words.forms`), whether or not a fact has them."""
        ...

    def only(self, filters: Sequence[str]) -> None:
        """From here on look only at facts that have all of these words, too."""
        ...

    def having_each(self, words: Sequence[str], limit: int) -> Iterable[tuple[str, int]]:
        """Of each word the latest facts that have it."""
        ...

    def having_all(self, words: Sequence[str], limit: int) -> Iterable[int]:
        """The latest facts that have all of those words."""
        ...

    def having_too(
        self, rare: Sequence[str], met: Iterable[int], words: Sequence[str], limit: int
    ) -> Iterable[tuple[str, int]]:
        """Which of the facts `met`, those that have one of `rare`, have each of those words, too."""
        ...

    def words_of(self, facts: Sequence[int]) -> Iterable[tuple[int, str, int]]:
        """Each fact with its words, parted by blanks, and how many of them, at the end, are no words
        of its text."""
        ...

    def rows(self, facts: Sequence[int]) -> Iterable[Row]:
        """The facts themselves, in that order."""
        ...


def search(look: Look, op: FindFacts) -> Sequence[Fact]:
    """Do `memoryops.FindFacts`."""
    if not look.facts or not op.asked.words:
        return ()
    counts, weights = _weights(look, op.asked)
    filters = _filters(look, op.which)
    if filters is None or not weights:
        return ()
    look.only(filters)
    met, unseen = _met(look, counts, weights)
    scored = _scored(look, met, unseen, weights, _wanted(op.limit))
    return in_order(_facts(look, op, scored), op.asked)[: op.limit]


def is_meant(which: Which, fact: Fact) -> bool:
    """Whether a fact of the right namespace is of the kind, and holds the conditions."""
    return which.kind in (None, fact.kind) and holds(which.where, fact.value)


def _filters(look: Look, which: Which) -> list[str] | None:
    """Words that every fact meant has, where they are worth a look; None if no fact has them."""
    words = [] if which.kind is None else [kind_word(which.kind)]
    for name, wanted in which.where.items():
        word = None if name in _BUILT_IN or "." in name else field_word(name, wanted)
        words += [] if word is None else [word]
    having = look.counts(words) if words else {}
    if len(having) < len(set(words)):
        return None
    return [word for word, facts in having.items() if facts <= _SELECTIVE]


# --- what the words weigh -------------------------------------------------------------------------


def _weights(look: Look, asked: Asked) -> tuple[dict[str, int], dict[str, float]]:
    """The words to look for: how many facts have each, and what it counts."""
    counts = look.counts((*asked.words, *asked.joined))
    weights = {word: asked.weight(word) * rarity(look.facts, n) for word, n in counts.items()}
    whole = halves_of(asked, counts)
    for word in asked.words:
        if word in counts or word in COMMON or word in whole:
            continue
        for alike, share in alike_to(look, word):
            if alike not in counts:
                counts |= look.counts([alike])
                weights[alike] = share * rarity(look.facts, counts[alike])
    return counts, weights


def halves_of(asked: Asked, known: Container[str]) -> set[str]:
    """Words of a query that are halves of one that facts have: they need not be known themselves."""
    pairs = zip(asked.joined, asked.halves, strict=True)
    return {half for word, halves in pairs if word in known for half in halves}


def alike_to(look: Spelling, word: str) -> list[tuple[str, float]]:
    """What stands for a word that no fact has: words a slip away, else the two it is made of."""
    slips = {
        other: near(word, other)
        for other in look.spelt_alike(word)
        # Of short words the first letter is rarely wrong, and many are a letter apart.
        if len(word) > 5 or other[0] == word[0]
    }
    most = 1 if len(word) < 7 else 2
    likely = [other for other, far in slips.items() if far <= most]
    known = look.counts(likely) if likely else {}
    if known:
        best = sorted(known, key=lambda other: (slips[other], -known[other], other))[:_ALIKE]
        nearest = slips[best[0]]
        return [(other, 0.7 / slips[other]) for other in best if slips[other] == nearest]
    if not word.isalpha() or not word.isascii():
        return []
    parted = [
        (stem(word[:at]), (stem(word[at:]), stem(word[at:] + "e")))
        for at in range(3, len(word) - 2)
    ]
    known = look.counts([part for first, second in parted for part in (first, *second)])
    for first, second in parted:
        found = [part for part in dict.fromkeys((first, *second)) if part in known]
        if first in known and len(found) > 1:
            return [(part, 0.5) for part in found]
    return []


# --- which facts ----------------------------------------------------------------------------------


def _met(
    look: Look, counts: Mapping[str, int], weights: Mapping[str, float]
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
    if rare:
        for word, fact in look.having_each(rare, RECALL_LOOKED_AT):
            met[fact] = met.get(fact, 0.0) + weights[word]
    common = [word for word in order if word not in COMMON][:_COMMON_LOOKED_AT]
    if len(met) > RECALL_SCORED and common:
        # More than can be read: those that have the common words as well come first.
        for word, fact in look.having_too(rare, met, common, RECALL_LOOKED_AT):
            met[fact] = met.get(fact, 0.0) + weights[word]
    if not rare or max(met.values(), default=0.0) < sum(weights[word] for word in common):
        _met_by_common(look, common or order[:_COMMON_LOOKED_AT], weights, met)
    best = sorted(((weight, fact) for fact, weight in met.items()), reverse=True)
    return best[:RECALL_SCORED], sum(weights[word] for word in order)


def _met_by_common(
    look: Look, common: Sequence[str], weights: Mapping[str, float], met: dict[int, float]
) -> None:
    """Facts that have several common words; the latest that have one, where little else is met."""
    pairs = [(one, two) for at, one in enumerate(common) for two in common[at + 1 :]]
    for together in (*([tuple(common)] if len(common) > 2 else []), *pairs):
        weight = sum(weights[word] for word in together)
        found = list(look.having_all(together, RECALL_SCORED))
        for fact in found:
            met[fact] = max(met.get(fact, 0.0), weight)
        if len(found) >= _ENOUGH:
            break
    if common and len(met) < _ENOUGH:
        for fact in look.having_all(common[:1], RECALL_SCORED):
            met.setdefault(fact, weights[common[0]])


def _scored(
    look: Look,
    met: Sequence[tuple[float, int]],
    unseen: float,
    weights: Mapping[str, float],
    wanted: int,
) -> list[tuple[float, int]]:
    """The facts with their scores, best first; none is read that cannot be among those wanted."""
    found: list[tuple[float, int]] = []
    best: list[float] = []
    read: dict[int, tuple[str, int]] = {}
    for at, (weight, fact) in enumerate(met):
        if len(best) == wanted and _AT_MOST * (weight + unseen) < best[0]:
            break
        if at % look.together == 0:
            next_ones = [each for _, each in met[at : at + look.together]]
            read = {n: (kept, filters) for n, kept, filters in look.words_of(next_ones)}
        if fact not in read:
            continue  # it went between two looks
        kept, filters = read[fact]
        words = kept.split(" ")
        points = score(weights, words[: len(words) - filters], look.usual)
        found.append((points, fact))
        (heappush if len(best) < wanted else heappushpop)(best, points)
    found.sort(reverse=True)
    return found


def _facts(look: Look, op: FindFacts, scored: Sequence[tuple[float, int]]) -> list[Fact]:
    """The best that are meant and have not run out, some more than asked for: ties are broken."""
    wanted = _wanted(op.limit)
    found: list[Fact] = []
    for at in range(0, len(scored), wanted):
        together = scored[at : at + wanted]
        rows = look.rows([n for _, n in together])
        points = {n: each for each, n in together}
        for row in rows:
            if not row.gone(op.now) and is_meant(op.which, row.fact):
                found.append(replace(row.fact, score=points[row.n]))
                if len(found) >= wanted:
                    return found
    return found


def _wanted(limit: int) -> int:
    """How many are looked at for so many answers: ties are broken, some have run out."""
    return 2 * limit + 10
