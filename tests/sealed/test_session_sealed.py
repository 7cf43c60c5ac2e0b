"""What holds for a session holds with keys. In `make soak`: the laws say it in `make test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sealed.sealing import seal_every_store
from tests.test_session import *

pytestmark = pytest.mark.soak

# It looks for what is left of others in the files, where with keys there is nothing to be seen.
del test_deleting_by_subject_leaves_no_trace  # type: ignore[name-defined]  # noqa: F821


@pytest.fixture(autouse=True)
def _sealed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    return seal_every_store(tmp_path_factory.mktemp("sealed"), monkeypatch)
