"""Empty indexes in a real PostgreSQL, of a role for which its row-level security holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from callslip.stacks.index.postgres import PostgresIndex
from tests.servers.postgres import Postgres

Opens = Callable[[], PostgresIndex]


@pytest.fixture(scope="session")
def database(postgres: Postgres) -> str:
    """The URL of a database whose owner is no superuser."""
    return postgres.new_database(postgres.new_role())


@pytest.fixture
def url(database: str, _numbers: Iterator[int]) -> str:
    """A place of its own in that database."""
    return f"{database}?schema=s{next(_numbers)}"


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return count(1)


@pytest.fixture
def opens(postgres: Postgres, database: str, _numbers: Iterator[int]) -> Iterator[Opens]:
    """What opens another empty index, each in a schema of its own that goes with the test."""
    opened = []

    def open() -> PostgresIndex:
        schema = f"s{next(_numbers)}"
        opened.append((schema, PostgresIndex(f"{database}?schema={schema}")))
        return opened[-1][1]

    yield open
    for schema, index in opened:
        index.close()
        postgres.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE", database)
