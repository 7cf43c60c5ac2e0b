"""LangGraph's store over PostgreSQL: all that `test_langgraph_store` says of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langgraph.store.base import BaseStore

from callslip import ResultStore
from callslip.adapters.langgraph_store import FactStore
from callslip.stacks.memoryops import ForgetFacts
from callslip.stacks.ops import do
from tests.adapters.test_langgraph_store import *
from tests.adapters.test_langgraph_store import Clock
from tests.servers.postgres import Postgres


@pytest.fixture(scope="module")
def one(postgres: Postgres) -> Iterator[ResultStore]:
    store = ResultStore(
        postgres.new_database(postgres.new_role()), payloads="memory://", clock=Clock()
    )
    yield store
    store.close()


@pytest.fixture
def kept(one: ResultStore) -> Iterator[ResultStore]:
    yield one
    one.run_flow(do(ForgetFacts(())))  # what a test remembered is nothing to the next one


@pytest.fixture
def either(store: FactStore) -> BaseStore:
    return store
