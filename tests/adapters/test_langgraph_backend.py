from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from callslip import SettingsError
from callslip.adapters.langgraph_backend import Over
from callslip.errors import FactRefused
from callslip.patterns.memory import Memory
from tests.conftest import Clock


def letters(texts: list[str]) -> list[list[float]]:
    return [[Counter(text.lower())[chr(97 + n)] + 0.01 for n in range(26)] for text in texts]


@pytest.fixture(params=["memory", "sqlite"])
def theirs(request: pytest.FixtureRequest, tmp_path: Path) -> BaseStore:
    if request.param == "memory":
        return InMemoryStore()
    import sqlite3

    connection = sqlite3.connect(
        tmp_path / "theirs.db", check_same_thread=False, isolation_level=None
    )
    store = SqliteStore(connection)
    store.setup()
    request.addfinalizer(connection.close)
    return store


@pytest.fixture
def memory(theirs: BaseStore, clock: Clock) -> Memory:
    return Memory(Over(theirs, clock), ("acme", "ana"))


def test_facts_are_merged_superseded_and_recalled(memory: Memory, clock: Clock) -> None:
    first = memory.remember("Ana likes tables.", key="format", kind="preference", source="s")
    clock.at += 60
    again = memory.remember("ana likes tables", key="format", metadata={"n": 1})
    assert (again.outcome, again.fact.count, again.fact.id) == ("repeated", 2, first.fact.id)
    new = memory.remember("Ana likes lists", key="format", source="t")
    assert (new.outcome, new.fact.version, new.before) == ("superseded", 2, again.fact)
    assert [(past.text, past.why) for past in memory.history(new.fact.id)] == [
        ("Ana likes tables.", "superseded")
    ]
    assert memory.get(key="format") == memory.get(new.fact.id) == new.fact
    changed = memory.update(new.fact.id, "Ana likes charts")
    assert [past.why for past in memory.history(new.fact.id)] == ["updated", "superseded"]
    memory.remember("SRC-4471 sends duplicates")
    assert memory.remember("SRC-4471 sends the duplicates!").outcome == "repeated"
    assert [fact.text for fact in memory.recall("charts")] == [changed.fact.text]
    assert [fact.text for fact in memory.recall("SRC 4471 duplicates", k=1)] == [
        "SRC-4471 sends duplicates"
    ]
    assert memory.list(kind="preference").total == 1
    assert memory.forget(key="format") is True
    assert memory.forget(key="format") is False
    assert memory.clear() == 1
    assert memory.list().total == 0


def test_a_fact_told_with_a_key_takes_the_place_of_the_same_without(memory: Memory) -> None:
    memory.remember("Ana is on leave")
    did = memory.remember("Ana is on leave", key="leave")
    assert (did.outcome, did.fact.count, memory.list().total) == ("repeated", 2, 1)


def test_facts_run_out(memory: Memory, clock: Clock) -> None:
    memory.remember("short", key="k", expires=60)
    clock.at += 60
    assert memory.get(key="k") is None
    assert memory.list().total == 0
    assert memory.remember("anew", key="k").outcome == "new"


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("keyed_before", [True, False])
@pytest.mark.parametrize(
    ("first", "again", "kept"), [(60, None, None), (None, 60, None), (60, 90, 90), (90, 60, 90)]
)
def test_a_fact_told_twice_lives_the_longer_life(
    memory: Memory,
    clock: Clock,
    key: str | None,
    keyed_before: bool,
    first: int | None,
    again: int | None,
    kept: int | None,
) -> None:
    memory.remember("Ana is on leave", key=key if keyed_before else None, expires=first)
    did = memory.remember("Ana is on leave", key=key, expires=again)
    until = None if kept is None else clock.at + kept
    assert (did.outcome, did.fact.expires_at) == ("repeated", until)
    assert [fact.expires_at for fact in memory.list()] == [until]


def test_namespaces_are_apart_and_items_of_others_are_facts(
    memory: Memory, theirs: BaseStore
) -> None:
    theirs.put(("acme", "ana"), "profile", {"name": "Ana", "city": "Oslo"})
    theirs.put(("acme", "ana", "deep"), "profile", {"city": "Oslo"})
    theirs.put(("acme", "bob"), "profile", {"city": "Oslo"})
    (fact,) = memory.recall("oslo")
    assert (fact.id, fact.metadata, fact.text) == (
        "profile",
        {"name": "Ana", "city": "Oslo"},
        "Ana\nOslo",
    )


def test_the_stores_own_search_is_used_where_it_has_an_index(clock: Clock) -> None:
    theirs = InMemoryStore(index={"dims": 26, "embed": letters, "fields": ["text"]})
    memory = Memory(Over(theirs, clock), "acme")
    memory.remember("zzz yyy xxx")
    memory.remember("aaa bbb")
    assert next(fact.text for fact in memory.recall("zyx")) == "zzz yyy xxx"


def test_what_it_cannot_do_is_told(theirs: BaseStore, memory: Memory) -> None:
    with pytest.raises(FactRefused):
        memory.remember("password: hunter2!")
    with pytest.raises(SettingsError, match="quota"):
        Memory(Over(theirs), "a", most_facts=3).remember("x")
    with pytest.raises(SettingsError, match="index"):
        Memory(Over(theirs), "a", embed=letters).remember("x")


def test_the_async_verbs_work_from_an_event_loop(memory: Memory) -> None:
    async def walk() -> int:
        await memory.aremember("zebra")
        return len(await memory.arecall("zebra"))

    assert asyncio.run(walk()) == 1
