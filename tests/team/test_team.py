"""Agents and teams as they are typed: delegation, members, answers, limits, streams."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from langchain_core.messages import ToolMessage

from callslip import ResultStore
from callslip.errors import SettingsError
from callslip.team import Agent, InMemoryDb, RunOutput, SqliteDb, Team
from callslip.tools import SYSTEM_LINE
from tests.team.team_helpers import (
    MODES,
    REPORT,
    call,
    calls,
    delegate,
    go,
    ids_in,
    scripted,
    size,
    texts,
)


def researcher(*answers: str, **settings: object) -> Agent:
    model = scripted(*answers)
    return Agent(name="Researcher", role="finds facts", model=model, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES)
def test_a_caller_reads_whole_answers_and_the_models_read_envelopes(
    mode: str, db: SqliteDb
) -> None:
    leader = scripted(delegate("researcher"), "Done.")
    team = Team(model=leader, members=[researcher(REPORT)], db=db, offload_tool_results=True)
    out = go(mode, team, "Look into it.", session_id="s1")

    assert out.content == "Done." and not out.is_paused
    assert out.member_responses[0].content == REPORT
    assert [kind for kind, _ in texts(out.messages)] == ["human", "ai", "tool", "ai"]
    envelope = out.messages[2].text
    assert envelope.startswith('<result id="res_') and len(envelope) < 1_700
    assert team.result_store is not None
    session = team.result_store.session("s1")
    assert session.load(ids_in(envelope)[0]) == REPORT


@pytest.mark.parametrize("mode", MODES)
def test_the_leaders_own_tool_results_are_covered(mode: str, db: SqliteDb) -> None:
    def export() -> str:
        """Everything."""
        return REPORT

    leader = scripted(call("export"), "Done.")
    team = Team(
        model=leader, members=[researcher()], tools=[export], db=db, offload_tool_results=True
    )
    go(mode, team, "Go.", session_id="s1")
    assert max(leader.sizes) < 2_500


@pytest.mark.parametrize("mode", MODES)
def test_what_is_no_longer_than_a_page_stays_as_it_is(mode: str, db: SqliteDb) -> None:
    page = "x" * 16_000
    leader = scripted(delegate("researcher"), delegate("researcher", "more"), "Done.")
    members = [researcher(page, page + "x")]
    team = Team(model=leader, members=members, db=db, offload_tool_results=True)
    out = go(mode, team, "Go.", session_id="s1")
    assert out.messages[2].text == page
    assert out.messages[4].text.startswith("<result ")


@pytest.mark.parametrize("mode", MODES)
def test_the_members_own_run_replays_the_envelope_that_the_leader_got(
    mode: str, db: SqliteDb
) -> None:
    leader = scripted(delegate("researcher"), "1", delegate("researcher"), "2")
    member = researcher(REPORT, "short")
    team = Team(model=leader, members=[member], db=db, offload_tool_results=True)
    first = go(mode, team, "One.", session_id="s1")
    go(mode, team, "Two.", session_id="s1")
    history = member.model.seen[1]  # type: ignore[union-attr]
    assert [m.type for m in history] == ["system", "human", "ai", "human"]
    assert history[2].text == first.messages[2].text


def test_leader_and_members_get_the_tools_and_one_line_and_nothing_by_hand(db: SqliteDb) -> None:
    leader = scripted(delegate("researcher"), "Done.")
    member = researcher(REPORT, instructions="Be exact.")
    team = Team(model=leader, members=[member], db=db, offload_tool_results=True)
    team.run("Go.", session_id="s1")
    for model in (leader, member.model):
        assert {"read_result", "search_result"} <= set(model.bound)  # type: ignore[union-attr]
        system = model.seen[0][0].text  # type: ignore[union-attr]
        assert system.count(SYSTEM_LINE) == 1 and system.endswith(SYSTEM_LINE)
    assert member.instructions == "Be exact."
    assert SYSTEM_LINE not in str(team.instructions)


def test_without_offloading_there_are_no_read_back_tools_and_no_line(db: SqliteDb) -> None:
    leader = scripted("Done.")
    Team(model=leader, members=[researcher()], db=db).run("Go.")
    assert leader.bound == ["delegate_task_to_member"]
    assert SYSTEM_LINE not in leader.seen[0][0].text


@pytest.mark.parametrize("mode", MODES)
def test_the_same_answer_again_is_one_line_and_one_payload(mode: str, db: SqliteDb) -> None:
    leader = scripted(delegate("a"), delegate("b", id="call_2"), "Done.")
    members = [
        Agent(id="a", model=scripted(REPORT)),
        Agent(id="b", model=scripted(REPORT)),
    ]
    team = Team(model=leader, members=members, db=db, offload_tool_results=True)
    out = go(mode, team, "Go.", session_id="s1")
    first, second = (m.text for m in out.messages if isinstance(m, ToolMessage))
    assert "\n" not in second and len(second) < 350
    assert f'same_as="{ids_in(first)[0]}"' in second
    assert team.result_store is not None and team.result_store.stats().payloads == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_member_is_not_told_that_it_saw_what_only_another_has_seen(
    mode: str, db: SqliteDb
) -> None:
    """Two members fetch the same: each sees the preview, and the payload is one."""

    def fetch() -> str:
        """The data."""
        return REPORT

    leader = scripted(delegate("a"), delegate("b", id="call_2"), "Done.")
    models = [scripted(call("fetch"), "fine"), scripted(call("fetch"), "fine")]
    members = [
        Agent(id=id, model=model, tools=[fetch]) for id, model in zip("ab", models, strict=True)
    ]
    team = Team(model=leader, members=members, db=db, offload_tool_results=True)
    go(mode, team, "Go.", session_id="s1")
    first, second = (model.seen[1][-1].text for model in models)
    assert first == second and "finding 1:" in second
    assert team.result_store is not None and team.result_store.stats().payloads == 1


@pytest.mark.parametrize("mode", MODES)
def test_respond_directly_gives_the_answer_and_never_a_pointer(mode: str, db: SqliteDb) -> None:
    leader = scripted(delegate("researcher"), delegate("researcher", id="call_2"))
    members = [researcher(REPORT, "short")]
    team = Team(
        model=leader, members=members, db=db, offload_tool_results=True, respond_directly=True
    )
    out = go(mode, team, "Go.", session_id="s1")
    assert out.content == REPORT
    assert [m.type for m in out.messages] == ["human", "ai", "tool"]
    assert out.messages[-1].text == REPORT
    # The conversation goes on, and now a model reads it.
    assert go(mode, team, "And?", session_id="s1").content == "short"
    assert size(leader.seen[1]) < 2_500
    assert [run.content for run in team.runs("s1") if run.agent_id == "team"] == [REPORT, "short"]


@pytest.mark.parametrize("mode", MODES)
def test_teams_may_be_members_of_teams(mode: str, db: SqliteDb) -> None:
    chemist = Agent(id="chemist", model=scripted(REPORT))
    lab = Team(id="lab", role="analyses", model=scripted(delegate("chemist"), REPORT + "\nend"),
               members=[chemist])  # fmt: skip
    leader = scripted(delegate("lab"), "Done.")
    team = Team(model=leader, members=[lab], db=db, offload_tool_results=True)
    out = go(mode, team, "Go.", session_id="s1")
    [of_lab] = out.member_responses
    assert of_lab.content == REPORT + "\nend"
    assert of_lab.member_responses[0].content == REPORT
    assert max(leader.sizes) < 2_500 and max(lab.model.sizes) < 2_500  # type: ignore[union-attr]
    assert team.result_store is lab.result_store is chemist.result_store


@pytest.mark.parametrize("mode", MODES)
def test_members_asked_in_one_turn_work_at_the_same_time(mode: str, db: SqliteDb) -> None:
    together = threading.Barrier(2, timeout=20)

    def meet() -> str:
        """Wait for the other."""
        together.wait()
        return "met"

    both = calls(delegate("a", id="call_a"), delegate("b", id="call_b"))
    leader = scripted(both, "Done.")
    members = [
        Agent(id=id, model=scripted(call("meet"), f"{id}: {REPORT}"), tools=[meet]) for id in "ab"
    ]
    team = Team(model=leader, members=members, db=db, offload_tool_results=True)
    out = go(mode, team, "Go.", session_id="s1")
    assert [each.content[:2] for each in out.member_responses] == ["a:", "b:"]
    assert [m.text[:8] for m in out.messages if isinstance(m, ToolMessage)] == ["<result "] * 2


@pytest.mark.parametrize("mode", MODES)
def test_one_member_asked_twice_in_one_turn_answers_twice(mode: str, db: SqliteDb) -> None:
    both = calls(delegate("a", "one", id="call_a"), delegate("a", "two", id="call_b"))
    leader = scripted(both, "Done.")
    member = Agent(id="a", model=scripted("first", "second"))
    team = Team(model=leader, members=[member], db=db)
    out = go(mode, team, "Go.", session_id="s1")
    assert sorted(each.content for each in out.member_responses) == ["first", "second"]


@pytest.mark.parametrize("mode", MODES)
def test_a_task_can_go_to_all_members_at_once(mode: str, db: SqliteDb) -> None:
    leader = scripted(call("delegate_task_to_members", task="count"), "Done.")
    members = [Agent(id="a", model=scripted("1")), Agent(id="b", model=scripted(REPORT))]
    team = Team(
        model=leader, members=members, db=db, offload_tool_results=True,
        delegate_to_all_members=True,
    )  # fmt: skip
    out = go(mode, team, "Go.", session_id="s1")
    assert [each.content for each in out.member_responses] == ["1", REPORT]
    assert max(leader.sizes) < 2_500
    assert "delegate_task_to_member" not in leader.bound


@pytest.mark.parametrize("mode", MODES)
def test_read_back_tools_are_free_of_the_tool_call_limit_in_every_turn(
    mode: str, db: SqliteDb
) -> None:
    def read(messages):  # type: ignore[no-untyped-def]
        id = ids_in("\n".join(m.text for m in messages))[0]
        return call("search_result", "call_s", result_id=id, pattern="finding 2345")

    turn = [delegate("researcher"), read, delegate("researcher", id="call_2"), read, "Done."]
    leader = scripted(*turn, *turn)
    members = [researcher(REPORT, REPORT)]
    team = Team(model=leader, members=members, db=db, offload_tool_results=True, tool_call_limit=1)
    for _ in range(2):
        out = go(mode, team, "Go.", session_id="s1")
        delegated, found, refused, again = [m for m in out.messages if isinstance(m, ToolMessage)]
        assert delegated.status == found.status == again.status == "success"
        assert "finding 2345" in found.text
        assert refused.status == "error" and "limit" in refused.text.lower()


@pytest.mark.parametrize("mode", MODES)
def test_what_the_read_back_tools_answer_is_never_stored(mode: str, db: SqliteDb) -> None:
    def page(messages):  # type: ignore[no-untyped-def]
        return call("read_result", result_id=ids_in(messages[-1].text)[0], limit=10_000)

    leader = scripted(delegate("researcher"), page, "Done.")
    store = ResultStore(threshold_chars=3_000)
    team = Team(model=leader, members=[researcher(REPORT)], db=db, offload_tool_results=store)
    out = go(mode, team, "Go.", session_id="s1")
    page_text = out.messages[4].text
    assert page_text.startswith("<page ") and 3_000 < len(page_text) <= 16_000
    assert team.result_store is not None and team.result_store.stats().results == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_call_keeps_its_text_bounded(mode: str, db: SqliteDb) -> None:
    def broken() -> str:
        """Fails."""
        raise ValueError("no such table: orders\n" + "noise\n" * 50_000 + "the end")

    leader = scripted(call("broken"), "Too bad.")
    team = Team(
        model=leader, members=[researcher()], tools=[broken], db=db, offload_tool_results=True
    )
    out = go(mode, team, "Go.", session_id="s1")
    failed = out.messages[2]
    assert isinstance(failed, ToolMessage) and failed.status == "error"
    assert "no such table: orders" in failed.text and "the end" in failed.text
    assert len(failed.text) < 4_500


@pytest.mark.parametrize("mode", MODES)
def test_a_member_that_fails_is_a_failed_call_of_the_leaders(mode: str, db: SqliteDb) -> None:
    def refuse(messages):  # type: ignore[no-untyped-def]
        raise RuntimeError("rate limited")

    leader = scripted(delegate("a"), "Too bad.")
    team = Team(model=leader, members=[Agent(id="a", model=scripted(refuse))], db=db)
    out = go(mode, team, "Go.", session_id="s1")
    assert out.content == "Too bad."
    assert out.messages[2].text == "rate limited"


@pytest.mark.parametrize("mode", MODES)
def test_history_goes_back_as_many_runs_as_asked_for(mode: str, db: SqliteDb) -> None:
    model = scripted("1", "2", "3", "4")
    agent = Agent(model=model, db=db, num_history_runs=2)
    for word in ("one", "two", "three", "four"):
        go(mode, agent, word, session_id="s1")
    assert [text for _, text in texts(model.seen[3])] == ["two", "2", "three", "3", "four"]
    other = scripted("x")
    go(mode, Agent(model=other, db=db), "hello", session_id="s2")
    assert [text for _, text in texts(other.seen[0])] == ["hello"]
    off = scripted("x")
    go(mode, Agent(model=off, db=db, add_history_to_context=False), "hello", session_id="s1")
    assert [text for _, text in texts(off.seen[0])] == ["hello"]


def test_a_line_that_names_an_older_result_is_its_envelope_where_history_lost_that(
    db: SqliteDb,
) -> None:
    steps = [delegate("researcher"), "Done."] * 3
    leader = scripted(*steps)
    team = Team(
        model=leader, members=[researcher(REPORT, REPORT, REPORT)], db=db,
        offload_tool_results=True, num_history_runs=1,
    )  # fmt: skip
    for turn in range(3):
        team.run(f"turn {turn}", session_id="s1")
    shown = leader.seen[4][3].text  # of the second turn, whose own message was one line
    assert "finding 1:" in shown and len(shown) < 1_700


def test_a_session_goes_on_in_another_process_object(tmp_path: Path) -> None:
    for turn, expected in enumerate((["one"], ["one", "1", "two"])):
        model = scripted(str(turn + 1))
        database = SqliteDb(tmp_path / "team.db")
        Agent(model=model, db=database).run(["one", "two"][turn], session_id="s1")
        assert [text for _, text in texts(model.seen[0])] == expected
        database.close()


def test_a_model_may_be_given_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    model = scripted("hello", "again")
    asked: list[str] = []

    def init(name: str, **_: object) -> object:
        asked.append(name)
        return model

    monkeypatch.setattr("callslip.team.owner.init_chat_model", init)
    agent = Agent(model="anthropic:some-model")
    assert [agent.run("hi").content for _ in range(2)] == ["hello", "again"]
    assert asked == ["anthropic:some-model"]  # made once: it has connections of its own


def test_members_without_a_model_have_their_teams(db: SqliteDb) -> None:
    model = scripted(delegate("a"), "from a", "Done.")
    out = Team(model=model, members=[Agent(id="a")], db=db).run("Go.")
    assert out.member_responses[0].content == "from a"
    with pytest.raises(SettingsError, match="no model"):
        Agent(name="Nobody").run("hi")


def test_ids_are_stable_and_a_name_serves_as_one(db: SqliteDb) -> None:
    assert Agent(name="Data Engineer").id == "data-engineer"
    nameless = Team(model=scripted(), members=[Agent(), Agent()])
    assert [member.id for member in nameless.members] == ["member-1", "member-2"]
    with pytest.raises(SettingsError, match="two members"):
        Team(model=scripted(), members=[Agent(name="A"), Agent(name="a")])
    leader = scripted(delegate("Data Engineer"), delegate("nobody", id="call_2"), "Done.")
    engineer = Agent(name="Data Engineer", model=scripted("built"))
    out = Team(model=leader, members=[engineer], db=db).run("Go.")
    assert out.messages[2].text == "built"
    assert out.messages[4].text == ("There is no member 'nobody'. The members are: data-engineer.")


def test_a_stream_tells_what_leader_and_member_do_as_they_do_it(db: SqliteDb) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    member = Agent(id="a", model=scripted(call("look"), "fine"), tools=[look])
    team = Team(id="t", model=scripted(delegate("a"), "Done."), members=[member], db=db)
    events = list(team.run("Go.", stream=True))
    told = [(event.event, event.agent_id, event.tool or event.content) for event in events]
    assert told == [
        ("tool_started", "t", "delegate_task_to_member"),
        ("tool_started", "a", "look"),
        ("tool_completed", "a", "look"),
        ("content", "a", "fine"),
        ("completed", "a", "fine"),
        ("tool_completed", "t", "delegate_task_to_member"),
        ("content", "t", "Done."),
        ("completed", "t", "Done."),
    ]

    async def streamed() -> list[tuple[str, str, str]]:
        member.model = scripted(call("look"), "fine")
        team.model = scripted(delegate("a"), "Done.")
        return [
            (event.event, event.agent_id, event.tool or event.content)
            async for event in team.arun("Go.", stream=True)
        ]

    assert asyncio.run(streamed()) == told


@pytest.mark.parametrize("stream", [False, True])
def test_print_response_shows_a_caller_the_whole_answer(
    stream: bool, db: SqliteDb, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(
        model=scripted(delegate("researcher"), delegate("researcher", id="call_2")),
        members=[researcher(REPORT, "short")],
        db=db, offload_tool_results=True, respond_directly=True,
    )  # fmt: skip
    team.print_response("Go.", session_id="s1", stream=stream)
    assert capsys.readouterr().out == REPORT + "\n"
    asyncio.run(team.aprint_response("Go.", session_id="s1", stream=stream))
    assert capsys.readouterr().out == "short\n"
    agent = Agent(model=scripted("hello"), db=InMemoryDb())
    agent.print_response("hi", stream=stream)
    assert capsys.readouterr().out == "hello\n"


def test_an_error_of_the_model_is_the_callers_and_the_run_can_go_on(db: SqliteDb) -> None:
    tried: list[int] = []

    def flaky(messages):  # type: ignore[no-untyped-def]
        tried.append(len(messages))
        raise ConnectionError("away")

    agent = Agent(model=scripted(flaky, "hello"), db=db)
    with pytest.raises(ConnectionError):
        agent.run("hi", session_id="s1")
    out: RunOutput = agent.continue_run(session_id="s1")
    assert out.content == "hello" and tried == [1]
    with pytest.raises(SettingsError, match="no unfinished run"):
        agent.continue_run(session_id="s1")
