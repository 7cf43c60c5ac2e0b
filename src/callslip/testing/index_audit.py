"""The contract of an index, the part about the audit.

`callslip.testing.index.IndexContract` holds it together with the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from callslip.errors import LegalHold
from callslip.handle import Quota, Scope
from callslip.limits import TOMBSTONE_SECONDS
from callslip.stacks import auditops, memoryops, ops
from callslip.stacks.telling import Teller
from callslip.testing.expected import raised
from callslip.testing.index_rows import HOME, NOW, ODD, insert, make_row, put


class AuditContract:
    """The promises. A subclass gives `open`."""

    def open(self) -> ops.Runs:
        """An empty index."""
        raise NotImplementedError

    def test_an_operation_and_its_entry_are_one_transaction(self) -> None:
        index = self.open()

        def fails(answer: Any) -> list[auditops.Entry]:
            raise ZeroDivisionError

        put(index, insert(make_row(), "res_a"))
        quota = Quota(session_results=1)
        second = insert(make_row("b"), "res_b", quota=quota)
        op = auditops.Audited(second, "ana", NOW, fails)
        raised(ZeroDivisionError, lambda: index.run(op))
        assert isinstance(index.run(ops.Get(HOME, "res_a", NOW)), ops.Result)
        assert index.run(ops.Get(HOME, "res_b", NOW)) is None
        assert _trail(index) == []
        _told(index, second)
        assert [each.action for each in _trail(index)] == ["evicted", "stored", "erased"]

    def test_entries_say_what_was_done_and_come_back_as_they_were_made(self) -> None:
        index = self.open()
        texts = ("actor", "tenant", "user", "session", "id", "tool", "cause", "detail")
        odd = auditops.Entry("read", 1.5, outcome="gone", count=3)
        for name in texts:
            odd = replace(odd, **{name: ODD + name})  # type: ignore[arg-type]
        put(index, insert(make_row(scope=Scope("x", "", odd.tenant)), "res_x"))
        index.run(auditops.Record([odd]))
        assert _trail(index) == [replace(odd, n=_trail(index)[0].n)]
        _told(index, insert(make_row(), "res_a"))
        _told(index, ops.Get(HOME, "res_a", NOW, "search"))
        _told(index, ops.Get(HOME, "res_no", NOW))
        _told(index, ops.List(HOME, 0, 9, NOW))
        said = [(e.action, e.id, e.tool, e.outcome, e.count, e.actor) for e in _trail(index)[1:]]
        assert said == [
            ("stored", "res_a", "search", "done", 100, "ana"),
            ("search", "res_a", "search", "done", 1, "ana"),
            ("read", "res_no", "", "unknown", 0, "ana"),
            ("listed", "", "", "done", 1, "ana"),
        ]

    def test_a_trail_is_filtered_in_every_way_and_walked_by_number(self) -> None:
        index = self.open()
        entries = [
            auditops.Entry(
                ("read", "stored")[n % 2], NOW + n, tenant=f"t{n % 3}", user=f"u{n % 2}",
                session=f"s{n % 4}", id=f"res_{n}", cause="c" if n > 7 else "",
            )
            for n in range(12)
        ]  # fmt: skip
        for tenant in ("t0", "t1", "t2"):
            put(index, insert(make_row(scope=Scope("x", "", tenant)), "res_x"))
        index.run(auditops.Record(entries))
        ways: list[tuple[dict[str, Any], Callable[[auditops.Entry], bool]]] = [
            ({"tenant": "t1"}, lambda e: e.tenant == "t1"),
            ({"user": "u1"}, lambda e: e.user == "u1"),
            ({"session": "s3"}, lambda e: e.session == "s3"),
            ({"id": "res_5"}, lambda e: e.id == "res_5"),
            ({"action": "read"}, lambda e: e.action == "read"),
            ({"cause": "c"}, lambda e: e.cause == "c"),
            ({"since": NOW + 3, "until": NOW + 5}, lambda e: NOW + 3 <= e.at < NOW + 5),
            ({"tenant": "t1", "user": "u0"}, lambda e: (e.tenant, e.user) == ("t1", "u0")),
        ]
        for given, fits in ways:
            found = index.run(auditops.Trail(0, 99, **given))
            assert [replace(e, n=0) for e in found] == [e for e in entries if fits(e)], given
        walked: list[auditops.Entry] = []
        while page := index.run(auditops.Trail(walked[-1].n if walked else 0, 5)):
            walked += page
        assert [replace(e, n=0) for e in walked] == entries

    def test_what_goes_by_itself_is_told_as_well(self) -> None:
        index = self.open()
        put(index, insert(make_row("a"), "res_a"))
        put(index, insert(make_row("b"), "res_b", ttl=10.0))
        _told(index, insert(make_row("c"), "res_c", ttl=10.0, quota=Quota(session_results=2)))
        _told(index, ops.Sweep(NOW + 11, 200, 1000.0))
        actions = [(each.action, each.id) for each in _trail(index) if each.action != "erased"]
        assert actions[:2] == [("evicted", "res_a"), ("stored", "res_c")]
        assert sorted(actions[2:]) == [("expired", "res_b"), ("expired", "res_c")]

    def test_erased_is_said_when_nothing_is_left(self) -> None:
        index = self.open()
        put(index, insert(make_row("inline"), "res_a"))
        put(index, insert(make_row("big", key="k/1"), "res_b"))
        put(index, insert(make_row("big", key="k/2", call="2"), "res_c"))
        put(index, insert(make_row("big", scope=Scope("x", "", "acme"), data=None), "res_d"))
        _told(index, ops.Remove("deleted", NOW, "acme", "ana", "s", tombstones=False), "dpo")
        entries = _trail(index)
        assert [(e.action, e.id) for e in entries if e.action == "deleted" and e.id] == [
            ("deleted", "res_a"), ("deleted", "res_b"), ("deleted", "res_c"),
        ]  # fmt: skip
        erased = [(e.id, e.outcome, e.actor) for e in entries if e.action == "erased"]
        assert erased == [
            ("res_a", "done", "dpo"), ("res_b", "kept", "dpo"), ("res_c", "kept", "dpo"),
        ]  # fmt: skip
        _told(index, ops.Remove("deleted", NOW, "acme", tombstones=False), "dpo")
        assert [e for e in _trail(index) if (e.action, e.id) == ("erased", "res_d")] == []
        index.run(ops.Forget(["k/1"], NOW + 50))
        last = _trail(index)[-1]
        assert (last.action, last.id, last.at, last.outcome, last.actor) == (
            "erased", "res_d", NOW + 50, "done", "dpo",
        )  # fmt: skip
        assert index.run(ops.Repair(mend=False)) == []

    def test_the_audit_outlives_what_it_tells_of(self) -> None:
        index = self.open()
        put(index, insert(make_row("b", scope=Scope("x", "bob", "acme")), "res_x"))
        _told(index, insert(make_row(), "res_a"))
        index.run(ops.Remove("deleted", NOW, "acme", "ana", tombstones=False))
        assert index.run(ops.Get(HOME, "res_a", NOW)) is None
        found = index.run(auditops.Trail(0, 9, tenant="acme", user="ana", session="s"))
        assert [each.action for each in found] == ["stored"]

    def test_what_went_of_no_tenant_is_told_of_no_tenant(self) -> None:
        index = self.open()
        home = Scope("s", "ana", "")
        _told(index, insert(make_row(scope=home), "res_a"))
        _told(index, ops.Remove("deleted", NOW, "", "ana", tombstones=False), "dpo")
        index.run(auditops.Record([auditops.Entry("copied", NOW, "ops")]))
        found = index.run(auditops.Trail(0, 9, tenant=""))
        assert found == _trail(index)
        assert sorted((e.action, e.id, e.tenant, e.user, e.actor) for e in found) == [
            ("copied", "", "", "", "ops"), ("deleted", "", "", "ana", "dpo"),
            ("deleted", "res_a", "", "ana", "dpo"), ("erased", "res_a", "", "ana", "dpo"),
            ("stored", "res_a", "", "ana", "ana"),
        ]  # fmt: skip
        assert index.run(auditops.Trail(0, 9, tenant="t")) == []

    def test_a_tombstone_that_goes_by_subject_is_told(self) -> None:
        index = self.open()
        for id, about in (("res_a", ("p",)), ("res_b", ("p",)), ("res_c", ("q",))):
            put(index, replace(insert(make_row(id), id, ttl=10.0), subjects=about))
        index.run(ops.Remove("deleted", NOW, "acme", "ana", "s", "res_a"))
        index.run(ops.Remove("deleted", NOW, "acme", "ana", "s", "res_c"))
        op = auditops.RemoveSubject("acme", "p", NOW, 9, cause="subject:1")
        assert _told(index, op, "dpo") == auditops.Removed(results=1)
        found = index.run(auditops.Trail(0, 9, cause="subject:1"))
        assert [(e.action, e.id, e.actor) for e in found] == [
            ("deleted", "res_a", "dpo"), ("deleted", "res_b", "dpo"), ("deleted", "", "dpo"),
            ("erased", "res_b", "dpo"),
        ]  # fmt: skip
        late = NOW + TOMBSTONE_SECONDS * 3
        _told(index, ops.Sweep(late, 200, 1000.0))
        assert index.run(ops.Count()).tombstones == 0
        assert index.run(auditops.Trail(found[-1].n, 9)) == []

    def test_what_ran_out_and_is_stored_again_was_not_deleted(self) -> None:
        index = self.open()
        timed = replace(insert(make_row(), "res_a"), expires_at=NOW + 10)
        _told(index, timed)
        _told(index, replace(timed, now=NOW + 20, expires_at=NOW + 30))
        _told(index, replace(insert(make_row("b"), "res_b", ttl=10.0), now=NOW + 20))
        _told(index, replace(insert(make_row("b"), "res_b"), now=NOW + 40))
        for id in ("res_a", "res_b"):
            found = index.run(auditops.Trail(0, 9, id=id))
            assert [(e.action, e.outcome) for e in found] == [
                ("stored", "done"), ("expired", "done"), ("stored", "done"), ("erased", "kept")
            ]  # fmt: skip
        assert index.run(ops.Count()).tombstones == 0
        assert index.run(ops.Repair(mend=False)) == []

    def test_facts_are_told_held_and_deleted_by_subject(self) -> None:
        index = self.open()
        space = ("acme", "ana")
        for text, about in (("likes tea", ("p",)), ("likes rum", ())):
            told = memoryops.Told(text, tuple(text.split()), text.encode().ljust(16)[:16])
            op = memoryops.Remember(space, told, [f"mem_{text[-3:]}"], NOW, subjects=about)
            _told(index, op)
        index.run(auditops.PlaceHold("acme", "ana", None, "", "", NOW))
        forget = memoryops.ForgetFacts(space, id="mem_rum")
        raised(LegalHold, lambda: index.run(forget))
        raised(LegalHold, lambda: index.run(auditops.RemoveSubject("acme", "p", NOW, 9)))
        index.run(auditops.Release("acme", "ana", None))
        done = _told(index, auditops.RemoveSubject("acme", "p", NOW, 9))
        assert done == auditops.Removed(facts=1)
        facts, _ = index.run(memoryops.ListFacts(memoryops.Which(space), 0, 9, NOW))
        assert [fact.id for fact in facts] == ["mem_rum"]
        assert _told(index, forget) == 1
        said = [(e.action, e.id, e.tenant, e.user) for e in _trail(index) if e.id]
        assert said == [
            ("remembered", "mem_tea", *space), ("remembered", "mem_rum", *space),
            ("deleted", "mem_tea", *space), ("deleted", "mem_rum", *space),
            ("forgot", "mem_rum", *space),
        ]  # fmt: skip


def _told(index: ops.Runs, op: ops.Op[Any], actor: str = "") -> Any:
    return index.run(Teller(actor, lambda: NOW).audited(op))


def _trail(index: ops.Runs) -> list[auditops.Entry]:
    return list(index.run(auditops.Trail(0, 999)))
