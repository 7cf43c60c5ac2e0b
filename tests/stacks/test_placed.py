from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from callslip import ResultStore, SettingsError
from callslip.stacks import upkeep
from callslip.stacks.ops import ListObjects, PayloadPlace, PutObject, do
from callslip.stacks.payloads.placed import recorded_as

BIG = os.urandom(100_000).hex()


def recorded(store: ResultStore) -> str | None:
    return store.run_flow(do(PayloadPlace()))


def test_a_store_with_another_place_of_payloads_is_told_where_they_are(tmp_path: Path) -> None:
    first = ResultStore(tmp_path / "s", payloads=tmp_path / "one")
    id = first.session("a").put(BIG, tool="t").id
    for wrong in (tmp_path / "two", None, (tmp_path / "three").as_uri(), "memory://"):
        other = ResultStore(tmp_path / "s", payloads=wrong)
        acts: list[Callable[[], object]] = [
            lambda other=other: other.session("a").load(id),
            lambda other=other: other.session("a").put(BIG, tool="t"),
            lambda other=other: other.session("a").put(BIG + "!", tool="t"),
            lambda other=other: other.session("b").put(iter([BIG, "!"]), tool="t"),
            lambda other=other: other.run_flow(do(ListObjects(None, 9))),
            other.verify,
        ]
        for act in acts:
            with pytest.raises(SettingsError) as caught:
                act()
            assert f"give payloads={os.path.realpath(tmp_path / 'one')!r}" in str(caught.value)
    assert not (tmp_path / "two").exists()
    assert not (tmp_path / "s" / "payloads").exists()
    for same in (tmp_path / "one", (tmp_path / "one").as_uri(), f"{tmp_path}/s/../one/"):
        assert ResultStore(tmp_path / "s", payloads=same).session("a").load(id) == BIG


def test_a_store_can_be_moved_with_all_that_is_in_its_folder(tmp_path: Path) -> None:
    for url, payloads in (("s", None), ("t", tmp_path / "t" / "deep" / "p")):
        id = ResultStore(tmp_path / url, payloads=payloads).session("a").put(BIG, tool="t").id
        moved = tmp_path / "elsewhere" / url
        shutil.move(tmp_path / url, moved)
        store = ResultStore(moved, payloads=payloads and moved / "deep" / "p")
        assert store.session("a").load(id) == BIG
        assert store.session("a").put(BIG + "!", tool="t").id != id
        assert store.verify().ok


def test_a_folder_reached_through_a_link_is_the_same_place(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    id = ResultStore(tmp_path / "link").session("a").put(BIG, tool="t").id
    store = ResultStore(tmp_path / "real", payloads=tmp_path / "link" / "payloads")
    assert store.session("a").load(id) == BIG
    # Moved to a larger disk, and linked.
    shutil.move(tmp_path / "real" / "payloads", tmp_path / "disk")
    (tmp_path / "real" / "payloads").symlink_to(tmp_path / "disk")
    assert ResultStore(tmp_path / "real").session("a").load(id) == BIG


def test_the_place_is_recorded_with_the_first_object(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "s", payloads="memory://")
    store.session("a").put("small", tool="t")
    store.verify()
    assert recorded(store) is None
    store.session("a").put(BIG, tool="t")
    assert recorded(store) == "memory://"


def test_an_index_in_memory_needs_none() -> None:
    store = ResultStore(":memory:")
    store.session("a").put(BIG, tool="t")
    assert recorded(store) is None


def test_deployments_that_share_a_place_leave_each_others_objects_alone(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    stores = [ResultStore(tmp_path / name, payloads=shared, spool="") for name in "abc"]
    ids = [store.session("s").put(BIG, tool="t").id for store in stores[:2]]
    for store in stores:
        found = store.run_flow(upkeep.gc(store.now(), 0.0))
        assert found.orphans == 0
        assert store.verify().orphans == 0
    for store, id in zip(stores, ids, strict=False):
        assert store.session("s").load(id) == BIG
        orphan = PutObject(f"x/{id}.cslip", [b"left behind"])
        store.run_flow(do(orphan))
        assert store.verify().orphans == 1
    assert stores[0].run_flow(upkeep.gc(stores[0].now(), 0.0)).orphans == 1
    assert stores[0].verify().orphans == 0
    assert stores[1].verify().orphans == 1


def test_an_index_of_before_there_were_names_reads_on_and_leaves_the_named_alone(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    old = ResultStore(tmp_path / "old", payloads=shared, spool="")
    old.run_flow(do(PayloadPlace(str(shared))))  # as it was recorded then
    id = old.session("s").put(BIG, tool="t").id
    assert not [name for name in os.listdir(shared) if name.startswith("d-")]
    new = ResultStore(tmp_path / "new", payloads=shared, spool="")
    ids = [new.session("s").put(BIG + str(n), tool="t").id for n in range(3)]
    old.run_flow(do(PutObject("x/0.cslip", [b"left behind"])))
    assert old.run_flow(upkeep.gc(old.now(), 0.0)).orphans == 1
    assert old.session("s").load(id) == BIG
    assert new.session("s").load(ids[2]) == BIG + "2"


def test_many_that_write_first_agree_on_one_name(tmp_path: Path) -> None:
    stores = [ResultStore(tmp_path / "s", payloads=tmp_path / "p", spool="") for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        put = [
            pool.submit(store.session("s").put, BIG + str(n), tool="t")
            for n, store in enumerate(stores)
        ]
        ids = [each.result().id for each in put]
    assert len(os.listdir(tmp_path / "p")) == 1
    fresh = ResultStore(tmp_path / "s", payloads=tmp_path / "p")
    assert [fresh.session("s").load(id) for id in ids] == [BIG + str(n) for n in range(6)]


def test_an_index_in_memory_leaves_a_shared_place_alone(tmp_path: Path) -> None:
    kept = ResultStore(tmp_path / "s", payloads=tmp_path / "p")
    id = kept.session("s").put(BIG, tool="t").id
    passing = ResultStore(":memory:", payloads=tmp_path / "p", spool="")
    passing.session("s").put(BIG, tool="t")
    passing.run_flow(upkeep.gc(passing.now(), 0.0))
    passing.session("s").close()
    assert kept.session("s").load(id) == BIG


def test_no_credentials_are_recorded(tmp_path: Path) -> None:
    url = "s3://key:secret@bucket/prefix/?aws_secret_access_key=secret#secret"
    assert recorded_as(url, tmp_path) == "s3://bucket/prefix"
