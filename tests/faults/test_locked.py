"""Row of docs/faults.md: another program holds the SQLite index locked."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from callslip import ResultStore, limits
from callslip.stacks.breaker import Breaker
from callslip.stacks.index import pool, sqlite
from callslip.testing.faults import FaultyBackend
from tests.faults.deployment import SMALL


def test_a_run_waits_for_a_locked_file_once_and_everything_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "BUSY_SECONDS", 0.3)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.3)
    monkeypatch.setattr(limits, "AWAY_SECONDS", 0.2)
    monkeypatch.setattr(limits, "PAUSE_FACTOR", 1000.0)
    store = ResultStore(tmp_path)
    breaker = store._backend.index
    assert isinstance(breaker, Breaker)
    session = store.session("a")
    session.put("before", tool="t")
    asked = breaker.inner = FaultyBackend(breaker.inner, times=0)
    other = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    texts = {f"{n}\n{SMALL}" for n in range(20)}
    for text in texts:
        shown = session.offload(text, tool="t")
        assert shown.handle is None and 'reason="locked"' in shown
    assert len(asked.seen) == 1
    other.execute("ROLLBACK")
    other.close()
    later = ResultStore(tmp_path)
    assert later.gc().delivered == 20
    handles = later.session("a").list(limit=50).handles
    assert {later.session("a").load(handle.id) for handle in handles} == texts | {"before"}
