"""What LangGraph's own stores do (namespaces, filters, paging, TTL, the order of a batch), on ours."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from callslip import ResultStore, SettingsError
from callslip.adapters.langgraph_store import FactStore
from callslip.errors import FactRefused
from callslip.patterns.memory import Memory


class Clock:
    at = 1_790_000_000.0

    def __call__(self) -> float:
        Clock.at += 0.001  # two writes are never of one moment
        return Clock.at


@pytest.fixture
def kept(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / "store", clock=Clock())


@pytest.fixture
def store(kept: ResultStore) -> FactStore:
    return FactStore(kept)


@pytest.fixture(params=["ours", "theirs"])
def either(request: pytest.FixtureRequest, store: FactStore) -> BaseStore:
    """Ours, and LangGraph's own in memory: the tests that both pass are about what both promise."""
    return store if request.param == "ours" else InMemoryStore()


# --- one item -------------------------------------------------------------------------------------


def test_an_item_is_put_read_replaced_and_deleted(either: BaseStore) -> None:
    space = ("users", "ana")
    value = {"text": "likes tables", "n": 1, "deep": {"a": [1, 2.5, None, True, "é"]}}
    assert either.get(space, "format") is None
    either.put(space, "format", value)
    first = either.get(space, "format")
    assert first is not None
    assert (first.namespace, first.key, first.value) == (space, "format", value)
    either.put(space, "format", {"text": "likes lists"})
    second = either.get(space, "format")
    assert second is not None
    assert second.value == {"text": "likes lists"}
    assert second.created_at == first.created_at or not isinstance(either, FactStore)
    assert second.updated_at >= first.updated_at
    assert either.get(("users", "bob"), "format") is None
    assert either.get(("users",), "format") is None
    either.delete(space, "format")
    either.delete(space, "format")
    assert either.get(space, "format") is None


def test_equal_values_under_two_keys_are_two_items(either: BaseStore) -> None:
    either.put(("a",), "1", {"text": "same"})
    either.put(("a",), "2", {"text": "same"})
    assert {item.key for item in either.search(("a",))} == {"1", "2"}


@pytest.mark.parametrize("space", [(), ("a", ""), ("a.b",), ("langgraph", "x"), ("a", 5)])
def test_a_namespace_that_langgraph_refuses_is_refused(either: BaseStore, space: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        either.put(space, "k", {"a": 1})


def test_a_word_that_no_namespace_has_is_refused_in_a_batch_too(store: FactStore) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a", ""), "k", {"a": 1})])


# --- a batch --------------------------------------------------------------------------------------


def test_a_batch_answers_in_order_and_reads_what_was_there_before_it(either: BaseStore) -> None:
    either.put(("test",), "key1", {"data": "value1"})
    either.put(("test",), "key2", {"data": "value2"})
    results = either.batch(
        [
            GetOp(("test",), "key1"),
            PutOp(("test",), "key3", {"data": "value3"}),
            SearchOp(("test",), filter={"data": "value1"}, limit=10),
            ListNamespacesOp(max_depth=None, limit=10),
            GetOp(("test",), "key3"),
            PutOp(("test",), "key1", None),
        ]
    )
    assert results[0].value == {"data": "value1"}  # type: ignore[union-attr]
    assert results[1] is None
    assert [item.key for item in results[2]] == ["key1"]  # type: ignore[union-attr]
    assert results[3] == [("test",)]
    assert results[4] is None
    assert results[5] is None
    after = either.batch([GetOp(("test",), "key3"), GetOp(("test",), "key1")])
    assert [item and item.value for item in after] == [{"data": "value3"}, None]  # type: ignore[union-attr]


def test_of_two_writes_to_one_item_in_a_batch_the_last_holds(either: BaseStore) -> None:
    put = [PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "j", {"n": 9}), PutOp(("a",), "k", {"n": 2})]
    assert either.batch(put) == [None] * 3
    assert [item.value["n"] for item in either.batch([GetOp(("a",), "k"), GetOp(("a",), "j")])] == [  # type: ignore[union-attr]
        2,
        9,
    ]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (PutOp(("a",), "bad", {"text": "password: hunter2"}), FactRefused),
        (PutOp(("a",), "bad", {"text": {1, 2}}), SettingsError),
        (PutOp(("a",), "bad", {"text": "x" * 1_100_000}), SettingsError),
        (PutOp(("a", "b.c"), "bad", {"n": 1}), InvalidNamespaceError),
        (PutOp(("a",), "bad", {"n": 1}, ttl="soon"), TypeError),  # type: ignore[arg-type]
        (SearchOp(("a",), filter={"n": {"$near": 1}}), SettingsError),
    ],
)
def test_a_batch_with_one_operation_that_is_refused_writes_nothing(
    store: FactStore, bad: Any, error: type[Exception]
) -> None:
    store.put(("a",), "old", {"n": 0})
    ops = [PutOp(("a",), "new", {"n": 1}), PutOp(("a",), "old", None), PutOp(("z",), "k", {}), bad]
    for order in (ops, ops[::-1]):
        with pytest.raises(error):
            store.batch(order)
        with pytest.raises(error):
            asyncio.run(store.abatch(order))
        assert [(item.key, item.value) for item in store.search(())] == [("old", {"n": 0})]


