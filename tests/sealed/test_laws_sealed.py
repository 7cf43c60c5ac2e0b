"""The laws, with keys: every store of every law is sealed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sealed.sealing import seal_every_store
from tests.test_laws import *
from tests.test_laws import session, store  # noqa: F401


@pytest.fixture(autouse=True)
def _sealed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    return seal_every_store(tmp_path_factory.mktemp("sealed"), monkeypatch)
