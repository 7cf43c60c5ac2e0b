from __future__ import annotations

from pathlib import Path

import pytest

from callslip.stacks.index.sealed import Sealed
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index import IndexContract
from callslip.testing.index_memories import MemoriesContract
from tests.stacks.index.sealed.sealed_index import sealed


class TestSealedInAFile(IndexContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder, self.opened = tmp_path, 0

    def open(self) -> Sealed:
        self.opened += 1
        return sealed(SqliteIndex(self.folder / f"{self.opened}.db"))


class TestSealedMemories(MemoriesContract):
    def open(self) -> Sealed:
        return sealed(SqliteIndex(":memory:"))