def test_an_empty_batch_is_one(either: BaseStore) -> None:
    assert either.batch([]) == []


def test_the_async_methods_do_the_same(either: BaseStore) -> None:
    async def walk() -> list[Any]:
        await either.aput(("a", "b"), "k", {"text": "zebra", "n": 1})
        got = await either.aget(("a", "b"), "k")
        many = await asyncio.gather(
            *[either.aput(("many",), str(n), {"n": n}) for n in range(20)],
            *[either.aget(("a", "b"), "k") for _ in range(20)],
        )
        found = await either.asearch(("a",), filter={"n": 1})
        names = await either.alist_namespaces()
        await either.adelete(("a", "b"), "k")
        assert len(await either.asearch(("many",), limit=50)) == 20
        return [got and got.value, len(many), len(found), names, await either.aget(("a", "b"), "k")]

    value = {"text": "zebra", "n": 1}
    assert asyncio.run(walk()) == [value, 40, 1, [("a", "b"), ("many",)], None]


# --- a search -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({"color": "red"}, "ac"),
        ({"color": "red", "score": 3.0}, "c"),
        ({"color": {"$eq": "blue"}}, "b"),
        ({"color": {"$ne": "red"}}, "bd"),
        ({"score": {"$gt": 2.0}}, "cd"),
        ({"score": {"$gte": 2.0}}, "bcd"),
        ({"score": {"$lt": 2.0}}, "a"),
        ({"score": {"$lte": 2.0}}, "ab"),
        ({"score": {"$gt": 1.0, "$lt": 4.0}}, "bc"),
        ({"color": "none"}, ""),
        ({"nothing": "red"}, ""),
    ],
)
def test_filters_hold(either: BaseStore, wanted: dict[str, Any], keys: str) -> None:
    for key, color, score in (("a", "red", 1.0), ("b", "blue", 2.0), ("c", "red", 3.0)):
        either.put(("docs",), key, {"color": color, "score": score})
    either.put(("docs", "sub"), "d", {"color": "green", "score": 4.0})
    either.put(("docsx",), "e", {"color": "red", "score": 9.0})
    found = either.search(("docs",), filter=wanted)
    assert "".join(sorted(item.key for item in found)) == keys


