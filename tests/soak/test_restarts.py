"""Eight workers go on while their servers are restarted: nothing is lost, nothing is mixed.

The soak runs 500 operations each; with `CALLSLIP_SOAK_SECONDS=1800` also half an hour of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.servers.ceph import Ceph
from tests.servers.postgres import Postgres
from tests.servers.proxy import FaultProxy
from tests.servers.s3 import Moto
from tests.soak.restarting import run

SECONDS = float(os.environ.get("CALLSLIP_SOAK_SECONDS", "30"))


@dataclass
class Servers:
    """Where they are, and how each goes away and comes back."""

    dsn: str
    payloads: str
    environ: dict[str, str]
    restarts: list[Callable[[], None]] = field(default_factory=list)


def killed(postgres: Postgres) -> None:
    postgres.kill()
    time.sleep(0.5)
    postgres.start()


@pytest.fixture
def servers(postgres: Postgres, s3: Moto) -> Iterator[Servers]:
    """PostgreSQL and moto. Moto would forget all it holds: its proxy goes away in its stead."""
    with FaultProxy("127.0.0.1", s3.port, http=True) as proxy:

        def away() -> None:
            proxy.refuse()
            time.sleep(1.0)
            proxy.clear()

        where = Servers(postgres.new_database(), s3.url("soak"), s3.environ_at(proxy.port))
        where.restarts = [postgres.restart, away, lambda: killed(postgres), away]
        yield where


def test_workers_go_on_through_restarts_of_both_servers(servers: Servers, tmp_path: Path) -> None:
    table = run(
        servers.dsn,
        servers.payloads,
        tmp_path,
        processes=3,
        operations=40,
        restarts=servers.restarts,
        environ=servers.environ,
    )
    print(table)


@pytest.mark.soak
def test_eight_workers_of_500_operations_lose_and_mix_nothing(
    servers: Servers, tmp_path: Path
) -> None:
    table = run(
        servers.dsn,
        servers.payloads,
        tmp_path,
        processes=8,
        operations=500,
        restarts=servers.restarts,
        environ=servers.environ,
    )
    print(f"\nPostgreSQL and moto, each away twice\n{table}")


@pytest.mark.soak
def test_eight_workers_on_ceph_for_as_long_as_was_asked_for(
    postgres: Postgres, ceph: Ceph, tmp_path: Path
) -> None:
    rounds = max(1, int(SECONDS / 60))
    table = run(
        postgres.new_database(),
        ceph.url("soak"),
        tmp_path,
        processes=8,
        seconds=SECONDS,
        restarts=[ceph.restart, postgres.restart, ceph.restart, lambda: killed(postgres)] * rounds,
        environ=ceph.environ,
    )
    print(f"\nPostgreSQL and Ceph for {SECONDS:.0f} s, each restarted {2 * rounds} times\n{table}")
