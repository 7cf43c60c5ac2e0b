"""The contract of memory in an index: which facts a query finds, and the helpers of both parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from callslip.stacks import ops
from callslip.stacks.memoryops import (
    FindFacts,
    ListFacts,
    Namespace,
    Remember,
    Remembered,
    Told,
    Which,
)
from callslip.stacks.words import asked, sameness, words_of

HOME = ("acme", "ana")
NOW = 1_000_000.0


def told(text: str, **parts: Any) -> Told:
    """A fact to tell, found by its own words."""
    return replace(Told(text, tuple(words_of(text)), sameness(text)), **parts)


def remember(
    index: ops.Runs, text: str, namespace: Namespace = HOME, now: float = NOW, **parts: Any
) -> Remembered:
    """Remember a fact of that text, under an id made of what it says."""
    name = sameness(text + (parts.get("key") or "")).hex()
    op: dict[str, Any] = {
        each: parts.pop(each) for each in ("merge", "most_facts", "most_bytes") if each in parts
    }
    ids = [f"mem_{name[:8]}", f"mem_{name}"]
    return index.run(Remember(namespace, told(text, **parts), ids, now, **op))


def found(index: ops.Runs, query: str, which: Which | None = None, limit: int = 5) -> list[str]:
    """The texts that answer a query, best first."""
    op = FindFacts(which or Which(HOME), asked(query), limit, NOW)
    return [fact.text for fact in index.run(op)]


def listed(index: ops.Runs, which: Which | None = None, now: float = NOW) -> list[str]:
    """The texts of a namespace, the last told first."""
    return [fact.text for fact in index.run(ListFacts(which or Which(HOME), 0, 99, now))[0]]


class FindingContract:
    """The promises about what is found. A subclass gives `open`."""

    def open(self) -> ops.Runs:
        """An empty index."""
        raise NotImplementedError

    def test_words_find_facts_whatever_the_script(self) -> None:
        index = self.open()
        facts = {
            "The source system SRC-4471 sends duplicates": ["src-4471", "SRC 4471", "duplicate"],
            "Call getUserById with a timeout": ["getUserById", "user by id", "timeouts"],
            "用户喜欢深色模式": ["深色", "深色模式是什么", "喜欢"],
            "東京オフィスの締切は金曜日です": ["締切", "東京の締切はいつ", "金曜日"],
            "L'été à Zürich": ["ete", "zurich", "Été"],
            "We use C++ and node.js": ["c++", "node.js", "nodejs"],
        }
        for text in facts:
            remember(index, text)
        for text, queries in facts.items():
            for query in queries:
                assert found(index, query)[:1] == [text], query

    def test_a_misspelt_word_finds_what_was_meant(self) -> None:
        index = self.open()
        texts = ["Retrieval is done by bm25", "Prefers answers in tables", "The timezone is Oslo"]
        for text in texts:
            remember(index, text)
        queries = ["retreival", "tabels", "time zone", "prefferences"]
        assert [found(index, query)[:1] for query in queries] == [
            [texts[0]],
            [texts[1]],
            [texts[2]],
            [texts[1]],
        ]
        assert found(index, "elephant") == []

    def test_no_query_is_a_syntax_error(self) -> None:
        index = self.open()
        remember(index, 'it\'s a "quoted" fact')
        for query in (
            "\"quoted' AND - NOT * (",
            "a:b^2 NEAR(x y) {quoted}",
            "\0\ud800",
            "'",
            '"',
            "-",
            "",
            "…",
            "quoted OR",
            "_s1",
            "1_quoted",
            "x" * 5000,
            "% _ \\",
        ):
            assert found(index, query) == (['it\'s a "quoted" fact'] if "quoted" in query else [])

    def test_a_rarer_word_counts_more_and_ties_go_to_the_named_kind_then_the_latest(self) -> None:
        index = self.open()
        for n in range(20):
            remember(index, f"report alpha{n} is late", now=NOW - 50)
        remember(index, "report zebra", now=NOW - 60)
        assert found(index, "report zebra")[0] == "report zebra"
        for n, kind in enumerate(("fact", "rule", "fact")):
            remember(index, f"owner is team{n}", kind=kind, now=NOW + n)
        assert found(index, "owner") == ["owner is team2", "owner is team1", "owner is team0"]
        assert found(index, "owner rule")[0] == "owner is team1"

    def test_a_namespace_sees_itself_and_deep_what_is_below(self) -> None:
        index = self.open()
        spaces = [("acme",), HOME, (*HOME, "x"), ("acme", "anabel"), ("other",)]
        for space in spaces:
            remember(index, f"zebra of {'/'.join(space)}", space, kind=space[-1])
        for at, space in enumerate(spaces):
            assert found(index, "zebra", Which(space)) == [f"zebra of {'/'.join(space)}"], at
        below = {"zebra of acme/ana", "zebra of acme/ana/x"}
        assert set(found(index, "zebra", Which(HOME, deep=True))) == below
        assert set(listed(index, Which(HOME, deep=True))) == below
        assert len(found(index, "zebra", Which((), deep=True))) == 5
        assert found(index, "zebra", Which(HOME, deep=True, kind="x")) == ["zebra of acme/ana/x"]
        assert found(index, "zebra", Which(("acme", "none"), deep=True)) == []

    def test_conditions_on_fields_hold(self) -> None:
        index = self.open()
        for n in range(6):
            metadata = {"n": n, "even": n % 2 == 0, "tag": f"t{n}", "in": {"side": n}, "f": n / 2}
            remember(index, f"zebra {n}", now=NOW + n, metadata=metadata, kind=f"k{n % 2}")
        for where, numbers in (
            ({"tag": "t3"}, [3]),
            ({"even": True}, [4, 2, 0]),
            ({"even": 1}, []),
            ({"f": 1}, [2]),
            ({"f": 0.5}, [1]),
            ({"n": {"$gt": 3}}, [5, 4]),
            ({"n": {"$gte": 2, "$lt": 4}}, [3, 2]),
            ({"n": {"$lte": 0}}, [0]),
            ({"n": {"$ne": 0}, "even": True}, [4, 2]),
            ({"tag": {"$in": ["t1", "t5"]}}, [5, 1]),
            ({"tag": {"$gt": 3}}, []),
            ({"in.side": 4}, [4]),
            ({"in": {"side": 4}}, [4]),
            ({"none": {"$exists": False}, "n": 1}, [1]),
            ({"none": 1}, []),
            ({"kind": "k1"}, [5, 3, 1]),
            ({"text": "zebra 2"}, [2]),
        ):
            texts = [f"zebra {n}" for n in numbers]
            which = Which(HOME, where=where)
            assert listed(index, which) == texts, where
            assert found(index, "zebra", which, limit=9) == texts, where
            assert index.run(ListFacts(which, 0, 0, NOW))[1] == len(texts)
        assert found(index, "zebra", Which(HOME, kind="k1")) == ["zebra 5", "zebra 3", "zebra 1"]
