from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from callslip import ResultStore, SettingsError
from callslip.stacks.ops import ListObjects, PayloadPlace, do
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
    store.gc()
    assert recorded(store) is None
    store.session("a").put(BIG, tool="t")
    assert recorded(store) == "memory://"


def test_an_index_in_memory_needs_none() -> None:
    store = ResultStore(":memory:")
    store.session("a").put(BIG, tool="t")
    assert recorded(store) is None


def test_no_credentials_are_recorded(tmp_path: Path) -> None:
    url = "s3://key:secret@bucket/prefix/?aws_secret_access_key=secret#secret"
    assert recorded_as(url, tmp_path) == "s3://bucket/prefix"
