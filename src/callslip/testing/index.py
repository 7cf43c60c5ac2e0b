"""The contract of an index, as a class that any backend can run. Needs nothing but the library.

::

    class TestMyIndex(IndexContract):
        def open(self) -> Runs:
            return MyIndex(...)          # empty, and a new one each time

Each `test_…` method is one promise of `callslip.stacks.ops`; plain `assert`, so any test runner
will do. `callslip.testing.index_machine` holds the same promises in any order of calls.
"""

from __future__ import annotations

from dataclasses import replace

from callslip.errors import SettingsError, StoreUnavailable
from callslip.handle import Quota, Scope, Shape
from callslip.limits import TOMBSTONE_SECONDS
from callslip.stacks import ops
from callslip.testing.expected import raised
from callslip.testing.index_audit import AuditContract
from callslip.testing.index_files import FilesContract
from callslip.testing.index_governing import GoverningContract
from callslip.testing.index_payloads import PlacesContract
from callslip.testing.index_rows import (
    HOME,
    NOW,
    ODD,
    insert,
    make_row,
    put,
    run,
)
from callslip.testing.index_shares import SharesContract


class IndexContract(
    FilesContract, PlacesContract, SharesContract, GoverningContract, AuditContract
):
    """The promises. A subclass gives `open`."""

    def open(self) -> ops.Runs:
        """An empty index."""
        raise NotImplementedError

    def test_a_row_comes_back_as_it_was_given(self) -> None:
        index = self.open()
        row = replace(
            make_row(scope=Scope(ODD, ODD + "u", ODD + "t")),
            tool=ODD,
            args=ODD,
            status=ODD,
            preview=ODD,
            shape=Shape("rows", ODD, 2**53 + 1, 5, 4, 3, (ODD, ""), 2, True),
        )
        stored = put(index, insert(row, "res_a"))
        assert stored == replace(row, id="res_a")
        assert index.run(ops.Get(row.scope, "res_a", NOW)) == stored
        assert index.run(ops.List(row.scope, 0, 9, NOW))[1] == 1

    def test_names_that_look_alike_never_mix(self) -> None:
        index = self.open()
        scopes = [
            Scope("a", "b"), Scope("b", "a"), Scope("a", "", "b"), Scope("ab"), Scope("A", "b"),
            Scope("a\0", "b"), Scope("a", "\0b"), Scope("a ", "b"), Scope("é"), Scope("e\u0301"),
            Scope("\ud83d\ude00"), Scope("\U0001f600"), Scope(""),
        ]  # fmt: skip
        for n, scope in enumerate(scopes):
            put(index, insert(make_row(f"content {n}", scope=scope), f"res_{n}"))
        for n, scope in enumerate(scopes):
            rows, total = index.run(ops.List(scope, 0, 99, NOW))
            assert ([row.id for row in rows], total) == ([f"res_{n}"], 1)
            for other in range(len(scopes)):
                found = index.run(ops.Get(scope, f"res_{other}", NOW))
                assert (found is not None) == (other == n)

    def test_a_hostile_id_is_unknown(self) -> None:
        index = self.open()
        put(index, insert(make_row(), "res_a"))
        for id in ("", ODD, "res_a\0", "res_a ", "RES_A", "res_%", "' OR 1=1 --", "x" * 100_000):
            assert index.run(ops.Get(HOME, id, NOW)) is None

    def test_a_list_is_oldest_first_and_can_be_walked_over_gaps(self) -> None:
        index = self.open()
        ids = [f"res_{n}" for n in range(20)]
        for n, id in enumerate(ids):
            put(index, insert(make_row(str(n)), id, now=NOW + n))
        for gone in ([], ["res_0"], ["res_7", "res_8"], ["res_19", "res_15"]):
            for id in gone:
                assert index.run(ops.Remove("deleted", NOW, "acme", "ana", "s", id)) == 1
                ids.remove(id)
            for after in range(22):
                rows, total = index.run(ops.List(HOME, after, 3, NOW + 30))
                assert ([row.id for row in rows], total) == (ids[after : after + 3], len(ids))
                assert all(row.payload.data is None for row in rows)

    def test_the_same_call_and_content_is_the_same_row(self) -> None:
        index = self.open()
        first = run(index, insert(make_row(), "res_a", "res_ab"))
        again = run(index, insert(replace(make_row(), preview="new"), "res_a", "res_ab"))
        assert (first.created, again.created) == (True, False)
        assert (first.adopted, again.adopted) == (True, False)
        assert again.result == first.result

    def test_another_content_under_one_id_gets_a_longer_one(self) -> None:
        index = self.open()
        assert put(index, insert(make_row("a"), "res_abc", "res_a", "res_ab")).id == "res_a"
        assert put(index, insert(make_row("b"), "res_a", "res_ab")).id == "res_ab"
        assert put(index, insert(make_row("a", call="2"), "res_a", "res_ab", "res_abc")).id == (
            "res_abc"
        )
        raised(StoreUnavailable, lambda: index.run(insert(make_row("c"), "res_a", "res_ab")))
        assert index.run(ops.Count()).results == 3

    def test_a_replay_keeps_its_id_when_a_shorter_one_became_free(self) -> None:
        index = self.open()
        put(index, insert(make_row("a"), "res_a"))
        put(index, insert(make_row("b"), "res_a", "res_ab"))
        index.run(ops.Remove("deleted", NOW, "acme", "ana", "s", "res_a", tombstones=False))
        assert put(index, insert(make_row("b"), "res_a", "res_ab")).id == "res_ab"

    def test_equal_content_of_a_tenant_is_one_payload(self) -> None:
        index = self.open()
        other = Scope("other", "bob", "acme")
        one = run(index, insert(make_row(key="k/1"), "res_a"))
        two = run(index, insert(make_row(key="k/2", scope=other), "res_a"))
        foreign = run(index, insert(make_row(key="k/3", scope=Scope("s")), "res_a"))
        assert (one.adopted, two.adopted, foreign.adopted) == (True, False, True)
        assert two.result.payload.key == "k/1"
        assert index.run(ops.KnownKeys(["k/1", "k/2", "k/3"])) == {"k/1", "k/3"}
        assert sorted(n for _, _, n in index.run(ops.Payloads(None, 9))) == [1, 2]

    def test_a_retried_insert_keeps_the_object_it_uploaded(self) -> None:
        index = self.open()
        run(index, insert(make_row(key="k/1"), "res_a"))
        again = run(index, insert(make_row(key="k/1"), "res_a"))
        assert (again.created, again.adopted) == (False, True)

    def test_a_payload_seen_before_needs_no_bytes(self) -> None:
        index = self.open()
        run(index, insert(make_row(), "res_a"))
        seen = index.run(ops.FindPayload("acme", make_row().payload.digest))
        assert seen is not None
        stored = run(index, insert(make_row(call="2", data=None), "res_b"))
        assert (stored.created, stored.result.payload.data) == (True, b"packed")

    def test_a_payload_gone_meanwhile_writes_nothing(self) -> None:
        index = self.open()
        run(index, insert(make_row("b", key="k/b"), "res_b"))
        index.run(ops.Remove("deleted", NOW, "acme", tombstones=False))
        before = index.run(ops.Count())
        assert index.run(insert(make_row(data=None), "res_a")) is None
        assert index.run(insert(make_row("b", key="k/b"), "res_b")) is None, "its object is garbage"
        assert index.run(ops.Count()) == before
        assert index.run(ops.Sessions(9)) == []

    def test_the_same_content_names_a_live_row_that_was_shown_in_full(self) -> None:
        index = self.open()
        assert put(index, insert(make_row(scope=Scope("x", "", "acme")), "res_0")).same_as == ""
        for call, same_as in (("1", ""), ("2", "res_1"), ("3", "res_1")):
            assert put(index, insert(make_row(call=call), f"res_{call}")).same_as == same_as
        index.run(ops.Remove("deleted", NOW, "acme", "ana", "s", "res_1"))
        # res_2 and res_3 are live, but say only that they are the same as what is gone now.
        assert put(index, insert(make_row(call="4"), "res_4")).same_as == ""
        assert put(index, insert(make_row(call="5"), "res_5")).same_as == "res_4"
        assert put(index, insert(make_row(call="1"), "res_1")).same_as == "res_4"

    def test_a_session_lives_for_its_ttl_after_its_last_activity(self) -> None:
        index = self.open()
        put(index, insert(make_row(), "res_a", ttl=100.0))
        for step in range(1, 5):
            assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 100 * step)), ops.Result)
        gone = index.run(ops.Get(HOME, "res_a", NOW + 500.5))
        assert isinstance(gone, ops.Tombstone)
        assert (gone.id, gone.tool, gone.args) == ("res_a", "search", '{"q": 1}')
        assert (gone.why, gone.gone_at, gone.shape) == ("expired", NOW + 500, make_row().shape)
        assert index.run(ops.List(HOME, 0, 9, NOW + 500.5)) == ((), 0)

    def test_what_ran_out_stays_gone_when_its_session_goes_on(self) -> None:
        for swept in (False, True):
            index = self.open()
            put(index, insert(make_row("a", key="k/a"), "res_a", ttl=10.0))
            put(index, insert(make_row("b"), "res_b", ttl=10.0))
            if swept:
                while index.run(ops.Sweep(NOW + 50, 200, 1000.0)):
                    pass
            put(index, insert(make_row("c"), "res_c", ttl=10.0, now=NOW + 50))
            rows, total = index.run(ops.List(HOME, 0, 9, NOW + 51))
            assert ([row.id for row in rows], total) == (["res_c"], 1)
            assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 51)), ops.Tombstone)
            # The very call again: it lives again, its payload with it, as the newest row.
            seen = index.run(ops.FindPayload("acme", make_row("a").payload.digest)) is not None
            back = make_row("a", data=None) if seen else make_row("a", key="k/a2")
            assert put(index, insert(back, "res_a", ttl=10.0, now=NOW + 52)).id == "res_a"
            rows, total = index.run(ops.List(HOME, 0, 9, NOW + 52))
            assert ([row.id for row in rows], total) == (["res_c", "res_a"], 2)
            while index.run(ops.Sweep(NOW + 53, 200, 1000.0)):
                pass
            assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 53)), ops.Result)
            assert isinstance(index.run(ops.Get(HOME, "res_b", NOW + 53)), ops.Tombstone)
            assert index.run(ops.Repair(mend=False)) == []

    def test_a_sweep_is_bounded_and_comes_to_an_end(self) -> None:
        index = self.open()
        for n in range(30):
            put(index, insert(make_row(str(n), key=f"k/{n}"), f"res_{n}", ttl=10.0))
        put(index, insert(make_row("kept", scope=Scope("kept")), "res_k"))
        assert index.run(ops.Sweep(NOW + 11, 7, 1000.0)) is True
        assert index.run(ops.Count("acme")).results == 23
        assert index.run(ops.Sweep(NOW + 11, 200, 1000.0)) is False
        held = index.run(ops.Count())
        assert (held.sessions, held.results, held.tombstones, held.garbage) == (1, 1, 30, 30)
        later = NOW + 10 + TOMBSTONE_SECONDS + 1
        assert index.run(ops.Sweep(later, 29, 1000.0)) is True
        assert index.run(ops.Sweep(later, 29, 1000.0)) is False
        assert index.run(ops.Count("acme")) == ops.Totals(0, 0, 0, 0, 0, 0, 0)
        assert index.run(ops.Get(HOME, "res_1", later)) is None

    def test_a_closed_session_answers_with_tombstones_and_opens_again(self) -> None:
        index = self.open()
        put(index, insert(make_row(), "res_a"))
        assert index.run(ops.Remove("closed", NOW + 1, "acme", "ana", "s")) == 1
        gone = index.run(ops.Get(HOME, "res_a", NOW + 2))
        assert isinstance(gone, ops.Tombstone)
        assert (gone.why, gone.gone_at) == ("closed", NOW + 1)
        assert index.run(ops.Sessions(9)) == []
        assert run(index, insert(make_row(), "res_a", now=NOW + 3)).created
        assert isinstance(index.run(ops.Get(HOME, "res_a", NOW + 4)), ops.Result)

    def test_removing_cascades_and_no_further(self) -> None:
        scopes = [Scope(s, u, t) for t in ("t", "t2") for u in ("u", "u2") for s in ("s", "s2")]
        everything: list[tuple[dict[str, str], int]] = [
            ({"tenant": "t"}, 4),
            ({"tenant": "t", "user": "u"}, 2),
            ({"tenant": "t", "session": "s"}, 2),
            ({"tenant": "t", "user": "u", "session": "s"}, 1),
            ({"tenant": "t", "user": "u", "session": "s", "id": "res_a"}, 1),
            ({"tenant": "t", "user": "u", "session": "s", "id": "res_x"}, 0),
            ({"tenant": "none"}, 0),
        ]
        for where, gone in everything:
            for tombstones in (True, False):
                index = self.open()
                for scope in scopes:
                    put(index, insert(make_row(scope=scope, key=f"k/{scope}"), "res_a"))
                op = ops.Remove("deleted", NOW, tombstones=tombstones, **where)
                assert index.run(op) == gone
                answers = [index.run(ops.Get(scope, "res_a", NOW)) for scope in scopes]
                assert sum(isinstance(each, ops.Result) for each in answers) == 8 - gone
                left = index.run(ops.Count())
                assert (left.results, left.tombstones) == (8 - gone, gone if tombstones else 0)
                assert index.run(op) == 0
                assert index.run(ops.Repair(mend=False)) == []

    def test_an_id_without_a_session_is_refused(self) -> None:
        index = self.open()
        raised(SettingsError, lambda: index.run(ops.Remove("deleted", NOW, "t", id="res_a")))

    def test_garbage_waits_until_it_is_forgotten(self) -> None:
        index = self.open()
        put(index, insert(make_row(key="k/1"), "res_a"))
        put(index, insert(make_row(key="k/1", call="2"), "res_b"))
        index.run(ops.Remove("deleted", NOW, "acme", "ana", "s", "res_a"))
        assert list(index.run(ops.Garbage(9))) == []
        index.run(ops.Remove("deleted", NOW, "acme", "ana", "s", "res_b"))
        assert list(index.run(ops.Garbage(9))) == ["k/1"]
        assert index.run(ops.KnownKeys(["k/1"])) == {"k/1"}
        index.run(ops.Forget(["k/1", "k/none"]))
        assert list(index.run(ops.Garbage(9))) == []
        assert index.run(ops.KnownKeys(["k/1"])) == frozenset()

    def test_a_quota_evicts_the_oldest_and_never_the_newest(self) -> None:
        quotas = [
            (Quota(session_results=2), ["res_3", "res_4"]),
            (Quota(session_bytes=250), ["res_3", "res_4"]),
            (Quota(session_bytes=1), ["res_4"]),
            (Quota(session_results=0), ["res_4"]),
            (Quota(tenant_results=3), ["res_2", "res_3", "res_4"]),
            (Quota(tenant_bytes=300, session_results=4), ["res_2", "res_3", "res_4"]),
        ]
        for quota, kept in quotas:
            index = self.open()
            for n in range(5):
                put(index, insert(make_row(str(n)), f"res_{n}", quota=quota, now=NOW + n))
            rows, _ = index.run(ops.List(HOME, 0, 9, NOW + 5))
            assert [row.id for row in rows] == kept
            gone = index.run(ops.Get(HOME, "res_0", NOW + 5))
            assert isinstance(gone, ops.Tombstone)
            assert gone.why == "evicted"

    def test_a_tenants_quota_counts_all_its_sessions_and_no_others(self) -> None:
        index = self.open()
        quota = Quota(tenant_results=2)
        put(index, insert(make_row("f", scope=Scope("s")), "res_f", quota=quota))
        put(index, insert(make_row("a", scope=Scope("1", "", "t")), "res_a", ttl=10.0))
        put(index, insert(make_row("b", scope=Scope("2", "", "t")), "res_b", quota=quota))
        # res_a is older, and has run out: it goes as such, and pushes nobody out.
        put(
            index,
            insert(make_row("c", scope=Scope("3", "", "t")), "res_c", quota=quota, now=NOW + 11),
        )
        gone = index.run(ops.Get(Scope("1", "", "t"), "res_a", NOW + 11))
        assert isinstance(gone, ops.Tombstone)
        assert gone.why == "expired"
        put(
            index,
            insert(make_row("d", scope=Scope("3", "", "t")), "res_d", quota=quota, now=NOW + 12),
        )
        gone = index.run(ops.Get(Scope("2", "", "t"), "res_b", NOW + 12))
        assert isinstance(gone, ops.Tombstone)
        assert gone.why == "evicted"
        assert isinstance(index.run(ops.Get(Scope("s"), "res_f", NOW + 12)), ops.Result)

    def test_same_as_never_names_a_row_that_its_own_insert_evicted(self) -> None:
        index = self.open()
        quota = Quota(session_results=1)
        put(index, insert(make_row(), "res_a", quota=quota))
        second = put(index, insert(make_row(call="2", data=None), "res_b", quota=quota))
        assert (second.same_as, second.payload.data) == ("", b"packed")

    def test_totals_are_those_of_the_rows(self) -> None:
        index = self.open()
        empty = ops.Totals(0, 0, 0, 0, 0, 0, 0)
        assert index.run(ops.Count()) == index.run(ops.Count("t")) == empty
        assert index.run(ops.Count(scope=HOME)) == empty
        put(index, insert(make_row("a", key="k/a"), "res_a"))
        put(index, insert(make_row("a", call="2"), "res_b"))
        put(index, insert(make_row("a", scope=Scope("2", "", "acme")), "res_c"))
        put(index, insert(make_row("b", scope=Scope("3")), "res_d"))
        assert index.run(ops.Count(scope=HOME)) == ops.Totals(1, 2, 0, 1, 200, 60, 0)
        assert index.run(ops.Count("acme")) == ops.Totals(2, 3, 0, 1, 300, 60, 0)
        assert index.run(ops.Count()) == ops.Totals(3, 4, 0, 2, 400, 120, 0)
        index.run(ops.Remove("deleted", NOW, "acme"))
        assert index.run(ops.Count()) == ops.Totals(1, 1, 3, 1, 100, 60, 1)

    def test_sessions_come_latest_activity_first(self) -> None:
        index = self.open()
        for n in range(4):
            scope = Scope(f"s{n}", "", "t" if n % 2 else "")
            put(index, insert(make_row(scope=scope), "res_a", now=NOW + n))
        index.run(ops.Get(Scope("s0"), "res_a", NOW + 500))
        listed = index.run(ops.Sessions(9))
        assert [(scope.session, at - NOW, live) for scope, at, live in listed] == [
            ("s0", 500, 1), ("s3", 3, 1), ("s2", 2, 1), ("s1", 1, 1),
        ]  # fmt: skip
        assert index.run(ops.Sessions(2, after=1)) == listed[1:3]
        of_tenant = index.run(ops.Sessions(9, tenant="t"))
        assert [scope.session for scope, _, _ in of_tenant] == ["s3", "s1"]
