"""Which facts answer a query best: BM25 over words, conditions on fields, fusion of ranks. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from callslip.stacks.memoryops import Fact
from callslip.stacks.words import Asked, words_of

T = TypeVar("T")

_K1 = 1.2
_B = 0.4
"""Facts are short and of like length: length says less than in documents."""

_FUSED_AFTER = 5
"""How much the first of a ranking counts beside the next. 60, as in the paper that fusion by ranks is
known from, is for long lists: of five facts shown, the first places have to tell."""

MEANING = 0.5
"""What a ranking by meaning counts beside one by words."""

_TIE = 100
"""Scores are compared in steps of a hundredth of the best one: what lies closer is a tie."""


def rarity(facts: int, having: int) -> float:
    """What a word counts that so many facts of so many have."""
    having = min(having, facts)
    return math.log(1 + (facts - having + 0.5) / (having + 0.5))


def score(weights: Mapping[str, float], words: Sequence[str], usual: float) -> float:
    """How well words answer a query whose words have those weights; `usual` is a usual length."""
    counts = Counter(word for word in words if word in weights)
    norm = _K1 * (1 - _B + _B * len(words) / max(usual, 1.0))
    return sum(weights[word] * count * (_K1 + 1) / (count + norm) for word, count in counts.items())


def in_order(facts: Iterable[Fact], asked: Asked) -> list[Fact]:
    """Facts with their scores, best first. Of those that answer about equally well: a kind that the
    query names first, then the last told, then the more often told."""
    found = list(facts)
    best = max((fact.score or 0.0 for fact in found), default=0.0)
    step = best / _TIE or 1.0
    named = set(asked.words)

    def rank(fact: Fact) -> tuple[float, bool, float, int, str]:
        kind = bool(fact.kind) and set(words_of(fact.kind)) <= named
        return (
            -round((fact.score or 0.0) / step),
            not kind,
            -fact.updated_at,
            -fact.count,
            fact.id,
        )

    return sorted(found, key=rank)


def ranked(facts: Sequence[Fact], asked: Asked, limit: int) -> list[Fact]:
    """The facts of a few that answer a query best, where no index helps."""
    held = [words_of(fact.text) for fact in facts]
    having = Counter(word for words in held for word in set(words))
    usual = sum(map(len, held)) / max(len(held), 1)
    weights = {
        word: asked.weight(word) * rarity(len(facts), having[word])
        for word in (*asked.words, *asked.joined)
    }
    scored = [
        replace(fact, score=found)
        for fact, words in zip(facts, held, strict=True)
        if (found := score(weights, words, usual)) > 0
    ]
    return in_order(scored, asked)[:limit]


def fused(
    lists: Sequence[tuple[float, Sequence[T]]], identity: Callable[[T], object]
) -> list[tuple[T, float]]:
    """Several rankings, each with what it counts, as one: reciprocal ranks, summed. The first of
    equals is the one that an earlier list has before."""
    totals: dict[object, float] = {}
    first: dict[object, T] = {}
    for share, ranking in lists:
        for at, each in enumerate(ranking, 1):
            name = identity(each)
            first.setdefault(name, each)
            totals[name] = totals.get(name, 0.0) + share / (_FUSED_AFTER + at)
    order = sorted(first, key=lambda name: -totals[name])
    return [(first[name], totals[name]) for name in order]


# --- conditions -----------------------------------------------------------------------------------

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda a, b: a > b,
    "$gte": lambda a, b: a >= b,
    "$lt": lambda a, b: a < b,
    "$lte": lambda a, b: a <= b,
}
OPERATORS = frozenset({"$eq", "$ne", "$in", "$exists", *_COMPARISONS})
_MISSING = object()


def holds(where: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether every condition holds. A name with dots also leads into an object. Values that cannot
    be compared do not hold; `$ne` holds for a field that is not there."""
    return all(_holds(_found(value, name), wanted) for name, wanted in where.items())


def _found(value: Mapping[str, Any], name: str) -> Any:
    if name in value:
        return value[name]
    at: Any = value
    for part in name.split("."):
        if not isinstance(at, Mapping) or part not in at:
            return _MISSING
        at = at[part]
    return at


def _holds(found: Any, wanted: Any) -> bool:
    if not isinstance(wanted, Mapping) or not any(str(name).startswith("$") for name in wanted):
        return found is not _MISSING and _equal(found, wanted)
    return all(_compared(found, str(name), operand) for name, operand in wanted.items())


def _compared(found: Any, name: str, operand: Any) -> bool:
    if name == "$exists":
        return (found is not _MISSING) == bool(operand)
    if name == "$ne":
        return found is _MISSING or not _equal(found, operand)
    if name not in OPERATORS:
        raise ValueError(name)
    if found is _MISSING:
        return False
    if name == "$eq":
        return _equal(found, operand)
    if name == "$in":
        return isinstance(operand, Iterable) and any(_equal(found, each) for each in operand)
    try:
        return bool(_COMPARISONS[name](found, operand))
    except TypeError:
        return False


def _equal(one: Any, two: Any) -> bool:
    # True is 1 for Python, not for JSON.
    if isinstance(one, bool) != isinstance(two, bool):
        return False
    return bool(one == two)
