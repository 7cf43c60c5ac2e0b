"""LangGraph, the other way round: `Memory` over a `BaseStore` that somebody has already.

::

    memory = Memory(Over(PostgresStore(…)), ("acme", "ana"))

Where the store has an index, its search by meaning is fused with a ranking by words. What it cannot
do: quotas, `embed=`, and more than `over_items.LOOKED_AT` facts in a namespace.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar, cast

try:
    from langgraph.store.base import BaseStore
except ImportError as error:
    raise ImportError(
        "callslip.adapters.langgraph_backend needs: pip install 'callslip[langchain]'"
    ) from error

from callslip.patterns.over_items import Holds, OverItems
from callslip.stacks.drive import adrive, drive
from callslip.stacks.ops import Flow

__all__ = ["Over"]

T = TypeVar("T")


class Over:
    """What `Memory` takes for a store: a LangGraph `BaseStore`, and a clock."""

    def __init__(self, store: BaseStore, clock: Callable[[], float] = time.time) -> None:
        indexed = getattr(store, "index_config", None) is not None
        self._backend = OverItems(cast("Holds", store), semantic=indexed)
        self._clock = clock

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._clock()

    def run_flow(self, flow: Flow[T]) -> T:
        """Run a flow of memory, here. Of a store for event loops only (`AsyncPostgresStore`) from a
        thread that has none."""
        return drive(self._backend, flow)

    async def arun_flow(self, flow: Flow[T]) -> T:
        """Run a flow of memory, off the event loop."""
        return await adrive(self._backend, flow)
