from __future__ import annotations

from collections.abc import Iterator

import pytest

from callslip.stacks.index.postgres import PostgresIndex
from callslip.testing.index_memories import MemoriesContract
from tests.servers.postgres import Postgres


class TestMemoriesInPostgres(MemoriesContract):
    @pytest.fixture(autouse=True)
    def server(self, postgres: Postgres) -> Iterator[None]:
        self.url = postgres.new_database()
        self.opened: list[PostgresIndex] = []
        yield
        for index in self.opened:
            index.close()

    def open(self) -> PostgresIndex:
        self.opened.append(PostgresIndex(f"{self.url}?schema=s{len(self.opened)}"))
        return self.opened[-1]
