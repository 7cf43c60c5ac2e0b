"""What the spool holds arrives, however often its delivery is cut."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from callslip import HandleGone, ResultStore, Retention, StoreUnavailable, limits
from callslip.stacks import ops, upkeep
from callslip.stacks.breaker import Breaker
from callslip.testing.faults import FaultyBackend

LARGE = "".join(f"{n * 7919 % 1000003:x} {n * 104729 % 999983:x}\n" for n in range(20_000))


def spooled(folder: Path, texts: list[str]) -> ResultStore:
    """A store whose index was away while those were offloaded; it is back."""
    store = ResultStore(folder)
    index = FaultyBackend(store._backend.index, only=ops.Insert, times=None)
    store._backend.index = index
    for n, text in enumerate(texts):
        assert store.session(f"s{n}").offload(text, tool="t").handle is None
    store._backend.index = index.inner
    return store


def test_a_delivery_that_was_cut_between_payload_and_row_is_done_again(tmp_path: Path) -> None:
    store = spooled(tmp_path, [LARGE])
    index = store._backend.index
    store._backend.index = FaultyBackend(index, only=ops.Insert)
    with pytest.raises(StoreUnavailable):
        store.gc()
    store._backend.index = index
    assert store.gc().delivered == 1
    (handle,) = store.session("s0").list().handles
    assert store.session("s0").load(handle.id) == LARGE
    store.gc(grace_seconds=0)
    found = store.verify()
    assert found.ok and found.orphans == 0


def test_a_put_delivers_a_share_of_the_spool_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = spooled(tmp_path, [f"{n} {LARGE}" for n in range(3)])
    monkeypatch.setattr(limits, "DELIVER_SECONDS", -1.0)  # one that is begun is finished
    store.session("a").put("x", tool="t")
    assert store.stats().results == 1
    monkeypatch.setattr(limits, "DELIVER_SECONDS", 60.0)
    store.session("a").put("y", tool="t")
    assert store.stats().results == 5


def test_what_waits_for_its_delivery_does_not_run_out(tmp_path: Path) -> None:
    now = [1_000.0]
    settings = {"clock": lambda: now[0], "ttl_seconds": 60}
    store = ResultStore(tmp_path, **settings)  # type: ignore[arg-type]
    index = store._backend.index
    store._backend.index = FaultyBackend(index, only=ops.Insert, times=None)
    session = store.session("a")
    session.offload(LARGE, tool="t")
    now[0] += 3_600  # an outage that is longer than a session lives without a call
    store._backend.index = index
    assert store.gc().delivered == 1
    (handle,) = session.list().handles
    assert session.load(handle.id) == LARGE


@pytest.mark.parametrize("by", ["gc", "put"])
def test_a_store_that_lets_nothing_be_deleted_takes_what_waits(tmp_path: Path, by: str) -> None:
    store = spooled(tmp_path, [LARGE])
    payloads = store._backend.payloads
    refused = StoreUnavailable("a right is missing", reason="permission denied")
    store._backend.payloads = FaultyBackend(
        payloads, only=ops.DeleteObjects, times=None, fault=refused
    )
    store._spooled = False  # the put below is not to deliver yet
    gone = store.session("old").put(f"old {LARGE}", tool="t")
    store.session("old").delete(gone.id)
    store._spooled = True
    if by == "gc":
        with pytest.raises(StoreUnavailable, match="a right is missing"):
            store.gc()
    else:
        store.session("b").put("next", tool="t")
    (handle,) = store.session("s0").list().handles
    assert store.session("s0").load(handle.id) == LARGE


class _Locked:
    """A payload store that keeps one object, whatever it is asked with."""

    def __init__(self, inner: ops.Runs) -> None:
        self.inner = inner
        self.key = ""

    def run(self, op: ops.Op[Any], /) -> Any:
        if isinstance(op, ops.DeleteObjects) and self.key in op.keys:
            raise StoreUnavailable("it is locked", reason="failed")
        return self.inner.run(op)


def test_an_object_that_the_store_keeps_keeps_no_other(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, spool="", audit=True)
    locked = _Locked(store._backend.payloads)
    ids = [store.session("a").put(f"{n}{LARGE}", tool="t").id for n in range(4)]
    for _, payload, _ in store._backend.index.run(ops.Payloads(None, 9)):
        locked.key = payload.key or ""
    store._backend.payloads = locked
    store.session("a").close()
    assert [entry.id in ids for entry in store.proof(session="a").pending] == [True]
    with pytest.raises(StoreUnavailable, match="locked"):
        store.gc()
    locked.key = ""
    assert store.gc().released == 1
    assert store.proof(session="a").complete


def test_an_object_too_many_that_cannot_be_deleted_is_left_to_gc(tmp_path: Path) -> None:
    store = spooled(tmp_path, [LARGE, f"another {LARGE}"])
    store._spooled = False
    payloads = store._backend.payloads
    store._backend.payloads = FaultyBackend(payloads, only=ops.DeleteObjects, times=None)
    known = [store.session("k").put(iter([LARGE]), tool="t", call_id=str(n)) for n in range(2)]
    assert [store.session("k").load(handle.id) for handle in known] == [LARGE, LARGE]
    store._spooled = True
    store.session("k").put("next", tool="t")
    texts = [store.session(f"s{n}").load(_only(store, f"s{n}")) for n in range(2)]
    assert texts == [LARGE, f"another {LARGE}"]
    store._backend.payloads = payloads
    # Two of before the index was back, the second stream's, and the one that was delivered.
    assert store.verify().orphans == 4
    assert store.gc(grace_seconds=0).orphans == 4


def _only(store: ResultStore, session: str) -> str:
    (handle,) = store.session(session).list().handles
    return handle.id


@pytest.mark.parametrize("apart", [-5 * 3_600, 3 * 365 * 86_400, 0])
def test_what_was_delivered_has_its_tools_time_from_there_whatever_the_clock_was(
    tmp_path: Path, apart: int
) -> None:
    now = [1e9 + apart]
    store = ResultStore(tmp_path, clock=lambda: now[0], retention=Retention(tools={"brief": 600}))
    index = store._backend.index
    store._backend.index = FaultyBackend(index, only=ops.Insert, times=None)
    session = store.session("a")
    session.offload(LARGE, tool="brief")
    store._backend.index, now[0] = index, 1e9
    assert store.gc().delivered == 1
    (handle,) = session.list().handles
    assert session.load(handle.id) == LARGE
    assert handle.created_at <= 1e9
    now[0] += 601
    with pytest.raises(HandleGone):
        session.load(handle.id)


def test_a_full_spool_takes_no_more_and_what_it_has_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SPOOL_BYTES", 1)
    events: list[str] = []
    store = ResultStore(tmp_path, on_event=lambda event: events.append(event.name))
    store._backend.index = FaultyBackend(store._backend.index, only=ops.Insert, times=None)
    for n in range(2):
        assert store.session("a").offload(f"{n}{LARGE}", tool="t").handle is None
    assert events == ["spooled", "refused"]
    assert ResultStore(tmp_path).gc().delivered == 1


def test_who_deletes_one_result_does_not_wait_for_the_garbage_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultStore(tmp_path)
    others, own = store.session("others"), store.session("own")
    for n in range(5):
        others.put(f"{n}{LARGE}", tool="t")
    id = own.put(f"own{LARGE}", tool="t").id
    payloads = store._backend.payloads
    store._backend.payloads = FaultyBackend(payloads, only=ops.DeleteObjects, times=None)
    others.close()  # while no object can be deleted
    store._backend.payloads = payloads
    monkeypatch.setattr(upkeep, "_BATCH", 1)
    own.delete(id)
    assert store.stats().garbage == 4
    store.gc()
    assert store.stats().garbage == 0


def test_gc_goes_by_the_payload_stores_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker hours ahead must not take for an old orphan what another has just uploaded."""
    uploading = ResultStore(tmp_path).session("a")
    inner = uploading.store._backend.index

    class Meanwhile:
        """The other worker's gc comes between the upload and its row."""

        def run(self, op: ops.Op, /):  # type: ignore[no-untyped-def, type-arg]
            if isinstance(op, ops.Insert):
                with monkeypatch.context() as ahead:
                    now = time.time
                    ahead.setattr(time, "time", lambda: now() + 5 * 3600)
                    assert ResultStore(tmp_path).gc().orphans == 0
            return inner.run(op)

    uploading.store._backend.index = Breaker(Meanwhile())
    id = uploading.put(LARGE, tool="t").id
    assert uploading.load(id) == LARGE
    assert [name for name in os.listdir(tmp_path / "payloads") if name == "clock"] == []


class _Full:
    """A payload store without room, until something in it is deleted."""

    def __init__(self, inner: ops.Runs) -> None:
        self._inner = inner
        self._full = True

    def run(self, op: ops.Op[Any], /) -> Any:
        if self._full and isinstance(op, ops.PutObject):
            raise StoreUnavailable("no room", reason="disk full")
        self._full &= not isinstance(op, ops.DeleteObjects)
        return self._inner.run(op)


def test_gc_makes_room_before_it_delivers(tmp_path: Path) -> None:
    store = spooled(tmp_path, [LARGE])
    store.session("old").put(f"old {LARGE}", tool="t")  # and delivers
    payloads = store._backend.payloads
    store._backend.payloads = FaultyBackend(payloads, only=ops.DeleteObjects, times=None)
    store.session("old").close()
    store._backend.payloads = _Full(payloads)
    assert store.session("a").offload(f"another {LARGE}", tool="t").handle is None
    cleaned = store.gc()
    assert (cleaned.released, cleaned.delivered) == (1, 1)
