"""What every test needs: a spool that is not this user's own, and the servers for who asks."""

from __future__ import annotations

import itertools

import pytest

pytest_plugins = ["tests.servers.plugin"]


_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # Only named: most tests need none, and each folder made there is looked at by all later ones.
    folder = tmp_path_factory.getbasetemp() / "state" / str(next(_numbers))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))


class Clock:
    """Seconds since the epoch, for `ResultStore(clock=)`: they pass where a test adds to `at`."""

    def __init__(self, at: float = 1_000_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()
