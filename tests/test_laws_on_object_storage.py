"""The laws, and what a session promises, of stores with their payloads in a bucket and as plain files.

The very tests of `test_laws.py` and `test_session.py`: where they name a folder, its payloads are in a
bucket of a real server, or in a folder where each result is a file to open besides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callslip import ResultStore
from tests import test_laws, test_session
from tests.servers.s3 import Moto

_OF_A_FOLDER = {
    "test_law_9_there_is_no_model_call_on_the_write_path",  # opens memory:// in another process
    "test_a_wrong_setting_is_named_with_its_value",  # opens nothing
    "test_law_3_every_read_is_capped_with_its_frame",  # cuts a thousand pages of what one read got
    "test_a_payload_lives_as_long_as_one_result_needs_it",  # looks into the folder
    "test_damage_is_reported_and_never_returned",  # spoils a file of it
}


def _shared(module: Any) -> dict[str, Any]:
    names = [name for name in vars(module) if name.startswith("test_")]
    return {name: getattr(module, name) for name in names if name not in _OF_A_FOLDER}


globals().update(_shared(test_laws))
globals().update(_shared(test_session))
store, session = test_session.store, test_session.session


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # The laws on both; the rest, which is much, in a bucket.
    law = metafunc.function.__name__.startswith("test_law_")
    metafunc.parametrize("_elsewhere", ["s3", "plain"] if law else ["s3"], indirect=True)


@pytest.fixture(autouse=True)
def _elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    server: Moto | None = None
    if request.param == "s3":
        server = request.getfixturevalue("s3")

    def made(url: Any = None, **settings: Any) -> ResultStore:
        if isinstance(url, Path):
            # One folder for all of a test's stores: the path is a setting, and in each envelope.
            plain = f"{(url.parent / 'plain').as_uri()}?plain"
            settings.setdefault("payloads", server.url(url.name) if server else plain)
        return ResultStore(url, **settings)

    for module in (test_laws, test_session):
        monkeypatch.setattr(module, "ResultStore", made)
