"""Upkeep of a store that works: what it cannot do for one result holds up no other, nor do others mislead it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from callslip import HandleGone, PayloadDamaged, Quota, ResultStore, Session
from callslip.stacks import ops, upkeep
from callslip.stacks.breaker import Breaker
from callslip.testing.faults import FaultyBackend
from tests.faults.test_delivery import LARGE, spooled


def test_what_the_store_refuses_for_good_stays_and_the_others_arrive(tmp_path: Path) -> None:
    """The session's quota is filled by what a legal hold keeps: the store is well, and says no."""
    quota = Quota(session_bytes=len(LARGE))
    before = ResultStore(tmp_path, quota=quota)
    before.session("full").put(LARGE, tool="t")
    before.hold(session="full")
    index = before._backend.index
    before._backend.index = FaultyBackend(index, only=ops.Insert, times=None)
    before.session("full").offload(f"refused {LARGE}", tool="t")
    before.session("b").offload(f"b {LARGE}", tool="t")
    before._backend.index = index
    before.session("a").put("x", tool="t")  # delivers by the way

    before.gc(grace_seconds=0)  # of the first tries, too
    for _ in range(2):
        store = ResultStore(tmp_path, quota=quota)
        assert store.gc(grace_seconds=0).orphans == 0  # what went up for nothing was taken back
        (handle,) = store.session("b").list().handles
        assert store.session("b").load(handle.id) == f"b {LARGE}"
        assert [check.said[:8] for check in store.health().checks if not check.ok] == ["1 result"]

    before.release(session="full")
    before.session("full").close()
    assert before.gc().delivered == 1
    assert before.health().ok


def test_all_that_waits_is_delivered_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_BATCH", 2)
    monkeypatch.setattr(upkeep, "_LISTED", 2)
    store = spooled(tmp_path, [f"{n} {LARGE}" for n in range(5)])
    index = store._backend.index
    store._backend.index = FaultyBackend(index, only=ops.Insert, times=None)
    for n in range(5):
        store.session("s0").offload(f"one session {n} {LARGE}", tool="t")
    store._backend.index = index
    assert store.gc().delivered == 10


def test_what_goes_while_verify_is_under_way_is_no_damage(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    session = store.session("a")
    for n in range(3):
        session.put(f"{n} {LARGE}", tool="t")
    said: list[int] = []

    def closing(read: int) -> None:
        if not said:
            ResultStore(tmp_path).session("a").close()
        said.append(read)

    assert store.verify(progress=closing).problems == ()
    assert said


READS: dict[str, Callable[[Session, str], object]] = {
    "read": lambda session, id: session.read(id, start=9_000).text,
    "search": lambda session, id: session.search(id, "ab").total,
    "load": lambda session, id: session.load(id),
    "get": lambda session, id: session.get(id, 9_000).text,
    "query": lambda session, id: session.query(id, "n > 9").total,
    "sql": lambda session, id: str(session.sql(f"select count(*) as n from {id}")),
    "records": lambda session, id: len(list(session.records(id))),
}


@pytest.mark.parametrize("verb", READS)
def test_what_goes_while_it_is_read_is_gone_and_not_damaged(tmp_path: Path, verb: str) -> None:
    """Another worker deletes it, or stores it anew, between its row and its object."""
    rows = [{"n": n, "a": f"{n * 7919 % 1000003:x}"} for n in range(20_000)]
    read = READS[verb]
    others = ResultStore(tmp_path).session("a")
    id = others.put(rows, tool="t").id
    whole = read(ResultStore(tmp_path).session("a"), id)

    def meanwhile(*work: Callable[[], object]) -> Session:
        session = ResultStore(tmp_path).session("a")
        payloads, left = session.store._backend.payloads, list(work)

        class Between:
            def run(self, op: ops.Op, /):  # type: ignore[no-untyped-def, type-arg]
                while isinstance(op, ops.ReadObject) and left:
                    left.pop(0)()
                return payloads.run(op)

        session.store._backend.payloads = Breaker(Between())
        return session

    again = meanwhile(lambda: others.delete(id), lambda: others.put(rows, tool="t"))
    assert read(again, id) == whole
    with pytest.raises(HandleGone):
        read(meanwhile(lambda: others.delete(id)), id)


def test_an_object_that_is_lost_is_still_damage(tmp_path: Path) -> None:
    session = ResultStore(tmp_path).session("a")
    id = session.put(LARGE, tool="t").id
    for lost in tmp_path.rglob("*.cslip"):
        lost.unlink()
    with pytest.raises(PayloadDamaged) as raised:
        ResultStore(tmp_path).session("a").load(id)
    assert raised.value.missing
