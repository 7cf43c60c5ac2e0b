"""Random walks over memory in PostgreSQL: the walk of SQLite's, and the counts kept beside the facts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings

from callslip.stacks import ops
from callslip.stacks.index.memory_rows import parts_of
from callslip.stacks.index.postgres import PostgresIndex
from callslip.stacks.index.postgres.memory_words import mark, token, wide
from callslip.stacks.index.rows import to_text
from callslip.stacks.memoryops import ForgetFacts, Which
from callslip.stacks.words import forms
from callslip.testing.index_finding import found, listed, remember
from tests.stacks.index.test_memories_machine import steps, walked

WORDS = ["zebra", "zebras", "yellow", "report", "meeting", "friday", "conflict", "timeout"]
_TABLES = ("memory_spaces", "memories", "memory_past", "memory_terms", "memory_forms")


@pytest.fixture(scope="module")
def index(database: str) -> Iterator[PostgresIndex]:
    index = PostgresIndex(f"{database}?schema=memories_machine")
    yield index
    index.close()


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(walk=steps)
def test_memory_is_what_a_plain_dict_says_it_is(index: PostgresIndex, walk: list[tuple]) -> None:  # type: ignore[type-arg]
    index.run(ForgetFacts(()))
    walked(index, walk)
    _words_are_counted(index)
    index.run(ForgetFacts(()))
    for table in (*_TABLES, "memory_found"):
        assert _all(index, f"SELECT count(*) FROM {table}") == [(0,)], table


def test_many_writers_of_one_tenant_leave_the_words_as_the_facts_have_them(
    index: PostgresIndex,
) -> None:
    """Six namespaces with the same words, told, superseded and forgotten at once, two threads each."""
    index.run(ForgetFacts(()))

    def work(number: int) -> None:
        rng = random.Random(number)
        space = ("acme", f"user{number % 6}")
        for _ in range(15):
            text = " ".join(rng.sample(WORDS, 3))
            match rng.randrange(4):
                case 0:
                    index.run(ForgetFacts(space, key=f"k{rng.randrange(3)}"))
                case 1:
                    index.run(ForgetFacts(space))
                case _:
                    remember(index, text, space, key=f"k{rng.randrange(3)}")

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(work, range(12))) == [None] * 12
    _words_are_counted(index)
    assert index.run(ops.Repair(mend=False)) == []


def _all(index: PostgresIndex, sql: str) -> list[tuple]:  # type: ignore[type-arg]
    return index.server.transact(lambda db: list(db.execute(sql)), tenant=None, again=True)


def _words_are_counted(index: PostgresIndex) -> None:
    """What the index keeps beside the facts, counted anew from them."""
    words: Counter[tuple[bytes, str]] = Counter()
    lengths: Counter[bytes] = Counter()
    tokens: set[tuple[int, int]] = set()
    spelt: set[tuple[str, str, str]] = set()
    rows = _all(
        index,
        "SELECT s.parts, s.mark, m.words, m.n, m.filters FROM memories m"
        " JOIN memory_spaces s ON s.n = m.space",
    )
    for parts, space, kept, fact, filters in rows:
        namespace = parts_of(parts)
        each = to_text(kept).split(" ") if kept else []
        lengths[space] += len(each) - filters
        for word in set(each):
            words[space, word] += 1
            tokens |= {(token(mark(namespace), word), fact), (token(wide(namespace), word), fact)}
            spelt |= {(namespace[0], form, word) for form in forms(word)}
    counted = _all(
        index,
        "SELECT s.mark, t.word, t.facts FROM memory_terms t JOIN memory_spaces s ON s.n = t.space",
    )
    assert {(space, to_text(word)): facts for space, word, facts in counted} == dict(words)
    assert set(_all(index, "SELECT token, fact FROM memory_found")) == tokens
    kept_spelt = _all(
        index,
        "SELECT DISTINCT s.tenant, f.form, f.word FROM memory_forms f JOIN memory_spaces s"
        " ON f.owner = hashtextextended(encode(s.tenant, 'hex'), 1874)",
    )
    assert {tuple(map(to_text, row)) for row in kept_spelt} == spelt
    assert {m: w for m, w in _all(index, "SELECT mark, words FROM memory_spaces")} == lengths


def test_a_damaged_count_is_found_and_mended(index: PostgresIndex) -> None:
    index.run(ForgetFacts(()))
    remember(index, "zebra", ("a", "b"))
    _all(index, "UPDATE memory_spaces SET facts = facts + 5 RETURNING 1")
    _all(index, "INSERT INTO memory_found (token, fact, owner) VALUES (1, -1, 1) RETURNING 1")
    assert len(index.run(ops.Repair(mend=False))) == 2
    assert len(index.run(ops.Repair(mend=True))) == 2
    assert index.run(ops.Repair(mend=True)) == []
    assert found(index, "zebra", Which(("a",), deep=True)) == ["zebra"]
    assert listed(index, Which(("a", "b"))) == ["zebra"]
