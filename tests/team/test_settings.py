"""`offload_tool_results`: what it may be, whose it is, and when it is off."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from callslip import ResultStore
from callslip.team import Agent, Db, InMemoryDb, SqliteDb, Team
from tests.team.team_helpers import MODES, REPORT, call, delegate, go, ids_in, scripted


def team_of(member: Agent, db: Any, setting: Any = True, turns: int = 1) -> Team:
    steps = [step for n in range(turns) for step in (delegate(member.id, id=f"c{n}"), "Done.")]
    return Team(model=scripted(*steps), members=[member], db=db, offload_tool_results=setting)


def stored_answer(team: Team, member: str) -> str:
    """What the member's own history holds of its answer."""
    [run] = [run for run in team.runs("s1") if run.agent_id == member]
    assert run.content == REPORT  # a caller's view of it is whole in any case
    return run.messages[-1].text


@pytest.mark.parametrize("wrong", [8000, "yes", 1, {"threshold_chars": 8000}, ResultStore])
def test_anything_else_is_a_type_error_that_names_the_threshold(wrong: Any, db: SqliteDb) -> None:
    with pytest.raises(TypeError, match="threshold_chars"):
        Agent(offload_tool_results=wrong)
    with pytest.raises(TypeError, match="threshold_chars"):
        Team(members=[], offload_tool_results=wrong)
    agent = Agent(id="a", model=scripted("hi"), db=db)
    agent.offload_tool_results = wrong
    with pytest.raises(TypeError, match="threshold_chars"):
        agent.run("hi")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("setting", [False, None])
def test_off_is_off(mode: str, setting: Any, db: SqliteDb, tmp_path: Path) -> None:
    team = team_of(Agent(id="a", model=scripted(REPORT)), db, setting)
    out = go(mode, team, "Go.", session_id="s1")
    assert out.messages[2].text == REPORT
    assert team.result_store is None
    assert stored_answer(team, "a") == REPORT


def test_a_result_store_sets_threshold_preview_lifetime_and_where_payloads_live(
    db: SqliteDb, tmp_path: Path
) -> None:
    now = [1000.0]
    store = ResultStore(
        threshold_chars=100,
        preview_chars=300,
        ttl_seconds=60,
        payloads=tmp_path / "elsewhere",
        clock=lambda: now[0],
    )
    answer = "".join(f"{n:08d}{n * 7919 % 99991:08d}\n" for n in range(20_000))
    team = team_of(Agent(id="a", model=scripted(answer)), db, store)
    out = team.run("Go.", session_id="s1")
    assert len(out.messages[2].text) < 700
    assert [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()]
    assert store.settings.url is None and not store.bound  # a copy was bound, not this
    assert team.result_store is not None and team.offload_tool_results is store
    assert team.result_store.session("s1").list().total == 1
    now[0] += 61
    assert team.result_store.session("s1").list().total == 0


@pytest.mark.parametrize("mode", MODES)
def test_member_responses_false_keeps_the_members_runs_verbatim(mode: str, db: SqliteDb) -> None:
    store = ResultStore(member_responses=False)
    team = team_of(Agent(id="a", model=scripted(REPORT)), db, store)
    out = go(mode, team, "Go.", session_id="s1")
    assert out.messages[2].text.startswith("<result ")
    assert stored_answer(team, "a") == REPORT


@pytest.mark.parametrize("mode", MODES)
def test_a_member_that_opts_out_keeps_its_history(mode: str, db: SqliteDb) -> None:
    member = Agent(id="a", model=scripted(REPORT, "short"), offload_tool_results=False)
    team = team_of(member, db, turns=2)
    out = go(mode, team, "Go.", session_id="s1")
    assert out.messages[2].text.startswith("<result ")  # the leader's side is the leader's
    assert stored_answer(team, "a") == REPORT
    go(mode, team, "Go.", session_id="s1")
    assert member.model.seen[1][1].text == REPORT  # type: ignore[union-attr]
    assert member.result_store is None and member.offload_tool_results is False
    assert "read_result" not in member.model.bound  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", MODES)
def test_a_members_own_store_keeps_its_settings_on_the_teams_database(
    mode: str, db: SqliteDb, tmp_path: Path
) -> None:
    def fetch() -> str:
        """The data."""
        return "x y\n" * 1_500

    own = ResultStore(threshold_chars=3_000, preview_chars=200, payloads=tmp_path / "own")
    model = scripted(call("fetch"), REPORT)
    member = Agent(id="a", model=model, tools=[fetch], offload_tool_results=own)
    team = team_of(member, db)
    go(mode, team, "Go.", session_id="s1")
    envelope = model.seen[1][-1].text
    assert len(envelope) < 650  # 6,000 characters: below the team's threshold, above its own
    assert team.result_store is not None and member.result_store is not None
    session = team.result_store.session("s1")  # and the rest of the team can read it
    assert session.load(ids_in(envelope)[0]) == fetch()
    assert member.offload_tool_results is own and not own.bound
    assert member.result_store.settings.policy.threshold_chars == 3_000
    assert not (tmp_path / "own").exists()


