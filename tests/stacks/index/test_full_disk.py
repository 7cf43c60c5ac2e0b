"""A disk that callslip has filled can be emptied with callslip."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from callslip import ResultStore, StoreUnavailable
from tests.machine import mounted


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB."""
    with mounted(tmp_path, "size=3m"):
        yield tmp_path


def fill(disk: Path) -> None:
    descriptor = os.open(disk / "fill", os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while True:
            os.write(descriptor, b"x" * 512)
    os.close(descriptor)


@pytest.mark.parametrize("whole", [True, False], ids=["a session", "one result"])
def test_a_full_disk_can_be_freed(disk: Path, whole: bool) -> None:
    store = ResultStore(disk / "s", spool="")
    session = store.session("a")
    ids = [session.put(os.urandom(40_000).hex(), tool="t").id for _ in range(20)]
    fill(disk)
    with pytest.raises(StoreUnavailable, match="full|space"):
        session.put(os.urandom(40_000).hex(), tool="t")
    if whole:
        assert store.delete(user="", session="a") == 20
        assert session.list().total == 0
    else:
        for n, id in enumerate(ids[:19]):
            assert session.delete(id) is True
            assert session.list().total == 19 - n
    store.gc(grace_seconds=0)
    assert store.verify().ok
    assert (disk / "s" / "index.db-reserve").exists(), "for the next time"
    assert session.load(session.put("x" * 50_000, tool="t").id) == "x" * 50_000
