"""The laws, and what a session promises, of a store in PostgreSQL with its payloads in a folder.

The very tests of `test_laws.py` and `test_session.py`: where they name a folder, its index is a
schema of that name in a real server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callslip import ResultStore
from tests import test_laws, test_session
from tests.servers.postgres import Postgres
from tests.stacks.index.postgres.schemas import Schemas

_OF_SQLITE = {
    "test_deleting_by_subject_leaves_no_trace",  # looks for names in SQLite's own file
    "test_law_9_there_is_no_model_call_on_the_write_path",  # opens memory:// in another process
    "test_a_wrong_setting_is_named_with_its_value",  # opens nothing
    "test_law_3_every_read_is_capped_with_its_frame",  # cuts a thousand pages of what one read got
}


def _shared(module: Any) -> dict[str, Any]:
    names = [name for name in vars(module) if name.startswith("test_")]
    return {name: getattr(module, name) for name in names if name not in _OF_SQLITE}


globals().update(_shared(test_laws))
globals().update(_shared(test_session))
store, session = test_session.store, test_session.session


@pytest.fixture(scope="module")
def schemas(postgres: Postgres) -> Schemas:
    return Schemas(postgres)


@pytest.fixture(autouse=True)
def _in_postgres(schemas: Schemas, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    taken: dict[Path, str] = {}

    def made(url: Any = None, **settings: Any) -> ResultStore:
        if not isinstance(url, Path):
            return ResultStore(url, **settings)
        if url not in taken:
            taken[url] = schemas.take()
        settings.setdefault("payloads", url / "payloads")
        return ResultStore(f"{schemas.database}?schema={taken[url]}", **settings)

    for module in (test_laws, test_session):
        monkeypatch.setattr(module, "ResultStore", made)
    yield
    for schema in taken.values():
        schemas.give(schema)
