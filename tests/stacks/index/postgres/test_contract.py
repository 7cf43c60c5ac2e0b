from __future__ import annotations

import pytest

from callslip.stacks.index.postgres import PostgresIndex
from callslip.testing.index import IndexContract
from tests.stacks.index.postgres.conftest import Opens


class TestPostgres(IndexContract):
    @pytest.fixture(autouse=True)
    def _opens(self, opens: Opens) -> None:
        self.opens = opens

    def open(self) -> PostgresIndex:
        return self.opens()
