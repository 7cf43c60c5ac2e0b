"""No handle is shown for a payload that cannot be read back, though an equal one was stored once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from callslip import PayloadDamaged, ResultStore, StoreUnavailable
from callslip.patterns.scratchpad import Scratchpad
from callslip.stacks import keeping, ops
from callslip.testing.faults import FaultyBackend

BIG = "".join(f"{n * 7919 % 1000003:x} {n * 104729 % 999983:x}\n" for n in range(20_000))


def objects(folder: Path) -> list[Path]:
    return sorted(folder.glob("payloads/**/*.cslip"))


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_chunk(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def flip_the_trailer(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-40] ^= 1
    path.write_bytes(raw)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def in_lines() -> Iterator[str]:
    yield from BIG.splitlines(keepends=True)


DAMAGES = [remove, cut, flip_a_chunk, flip_the_trailer, empty]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("again", [lambda: BIG, in_lines], ids=["whole", "stream"])
def test_a_damaged_payload_is_mended_by_the_same_content(
    tmp_path: Path, damage: Callable[[Path], None], again: Callable[[], object]
) -> None:
    first = ResultStore(tmp_path).session("a").put(BIG, tool="t")
    for path in objects(tmp_path):
        damage(path)
    store = ResultStore(tmp_path)
    with pytest.raises(PayloadDamaged):
        store.session("a").load(first.id)
    second = store.session("b").put(again(), tool="other")
    assert store.session("b").load(second.id) == BIG
    assert store.session("a").load(first.id) == BIG, "every row that has it is whole again"
    store.gc(grace_seconds=0)
    assert len(objects(tmp_path)) == 1
    assert store.verify().ok


def test_a_replay_after_the_payloads_were_lost_is_stored_again(tmp_path: Path) -> None:
    ResultStore(tmp_path).session("a").put(BIG, tool="t", call_id="1")
    for path in objects(tmp_path):
        path.unlink()
    session = ResultStore(tmp_path).session("a")
    seen = session.offload(BIG, tool="t", call_id="1")
    assert session.load(seen.handle.id) == BIG


@pytest.mark.parametrize("damage", [remove, cut, flip_the_trailer])
def test_a_payload_too_large_to_compare_is_judged_by_its_trailer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(keeping, "COMPARED_BYTES", 1000)
    session = ResultStore(tmp_path).session("a")
    session.put(BIG, tool="t")
    (path,) = objects(tmp_path)
    session.put(BIG, tool="u")
    assert objects(tmp_path) == [path]
    damage(path)
    handle = session.put(BIG, tool="v")
    assert session.load(handle.id) == BIG


def test_a_whole_payload_that_another_version_packed_is_kept(tmp_path: Path) -> None:
    import zstandard

    ResultStore(tmp_path / "other").session("a").put(BIG, tool="t")
    session = ResultStore(tmp_path).session("a")
    with pytest.MonkeyPatch.context() as other:
        compressor = zstandard.ZstdCompressor
        other.setattr(zstandard, "ZstdCompressor", lambda **how: compressor(**{**how, "level": 9}))
        session.put(BIG, tool="t")
    before = {path: path.read_bytes() for path in objects(tmp_path)}
    assert before[objects(tmp_path)[0]] != objects(tmp_path / "other")[0].read_bytes()
    session.put(BIG, tool="u")
    assert {path: path.read_bytes() for path in objects(tmp_path)} == before


def test_a_damaged_payload_in_the_index_is_mended(tmp_path: Path) -> None:
    small = "finding\n" * 3000
    session = ResultStore(tmp_path).session("a")
    first = session.put(small, tool="t")
    with sqlite3.connect(tmp_path / "index.db") as db:
        db.execute("UPDATE inline SET data = zeroblob(length(data))")
    session = ResultStore(tmp_path).session("a")
    second = session.put(small, tool="u")
    assert session.load(second.id) == session.load(first.id) == small


def test_a_store_that_cannot_answer_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, spool="")
    store.session("a").put(BIG, tool="t")
    before = objects(tmp_path)
    store._backend.payloads = FaultyBackend(
        store._backend.payloads,
        only=ops.ReadObject,
        when="before",
        fault=StoreUnavailable("away", reason="unreachable"),
    )
    seen = store.session("a").offload(BIG, tool="u")
    assert seen.handle is None
    assert objects(tmp_path) == before


def test_a_delivery_from_the_spool_mends_what_it_finds_damaged(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "store", spool=tmp_path / "spool")
    session = store.session("a")
    session.put(BIG, tool="t")
    for path in objects(tmp_path / "store"):
        path.unlink()
    whole = store._backend.index
    store._backend.index = FaultyBackend(
        whole, only=ops.Insert, when="before", fault=StoreUnavailable("full", reason="disk full")
    )
    assert session.offload(BIG, tool="u").handle is None
    store._backend.index = whole
    for path in objects(tmp_path / "store"):
        path.unlink()
    assert store.gc().delivered == 1
    assert all(session.load(handle.id) == BIG for handle in session.list().handles)


def test_a_file_of_a_text_whose_payload_was_lost_is_written_again(tmp_path: Path) -> None:
    ResultStore(tmp_path).session("a").put(BIG, tool="t")
    for path in objects(tmp_path):
        path.unlink()
    pad = Scratchpad(ResultStore(tmp_path).session("a"))
    pad.write_file("notes.md", BIG)
    assert pad.text("notes.md") == BIG
