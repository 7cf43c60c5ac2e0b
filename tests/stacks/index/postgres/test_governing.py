from __future__ import annotations

import pytest

from callslip.stacks.index.postgres import PostgresIndex
from callslip.testing.index_governing import GoverningContract
from tests.stacks.index.postgres.conftest import Opens


class TestPostgres(GoverningContract):
    @pytest.fixture(autouse=True)
    def _opens(self, opens: Opens) -> None:
        self.opens = opens

    def open(self) -> PostgresIndex:
        return self.opens()
