from __future__ import annotations

from pathlib import Path

import pytest

from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index_memories import MemoriesContract


class TestMemoriesInMemory(MemoriesContract):
    def open(self) -> SqliteIndex:
        return SqliteIndex(":memory:")


class TestMemoriesInAFile(MemoriesContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.path = tmp_path
        self.opened = 0

    def open(self) -> SqliteIndex:
        self.opened += 1
        return SqliteIndex(self.path / f"{self.opened}.db")
