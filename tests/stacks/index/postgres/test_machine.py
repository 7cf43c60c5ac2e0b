from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from callslip.stacks.index.postgres import PostgresIndex
from callslip.testing.index_machine import index_machine
from tests.stacks.index.postgres.schemas import Schemas


def test_any_order_of_calls_is_answered_as_the_model_does(schemas: Schemas) -> None:
    def at(schema: str) -> PostgresIndex:
        return PostgresIndex(f"{schemas.database}?schema={schema}")

    def close(index: Any) -> None:
        index.close()
        schemas.give(index.server.address.schema)

    def anew(index: Any) -> PostgresIndex:
        index.close()
        return at(index.server.address.schema)

    run_state_machine_as_test(
        index_machine(lambda: at(schemas.take()), close, anew),
        settings=settings(
            max_examples=6,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
