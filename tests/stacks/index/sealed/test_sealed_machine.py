"""The state machine of an index, over a sealed one."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index_machine import index_machine
from tests.stacks.index.sealed.sealed_index import sealed


class _Sealed(index_machine(lambda: sealed(SqliteIndex(":memory:")), lambda index: index.close())):  # type: ignore[misc]
    """In memory: what is sealed and opened, not how it lies on a disk."""


TestSealed = _Sealed.TestCase
TestSealed.settings = settings(
    max_examples=15,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