def test_the_binding_is_redone_every_time_a_team_initialises(tmp_path: Path) -> None:
    member = Agent(id="a", model=scripted())
    first = Team(members=[member], db=SqliteDb(tmp_path / "1.db"), offload_tool_results=True)
    second = Team(members=[member], db=SqliteDb(tmp_path / "2.db"), offload_tool_results=True)
    off = Team(members=[member], db=SqliteDb(tmp_path / "3.db"))
    first.initialize()
    assert member.result_store is first.result_store is not None
    second.initialize()
    assert member.result_store is second.result_store is not first.result_store
    off.initialize()
    assert member.result_store is None
    first.initialize()
    assert member.result_store is first.result_store
    assert member.offload_tool_results is None


def test_a_member_follows_the_team_that_it_is_moved_to(tmp_path: Path) -> None:
    member = Agent(id="a", model=scripted(REPORT, REPORT, REPORT))
    places = [tmp_path / "1.db", tmp_path / "2.db"]
    for place in places:
        team = team_of(member, SqliteDb(place))
        team.run("Go.", session_id="s1")
        assert team.result_store is not None
        assert team.result_store.session("s1").list().total == 1
    plain = team_of(member, SqliteDb(tmp_path / "3.db"), None)
    plain.run("Go.", session_id="s1")
    assert stored_answer(plain, "a") == REPORT


class Custom(Db):
    """A database of somebody's own, with no place for results."""

    def __init__(self) -> None:
        super().__init__(InMemorySaver(), InMemoryDb().runs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("make", "named"),
    [(InMemoryDb, "InMemoryDb"), (Custom, "Custom"), (lambda: None, "none")],
)
def test_on_any_other_database_it_is_off_with_one_warning_that_names_the_database(
    mode: str, make: Any, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "callslip")
    team = team_of(Agent(id="a", model=scripted(REPORT, REPORT)), make(), turns=2)
    for _ in range(2):
        out = go(mode, team, "Go.", session_id="s1")
        tools = [message for message in out.messages if message.type == "tool"]
        assert tools[-1].text == REPORT  # nothing is said to be stored
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1 and named in warnings[0] and "'team'" in warnings[0]
    assert team.result_store is None and team.offload_tool_results is True
    assert "read_result" not in team.model.bound  # type: ignore[union-attr]


def test_each_owner_with_a_setting_of_its_own_warns_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "callslip")
    own = Agent(id="own", model=scripted(), offload_tool_results=ResultStore())
    inherits = Agent(id="inherits", model=scripted())
    team = Team(members=[own, inherits], db=InMemoryDb(), offload_tool_results=True)
    team.initialize()
    team.initialize()
    assert sorted(record.getMessage().split("'")[1] for record in caplog.records) == ["own", "team"]


def test_a_database_of_a_wrong_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="SqliteDb"):
        Agent(db="team.db")  # type: ignore[arg-type]


class Elsewhere(Db):
    """A database of another kind that has a place for results: what a PostgreSQL one will be."""

    def __init__(self, folder: Path) -> None:
        super().__init__(InMemorySaver(), InMemoryDb().runs)
        self._folder = folder
        self._copies: dict[int, ResultStore] = {}

    def bind(self, store: ResultStore, payloads: str | None = None) -> ResultStore | None:
        if id(store) not in self._copies:
            self._copies[id(store)] = store.bind(self._folder, payloads)
        return self._copies[id(store)]

    @property
    def bound(self) -> list[ResultStore]:
        return list(self._copies.values())


@pytest.mark.parametrize("mode", MODES)
def test_a_database_of_another_kind_needs_a_saver_runs_and_a_place_for_results(
    mode: str, tmp_path: Path
) -> None:
    team = team_of(Agent(id="a", model=scripted(REPORT)), Elsewhere(tmp_path / "results"))
    out = go(mode, team, "Go.", session_id="s1")
    assert out.messages[2].text.startswith("<result ")
    assert stored_answer(team, "a").startswith("<result ")
    assert team.delete_session("s1") == 2


def test_a_store_with_a_url_of_its_own_is_bound_to_the_teams_database_all_the_same(
    db: SqliteDb, tmp_path: Path
) -> None:
    store = ResultStore(tmp_path / "own")
    team = team_of(Agent(id="a", model=scripted(REPORT)), db, store)
    team.run("Go.", session_id="s1")
    assert team.result_store is not None and team.result_store.stats().results == 1
    assert not (tmp_path / "own").exists() and store.settings.url == str(tmp_path / "own")
