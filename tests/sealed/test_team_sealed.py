"""A team's database with keys: runs, checkpoints of paused ones, and results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import interrupt

from callslip import ResultStore, SettingsError
from callslip.stacks.index.runs import StoredRun
from callslip.stacks.index.sealed.master import new_key_file
from callslip.team import Agent, PostgresDb, SqliteDb
from tests.servers.postgres import Postgres
from tests.team import test_deleting as deleting
from tests.team import test_pausing as pausing
from tests.team import test_subjects as subjects
from tests.team import test_team as running
from tests.team.team_helpers import call, go, go_on, scripted

WORDS = (
    "gazelletask", "okapireport", "anauser", "sessionname", "eland question", "kudu answer",
    "patientsubject",
)  # fmt: skip


def approve(what: str) -> str:
    """Ask a person."""
    return f"{what}: {interrupt({'approve': WORDS[4]})}"


def fetch() -> str:
    """The data."""
    return f"{WORDS[1]}\n" * 5_000


@pytest.fixture
def key(tmp_path: Path) -> str:
    new_key_file(tmp_path / "key")
    return str(tmp_path / "key")


def paused_and_resumed(made: Any, look: Callable[[], bytes]) -> None:
    """Run an agent into a pause and, as in a new process, on from there; look at what is stored
    before and after."""
    who = {"session_id": WORDS[3], "user_id": WORDS[2]}
    db = made()
    model = scripted(call("fetch"), call("approve", what=WORDS[0]))
    agent = Agent(id="a", model=model, tools=[fetch, approve], db=db, offload_tool_results=True)
    paused = go("sync", agent, f"Go: {WORDS[0]}", subject=WORDS[6], **who)
    assert [pause.value for pause in paused.pauses] == [{"approve": WORDS[4]}]
    db.close()
    paused_in = look()
    assert b"checkpoint" in paused_in and hidden(paused_in)
    db = made()
    model = scripted(f"Done: {WORDS[5]}")
    agent = Agent(id="a", model=model, tools=[fetch, approve], db=db, offload_tool_results=True)
    done = go_on("sync", agent, paused.run_id, "yes", **who)
    assert done.content == f"Done: {WORDS[5]}"
    (run,) = agent.runs(WORDS[3], user_id=WORDS[2])
    assert run.content == done.content
    assert run.subjects == done.subjects == (WORDS[6],)
    assert agent.runs(WORDS[3], user_id="other") == []
    db.close()
    assert hidden(look())


def hidden(stored: bytes) -> bool:
    """Whether nothing that was said is in there."""
    low = stored.lower()
    return not any(word.encode() in low or word.encode().hex().encode() in low for word in WORDS)


def test_nothing_of_a_paused_and_resumed_run_can_be_read_in_the_file(
    tmp_path: Path, key: str
) -> None:
    folder = tmp_path / "team"

    def look() -> bytes:
        return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())

    paused_and_resumed(lambda: SqliteDb(folder / "team.db", keys=key), look)
    with pytest.raises(AssertionError):
        paused_and_resumed(lambda: SqliteDb(folder / "clear.db"), look)


def test_nothing_of_a_paused_and_resumed_run_can_be_read_in_postgresql(
    tmp_path: Path, key: str, postgres: Postgres
) -> None:
    url = postgres.new_database()  # as a superuser, whom no row-level security stops

    def look() -> bytes:
        tables = postgres.sql(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'callslip'", url
        )
        rows = [postgres.sql(f"SELECT '{t}', t::text FROM callslip.{t} t", url) for (t,) in tables]
        return repr(rows).encode()

    paused_and_resumed(lambda: PostgresDb(url, tmp_path / "payloads", keys=key), look)


def test_a_session_of_which_only_runs_are_left_keeps_its_keys(tmp_path: Path, key: str) -> None:
    db = SqliteDb(tmp_path / "team.db", keys=key)
    agent = Agent(id="a", model=scripted("One.", "Two."), db=db)
    go("sync", agent, "Go.", session_id="s")
    store = db.bind(ResultStore())
    assert store is not None
    store.delete(session="s", user="")
    store.delete()
    store.gc()
    assert [run.content for run in agent.runs("s")] == ["One."]
    agent.delete_session("s")
    assert agent.runs("s") == []


def test_a_store_with_keys_is_not_bound_to_a_database_without(tmp_path: Path, key: str) -> None:
    with pytest.raises(SettingsError, match="same keys="):
        SqliteDb(tmp_path / "team.db").bind(ResultStore(keys=key))


@pytest.mark.parametrize(
    "law",
    [
        deleting.test_a_paused_run_can_be_deleted_with_what_it_stored,
        pausing.test_approval_of_tools_asks_as_langchain_does_and_never_for_reading,
        running.test_an_error_of_the_model_is_the_callers_and_the_run_can_go_on,
        subjects.test_a_run_that_was_cut_off_goes_on_about_whom_it_was_begun,
        subjects.test_an_odd_name_is_kept_as_it_is,
    ],
    ids=lambda law: law.__name__,
)
def test_what_holds_of_a_database_holds_with_keys(law: Any, tmp_path: Path, key: str) -> None:
    db = SqliteDb(tmp_path / "team.db", keys=key)
    law(db)
    db.close()


def one_run(name: str) -> StoredRun:
    return StoredRun("ana", "s", name, owner="a", status="completed", data=b"okapi")


def databases(tmp_path: Path, postgres: Postgres) -> list[Callable[[Any], Any]]:
    """Databases to be opened, again and again, with keys or without."""
    url, file = postgres.new_database(), tmp_path / "team.db"
    return [
        lambda keys: SqliteDb(file, keys=keys),
        lambda keys: PostgresDb(url, payloads=tmp_path / "payloads", keys=keys),
    ]


def test_no_run_is_put_in_the_clear_into_a_database_that_is_sealed(
    tmp_path: Path, key: str, postgres: Postgres
) -> None:
    for made in databases(tmp_path, postgres):
        sealed = made(key)
        sealed.runs.put(one_run("one"))
        clear = made(None)
        with pytest.raises(SettingsError, match="sealed"):
            clear.runs.put(one_run("two"))
        assert [run.run for run in sealed.runs.list("ana", "s")] == ["one"]
        sealed.close()
        clear.close()


def test_a_database_with_runs_in_the_clear_takes_no_keys(
    tmp_path: Path, key: str, postgres: Postgres
) -> None:
    for made in databases(tmp_path, postgres):
        clear = made(None)
        clear.runs.put(one_run("one"))
        sealed = made(key)
        with pytest.raises(SettingsError, match="in the clear"):
            sealed.runs.put(one_run("two"))
        assert [run.run for run in clear.runs.list("ana", "s")] == ["one"]
        sealed.close()
        clear.close()
