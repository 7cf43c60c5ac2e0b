"""The contract of memory in an index: the part of `callslip.testing.index` about facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from callslip.limits import FACT_VERSIONS
from callslip.stacks import ops
from callslip.stacks.memoryops import (
    AddVectors,
    DropVectors,
    Fact,
    FindFacts,
    ForgetFacts,
    GetFact,
    KnowModel,
    ListFacts,
    Namespace,
    Namespaces,
    NearFacts,
    PastOf,
    RefreshFacts,
    Remember,
    Revise,
    SweepFacts,
    Vectorless,
    Which,
)
from callslip.stacks.words import asked
from callslip.testing.index_finding import HOME, NOW, FindingContract, found, listed, remember, told


class MemoriesContract(FindingContract):
    """The promises about facts. A subclass gives `open`."""

    def open(self) -> ops.Runs:
        """An empty index."""
        raise NotImplementedError

    # --- told ---

    def test_a_fact_comes_back_as_it_was_told(self) -> None:
        index = self.open()
        odd = "\0 \ud800 é ' \" % _ \n"
        space = ("acme", odd)
        metadata = {"a": [1, 2.5, None, True], "odd": {"é": odd}}
        did = remember(
            index, odd, space, key=odd, kind=odd, source=odd, metadata=metadata, expires_at=NOW + 9
        )
        assert did.outcome == "new"
        assert did.fact == Fact(
            did.fact.id, space, odd, odd, odd, odd, metadata, 1, NOW, NOW, NOW + 9
        )
        assert index.run(GetFact(space, NOW, id=did.fact.id)) == did.fact
        assert index.run(GetFact(space, NOW, key=odd)) == did.fact
        assert index.run(GetFact(HOME, NOW, id=did.fact.id)) is None
        assert index.run(GetFact(("acme",), NOW, key=odd)) is None

    def test_a_repeat_is_merged_and_counted(self) -> None:
        index = self.open()
        first = remember(index, "The user prefers dark mode.", kind="preference").fact
        again = remember(
            index, "user prefers dark-mode", now=NOW + 5, source="s", metadata={"a": 1}
        )
        assert again.outcome == "repeated"
        assert again.fact == replace(
            first, count=2, updated_at=NOW + 5, source="s", metadata={"a": 1}
        )
        assert listed(index) == ["The user prefers dark mode."]
        assert found(index, "dark", Which(HOME, where={"a": 1})) == ["The user prefers dark mode."]
        for other in ("user prefers light mode", "user does not prefer dark mode"):
            assert remember(index, other).outcome == "new"
        assert remember(index, "user prefers dark mode", ("acme", "bob")).outcome == "new"

    def test_a_repeat_lives_as_long_as_the_longer_of_both(self) -> None:
        index = self.open()
        for n, (first, again, kept) in enumerate(
            [
                (NOW + 10, None, None),
                (None, NOW + 10, None),
                (NOW + 10, NOW + 20, NOW + 20),
                (NOW + 20, NOW + 10, NOW + 20),
            ]
        ):
            remember(index, f"number {n}", expires_at=first)
            did = remember(index, f"number {n}", key=f"key {n}", expires_at=again)
            assert (did.outcome, did.fact.expires_at) == ("repeated", kept)
        short = remember(index, "refreshed", expires_at=NOW + 10, ttl=10.0).fact
        remember(index, "refreshed", expires_at=NOW + 20)
        index.run(RefreshFacts([(HOME, short.id)], NOW + 15))
        assert listed(index, now=NOW + 21) == ["number 1", "number 0"]

    def test_a_fact_without_a_key_gets_the_key_it_is_told_again_under(self) -> None:
        index = self.open()
        first = remember(index, "Ana is on leave")
        keyed = remember(index, "ana is on leave", key="leave")
        assert (keyed.outcome, keyed.fact.id, keyed.fact.key) == (
            "repeated",
            first.fact.id,
            "leave",
        )
        assert remember(index, "Ana is on leave").fact.key == "leave"
        other = remember(index, "Ana is on leave", key="calendar")
        assert (other.outcome, len(listed(index))) == ("new", 2)

    def test_a_contradiction_under_a_key_supersedes_and_the_old_one_stays_in_its_history(
        self,
    ) -> None:
        index = self.open()
        first = remember(index, "Conflicts as a table", key="view", kind="preference").fact
        did = remember(index, "Conflicts side by side", key="view", now=NOW + 5)
        assert did.outcome == "superseded"
        assert did.before == first
        assert (did.fact.id, did.fact.version, did.fact.kind) == (first.id, 2, "preference")
        assert found(index, "conflicts") == ["Conflicts side by side"]
        assert found(index, "table") == []
        (past,) = index.run(PastOf(HOME, first.id, NOW))
        assert (past.version, past.text, past.since, past.until, past.why) == (
            1,
            "Conflicts as a table",
            NOW,
            NOW + 5,
            "superseded",
        )
        for n in range(FACT_VERSIONS + 5):
            remember(index, f"view {n}", key="view")
        history = index.run(PastOf(HOME, first.id, NOW))
        assert len(history) == FACT_VERSIONS
        assert history[0].text == f"view {FACT_VERSIONS + 3}"

    def test_a_fact_is_changed_by_id_and_nobody_writes_over_what_he_has_not_seen(self) -> None:
        index = self.open()
        fact = remember(index, "Ana is in Paris", key="where", kind="fact").fact
        did = index.run(Revise(HOME, fact.id, told("Ana is in Rome", kind="fact"), NOW + 1))
        assert did is not None
        assert (did.fact.key, did.fact.version, did.fact.text) == ("where", 2, "Ana is in Rome")
        same = index.run(Revise(HOME, fact.id, told("Ana is in Rome", kind="fact"), NOW + 2))
        assert same is not None
        assert (same.outcome, same.fact.version) == ("repeated", 2)
        stale = index.run(Revise(HOME, fact.id, told("Ana is in Oslo"), NOW + 2, expect=1))
        assert stale is not None
        assert (stale.before, stale.fact.text) == (None, "Ana is in Rome")
        assert index.run(Revise(HOME, "mem_x", told("x"), NOW)) is None
        assert index.run(Revise(("other",), fact.id, told("x"), NOW)) is None
        assert found(index, "paris") == []
        assert found(index, "rome") == ["Ana is in Rome"]
        assert [past.why for past in index.run(PastOf(HOME, fact.id, NOW))] == ["updated"]

    def test_an_id_that_is_taken_is_passed_over(self) -> None:
        index = self.open()
        ids = ["mem_a", "mem_ab", "mem_abc"]
        got = [
            index.run(Remember(HOME, told(text), ids, NOW)).fact.id
            for text in ("one", "two", "six")
        ]
        assert got == ids

    # --- gone ---

    def test_what_is_forgotten_leaves_nothing(self) -> None:
        index = self.open()
        one = remember(index, "Zebra one", key="k").fact
        remember(index, "Zebra two", key="k")
        two = remember(index, "Yak", ("acme", "ana", "deeper"))
        remember(index, "Yak", ("acme", "anabel"))
        remember(index, "Yak", ("acme2",))
        assert index.run(ForgetFacts(HOME, id="mem_none")) == 0
        assert index.run(ForgetFacts(("acme",), id=one.id)) == 0
        assert index.run(ForgetFacts(HOME, key="k")) == 1
        assert found(index, "zebra") == []
        assert list(index.run(PastOf(HOME, one.id, NOW))) == []
        assert remember(index, "Zebra", key="k").fact.version == 1
        assert index.run(ForgetFacts(HOME)) == 2
        assert index.run(GetFact(two.fact.namespace, NOW, id=two.fact.id)) is None
        left = index.run(Namespaces((), (), None, 9, 0, NOW))
        assert left == [("acme", "anabel"), ("acme2",)]

    def test_the_facts_of_a_subject_go_with_its_results(self) -> None:
        for user, left in (("ana", 2), (None, 1)):
            index = self.open()
            for space in (HOME, (*HOME, "x"), ("acme", "bob"), ("other", "ana")):
                remember(index, "fact", space)
            index.run(ops.Remove("closed", NOW, "acme", user, "s"))
            index.run(ops.Remove("deleted", NOW, "acme", user))
            assert len(listed(index, Which((), deep=True))) == 4
            index.run(ops.Remove("deleted", NOW, "acme", user, tombstones=False))
            assert len(listed(index, Which((), deep=True))) == left
            assert index.run(ops.Repair(mend=False)) == []

    def test_an_expired_fact_is_gone_at_once_and_swept_later(self) -> None:
        index = self.open()
        old = remember(index, "Leave until Friday", key="leave", expires_at=NOW + 10).fact
        remember(index, "Stays")
        assert index.run(SweepFacts(NOW + 9, 9)) == 0
        later = NOW + 10
        assert index.run(GetFact(HOME, later, id=old.id)) is None
        assert listed(index, now=later) == ["Stays"]
        assert index.run(ListFacts(Which(HOME), 0, 9, later))[1] == 1
        assert index.run(FindFacts(Which(HOME), asked("leave"), 5, later)) == []
        assert index.run(Revise(HOME, old.id, told("x"), later)) is None
        assert index.run(SweepFacts(later, 9)) == 1
        assert index.run(SweepFacts(later, 9)) == 0

    def test_an_expired_fact_is_not_in_the_way_of_a_new_one(self) -> None:
        index = self.open()
        remember(index, "Leave until Friday", key="leave", expires_at=NOW + 10)
        did = remember(index, "Leave until Monday", key="leave", now=NOW + 20)
        assert (did.outcome, did.fact.version) == ("new", 1)
        assert list(index.run(PastOf(HOME, did.fact.id, NOW + 20))) == []

    def test_a_reader_prolongs_what_has_a_ttl(self) -> None:
        index = self.open()
        kept = remember(index, "kept", expires_at=NOW + 10, ttl=10.0).fact
        fixed = remember(index, "fixed", expires_at=NOW + 10).fact
        names = [(HOME, fact.id) for fact in (kept, fixed)]
        index.run(RefreshFacts(names, NOW + 5))
        assert listed(index, now=NOW + 12) == ["kept"]
        index.run(RefreshFacts(names, NOW + 20))
        assert listed(index, now=NOW + 20) == []

    def test_a_quota_lets_the_longest_untold_go(self) -> None:
        index = self.open()
        for n in range(4):
            remember(index, f"number {n}", now=NOW + n)
        remember(index, "number 0", now=NOW + 5)
        remember(index, "elsewhere", ("acme", "bob"))
        did = remember(index, "number 9", now=NOW + 6, most_facts=3)
        assert did.evicted == 2
        assert listed(index) == ["number 9", "number 0", "number 3"]
        remember(index, "x" * 500, now=NOW + 7, most_bytes=100)
        assert listed(index) == ["x" * 500]
        assert listed(index, Which(("acme", "bob"))) == ["elsewhere"]

    def test_a_list_is_paged_the_last_told_first(self) -> None:
        index = self.open()
        for n in range(7):
            remember(index, f"fact number {n}", now=NOW + n)
        pages: list[Sequence[Fact]] = [
            index.run(ListFacts(Which(HOME), after, 3, NOW))[0] for after in (0, 3, 6, 9)
        ]
        assert [[fact.text[-1] for fact in page] for page in pages] == [
            ["6", "5", "4"],
            ["3", "2", "1"],
            ["0"],
            [],
        ]
        facts, total = index.run(ListFacts(Which(("none",)), 0, 3, NOW))
        assert (list(facts), total) == ([], 0)

    def test_namespaces_are_listed_by_their_ends_and_cut(self) -> None:
        index = self.open()
        for space in (("a", "x", "v1"), ("a", "y", "v2"), ("b", "x", "v1"), ("a",)):
            remember(index, "fact", space)

        def names(
            prefix: Namespace, suffix: Namespace, depth: int | None, limit: int, after: int
        ) -> list[Namespace]:
            return list(index.run(Namespaces(prefix, suffix, depth, limit, after, NOW)))

        assert names(("a",), (), None, 9, 0) == [("a",), ("a", "x", "v1"), ("a", "y", "v2")]
        assert names((), ("v1",), None, 9, 0) == [("a", "x", "v1"), ("b", "x", "v1")]
        assert names(("*", "x"), ("*",), None, 9, 0) == [("a", "x", "v1"), ("b", "x", "v1")]
        assert names((), (), 1, 9, 0) == [("a",), ("b",)]
        assert names((), (), 2, 2, 1) == [("a", "x"), ("a", "y")]

    # --- vectors ---

    def test_the_nearest_vectors_are_found_and_go_with_their_facts(self) -> None:
        index = self.open()
        facts = [remember(index, f"fact {n}", kind=f"k{n}").fact for n in range(3)]
        model = index.run(KnowModel([1.0, 0.0]))
        assert index.run(KnowModel([2.0, 0.0001])) == model
        other = index.run(KnowModel([0.0, 1.0]))
        assert index.run(KnowModel([0.0, 1.0, 0.0])) not in (model, other)
        vectors = [[1.0, 0.0], [1.0, 1.0], [0.0, 5.0]]
        rows = [(HOME, f.id, f.version, v) for f, v in zip(facts, vectors, strict=True)]
        assert index.run(AddVectors(model, rows)) == 3

        def near(vector: Sequence[float], which: Which, of: int = model) -> list[str]:
            return [fact.text for fact in index.run(NearFacts(which, of, vector, 2, NOW))]

        assert near([0.0, 1.0], Which(HOME)) == ["fact 2", "fact 1"]
        assert near([1.0, 0.1], Which(("acme",), deep=True)) == ["fact 0", "fact 1"]
        assert near([0.0, 1.0], Which(HOME, kind="k0")) == ["fact 0"]
        assert near([0.0, 1.0], Which(HOME), other) == []
        assert near([0.0, 1.0, 2.0], Which(HOME)) == []
        index.run(Revise(HOME, facts[2].id, told("fact changed"), NOW))
        assert near([0.0, 1.0], Which(HOME)) == ["fact 1", "fact 0"]
        assert index.run(AddVectors(model, rows[2:])) == 0
        lacking = index.run(Vectorless(Which(HOME), model, 9, NOW))
        assert lacking == [(HOME, facts[2].id, 2, "fact changed")]
        assert len(index.run(Vectorless(Which(HOME), other, 2, NOW))) == 2
        assert index.run(DropVectors(("acme",), keep=other)) == 2
        assert near([0.0, 1.0], Which(HOME)) == []
