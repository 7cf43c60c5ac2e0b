"""A run that waits for a person: never offloaded, and resumed in a new process as it was left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.types import interrupt

from callslip.errors import SettingsError
from callslip.team import Agent, SqliteDb, Team
from tests.team.team_helpers import (
    MODES,
    REPORT,
    call,
    calls,
    delegate,
    go,
    go_on,
    scripted,
    size,
    texts,
)


def approve(what: str) -> str:
    """Ask a person."""
    return f"{what}: {interrupt({'approve': what})}"


def fetch() -> str:
    """The data."""
    return REPORT


@pytest.mark.parametrize("mode", MODES)
def test_a_paused_run_goes_on_in_a_new_process_from_the_very_same_conversation(
    mode: str, tmp_path: Path
) -> None:
    """An agent fetches, asks for approval, and ends; between the two nothing is left in memory."""

    def made(*script: Any) -> tuple[Any, Agent]:
        model = scripted(*script)
        database = SqliteDb(tmp_path / "team.db")
        agent = Agent(
            id="a", model=model, tools=[fetch, approve], db=database, offload_tool_results=True
        )
        return model, agent

    first, agent = made(call("fetch"), call("approve", what="deploy"))
    paused = go(mode, agent, "Go.", session_id="s1")
    assert paused.is_paused and paused.status == "paused"
    assert [pause.value for pause in paused.pauses] == [{"approve": "deploy"}]
    assert paused.messages[-1].tool_calls[0]["name"] == "approve"  # type: ignore[attr-defined]
    agent.db.close()  # type: ignore[union-attr]

    second, again = made("Deployed.")
    out = go_on(mode, again, paused.run_id, "yes", session_id="s1")
    assert out.content == "Deployed." and not out.is_paused
    conversation = texts(second.seen[0])
    assert conversation[: len(first.seen[1])] == texts(first.seen[1])
    assert conversation[-1] == ("tool", "deploy: yes")


@pytest.mark.parametrize("mode", MODES)
def test_a_members_pause_is_the_teams_and_its_answer_reaches_the_member(
    mode: str, tmp_path: Path
) -> None:
    def made(leader: Any, member: Any) -> Team:
        agent = Agent(id="ops", model=member, tools=[fetch, approve])
        database = SqliteDb(tmp_path / "team.db")
        return Team(model=leader, members=[agent], db=database, offload_tool_results=True)

    member = scripted(call("fetch"), call("approve", what="deploy"))
    team = made(scripted(delegate("ops", "deploy it")), member)
    paused = go(mode, team, "Go.", session_id="s1")
    [pause] = paused.pauses
    assert (pause.member, pause.value) == ("ops", {"approve": "deploy"})
    assert not any(message.type == "tool" for message in paused.messages)
    [waiting] = [run for run in team.runs("s1") if run.agent_id == "ops"]
    assert waiting.is_paused and waiting.messages == []  # nothing of it is stored as history yet
    team.db.close()  # type: ignore[union-attr]

    resumed, leader = scripted(REPORT + "\ndone"), scripted("Done.")
    team = made(leader, resumed)
    out = go_on(mode, team, None, "yes", session_id="s1")  # the session's last unfinished run
    assert out.content == "Done."
    assert out.member_responses[0].content == REPORT + "\ndone"
    assert texts(resumed.seen[0])[: len(member.seen[1])] == texts(member.seen[1])
    assert resumed.seen[0][-1].text == "deploy: yes"
    assert size(leader.seen[0]) < 2_500  # and then it offloads
    [stored] = [run for run in team.runs("s1") if run.agent_id == "ops"]
    assert stored.messages[-1].text.startswith("<result ")


@pytest.mark.parametrize("mode", MODES)
def test_a_member_may_ask_again_and_again_in_a_nested_team(mode: str, tmp_path: Path) -> None:
    asked = [call("approve", f"call_{n}", what=f"step {n}") for n in range(3)]
    scripts = {"ops": [*asked, "All done."], "lab": [delegate("ops"), "Lab done."]}
    model = {name: scripted(*script) for name, script in scripts.items()}
    leader = scripted(delegate("lab"), "Done.")

    def made() -> Team:
        ops = Agent(id="ops", model=model["ops"], tools=[approve])
        lab = Team(id="lab", model=model["lab"], members=[ops])
        return Team(model=leader, members=[lab], db=SqliteDb(tmp_path / "team.db"))

    out = go(mode, made(), "Go.", session_id="s1")
    for n in range(3):
        [pause] = out.pauses
        assert (pause.member, pause.value) == ("lab/ops", {"approve": f"step {n}"})
        out = go_on(mode, made(), out, f"yes {n}")
    assert out.content == "Done."
    answers = [text for kind, text in texts(model["ops"].seen[-1]) if kind == "tool"]
    assert answers == ["step 0: yes 0", "step 1: yes 1", "step 2: yes 2"]
    assert len(leader.seen) == 2 and len(model["lab"].seen) == 2


@pytest.mark.parametrize("mode", MODES)
def test_two_members_that_wait_are_answered_by_the_ids_of_their_pauses(
    mode: str, db: SqliteDb
) -> None:
    both = calls(delegate("a", id="call_a"), delegate("b", id="call_b"))
    members = [
        Agent(id=id, model=scripted(call("approve", what=id), f"{id} done"), tools=[approve])
        for id in "ab"
    ]
    team = Team(model=scripted(both, "Done."), members=members, db=db)
    paused = go(mode, team, "Go.", session_id="s1")
    assert sorted(pause.member for pause in paused.pauses) == ["a", "b"]
    out = go_on(mode, team, paused, {pause.id: pause.member for pause in paused.pauses})
    assert out.content == "Done."
    assert [member.model.seen[1][-1].text for member in members] == ["a: a", "b: b"]  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", MODES)
def test_all_members_may_wait_at_once(mode: str, db: SqliteDb) -> None:
    members = [
        Agent(id=id, model=scripted(call("approve", what=id), f"{id} done"), tools=[approve])
        for id in "ab"
    ]
    leader = scripted(call("delegate_task_to_members", task="go"), "Done.")
    team = Team(model=leader, members=members, db=db, delegate_to_all_members=True)
    out = go(mode, team, "Go.", session_id="s1")
    for id in "ab":
        [pause] = out.pauses
        assert pause.member == id
        out = go_on(mode, team, out, f"yes {id}")
    assert out.content == "Done."
    assert [member.model.seen[1][-1].text for member in members] == ["a: yes a", "b: yes b"]  # type: ignore[union-attr]


def test_without_an_answer_a_paused_run_says_again_what_it_waits_for(db: SqliteDb) -> None:
    agent = Agent(model=scripted(call("approve", what="x"), "Done."), tools=[approve], db=db)
    paused = agent.run("Go.", session_id="s1")
    assert agent.continue_run(paused).pauses == paused.pauses
    assert agent.continue_run(paused, "no").content == "Done."


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answer", [None, {}, {"approve": None}, [], ""])
def test_any_answer_reaches_who_asked_none_and_an_empty_one_too(
    mode: str, answer: Any, db: SqliteDb
) -> None:
    agent = Agent(id="a", model=scripted(call("approve", what="x"), "Done."), tools=[approve])
    team = Team(model=scripted(delegate("a"), "Done."), members=[agent], db=db)
    paused = go(mode, team, "Go.", session_id="s1")
    assert go_on(mode, team, paused, answer).content == "Done."
    assert agent.model.seen[1][-1].text == f"x: {answer}"  # type: ignore[union-attr]


@pytest.mark.parametrize("answer", [None, "yes", {"somebody": "yes"}])
def test_one_answer_for_two_questions_is_refused_and_the_ids_are_named(
    answer: Any, db: SqliteDb
) -> None:
    both = calls(delegate("a", id="call_a"), delegate("b", id="call_b"))
    members = [
        Agent(id=id, model=scripted(call("approve", what=id), "fine"), tools=[approve])
        for id in "ab"
    ]
    team = Team(model=scripted(both, "Done."), members=members, db=db)
    paused = team.run("Go.", session_id="s1")
    with pytest.raises(SettingsError, match=paused.pauses[0].id):
        team.continue_run(paused, answer)
    out = team.continue_run(paused, {pause.id: "yes" for pause in paused.pauses})
    assert out.content == "Done."


def test_other_runs_of_the_session_go_on_and_do_not_change_what_a_paused_one_saw(
    db: SqliteDb,
) -> None:
    model = scripted("1", call("approve", what="x"), "2", "Done.")
    agent = Agent(model=model, tools=[approve], db=db)
    agent.run("one", session_id="s1")
    paused = agent.run("two", session_id="s1")
    agent.run("three", session_id="s1")
    agent.continue_run(paused, "yes")
    assert [text for _, text in texts(model.seen[2])] == ["one", "1", "three"]
    assert [text for _, text in texts(model.seen[3])] == ["one", "1", "two", "", "x: yes"]


def test_approval_of_tools_asks_as_langchain_does_and_never_for_reading(db: SqliteDb) -> None:
    gate = HumanInTheLoopMiddleware(interrupt_on={"fetch": True})
    member = Agent(id="a", model=scripted(call("fetch"), "fine"), tools=[fetch], middleware=[gate])
    team = Team(model=scripted(delegate("a"), "Done."), members=[member], db=db)
    paused = team.run("Go.", session_id="s1")
    [pause] = paused.pauses
    assert pause.value["action_requests"][0]["name"] == "fetch"
    out = team.continue_run(paused, {"decisions": [{"type": "approve"}]})
    assert out.content == "Done."


def test_killed_between_the_answer_and_what_follows_it_the_answer_is_not_lost(
    tmp_path: Path,
) -> None:
    """The member has its answer, and the process ends before it or the leader is done."""
    asked: list[int] = []

    class Killed(BaseException):
        pass

    def works(messages: Any) -> Any:
        if messages[-1].type == "human":
            return call("approve", what="deploy")
        asked.append(1)
        if len(asked) == 1:
            raise Killed
        return messages[-1].text

    def made() -> Team:
        model = scripted(*[works] * 4)
        ops = Agent(id="ops", model=model, tools=[approve])
        leader = scripted(*[lambda m: delegate("ops") if m[-1].type == "human" else "Done."] * 4)
        return Team(model=leader, members=[ops], db=SqliteDb(tmp_path / "team.db"))

    paused = made().run("Go.", session_id="s1")
    with pytest.raises(Killed):
        made().continue_run(paused, "yes")
    out = made().continue_run(paused.run_id, session_id="s1")
    assert out.content == "Done."
    assert out.member_responses[0].content == "deploy: yes"
