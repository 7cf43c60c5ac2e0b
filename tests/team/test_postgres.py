"""Teams on PostgreSQL: what `test_deleting`, `test_pausing`, `test_team` and `test_trouble` say of a
database, on `PostgresDb`; and what is only of it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import interrupt

from callslip import ResultStore, SettingsError
from callslip.errors import StoreUnavailable, UnknownHandle
from callslip.stacks.index.postgres import PostgresIndex
from callslip.stacks.index.postgres.runs import PostgresRuns
from callslip.team import Agent, PostgresDb, Team
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres
from tests.team import test_deleting as deleting
from tests.team import test_killed as killed
from tests.team import test_pausing as pausing
from tests.team import test_subjects as subjects
from tests.team import test_team as running
from tests.team import test_trouble as trouble
from tests.team.team_helpers import REPORT, call, delegate, go, go_on, ids_in, scripted, texts


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> str:
    return postgres.new_database(postgres.new_role())


_schemas = iter(range(1_000_000))


@pytest.fixture
def fresh(url: str) -> str:
    """A deployment of its own."""
    return f"{url}?schema=team_{next(_schemas)}"


@pytest.fixture
def db(fresh: str, tmp_path: Path) -> Iterator[PostgresDb]:
    database = PostgresDb(fresh, payloads=tmp_path / "payloads")
    yield database
    database.close()


# --- what other modules say of any database -------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [
        deleting.test_a_result_that_a_later_answer_repeats_stays_for_that_one,
        deleting.test_a_paused_run_can_be_deleted_with_what_it_stored,
        deleting.test_a_session_is_deleted_by_a_team_that_does_not_offload_any_more,
        deleting.test_a_delegation_of_a_deleted_session_begins_no_run,
        pausing.test_without_an_answer_a_paused_run_says_again_what_it_waits_for,
        pausing.test_other_runs_of_the_session_go_on_and_do_not_change_what_a_paused_one_saw,
        pausing.test_approval_of_tools_asks_as_langchain_does_and_never_for_reading,
        running.test_an_error_of_the_model_is_the_callers_and_the_run_can_go_on,
        subjects.test_a_run_that_was_cut_off_goes_on_about_whom_it_was_begun,
        subjects.test_an_odd_name_is_kept_as_it_is,
        trouble.test_a_stream_that_is_left_early_can_be_gone_on_with,
        trouble.test_many_sessions_run_at_once_on_one_event_loop,
    ],
    ids=lambda law: law.__name__,
)
def test_what_holds_on_sqlite_holds_here(law: Any, db: PostgresDb) -> None:
    law(db)


@pytest.mark.parametrize(
    "law",
    [
        running.test_the_same_answer_again_is_one_line_and_one_payload,
        running.test_teams_may_be_members_of_teams,
        running.test_members_asked_in_one_turn_work_at_the_same_time,
        pausing.test_two_members_that_wait_are_answered_by_the_ids_of_their_pauses,
        pausing.test_all_members_may_wait_at_once,
        subjects.test_what_a_team_and_its_members_store_is_about_the_runs_subject,
        deleting.test_deleted_while_it_runs_a_run_ends_with_an_error_that_says_so_and_leaves_nothing,
    ],
    ids=lambda law: law.__name__,
)
@pytest.mark.parametrize("mode", ["astream"])
def test_what_holds_on_sqlite_in_every_way_holds_here(mode: str, law: Any, db: PostgresDb) -> None:
    law(mode, db)


@pytest.mark.parametrize("delete", ["async"])
def test_sessions_and_runs_are_deleted_of_that_user_alone(
    delete: str, fresh: str, tmp_path: Path
) -> None:
    for number, law in enumerate(
        (
            deleting.test_a_deleted_session_takes_its_runs_and_results_of_that_user_alone,
            deleting.test_a_deleted_run_takes_its_members_runs_and_results,
        )
    ):
        database = PostgresDb(f"{fresh}_{number}", payloads=tmp_path / str(number))
        law(delete, database)  # type: ignore[arg-type]
        database.close()


# --- restarts -------------------------------------------------------------------------------------


def approve(what: str) -> str:
    """Ask a person."""
    return f"{what}: {interrupt({'approve': what})}"


def fetch() -> str:
    """The data."""
    return REPORT


@pytest.mark.parametrize("mode", ["sync", "stream", "async"])
def test_a_paused_team_goes_on_in_another_process_object_after_a_restart_of_the_server(
    mode: str, postgres: Postgres, fresh: str, tmp_path: Path
) -> None:
    def made(leader: Any, member: Any) -> Team:
        agent = Agent(id="ops", model=member, tools=[fetch, approve])
        database = PostgresDb(fresh, payloads=tmp_path / "payloads")
        return Team(model=leader, members=[agent], db=database, offload_tool_results=True)

    member = scripted(call("fetch"), call("approve", what="deploy"))
    team = made(scripted(delegate("ops", "deploy it")), member)
    paused = go(mode, team, "Go.", session_id="s1", user_id="ana")
    [pause] = paused.pauses
    assert (pause.member, pause.value) == ("ops", {"approve": "deploy"})
    if mode == "sync":
        postgres.restart()

    resumed, leader = scripted(REPORT + "\ndone"), scripted("Done.", "Still.")
    again = team if mode == "stream" else made(leader, resumed)
    if again is team:
        team.model, team.members[0].model = leader, resumed
    out = go_on(mode, again, None, "yes", session_id="s1", user_id="ana")
    assert out.content == "Done."
    assert out.member_responses[0].content == REPORT + "\ndone"
    assert texts(resumed.seen[0])[: len(member.seen[1])] == texts(member.seen[1])
    assert resumed.seen[0][-1].text == "deploy: yes"
    [stored] = [run for run in again.runs("s1", user_id="ana") if run.agent_id == "ops"]
    assert stored.messages[-1].text.startswith("<result ")
    assert again.run("And?", session_id="s1", user_id="ana").content == "Still."
    assert again.runs("s1") == []
    assert list(again.db.saver.list(None)) == []  # type: ignore[union-attr]
    for each in {team, again}:
        each.db.close()  # type: ignore[union-attr]


def test_a_connection_that_died_while_it_was_idle_is_replaced(
    postgres: Postgres, db: PostgresDb
) -> None:
    agent = Agent(id="a", model=scripted("1", "2"), db=db)
    agent.run("one", session_id="s1")
    postgres.restart()
    assert agent.run("two", session_id="s1").content == "2"
    assert [text for _, text in texts(agent.model.seen[1])] == ["one", "1", "two"]  # type: ignore[union-attr]


def test_a_run_that_loses_its_server_is_gone_on_with_when_that_is_back(
    postgres: Postgres, db: PostgresDb
) -> None:
    """Restarted while a tool works, nobody notices; stopped, the run ends and can be continued."""

    def restart() -> str:
        """Restart the server."""
        postgres.restart()
        return REPORT

    def stop() -> str:
        """Stop the server, the first time."""
        tried.append("stop")
        if len(tried) == 1:
            postgres.stop()
        return REPORT + "more"

    tried: list[str] = []
    model = scripted(call("restart"), call("stop"), "Done.")
    agent = Agent(id="a", model=model, tools=[restart, stop], db=db, offload_tool_results=True)
    with pytest.raises(StoreUnavailable):
        agent.run("Go.", session_id="s1")
    postgres.start()
    assert [run.status for run in agent.runs("s1")] == ["running"]
    assert agent.continue_run(session_id="s1").content == "Done."
    assert agent.result_store is not None and agent.result_store.stats().results == 2
    shown = [kind for kind, _ in texts(model.seen[-1])[1:]]
    assert shown == ["human", "ai", "tool", "ai", "tool"]  # nothing twice


def test_many_workers_may_race_to_make_the_tables(fresh: str, tmp_path: Path) -> None:
    databases = [PostgresDb(fresh, payloads=tmp_path) for _ in range(6)]
    failed: list[BaseException] = []
    ready = threading.Barrier(len(databases))

    def first_run(database: PostgresDb, number: int) -> None:
        ready.wait()
        try:
            Agent(model=scripted("hi"), db=database).run("hi", session_id=f"s{number}")
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [
        threading.Thread(target=first_run, args=each)
        for each in zip(databases, range(len(databases)), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert all(len(databases[0].runs.list("", f"s{n}")) == 1 for n in range(len(databases)))
    for database in databases:
        database.close()


def test_killed_in_the_middle_of_a_delegation_nothing_is_lost_and_nothing_stored_twice(
    fresh: str, tmp_path: Path
) -> None:
    killed.killed_and_gone_on_with(tmp_path, fresh)


def test_cut_off_at_any_write_the_run_ends_as_if_nothing_had_happened(
    fresh: str, tmp_path: Path
) -> None:
    writes = (
        (PostgresSaver, "put"),
        (PostgresSaver, "put_writes"),
        (PostgresSaver, "delete_thread"),
        (PostgresRuns, "put"),
        (PostgresIndex, "run"),
    )
    killed.cut_off(writes, lambda n: PostgresDb(f"{fresh}_{n}", payloads=tmp_path / str(n)), 13)


def test_behind_a_pooler_that_gives_each_transaction_another_connection(
    pgbouncer: PgBouncer, tmp_path: Path
) -> None:
    database = PostgresDb(pgbouncer.new_database(), payloads=tmp_path)
    pausing.test_all_members_may_wait_at_once("sync", database)  # type: ignore[arg-type]
    trouble.test_many_sessions_run_at_once_on_one_event_loop(database)  # type: ignore[arg-type]
    database.close()


# --- what is only of PostgreSQL -------------------------------------------------------------------


def test_long_and_odd_session_and_user_ids_stay_apart(db: PostgresDb) -> None:
    names = ["x" * 1_200 + "1", "x" * 1_200 + "2", "é", "e\u0301", "s1", "s1 ", "s\u0000", "\ud800",
             "../s1", "a|b", "%s1"]  # fmt: skip
    team = deleting.team_on(db, *(f"{n}\n{REPORT}" for n in range(len(names))))  # type: ignore[arg-type]
    outs = {name: team.run("Go.", session_id=name, user_id=name) for name in names}
    assert team.result_store is not None
    for number, name in enumerate(names):
        session = team.result_store.session(name, user=name)
        assert session.load(deleting.stored(outs[name])) == f"{number}\n{REPORT}"
        for other in names:
            if other != name:
                with pytest.raises(UnknownHandle):
                    session.read(deleting.stored(outs[other]))
        assert len(team.runs(name, user_id=name)) == 2
    team.delete_session("s\u0000", user_id="s\u0000")
    assert [name for name in names if not team.runs(name, user_id=name)] == ["s\u0000"]


def test_a_state_with_a_nul_is_kept_while_it_waits(db: PostgresDb) -> None:
    odd = "a\u0000b"  # half a pair becomes `?` in LangGraph's checkpoints, on any database

    def ask(what: str) -> str:
        """Ask a person."""
        return f"{what} {interrupt(odd)}"

    agent = Agent(id="a", model=scripted(call("ask", what=odd), odd), tools=[ask], db=db)
    paused = agent.run(odd, session_id=odd, user_id=odd)
    assert [pause.value for pause in paused.pauses] == [odd]
    out = agent.continue_run(paused, odd)
    assert out.content == odd
    assert agent.model.seen[1][-1].text == f"{odd} {odd}"  # type: ignore[union-attr]


def test_a_text_in_the_state_that_json_cannot_hold_comes_back_as_it_was(db: PostgresDb) -> None:
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "who": "\u0000 \ud800"}}
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"odd": "\u0000 \ud800", "even": "é"}
    checkpoint["channel_versions"] = versions = {"odd": "1", "even": "1"}
    db.saver.put(config, checkpoint, {"source": "input"}, versions)  # type: ignore[arg-type]
    found = db.saver.get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"odd": "\u0000 \ud800", "even": "é"}
    assert found.metadata["who"] == "\\0 \\ud800"  # type: ignore[typeddict-item]


def test_two_deployments_in_one_database_do_not_see_each_other(url: str, tmp_path: Path) -> None:
    one, two = (PostgresDb(f"{url}?schema=part_{n}", payloads=tmp_path / str(n)) for n in (1, 2))
    Agent(id="a", model=scripted("hi"), db=one).run("hi", session_id="s1")
    other = Agent(id="a", model=scripted("hello"), db=two)
    assert other.runs("s1") == []
    other.run("hi", session_id="s1")
    assert len(other.runs("s1")) == 1
    for database in (one, two):
        database.close()


def test_a_copy_of_the_store_is_bound_and_payloads_have_to_have_a_place(
    fresh: str, tmp_path: Path
) -> None:
    unbound = ResultStore(threshold_chars=1_000, payloads=tmp_path / "its own")
    database = PostgresDb(fresh)
    team = Team(model=scripted(), members=[], db=database, offload_tool_results=unbound)
    team.initialize()
    assert not unbound.bound and unbound.settings.url is None
    assert team.result_store is not None and team.result_store.settings.url == fresh
    assert team.result_store.settings.payloads == str(tmp_path / "its own")
    plain = Agent(id="a", model=scripted("hi"), db=PostgresDb(fresh), offload_tool_results=True)
    with pytest.raises(SettingsError, match="payloads=") as told:
        plain.run("hi")
    assert "postgresql://" in str(told.value)
    # Once a large result is stored, its place is known to whoever comes later.
    team.result_store.session("s1").put(os.urandom(300_000))
    assert plain.run("hi").content == "hi"
    assert plain.result_store is not None
    assert plain.result_store.settings.payloads == str(tmp_path / "its own")
    for each in (database, plain.db):
        each.close()  # type: ignore[union-attr]


def test_one_string_is_enough_for_a_team(fresh: str, tmp_path: Path) -> None:
    """`?payloads=` in its URL, as a store has it: plain files and all."""
    scratch = tmp_path / "scratch"
    database = PostgresDb(f"{fresh}&payloads=file://{scratch}?plain")
    agent = Agent(id="a", model=scripted("hi"), db=database, offload_tool_results=True)
    agent.run("Go.", session_id="s")
    handle = agent.result_store.session("s").put("a line\n" * 9, tool="t")
    assert Path(handle.saved_to).is_relative_to(scratch)
    assert Path(handle.saved_to).read_text() == "a line\n" * 9
    database.close()


def test_results_go_with_a_session_though_nobody_says_where_payloads_are(
    fresh: str, tmp_path: Path
) -> None:
    settings = ResultStore(threshold_chars=100, preview_chars=50, payloads=tmp_path / "p")
    first = PostgresDb(fresh)
    short = "a short result " * 20
    agent = Agent(id="a", model=scripted(call("tell"), "Done."), tools=[tell], db=first,
                  offload_tool_results=settings)  # fmt: skip
    agent.run("Go.", session_id="s1")
    assert agent.result_store is not None and agent.result_store.stats().results == 1
    assert short in agent.result_store.session("s1").load(
        ids_in(agent.runs("s1")[0].messages[2].text)[0]
    )
    second = PostgresDb(fresh)
    later = Agent(id="a", model=scripted("hi"), db=second)
    assert later.delete_session("s1") == 1
    assert agent.result_store.stats().results == 0
    for each in (first, second):
        each.close()


def tell() -> str:
    """Something short."""
    return "a short result " * 20


def test_a_worker_may_have_less_rights_than_who_makes_the_tables(
    postgres: Postgres, tmp_path: Path
) -> None:
    owners = postgres.new_database(postgres.new_role())
    first = PostgresDb(owners, payloads=tmp_path)
    Agent(id="a", model=scripted("1"), db=first).run("one", session_id="s1")
    first.close()
    worker = postgres.new_role()
    postgres.sql(f"GRANT USAGE ON SCHEMA callslip TO {worker}", owners)
    rights = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA callslip"
    postgres.sql(f"GRANT {rights} TO {worker}", owners)
    database = PostgresDb(postgres.dsn_of(owners.rpartition("/")[2], worker), payloads=tmp_path)
    agent = Agent(id="a", model=scripted("2"), db=database)
    assert agent.run("two", session_id="s1").content == "2"
    assert [text for _, text in texts(agent.model.seen[0])] == ["one", "1", "two"]  # type: ignore[union-attr]
    database.close()


def test_neither_repr_nor_an_error_shows_the_password(postgres: Postgres) -> None:
    database = PostgresDb("postgresql://ana:hunter2@127.0.0.1:1/nothing?schema=x")
    assert "hunter2" not in repr(database)
    with pytest.raises(Exception) as told:
        Agent(model=scripted("hi"), db=database).run("hi")
    assert "hunter2" not in str(told.value)
    with pytest.raises(SettingsError) as wrong:
        PostgresDb("postgresql://ana:hunter2@host/db?schema=No Good")
    assert "hunter2" not in str(wrong.value)


def test_twenty_agents_run_at_once_on_one_event_loop(db: PostgresDb) -> None:
    async def all_of_them() -> list[str]:
        agents = [Agent(id="a", model=scripted(f"Done {n}."), db=db) for n in range(20)]
        runs = (each.arun("Go.", session_id=f"s{n}") for n, each in enumerate(agents))
        return [out.content for out in await asyncio.gather(*runs)]

    assert asyncio.run(all_of_them()) == [f"Done {n}." for n in range(20)]
