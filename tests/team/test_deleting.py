"""Deleting a session or a run deletes what it stored, and nothing of anybody else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import interrupt

from callslip.errors import HandleGone, LegalHold, RunGone, UnknownHandle
from callslip.team import Agent, InMemoryDb, RunOutput, SqliteDb, Team
from tests.team.team_helpers import MODES, REPORT, call, delegate, go, ids_in, scripted


def team_on(db: SqliteDb, *answers: str) -> Team:
    steps = [step for n in range(len(answers)) for step in (delegate("a", id=f"c{n}"), "Done.")]
    members = [Agent(id="a", model=scripted(*answers))]
    return Team(model=scripted(*steps), members=members, db=db, offload_tool_results=True)


def stored(out: RunOutput) -> str:
    return ids_in(out.messages[2].text)[0]


@pytest.mark.parametrize("delete", ["sync", "async"])
def test_a_deleted_session_takes_its_runs_and_results_of_that_user_alone(
    delete: str, db: SqliteDb
) -> None:
    team = team_on(db, REPORT + "a", REPORT + "b", REPORT + "c")
    anas = team.run("Go.", session_id="s1", user_id="ana")
    bobs = team.run("Go.", session_id="s1", user_id="bob")
    nobodys = team.run("Go.", session_id="s1")
    if delete == "sync":
        assert team.delete_session("s1", user_id="ana") == 2
    else:
        assert asyncio.run(team.adelete_session("s1", user_id="ana")) == 2
    store = team.result_store
    assert store is not None and store.stats().payloads == 2
    with pytest.raises(UnknownHandle):
        store.session("s1", user="ana").read(stored(anas))
    assert store.session("s1", user="bob").load(stored(bobs)) == REPORT + "b"
    assert store.session("s1").load(stored(nobodys)) == REPORT + "c"
    assert team.runs("s1", user_id="ana") == []
    assert len(team.runs("s1", user_id="bob")) == len(team.runs("s1")) == 2


@pytest.mark.parametrize("delete", ["sync", "async"])
def test_a_deleted_run_takes_its_members_runs_and_results(delete: str, db: SqliteDb) -> None:
    team = team_on(db, REPORT + "a", REPORT + "b")
    first = team.run("one", session_id="s1")
    second = team.run("two", session_id="s1")
    if delete == "sync":
        assert team.delete_run(first.run_id, session_id="s1")
    else:
        assert asyncio.run(team.adelete_run(first.run_id, session_id="s1"))
    assert team.result_store is not None
    session = team.result_store.session("s1")
    with pytest.raises(HandleGone):
        session.read(stored(first))
    assert session.load(stored(second)) == REPORT + "b"
    assert team.result_store.stats().payloads == 1
    assert [run.agent_id for run in team.runs("s1")] == ["team", "a"]
    assert not team.delete_run(first.run_id, session_id="s1")
    assert not team.delete_run(second.run_id, session_id="s1", user_id="ana")


def test_a_result_that_a_later_answer_repeats_stays_for_that_one(db: SqliteDb) -> None:
    team = team_on(db, REPORT, REPORT)
    first, second = (team.run(word, session_id="s1") for word in ("one", "two"))
    team.delete_run(first.run_id, session_id="s1")
    assert team.result_store is not None
    session = team.result_store.session("s1")
    assert f'same_as="{stored(first)}"' in second.messages[2].text
    assert session.load(stored(first)) == REPORT  # the second one's line names it
    team.delete_run(second.run_id, session_id="s1")
    assert session.list().total == 0 and team.result_store.stats().payloads == 0


def test_a_paused_run_can_be_deleted_with_what_it_stored(db: SqliteDb) -> None:
    def fetch() -> str:
        """The data."""
        return REPORT

    def approve() -> str:
        """Ask a person."""
        return str(interrupt("ok?"))

    model = scripted(call("fetch"), call("approve"))
    agent = Agent(model=model, tools=[fetch, approve], db=db, offload_tool_results=True)
    paused = agent.run("Go.", session_id="s1")
    assert agent.result_store is not None and agent.result_store.stats().results == 1
    assert agent.delete_run(paused.run_id, session_id="s1")
    assert agent.result_store.stats().results == 0
    thread = {"configurable": {"thread_id": paused.run_id}}
    assert db.saver.get_tuple(thread) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES)
def test_deleted_while_it_runs_a_run_ends_with_an_error_that_says_so_and_leaves_nothing(
    mode: str, db: SqliteDb
) -> None:
    """The session goes while a member is at work: neither the member's nor the leader's is kept."""

    def late() -> str:
        """Somebody deletes the session meanwhile."""
        team.delete_session("s1")
        return REPORT

    member = Agent(id="a", model=scripted(call("late"), REPORT), tools=[late])
    team = Team(
        model=scripted(delegate("a"), "Done."),
        members=[member],
        db=db,
        offload_tool_results=True,
    )
    with pytest.raises(RunGone, match="was deleted while it was under way"):
        go(mode, team, "Go.", session_id="s1")
    assert team.runs("s1") == []
    assert list(db.saver.list(None)) == []
    assert team.result_store is not None and team.result_store.stats().results == 0


def test_a_delegation_of_a_deleted_session_begins_no_run(db: SqliteDb) -> None:
    def leads(messages: Any) -> Any:
        team.delete_session("s1")
        return delegate("a")

    member = Agent(id="a", model=scripted("never asked"))
    team = Team(model=scripted(leads, "Done."), members=[member], db=db)
    with pytest.raises(RunGone):
        team.run("Go.", session_id="s1")
    assert member.model.seen == []  # type: ignore[union-attr]
    assert team.runs("s1") == [] and list(db.saver.list(None)) == []


def test_a_session_is_deleted_by_a_team_that_does_not_offload_any_more(db: SqliteDb) -> None:
    team_on(db, REPORT).run("one", session_id="s1")
    plain = team_on(db)
    plain.offload_tool_results = False
    plain.delete_session("s1")
    again = team_on(db)
    again.initialize()
    assert again.result_store is not None and again.result_store.stats().results == 0


def test_sessions_can_be_deleted_on_a_database_without_results() -> None:
    agent = Agent(model=scripted("1", "2"), db=InMemoryDb())
    out = agent.run("one", session_id="s1")
    agent.run("two", session_id="s1")
    assert agent.delete_run(out.run_id, session_id="s1")
    assert agent.delete_session("s1") == 1


def test_long_odd_and_equal_looking_session_ids_stay_apart(tmp_path: Path) -> None:
    names = ["x" * 5_000 + "1", "x" * 5_000 + "2", "é", "e\u0301", "s1", "s1 ", "S1", "s\u0000",
             "../s1", "a/b", "a|b", "a.b", "%s1", "\U0001f600", "１"]  # fmt: skip
    db = SqliteDb(tmp_path / "team.db")
    team = team_on(db, *(f"{n}\n{REPORT}" for n in range(len(names))))
    outs = {name: team.run("Go.", session_id=name) for name in names}
    for number, name in enumerate(names):
        assert team.result_store is not None
        session = team.result_store.session(name)
        assert session.list().total == 1
        assert session.load(stored(outs[name])) == f"{number}\n{REPORT}"
        others = (outs[other] for other in names if other != name)
        for other in others:
            with pytest.raises(UnknownHandle):
                session.read(stored(other))
        assert len(team.runs(name)) == 2
    team.delete_session("s1")
    assert [name for name in names if not team.runs(name)] == ["s1"]


def test_a_run_without_a_database_leaves_nothing_behind() -> None:
    agent = Agent(model=scripted("1", "2"))
    out = agent.run("one", session_id="s1")
    assert out.content == "1" and agent.runs("s1") == []
    agent.run("two", session_id="s1")
    assert [message.text for message in agent.model.seen[1]] == ["two"]  # type: ignore[union-attr]


def test_what_is_held_keeps_its_runs_too(db: SqliteDb) -> None:
    team = team_on(db, REPORT)
    out = team.run("Go.", session_id="s1", user_id="ana")
    store = team.result_store
    assert store is not None
    store.hold(user="ana", reason="case 7")
    with pytest.raises(LegalHold, match="case 7"):
        team.delete_session("s1", user_id="ana")
    with pytest.raises(LegalHold, match="case 7"):
        team.delete_run(out.run_id, session_id="s1", user_id="ana")
    assert len(team.runs("s1", user_id="ana")) == 2
    assert store.session("s1", user="ana").load(stored(out)) == REPORT
    store.release(user="ana")
    assert team.delete_session("s1", user_id="ana") == 2
