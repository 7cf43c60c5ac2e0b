"""A spool that cannot be used takes nothing, and hinders nothing else."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callslip import Envelope, ResultStore, StoreUnavailable
from callslip.stacks.auditops import SubjectsOf
from callslip.stacks.drive import Backend
from callslip.stacks.index.sealed.master import new_key_file
from callslip.stacks.layout import NO_SECRET
from callslip.stacks.ops import Insert, Op, PutObject, do
from callslip.testing.faults import FaultyBackend
from tests.faults.test_delivery import LARGE, spooled

TEXT = "".join(f"line {n}: {n * n}\n" for n in range(3_000))


@pytest.fixture
def away(tmp_path: Path) -> Path:
    """Where a store cannot be made; `os.remove` brings it back."""
    (tmp_path / "blocked").touch()
    return tmp_path / "blocked"


def at(away: Path, key: str = "key") -> ResultStore:
    keys = away.with_name(key)
    if not keys.exists():
        new_key_file(keys)
    return ResultStore(away / "store", spool=away.with_name("spool"), keys=str(keys))


def _of_another_key(spool: Path) -> None:
    new_key_file(spool.with_name("key.new"))
    os.replace(spool.with_name("key.new"), spool.with_name("key"))


def _of_a_newer_version(spool: Path) -> None:
    with sqlite3.connect(spool / "index.db") as db:
        db.execute("PRAGMA user_version = 99")


def _without_its_keys(spool: Path) -> None:
    os.remove(spool / "index.db-keys")


def _damaged(spool: Path) -> None:
    for file in spool.glob("index.db*"):
        file.write_bytes(os.urandom(6_000))


SPOILED = [_of_another_key, _of_a_newer_version, _without_its_keys, _damaged]


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_spool_that_cannot_be_used_fails_no_tool_and_stops_no_upkeep(
    spoil: Callable[[Path], None], away: Path
) -> None:
    spool = away.with_name("spool")
    at(away).session("a").offload(LARGE, tool="t")
    spoil(spool)

    store = at(away)
    shown = store.session("a").offload(TEXT, tool="t")
    assert isinstance(shown, Envelope)
    assert shown.handle is None and 'stored="false"' in shown

    os.remove(away)
    session = store.session("a")
    assert session.load(session.put(TEXT, tool="t").id) == TEXT
    store.run_flow(do(PutObject("a/b/orphan.cslip", [b"orphan"], NO_SECRET)))
    assert store.verify().orphans == 1
    with pytest.raises(StoreUnavailable, match="the spool: "):
        store.gc(grace_seconds=0)
    found = store.verify()
    assert found.ok and found.orphans == 0
    assert any("spool" in problem for problem in store.health().problems)
    with pytest.raises(StoreUnavailable, match="the spool: "):
        store.shred(session="a")  # what waits there is not gone
    assert session.list().total == 0


def test_a_worker_with_a_wrong_key_does_not_take_the_spool_from_the_others(away: Path) -> None:
    os.remove(away)
    at(away).session("a").put("x", tool="t")
    wrong = at(away, "other").session("a").offload(TEXT, tool="t")
    assert isinstance(wrong, Envelope) and wrong.handle is None

    os.rename(away, away.with_name("real"))
    away.touch()
    events: list[str] = []
    right = at(away)
    right.settings = replace(right.settings, on_event=lambda event: events.append(event.name))
    right.session("a").offload(TEXT, tool="t")
    assert events == ["spooled"]


def test_what_was_damaged_in_the_spool_is_not_put_into_the_store(tmp_path: Path) -> None:
    store = spooled(tmp_path / "store", [LARGE, f"another {LARGE}"])
    folder = store._spool_folder
    assert folder is not None
    (first, _) = sorted(folder.rglob("*.cslip"), key=lambda file: file.stat().st_mtime)
    packed = bytearray(first.read_bytes())
    packed[len(packed) // 3] ^= 1
    first.write_bytes(packed)

    assert store.gc().delivered == 1
    assert store.health().problems == ("spool: 1 result waits to be delivered",)
    session = store.session("s0")
    assert session.load(session.put(LARGE, tool="t").id) == LARGE
    assert store.verify().ok


def test_two_that_deliver_at_once_say_of_nothing_that_it_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{n} {LARGE}" for n in range(4)]
    store = spooled(tmp_path / "store", texts[:1])
    index = store._backend.index
    store._backend.index = FaultyBackend(index, only=Insert, times=None)
    for text in texts[1:]:
        store.session("s0").offload(text, tool="t")
    store._backend.index = index
    spool, other = store._backend.spool, [ResultStore(tmp_path / "store")]
    assert isinstance(spool, Backend)
    run = spool.run

    def meanwhile(op: Op[Any]) -> Any:
        if isinstance(op, SubjectsOf) and other:
            other.pop().gc()
        return run(op)

    monkeypatch.setattr(spool, "run", meanwhile)
    assert store.gc().delivered <= 1
    assert "stays" not in caplog.text
    session = store.session("s0")
    assert sorted(session.load(handle.id) for handle in session.list().handles) == texts
    assert store.verify().ok and store.health().ok
