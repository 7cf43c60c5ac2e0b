"""Any order of calls is answered as a plain dict would, on every pair of an index and a payload store."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from callslip import ResultStore
from callslip.testing.store_machine import store_machine
from tests.servers.azure import Azurite
from tests.servers.postgres import Postgres
from tests.servers.s3 import Moto

WALKS = settings(
    max_examples=5,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def walked(url: str, payloads: str | None, keys: str | None = None) -> None:
    def made() -> ResultStore:
        return ResultStore(url, payloads=payloads, keys=keys, spool="")

    store = made()
    in_memory = url == ":memory:" or (payloads or "").startswith("memory:")
    run_state_machine_as_test(
        store_machine(
            lambda: store if in_memory else made(), None if in_memory else lambda _: made()
        ),
        settings=WALKS,
    )


def test_sqlite_and_a_folder(tmp_path: Path) -> None:
    walked(str(tmp_path / "store"), None)


def test_sqlite_and_memory(tmp_path: Path) -> None:
    walked(str(tmp_path / "store"), "memory://")


def test_sqlite_and_plain_files(tmp_path: Path) -> None:
    walked(str(tmp_path / "store"), f"{(tmp_path / 'plain').as_uri()}?plain")


def test_postgresql_and_a_folder(tmp_path: Path, postgres: Postgres) -> None:
    walked(postgres.new_database(), str(tmp_path / "payloads"))


def test_postgresql_and_s3(postgres: Postgres, s3: Moto) -> None:
    walked(postgres.new_database(), s3.url("walks"))


def test_postgresql_and_s3_sealed(
    postgres: Postgres, s3: Moto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WALK_KEYS", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
    walked(postgres.new_database(), s3.url("walks"), keys="env:WALK_KEYS")


def test_postgresql_and_azure(postgres: Postgres, azure: Azurite) -> None:
    walked(postgres.new_database(), azure.url("walks"))
