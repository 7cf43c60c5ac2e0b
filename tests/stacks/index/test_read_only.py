"""A store on read-only media can be read."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from callslip import ResultStore, StoreUnavailable
from callslip.stacks.index import schema
from tests.machine import mounted

BIG = os.urandom(100_000).hex()


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Makes everything below `tmp_path / "s"` read-only."""
    folder = tmp_path / "s"
    folder.mkdir()
    if os.geteuid() != 0:

        def close() -> None:
            for path in (*folder.rglob("*"), folder):
                path.chmod(0o500 if path.is_dir() else 0o400)

        yield close
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o700)
        return
    # Rights mean nothing to the superuser.
    with mounted(folder, "size=16m"):
        yield lambda: subprocess.run(
            ["mount", "-o", "remount,ro", str(folder)], capture_output=True, check=True
        )


def test_a_store_on_read_only_media_is_read(
    tmp_path: Path, read_only: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    store = ResultStore(tmp_path / "s", clock=lambda: 1000.0, spool="")
    ids = [store.session("a").put(value, tool="t").id for value in (BIG, "small")]
    store.close()
    before = sorted(path.name for path in (tmp_path / "s").iterdir())
    read_only()
    session = ResultStore(tmp_path / "s", clock=lambda: 5000.0, spool="").session("a")
    with caplog.at_level(logging.WARNING):
        assert session.load(ids[0]) == BIG
        assert session.load(ids[1]) == "small"
    assert "could not be noted: permission denied" in caplog.text
    assert session.list().total == 2
    assert session.store.verify().ok
    for act in (
        lambda: session.put("new", tool="t"),
        lambda: session.put(BIG + "!", tool="t"),
        lambda: session.delete(ids[0]),
        lambda: session.store.delete(user="", session="a"),
    ):
        with pytest.raises(StoreUnavailable) as caught:
            act()
        assert caught.value.reason == "permission denied"
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == before


def test_an_older_index_on_read_only_media_is_refused(
    tmp_path: Path, read_only: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultStore(tmp_path / "s", spool="")
    store.session("a").put("small", tool="t")
    store.close()
    read_only()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("SELECT 1",)))
    with pytest.raises(StoreUnavailable, match="older version") as caught:
        ResultStore(tmp_path / "s", spool="").stats()
    assert caught.value.reason == "permission denied"


def test_where_there_is_no_store_on_read_only_media_that_is_said(
    tmp_path: Path, read_only: Callable[[], None]
) -> None:
    read_only()
    with pytest.raises(StoreUnavailable) as caught:
        ResultStore(tmp_path / "s", spool="").stats()
    assert caught.value.reason == "permission denied"
