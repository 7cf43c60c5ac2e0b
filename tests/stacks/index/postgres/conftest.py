"""Empty indexes in a real PostgreSQL, of a role for which its row-level security holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from callslip.stacks.index.postgres import PostgresIndex
from tests.servers.postgres import Postgres
from tests.stacks.index.postgres.schemas import Schemas

Opens = Callable[[], PostgresIndex]


@pytest.fixture(scope="session")
def schemas(postgres: Postgres) -> Schemas:
    return Schemas(postgres)


@pytest.fixture(scope="session")
def database(schemas: Schemas) -> str:
    """The URL of a database whose owner is no superuser."""
    return schemas.database


@pytest.fixture
def url(postgres: Postgres) -> str:
    """An empty database of its own, whose owner is no superuser."""
    return f"{postgres.new_database(postgres.new_role())}?schema=own"


@pytest.fixture
def opens(schemas: Schemas) -> Iterator[Opens]:
    """What opens another empty index, each in a schema of its own."""
    opened = []

    def open() -> PostgresIndex:
        schema = schemas.take()
        opened.append((schema, PostgresIndex(f"{schemas.database}?schema={schema}")))
        return opened[-1][1]

    yield open
    for schema, index in opened:
        index.close()
        schemas.give(schema)
