from __future__ import annotations

from pathlib import Path

import pytest

from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index_governing import GoverningContract


class TestSqliteOnDisk(GoverningContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder, self.opened = tmp_path, 0

    def open(self) -> SqliteIndex:
        self.opened += 1
        return SqliteIndex(self.folder / f"{self.opened}.db")


class TestSqliteInMemory(GoverningContract):
    def open(self) -> SqliteIndex:
        return SqliteIndex(":memory:")
