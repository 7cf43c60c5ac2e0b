"""The table of stored runs in PostgreSQL: what `test_runs` says of SQLite's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from callslip.stacks.index.postgres.runs import PostgresRuns
from callslip.stacks.index.postgres.server import Server
from tests.servers.postgres import Postgres
from tests.stacks.index.test_runs import (  # noqa: F401 - collected here, with `runs` from below
    run,
    test_a_removal_takes_what_a_run_delegated_and_nothing_of_anybody_else,
    test_names_that_look_alike_are_not_the_same,
    test_owner_and_parent_choose,
    test_runs_come_in_the_order_they_began_whatever_became_of_them,
)


@pytest.fixture
def runs(postgres: Postgres) -> Iterator[PostgresRuns]:
    server = Server(postgres.new_database(postgres.new_role()))
    yield PostgresRuns(server)
    server.close()
