from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from callslip.stacks import ops
from callslip.stacks.index.postgres import PostgresIndex
from callslip.testing.index_machine import index_machine
from tests.servers.postgres import Postgres


@pytest.fixture
def url(postgres: Postgres, database: str) -> Iterator[str]:
    yield f"{database}?schema=machine"
    postgres.sql("DROP SCHEMA IF EXISTS machine CASCADE", database)


def test_any_order_of_calls_is_answered_as_the_model_does(postgres: Postgres, url: str) -> None:
    def emptied() -> PostgresIndex:
        index = PostgresIndex(url)
        index.run(ops.Count())
        # Making the schema anew for each example would be most of the test.
        postgres.sql(
            # The audit does not let itself be emptied, but by who takes its triggers away.
            f"SET session_replication_role = replica; TRUNCATE {_tables(postgres, url)};"
            " INSERT INTO machine.store DEFAULT VALUES",
            postgres.dsn_of(url.partition("?")[0].rpartition("/")[2]),
        )
        return index

    def anew(index: Any) -> PostgresIndex:
        index.close()
        return PostgresIndex(url)

    machine = index_machine(emptied, PostgresIndex.close, anew)
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=8, stateful_step_count=30, deadline=None, suppress_health_check=checks
        ),
    )


def _tables(postgres: Postgres, url: str) -> str:
    rows = postgres.sql(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'machine'"
        " AND tablename <> 'schema_version'",
        url.partition("?")[0],
    )
    return ", ".join(f"machine.{name}" for (name,) in rows)
