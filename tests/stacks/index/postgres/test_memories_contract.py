from __future__ import annotations

import pytest

from callslip.stacks.index.postgres import PostgresIndex
from callslip.testing.index_memories import MemoriesContract
from tests.stacks.index.postgres.conftest import Opens


class TestMemoriesInPostgres(MemoriesContract):
    @pytest.fixture(autouse=True)
    def _opens(self, opens: Opens) -> None:
        self.opens = opens

    def open(self) -> PostgresIndex:
        return self.opens()
