"""Sharing in any order of calls, on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from callslip.stacks.index.postgres import PostgresIndex
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index_shares_machine import shares_machine
from tests.servers.postgres import Postgres

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]


def test_on_sqlite() -> None:
    run_state_machine_as_test(
        shares_machine(lambda: SqliteIndex(":memory:"), SqliteIndex.close),
        settings=settings(
            max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=_CHECKS
        ),
    )


def test_on_postgresql(postgres: Postgres) -> None:
    database = postgres.new_database(postgres.new_role())
    opened = 0

    def fresh() -> PostgresIndex:
        nonlocal opened
        opened += 1
        return PostgresIndex(f"{database}?schema=m{opened}")

    def close(index: Any) -> None:
        index.close()
        postgres.sql(f"DROP SCHEMA IF EXISTS {index.server.address.schema} CASCADE", database)

    run_state_machine_as_test(
        shares_machine(fresh, close),
        settings=settings(
            max_examples=3, stateful_step_count=30, deadline=None, suppress_health_check=_CHECKS
        ),
    )
