from __future__ import annotations

import pytest

from callslip.stacks.index.sealed import Sealed
from callslip.testing.index import IndexContract
from callslip.testing.index_memories import MemoriesContract
from tests.stacks.index.postgres.conftest import Opens
from tests.stacks.index.sealed.sealed_index import sealed


class TestSealedPostgres(IndexContract):
    @pytest.fixture(autouse=True)
    def _opens(self, opens: Opens) -> None:
        self.opens = opens

    def open(self) -> Sealed:
        return sealed(self.opens())


class TestSealedPostgresMemories(MemoriesContract):
    @pytest.fixture(autouse=True)
    def _opens(self, opens: Opens) -> None:
        self.opens = opens

    def open(self) -> Sealed:
        return sealed(self.opens())
