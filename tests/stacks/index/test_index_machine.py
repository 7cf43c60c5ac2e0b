from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index_machine import index_machine


def _anew(index: Any) -> SqliteIndex:
    index.close()
    return SqliteIndex(index._pool.path)


class _InMemory(index_machine(lambda: SqliteIndex(":memory:"), SqliteIndex.close)):  # type: ignore[misc]
    """In memory: nothing but the operations themselves."""


def _on_disk() -> SqliteIndex:
    return SqliteIndex(Path(tempfile.mkdtemp(prefix="callslip-test-")) / "index.db")


def _remove(index: SqliteIndex) -> None:
    index.close()
    for file in index._pool.path.parent.iterdir():
        file.unlink()
    index._pool.path.parent.rmdir()


class _OnDisk(index_machine(_on_disk, _remove, _anew)):  # type: ignore[misc]
    """On disk, opened anew in the middle."""


_checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
TestInMemory = _InMemory.TestCase
TestInMemory.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=_checks
)
TestOnDisk = _OnDisk.TestCase
TestOnDisk.settings = settings(
    max_examples=10, stateful_step_count=30, deadline=None, suppress_health_check=_checks
)
