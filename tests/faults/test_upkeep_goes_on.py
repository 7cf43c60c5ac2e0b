"""Upkeep of a store that works: what it cannot do for one result holds up no other, nor do others mislead it."""

from __future__ import annotations

from pathlib import Path

import pytest

from callslip import Quota, ResultStore
from callslip.stacks import ops, upkeep
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