def test_a_search_is_paged(either: BaseStore) -> None:
    for n in range(25):
        either.put(("pages", str(n % 2)), f"k{n}", {"n": n})
    pages = [either.search(("pages",), limit=10, offset=start) for start in (0, 10, 20, 30)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert len({item.key for page in pages for item in page}) == 25
    assert len(either.search(("pages",))) == 10


def test_a_query_finds_by_words_without_any_model(store: FactStore) -> None:
    store.put(("docs", "a"), "1", {"title": "Source SRC-4471", "body": "sends duplicates", "n": 1})
    store.put(("docs", "b"), "2", {"title": "Retention", "tags": ["ten years", "invoices"], "n": 2})
    store.put(("docs", "b"), "3", {"title": "深色模式", "n": 3})
    for query, key in (("duplicates", "1"), ("src-4471", "1"), ("invoice", "2"), ("深色", "3")):
        (found,) = store.search(("docs",), query=query)
        assert (found.key, found.score is not None and found.score > 0) == (key, True)
    assert store.search(("docs", "b"), query="duplicates") == []
    assert [i.key for i in store.search(("docs",), query="retention sends", filter={"n": 2})] == [
        "2"
    ]
    assert len(store.search(("docs",), query="sends retention", limit=1, offset=1)) == 1
    assert store.search(("docs",), query="\"' OR - NEAR(") == []


def test_what_is_searched_can_be_chosen(kept: ResultStore) -> None:
    store = FactStore(kept, fields=["title", "meta.tags[*]"])
    store.put(("d",), "1", {"title": "zebra", "body": "yak", "meta": {"tags": ["gnu"]}})
    store.put(("d",), "2", {"title": "zebra", "body": "yak"}, index=["body"])
    store.put(("d",), "3", {"title": "zebra"}, index=False)

    def keys(query: str) -> set[str]:
        return {item.key for item in store.search(("d",), query=query)}

    assert (keys("zebra"), keys("yak"), keys("gnu")) == ({"1"}, {"2"}, {"1"})
    assert store.get(("d",), "3") is not None


def test_a_query_finds_by_meaning_where_there_is_an_embedding(kept: ResultStore) -> None:
    def letters(texts: list[str]) -> list[list[float]]:
        return [[Counter(text)[chr(97 + n)] + 0.01 for n in range(26)] for text in texts]

    store = FactStore(kept, embed=letters)
    store.put(("d",), "1", {"text": "zzz yyy"})
    store.put(("d", "deep"), "2", {"text": "aaa bbb"})
    assert next(item.key for item in store.search(("d",), query="abab")) == "2"


# --- namespaces -----------------------------------------------------------------------------------


def test_namespaces_are_listed(either: BaseStore) -> None:
    spaces = [
        ("a", "b", "c"),
        ("a", "b", "d", "e"),
        ("a", "b", "d", "i"),
        ("a", "b", "f"),
        ("a", "c", "f"),
        ("b", "a", "f"),
        ("users", "123"),
        ("users", "456", "settings"),
        ("admin", "users", "789"),
    ]
    for space in spaces:
        either.put(space, "k", {"data": "v"})

    def names(**asked: Any) -> list[tuple[str, ...]]:
        return either.list_namespaces(**asked)

    assert names() == sorted(spaces)
    assert names(prefix=("a", "b")) == sorted(n for n in spaces if n[:2] == ("a", "b"))
    assert names(suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")]
    assert names(prefix=("a",), suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
    assert names(prefix=("a", "*", "f")) == [("a", "b", "f"), ("a", "c", "f")]
    assert names(suffix=("*", "f")) == [("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")]
    assert names(prefix=("a",), max_depth=2) == [("a", "b"), ("a", "c")]
    assert names(max_depth=1) == [("a",), ("admin",), ("b",), ("users",)]
    assert names(limit=3, offset=1) == sorted(spaces)[1:4]
    assert names(prefix=("none",)) == []
    both = (MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("d", "i")))
    assert either.batch([ListNamespacesOp(match_conditions=both)]) == [[("a", "b", "d", "i")]]
    either.delete(("users", "123"), "k")
    if isinstance(either, FactStore):  # in theirs an emptied namespace stays
        assert ("users", "123") not in either.list_namespaces(limit=50)


def test_a_root_keeps_tenants_apart(kept: ResultStore) -> None:
    acme, other = FactStore(kept, root=("acme",)), FactStore(kept, root=("other",))
    acme.put(("users",), "k", {"text": "zebra"})
    assert other.get(("users",), "k") is None
    assert other.search(("users",), query="zebra") == other.search(("users",)) == []
    assert other.list_namespaces() == []
    assert acme.list_namespaces() == [("users",)]
    assert kept.delete(tenant="acme") == 0
    assert acme.search(("users",)) == []


# --- ttl ------------------------------------------------------------------------------------------


def test_an_item_runs_out_and_a_read_prolongs_it(kept: ResultStore) -> None:
    store = FactStore(kept, ttl={"default_ttl": 10, "refresh_on_read": True})
    store.put(("t",), "plain", {"text": "zebra"})
    store.put(("t",), "long", {"text": "zebra"}, ttl=60)
    store.put(("t",), "ever", {"text": "zebra"}, ttl=None)
    Clock.at += 8 * 60
    assert store.get(("t",), "plain") is not None
    Clock.at += 8 * 60
    assert store.get(("t",), "plain", refresh_ttl=False) is not None
    assert len(store.search(("t",), query="zebra", refresh_ttl=False)) == 3
    Clock.at += 3 * 60
    assert store.get(("t",), "plain") is None
    assert {item.key for item in store.search(("t",))} == {"long", "ever"}
    assert store.list_namespaces() == [("t",)]
    Clock.at += 61 * 60
    assert {item.key for item in store.search(("t",), query="zebra")} == {"ever"}
    store.put(("t",), "plain", {"text": "anew"})
    assert store.get(("t",), "plain") is not None


# --- the same memory ------------------------------------------------------------------------------


def test_what_was_told_is_an_item_and_what_was_put_is_recalled(kept: ResultStore) -> None:
    memory = Memory(kept, ("acme", "ana"))
    store = FactStore(kept, root=("acme",))
    told = memory.remember("Ana likes tables", key="format", kind="preference", metadata={"n": 1})
    loose = memory.remember("SRC-4471 sends duplicates")
    item = store.get(("ana",), "format")
    assert item is not None
    assert item.value == {"text": "Ana likes tables", "kind": "preference", "n": 1}
    assert store.get(("ana",), loose.fact.id) is not None
    assert [i.key for i in store.search(("ana",), query="src-4471")] == [loose.fact.id]
    store.put(("ana",), "memo", {"content": "Ana is in Oslo", "kind": "place"})
    (fact,) = memory.recall("oslo", kind="place")
    assert (fact.key, fact.text, fact.metadata["content"]) == (
        "memo",
        "Ana is in Oslo\nplace",
        "Ana is in Oslo",
    )
    store.put(("ana",), "format", {"text": "Ana likes lists"})
    assert [past.text for past in memory.history(told.fact.id)] == ["Ana likes tables"]
    store.put(("ana",), loose.fact.id, {"text": "SRC-4471 is fine"})
    assert [f.text for f in memory.recall("src-4471")] == ["SRC-4471 is fine"]
    store.delete(("ana",), "format")
    assert memory.get(key="format") is None


def test_a_credential_is_refused_and_the_rest_of_its_batch_is_not_lost(store: FactStore) -> None:
    with pytest.raises(FactRefused):
        store.put(("a",), "k", {"deep": [{"password": "hunter2!"}]})
    assert store.search(("a",)) == []


def test_what_json_cannot_hold_is_told(store: FactStore) -> None:
    with pytest.raises(ValueError, match="JSON"):
        store.put(("a",), "k", {"x": object()})


def test_the_audit_tells_ids_of_items_and_no_key(tmp_path: Path) -> None:
    kept = ResultStore(tmp_path / "store", audit=True)
    store = FactStore(kept)
    store.put(("ana",), "ana@example.com", {"text": "Ana reads tables"})
    assert store.get(("ana",), "bob@example.com") is None
    assert {entry.id[:4] for entry in kept.audit()} <= {"mem_", ""}
