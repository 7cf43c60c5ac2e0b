"""The contract of an index, the part about legal holds, subjects and rows that run out.

`callslip.testing.index.IndexContract` holds it together with the rest.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from callslip.errors import LegalHold, StoreUnavailable
from callslip.handle import Quota, Scope
from callslip.limits import FACT_VERSIONS, TOMBSTONE_SECONDS
from callslip.stacks import auditops, fileops, memoryops, ops
from callslip.testing.expected import raised
from callslip.testing.index_files import make_write, written
from callslip.testing.index_rows import HOME, NOW, ODD, insert, make_row, put


class GoverningContract:
    """The promises. A subclass gives `open`."""

    def open(self) -> ops.Runs:
        """An empty index."""
        raise NotImplementedError

    # --- rows that run out by themselves ---

    def test_a_row_runs_out_by_itself_whatever_its_session_does(self) -> None:
        for swept in (False, True):
            index = self.open()
            for n in range(6):
                runs_out = NOW + 10 if n in (1, 3) else None
                op = replace(insert(make_row(str(n)), f"res_{n}"), expires_at=runs_out)
                put(index, op)
            assert isinstance(index.run(ops.Get(HOME, "res_1", NOW + 10)), ops.Result)
            later = NOW + 11
            if swept:
                assert index.run(ops.Sweep(later, 200, 1000.0)) is False
            gone = index.run(ops.Get(HOME, "res_1", later))
            assert isinstance(gone, ops.Tombstone)
            assert (gone.why, gone.gone_at) == ("expired", NOW + 10)
            for after in range(6):
                rows, total = index.run(ops.List(HOME, after, 2, later))
                left = ["res_0", "res_2", "res_4", "res_5"]
                assert ([row.id for row in rows], total) == (left[after : after + 2], 4)
            remove = ops.Remove("closed", later, "acme", "ana", "s")
            assert index.run(remove) == 4
            back = index.run(ops.Get(HOME, "res_3", later))
            assert isinstance(back, ops.Tombstone)
            assert back.why == "expired"
            assert index.run(ops.Repair(mend=False)) == []

    def test_a_sweep_of_rows_that_ran_out_is_bounded_and_frees_their_payloads(self) -> None:
        index = self.open()
        for n in range(9):
            scope = Scope(f"s{n % 2}", "ana", f"t{n % 3}")
            row = make_row(str(n), key=f"k/{n}", scope=scope)
            put(index, replace(insert(row, f"res_{n}"), expires_at=NOW + n))
        assert index.run(ops.Sweep(NOW + 6.5, 3, 1000.0)) is True
        assert index.run(ops.Count()).results == 6
        assert index.run(ops.Sweep(NOW + 6.5, 200, 1000.0)) is False
        held = index.run(ops.Count())
        assert (held.results, held.tombstones, held.garbage) == (2, 7, 7)

    def test_the_same_call_again_lives_again_after_its_row_ran_out(self) -> None:
        index = self.open()
        op = replace(insert(make_row(), "res_a"), expires_at=NOW + 10)
        put(index, op)
        again = index.run(replace(op, now=NOW + 5, expires_at=NOW + 15))
        assert again is not None
        assert not again.created
        assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 11)), ops.Tombstone)
        anew = index.run(replace(op, now=NOW + 20, expires_at=NOW + 30))
        assert anew is not None
        assert (anew.created, anew.result.same_as) == (True, "")
        assert index.run(ops.List(HOME, 0, 9, NOW + 21))[1] == 1
        assert index.run(ops.Repair(mend=False)) == []

    def test_what_ran_out_pushes_nothing_out_of_a_quota(self) -> None:
        for quota in (Quota(session_results=2), Quota(tenant_results=2)):
            index = self.open()
            put(index, insert(make_row("a"), "res_a"))
            put(index, replace(insert(make_row("b"), "res_b"), expires_at=NOW + 10))
            put(index, insert(make_row("c"), "res_c", quota=quota, now=NOW + 11))
            assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 11)), ops.Result)

    # --- legal holds ---

    def test_what_is_held_neither_expires_nor_goes(self) -> None:
        index = self.open()
        reaches = ((None, None), ("ana", None), ("ana", "s"), (None, "s"))
        for n, (reach, before) in enumerate(product(reaches, (True, False))):
            self._held(index, Scope("s", "ana", f"t{n}"), *reach, before=before)
        assert index.run(ops.Repair(mend=False)) == []

    def _held(
        self, index: ops.Runs, home: Scope, user: str | None, session: str | None, *, before: bool
    ) -> None:
        hold = auditops.PlaceHold(home.tenant, user, session, ODD, "legal", NOW)
        if before:
            index.run(hold)
        row = insert(make_row(scope=home), "res_a", ttl=10.0)
        put(index, replace(row, expires_at=NOW + 5))
        put(index, insert(make_row("b", scope=home), "res_b", ttl=10.0))
        written(index, replace(make_write("text", scope=home), ttl=10.0))
        if not before:
            index.run(hold)
        late = NOW + TOMBSTONE_SECONDS * 3
        assert index.run(ops.Sweep(late, 200, 1000.0)) is False
        assert isinstance(index.run(ops.Get(home, "res_a", late)), ops.Result)
        assert index.run(ops.List(home, 0, 9, late))[1] == 2
        for user_of, session_of, id in (
            (None, None, None), ("ana", None, None), ("ana", "s", None), ("ana", "s", "res_a"),
        ):  # fmt: skip
            for tombstones in (True, False):
                reach = (home.tenant, user_of, session_of, id, tombstones)
                remove = ops.Remove("deleted", late, *reach)
                raised(LegalHold, partial(index.run, remove))
        assert index.run(ops.Count(home.tenant)).results == 2
        assert [each.reason for each in index.run(auditops.Holds(home.tenant))] == [ODD]
        assert len(index.run(auditops.Release(home.tenant, user, session))) == 1
        assert index.run(auditops.Holds()) == []
        # Reads counted as activity; what runs out by itself does so at once.
        assert isinstance(index.run(ops.Get(home, "res_a", late)), ops.Tombstone)
        while index.run(ops.Sweep(late + 100, 200, 1000.0)):
            pass
        assert index.run(ops.Count(home.tenant)).results == 0

    def test_a_hold_covers_no_more_than_it_says(self) -> None:
        index = self.open()
        others = [Scope("s", "bob", "acme"), Scope("s2", "ana", "acme"), Scope("s", "ana", "t")]
        for scope in (HOME, *others):
            put(index, insert(make_row(scope=scope), "res_a", ttl=10.0))
        index.run(auditops.PlaceHold("acme", "ana", "s", "", "", NOW))
        held = auditops.HeldBy
        reached = [
            held("acme"), held("acme", "ana"), held("acme", "ana", "s"), held("acme", None, "s"),
        ]  # fmt: skip
        assert all(len(index.run(op)) == 1 for op in reached)
        for op in (held("acme", "bob"), held("acme", "ana", "s2"), held("t"), held("")):
            assert index.run(op) == []
        while index.run(ops.Sweep(NOW + 11, 200, 1000.0)):
            pass
        assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 11)), ops.Result)
        for scope in others:
            assert isinstance(index.run(ops.Get(scope, "res_a", NOW + 11)), ops.Tombstone)

    def test_of_two_holds_one_goes_on(self) -> None:
        index = self.open()
        put(index, insert(make_row(), "res_a", ttl=10.0))
        first = index.run(auditops.PlaceHold("acme", None, None, "one", "", NOW))
        second = index.run(auditops.PlaceHold("acme", "ana", None, "two", "", NOW))
        assert first.n < second.n
        assert index.run(auditops.Release("acme", "ana", "s")) == []
        assert index.run(auditops.Release("acme", "ana", None)) == [second]
        assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 11)), ops.Result)
        assert index.run(auditops.Release("acme", None, None)) == [first]
        assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 500)), ops.Tombstone)

    def test_a_quota_leaves_what_is_held_and_says_so_if_nothing_else_can_go(self) -> None:
        index = self.open()
        free = Scope("free", "bob", "acme")
        put(index, insert(make_row("a"), "res_a"))
        put(index, insert(make_row("b", scope=free), "res_b"))
        index.run(auditops.PlaceHold("acme", "ana", None, "", "", NOW))
        quota = Quota(tenant_results=2)
        put(index, insert(make_row("c", scope=free), "res_c", quota=quota))
        assert isinstance(index.run(ops.Get(HOME, "res_a", NOW)), ops.Result)
        assert isinstance(index.run(ops.Get(free, "res_b", NOW)), ops.Tombstone)
        for op in (
            insert(make_row("d", scope=free), "res_d", quota=Quota(tenant_results=1)),
            insert(make_row("d"), "res_d", quota=Quota(session_results=1)),
        ):
            error = raised(StoreUnavailable, partial(index.run, op))
            assert error.reason == "over quota"
            assert index.run(ops.Get(op.result.scope, "res_d", NOW)) is None

    def test_facts_that_are_held_stay_with_all_that_they_said(self) -> None:
        index = self.open()
        odd = ("a\0b" + ODD, "u\0" + ODD)
        for space in (("acme", "ana"), odd, ("acme", "bob"), ("a", "u")):
            remember(index, space, "one", source="a doctor", expires_at=NOW + 10)
        for tenant, user in (("acme", "ana"), (odd[0], None)):
            index.run(auditops.PlaceHold(tenant, user, None, "", "", NOW))
        for space in (("acme", "ana"), odd):
            remember(
                index, space, "one", source="nobody", metadata={"ward": 3}, expires_at=NOW + 10
            )
            for n in range(FACT_VERSIONS + 5):
                remember(index, space, f"other {n}", expires_at=NOW + 10)
        # One at a time: what is held must not be in the way of the rest.
        swept = [index.run(memoryops.SweepFacts(NOW + 99, 1)) for _ in range(3)]
        assert swept == [1, 1, 0]
        for space in (("acme", "ana"), odd):
            past = index.run(memoryops.PastOf(space, "mem_k", NOW))
            assert len(past) == FACT_VERSIONS + 6
            said = [(each.text, each.source, dict(each.metadata)) for each in past[-2:]]
            assert said == [("one", "nobody", {"ward": 3}), ("one", "a doctor", {})]
        index.run(auditops.Release("acme", "ana", None))
        remember(index, ("acme", "ana"), "the last")
        assert len(index.run(memoryops.PastOf(("acme", "ana"), "mem_k", NOW))) == FACT_VERSIONS

    # --- subjects ---

    def test_all_that_is_about_a_subject_goes_over_all_sessions(self) -> None:
        index = self.open()
        two, other = Scope("s2", "bob", "acme"), Scope("s", "ana", "t")
        about = ODD
        put(index, replace(insert(make_row("a", key="k/a"), "res_a"), subjects=(about,)))
        put(index, replace(insert(make_row("b", scope=two), "res_b"), subjects=("x", about)))
        put(index, replace(insert(make_row("c", scope=other), "res_c"), subjects=(about,)))
        put(index, replace(insert(make_row("d"), "res_d"), subjects=("x",)))
        put(index, insert(make_row("e"), "res_e"))
        written(index, replace(make_write("1", "f.md"), subjects=(about,)))
        written(index, make_write("2", "g.md"))
        assert index.run(auditops.SubjectsOf(two, "res_b")) == tuple(sorted(("x", about)))
        assert index.run(auditops.SubjectsOf(HOME, "file:1")) == (about,)
        # What is a tombstone by then says what it was: it goes, too.
        index.run(ops.Remove("deleted", NOW, "acme", "bob", "s2", "res_b"))
        assert isinstance(index.run(ops.Get(two, "res_b", NOW)), ops.Tombstone)
        done = index.run(auditops.RemoveSubject("acme", about, NOW, 100))
        assert done == auditops.Removed(results=1, files=1)
        assert index.run(ops.Get(HOME, "res_a", NOW)) is None
        assert index.run(ops.Get(two, "res_b", NOW)) is None
        assert list(index.run(ops.Garbage(9))) == ["k/a"]
        for scope, id in ((other, "res_c"), (HOME, "res_d"), (HOME, "res_e")):
            assert isinstance(index.run(ops.Get(scope, id, NOW)), ops.Result)
        files, _ = index.run(fileops.ListFiles(HOME, fileops.View(), NOW))
        assert [each.path for each in files] == ["g.md"]
        assert index.run(auditops.RemoveSubject("acme", about, NOW, 100)) == auditops.Removed()
        only_files = Scope("f", "eve", "acme")
        written(index, replace(make_write("3", scope=only_files), subjects=(about,)))
        assert index.run(auditops.RemoveSubject("acme", about, NOW, 100)).files == 1
        assert [each[0] for each in index.run(ops.Sessions(9, tenant="acme"))] == [HOME]
        assert index.run(ops.Repair(mend=False)) == []

    def test_a_delete_by_subject_is_bounded(self) -> None:
        index = self.open()
        for n in range(5):
            put(index, replace(insert(make_row(str(n)), f"res_{n}"), subjects=("p",)))
        steps = [index.run(auditops.RemoveSubject("acme", "p", NOW, 2)) for _ in range(3)]
        assert [(each.results, each.more) for each in steps] == [(2, True), (2, True), (1, False)]

    def test_a_second_subject_is_added_to_the_first(self) -> None:
        index = self.open()
        for name in ("p", "q"):
            put(index, replace(insert(make_row(), "res_a"), subjects=(name,)))
        assert index.run(auditops.SubjectsOf(HOME, "res_a")) == ("p", "q")
        assert index.run(auditops.RemoveSubject("acme", "q", NOW, 9)).results == 1
        assert index.run(auditops.RemoveSubject("acme", "p", NOW, 9)).results == 0

    def test_what_lives_again_is_about_whom_it_was_about(self) -> None:
        index = self.open()
        op = replace(insert(make_row(), "res_a"), expires_at=NOW + 10)
        put(index, replace(op, subjects=("p",)))
        index.run(ops.Remove("deleted", NOW, "acme", "ana", "s", "res_a"))
        put(index, op)
        assert index.run(auditops.SubjectsOf(HOME, "res_a")) == ("p",)
        put(index, replace(op, now=NOW + 20, expires_at=NOW + 30, subjects=("q",)))
        assert index.run(auditops.SubjectsOf(HOME, "res_a")) == ("p", "q")
        assert index.run(auditops.RemoveSubject("acme", "p", NOW + 20, 9)).results == 1

    def test_a_text_that_is_written_again_is_about_both(self) -> None:
        index = self.open()
        written(index, make_write("1", "f.md"))
        for name in ("p", "q"):
            again = replace(make_write("1", "f.md"), subjects=(name,))
            done = index.run(again)
            assert done is not None
            assert done.outcome == "same"
        assert index.run(auditops.RemoveSubject("acme", "q", NOW, 9)).files == 1
        assert not index.run(fileops.ListFiles(HOME, fileops.View(), NOW))[0]
        assert index.run(auditops.RemoveSubject("acme", "p", NOW, 9)).files == 0

    def test_what_is_held_is_not_deleted_by_subject(self) -> None:
        index = self.open()
        put(index, replace(insert(make_row(), "res_a"), subjects=("p",)))
        free = Scope("free", "bob", "acme")
        put(index, replace(insert(make_row("b", scope=free), "res_b"), subjects=("p",)))
        index.run(auditops.PlaceHold("acme", "ana", "s", "case 7", "", NOW))
        raised(LegalHold, lambda: index.run(auditops.RemoveSubject("acme", "p", NOW, 1)))
        assert index.run(ops.Count("acme")).results == 2
        index.run(auditops.Release("acme", "ana", "s"))
        assert index.run(auditops.RemoveSubject("acme", "p", NOW, 9)).results == 2

    def test_who_leads_to_a_payload_is_known(self) -> None:
        index = self.open()
        two = Scope("s2", "bob", "acme")
        put(index, insert(make_row(), "res_a"))
        put(index, insert(make_row(scope=two), "res_b"))
        digest = make_row().payload.digest
        found = index.run(auditops.Holders("acme", digest, 9))
        assert found == [(HOME, "res_a", "search"), (two, "res_b", "search")]
        assert len(index.run(auditops.Holders("acme", digest, 1))) == 1
        assert index.run(auditops.Holders("t", digest, 9)) == []


def remember(index: ops.Runs, space: tuple[str, ...], text: str, **told: Any) -> None:
    """Tell a fact under one key."""
    what = memoryops.Told(text, tuple(text.split()), text.encode().ljust(16)[:16], key="k", **told)
    index.run(memoryops.Remember(space, what, ["mem_k"], NOW))
