"""A store on PostgreSQL and S3, with a proxy before each, and short limits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from callslip import limits
from callslip.stacks.checkops import CheckIndex
from callslip.stacks.index.postgres import PostgresIndex
from tests.faults.deployment import Deployment, Disk
from tests.machine import mounted
from tests.servers.postgres import Postgres
from tests.servers.proxy import FaultProxy
from tests.servers.s3 import Moto


@pytest.fixture(scope="session")
def migrated(postgres: Postgres) -> str:
    """A database with today's tables: to copy it takes less time than to make them."""
    dsn = postgres.new_database()
    index = PostgresIndex(dsn)
    index.run(CheckIndex(write=False))
    index.close()
    return dsn


@pytest.fixture
def deployment(
    postgres: Postgres, migrated: str, s3: Moto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deployment]:
    # As in life, but shorter. The index's limit stays as it is: a busy machine must not reach it.
    monkeypatch.setattr(limits, "AWAY_SECONDS", 0.2)
    monkeypatch.setattr(limits, "PAUSE_SECONDS", 0.3)
    monkeypatch.setattr(limits, "OBJECT_CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(limits, "OBJECT_REQUEST_SECONDS", 2.0)
    monkeypatch.setattr(limits, "OBJECT_RETRY_SECONDS", 0.5)
    postgres.start()
    with (
        FaultProxy("127.0.0.1", postgres.port) as index,
        FaultProxy("127.0.0.1", s3.port, http=True) as objects,
    ):
        for name, value in s3.environ_at(objects.port).items():
            monkeypatch.setenv(name, value)
        dsn = postgres.new_database(port=index.port, like=migrated)
        yield Deployment(index, objects, dsn, s3.url("results"), tmp_path / "spool")


@pytest.fixture
def small_disk() -> Iterator[Disk]:
    # Not in tmp_path: a server that runs as nobody may have to get there.
    place = Path(tempfile.mkdtemp(prefix="callslip-disk-"))
    try:
        with mounted(place, "size=40m,mode=700"):
            yield Disk(place)
    finally:
        place.rmdir()
