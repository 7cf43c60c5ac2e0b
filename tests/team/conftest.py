"""The database that most team tests run on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callslip.team import SqliteDb


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SqliteDb]:
    database = SqliteDb(tmp_path / "team.db")
    yield database
    database.close()
