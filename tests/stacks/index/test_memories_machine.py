"""Random walks over memory, held against a plain dict and against the counts that the index keeps."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.stacks import ops
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.stacks.memoryops import ForgetFacts, ListFacts, Namespace, SweepFacts, Which
from callslip.stacks.words import sameness
from callslip.testing.index_finding import NOW, found, listed, remember

SPACES = [("a",), ("a", "b"), ("a", "b", "c"), ("ab",)]
TEXTS = [
    "zebra one",
    "Zebra, one!",
    "yak two",
    "zebra yak",
    "深色模式",
    "SRC-4471 fails",
    "the",
    "…",
]
KEYS = [None, None, "k", "key two"]


@dataclass
class Known:
    text: str
    key: str | None
    count: int
    expires: float | None


steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("remember"),
            st.sampled_from(SPACES),
            st.sampled_from(TEXTS),
            st.sampled_from(KEYS),
            st.sampled_from([None, None, 50.0, 100.0]),
        ),
        st.tuples(st.just("forget"), st.sampled_from(SPACES), st.sampled_from(KEYS[2:])),
        st.tuples(st.just("clear"), st.sampled_from(SPACES)),
        st.tuples(st.just("wait")),
        st.tuples(st.just("sweep")),
    ),
    max_size=40,
)


class Model:
    """What must be remembered, kept in the plainest way."""

    def __init__(self) -> None:
        self.facts: dict[Namespace, list[Known]] = {}

    def remember(
        self, space: Namespace, text: str, key: str | None, expires: float | None, now: float
    ) -> str:
        facts = self.living(space, now)
        self.facts[space] = facts
        keyed = [fact for fact in facts if key is not None and fact.key == key]
        same = [fact for fact in facts if sameness(fact.text) == sameness(text)]
        if keyed:
            (fact,) = keyed
            if sameness(fact.text) != sameness(text):
                fact.text, fact.count, fact.expires = text, 1, expires
                return "superseded"
        else:
            same = same[:1] if key is None or (same and same[0].key is None) else []
            if not same:
                facts.append(Known(text, key, 1, expires))
                return "new"
            (fact,) = same
        fact.count += 1
        fact.key = fact.key if key is None else key
        ends = (fact.expires, expires)
        fact.expires = None if None in ends else max(ends)  # type: ignore[type-var]
        return "repeated"

    def living(self, space: Namespace, now: float) -> list[Known]:
        held = self.facts.get(space, [])
        return [fact for fact in held if fact.expires is None or fact.expires > now]


@settings(max_examples=120, deadline=None)
@given(steps)
def test_memory_is_what_a_plain_dict_says_it_is(walk: list[tuple]) -> None:  # type: ignore[type-arg]
    index = SqliteIndex(":memory:")
    walked(index, walk)
    _words_are_counted(index)


def walked(index: ops.Runs, walk: list[tuple]) -> None:  # type: ignore[type-arg]
    """Go the walk with the index and with a plain dict, and compare what both say in the end."""
    model, now = Model(), NOW
    for step in walk:
        match step:
            case ("remember", space, text, key, expires):
                until = None if expires is None else now + expires
                did = remember(index, text, space, now, key=key, expires_at=until)
                assert did.outcome == model.remember(space, text, key, until, now)
            case ("forget", space, key):
                held = model.living(space, now)
                kept = [fact for fact in held if fact.key != key]
                gone = index.run(ForgetFacts(space, key=key))
                assert gone >= len(held) - len(kept)
                model.facts[space] = kept
            case ("clear", space):
                index.run(ForgetFacts(space))
                for below in list(model.facts):
                    if below[: len(space)] == space:
                        del model.facts[below]
            case ("wait",):
                now += 30
            case ("sweep",):
                index.run(SweepFacts(now, 100))
    for space in SPACES:
        wanted = model.living(space, now)
        facts, total = index.run(ListFacts(Which(space), 0, 99, now))
        got = Counter((fact.text, fact.key, fact.count, fact.expires_at) for fact in facts)
        assert got == Counter((f.text, f.key, f.count, f.expires) for f in wanted)
        assert total == len(wanted)
    assert index.run(ops.Repair(mend=False)) == []
    assert index.run(ops.Repair(mend=True)) == []


def _words_are_counted(index: SqliteIndex) -> None:
    """What the index keeps beside the facts, counted anew from them."""
    with index._pool.borrow() as db:
        words: Counter[tuple[int, str]] = Counter()
        rows = db.execute(
            "SELECT m.space, w.words, w.fact FROM memory_words w JOIN memories m ON m.n = w.fact"
        ).fetchall()
        for space, kept, fact in rows:
            for word in set(kept.split(" ")):
                words[0, word] += 1
                words[space, word] += 1
                match = f'"{space}_{word}"'
                hits = db.execute(
                    "SELECT rowid FROM memory_found WHERE memory_found MATCH ?", (match,)
                )
                assert fact in [n for (n,) in hits]
        counted = {
            (space, word): facts
            for space, word, facts in db.execute("SELECT space, word, facts FROM memory_terms")
        }
        assert counted == dict(words)
        for parts, facts, below in db.execute("SELECT parts, facts, below FROM memory_spaces"):
            assert facts <= below
            assert below > 0, f"{json.loads(parts)} is empty and still there"


def test_a_damaged_count_is_found_and_mended() -> None:
    index = SqliteIndex(":memory:")
    remember(index, "zebra", ("a", "b"))
    with index._pool.borrow() as db:
        db.execute("UPDATE memory_spaces SET facts = facts + 5, below = 9")
    assert len(index.run(ops.Repair(mend=False))) == 1
    assert len(index.run(ops.Repair(mend=True))) == 1
    assert index.run(ops.Repair(mend=True)) == []
    assert found(index, "zebra", Which(("a",), deep=True)) == ["zebra"]
    assert listed(index, Which(("a", "b"))) == ["zebra"]
