"""The audit, holds and deletion by subject in a real PostgreSQL, beside what the contract holds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callslip import LegalHold, ResultStore, StoreUnavailable
from callslip.handle import Scope
from callslip.stacks import auditops, ops
from callslip.stacks.index.postgres import PostgresIndex
from callslip.stacks.index.postgres.server import Server
from callslip.stacks.telling import Teller
from callslip.testing.index import HOME, NOW, insert, make_row
from tests.servers.postgres import Postgres
from tests.servers.proxy import FaultProxy
from tests.stacks.index.postgres.conftest import Opens


@pytest.fixture
def proxy(postgres: Postgres) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", postgres.port) as proxy:
        yield proxy


def told(op: ops.Op[Any]) -> ops.Op[Any]:
    return Teller("", lambda: NOW).audited(op)


@pytest.mark.parametrize(
    "statement", ["DELETE FROM audit", "UPDATE audit SET count = 2", "TRUNCATE audit"]
)
def test_its_owner_himself_cannot_change_the_audit(opens: Opens, statement: str) -> None:
    index = opens()
    index.run(auditops.Record([auditops.Entry("read", NOW)]))
    with pytest.raises(StoreUnavailable, match="RaiseException"):
        index.server.transact(lambda db: db.execute(statement), tenant=None, again=False)
    assert len(index.run(auditops.Trail(0, 9))) == 1


def test_an_operation_that_is_told_is_two_round_trips(
    url: str, postgres: Postgres, proxy: FaultProxy
) -> None:
    index = PostgresIndex(url.replace(f":{postgres.port}/", f":{proxy.port}/"))
    index.run(insert(make_row(), "res_a"))
    for op in (
        ops.Get(HOME, "res_a", NOW),
        ops.Get(HOME, "res_x", NOW),
        ops.List(HOME, 0, 9, NOW),
        insert(make_row("b"), "res_b"),
    ):
        proxy.reset()
        index.run(told(op))
        assert (type(op), proxy.round_trips) == (type(op), 2)
    index.close()


def test_a_deletion_by_subject_takes_as_many_round_trips_for_many_rows_as_for_few(
    url: str, postgres: Postgres, proxy: FaultProxy
) -> None:
    index = PostgresIndex(url.replace(f":{postgres.port}/", f":{proxy.port}/"))
    trips = []
    for many in (2, 40):
        for n in range(many):
            scope = Scope(f"s{n % 3}", "ana", "acme")
            row = make_row(f"{many} {n}", scope=scope)
            index.run(replace(insert(row, f"res_{n}"), subjects=("p",)))
            if n % 2:
                index.run(ops.Remove("deleted", NOW, "acme", "ana", scope.session, id=f"res_{n}"))
        proxy.reset()
        done = index.run(told(auditops.RemoveSubject("acme", "p", NOW, 200)))
        trips.append(proxy.round_trips)
        assert (done.results, done.more) == (many // 2, False)
    assert trips[0] == trips[1]
    assert index.run(ops.Count("acme")) == ops.Totals(*(0,) * 9)
    index.close()


def test_the_removal_of_a_tenant_follows_nobody_who_opens_sessions_meanwhile(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = opens()
    opened = 0

    def more() -> None:
        nonlocal opened
        assert opened < 400, "it goes on for ever"
        for _ in range(50):
            opened += 1
            scope = Scope(f"s{opened}", "ana", "acme")
            index.run(insert(make_row(str(opened), scope=scope), "res_a"))

    more()
    transact = Server.transact

    def meanwhile(server: Server, *given: Any, **named: Any) -> Any:
        answer = transact(server, *given, **named)
        if isinstance(answer, tuple):  # a part of the removal
            more()
        return answer

    monkeypatch.setattr(Server, "transact", meanwhile)
    assert index.run(ops.Remove("deleted", NOW, "acme", "ana", tombstones=False)) >= 50
    monkeypatch.undo()
    assert index.run(ops.Get(Scope("s50", "ana", "acme"), "res_a", NOW)) is None


def test_who_goes_on_behind_the_last_entry_misses_none(opens: Opens) -> None:
    index = opens()
    index.run(auditops.Record([auditops.Entry("first", NOW)]))
    begun, seen = threading.Event(), threading.Event()

    def slow() -> None:
        def work(db: Any) -> None:
            db.execute("INSERT INTO audit (at, action) VALUES (0, 'slow')")
            begun.set()
            seen.wait(0.3)

        index.server.transact(work, tenant=None, again=False)

    writer = threading.Thread(target=slow)
    writer.start()
    assert begun.wait(10)
    index.run(auditops.Record([auditops.Entry("last", NOW)]))
    found: list[auditops.Entry] = []
    while page := index.run(auditops.Trail(found[-1].n if found else 0, 2)):
        found += page
    seen.set()
    writer.join()
    found += index.run(auditops.Trail(found[-1].n, 9))
    assert [each.action for each in found] == ["first", "slow", "last"]


def test_no_session_slips_past_a_hold_that_is_placed_meanwhile(opens: Opens) -> None:
    index = opens()
    placed = threading.Event()
    counts = [0] * 4

    def work(worker: int) -> None:
        after = 0
        while after < 5:
            scope = Scope(f"{worker}-{counts[worker]}", "ana", "acme")
            index.run(insert(make_row(f"{worker} {counts[worker]}", scope=scope), "res_a", ttl=1.0))
            counts[worker] += 1
            after += placed.is_set()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    while min(counts) < 5:
        pass
    index.run(auditops.PlaceHold("acme", "ana", None, "case 7", "legal", NOW))
    placed.set()
    for thread in threads:
        thread.join()
    while index.run(ops.Sweep(NOW + 10**6, 1000, 1000.0)):
        pass
    assert index.run(ops.Count("acme")).results == sum(counts)


def test_a_store_over_postgresql_tells_keeps_and_erases(
    opens: Opens, schemas: Any, tmp_path: Path
) -> None:
    index = opens()
    schema = index.server.address.schema
    store = ResultStore(
        f"{schemas.database}?schema={schema}", payloads=tmp_path, spool="", audit=True
    )
    session = store.session("run", user="ana", tenant="acme", subject="patient-17")
    rows = [{"n": n, "mark": f"{n * n:032x}"} for n in range(9000)]
    id = session.put(rows, tool="search").id
    session.read(id)
    store.hold(tenant="acme", reason="case 7")
    with pytest.raises(LegalHold, match="case 7"):
        session.close()
    with pytest.raises(LegalHold, match="case 7"):
        store.delete(tenant="acme", subject="patient-17")
    store.release(tenant="acme")
    assert store.acting("dpo").delete(tenant="acme", subject="patient-17") == 1
    assert store.proof(tenant="acme", subject="patient-17").complete
    said = [(e.action, e.outcome, e.actor) for e in store.audit(limit=99) if e.id]
    assert said == [
        ("stored", "done", "ana"), ("read", "done", "ana"), ("held", "done", ""),
        ("released", "done", ""), ("deleted", "done", "dpo"), ("erased", "done", "dpo"),
    ]  # fmt: skip
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
    store.close()
