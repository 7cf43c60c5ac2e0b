"""Memory over PostgreSQL: all that `test_memory` and `test_memory_processes` say of a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callslip import ResultStore
from callslip.patterns.memory import Memory
from callslip.stacks.memoryops import ForgetFacts
from callslip.stacks.ops import do
from tests.patterns.test_memory import *
from tests.patterns.test_memory import Clock, letters
from tests.patterns.test_memory_processes import kept_once
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> str:
    return postgres.new_database(postgres.new_role())


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[ResultStore]:
    store = ResultStore(url, payloads="memory://", clock=clock)
    yield store
    store.run_flow(do(ForgetFacts(())))  # what a test remembered is nothing to the next one
    store.close()


def test_three_processes_lose_nothing_and_keep_each_fact_once(
    postgres: Postgres, tmp_path: Path
) -> None:
    kept_once(postgres.new_database(postgres.new_role()), 3, str(tmp_path / "payloads"))


def test_memory_works_behind_a_pooler_in_transaction_mode(
    pgbouncer: PgBouncer, clock: Clock
) -> None:
    store = ResultStore(pgbouncer.new_database(), payloads="memory://", clock=clock)
    memory = Memory(store, ("acme", "ana"), embed=letters)
    for n in range(6):
        memory.remember(f"report number {n} is due", key=f"k{n % 3}")
    assert memory.recall("report 5").facts[0].text == "report number 5 is due"
    assert [past.text for past in memory.history(memory.list().facts[0].id)] == [
        "report number 2 is due"
    ]
    assert memory.clear() == 3
    store.close()


def test_writers_of_two_namespaces_of_one_tenant_do_not_wait_for_each_other(
    store: ResultStore, url: str
) -> None:
    """A remember of the one is done while the other's namespace is locked."""
    from callslip.stacks.index.postgres import PostgresIndex, memory_spaces

    memories = [Memory(store, ("acme", user)) for user in ("ana", "bob")]
    for memory in memories:
        memory.remember("the report is due on Friday")
    index = PostgresIndex(url)

    def meanwhile(db: object) -> None:
        memory_spaces.lock(db, ("acme", "ana"))  # type: ignore[arg-type]
        memories[1].remember("the report is due on Monday")

    index.server.transact(meanwhile, tenant=b"acme", again=False)
    index.close()
    assert len(memories[1].list()) == 2
