"""When the store, the database or a member fails: what the model and the caller get."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path

import pytest
from langchain.agents.middleware import ToolRetryMiddleware

from callslip import ResultStore
from callslip.errors import SettingsError, StoreUnavailable
from callslip.team import Agent, RunEvent, SqliteDb, Team
from tests.team.team_helpers import MODES, call, calls, delegate, go, scripted, size


def noise(chars: int) -> str:
    """A text that no compression makes small enough for the index."""
    letters = random.Random(5).choices("abcdefghijklmnopqrstuvwxyz0123456789\n", k=chars)
    return "".join(letters)


@pytest.mark.parametrize("mode", MODES)
def test_what_could_not_be_stored_is_not_said_to_be_and_the_callers_side_stays_whole(
    mode: str, db: SqliteDb, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file where the payloads' folder should be")
    store = ResultStore(payloads=tmp_path / "taken" / "payloads", spool="")
    answer = noise(200_000)
    leader = scripted(delegate("a"), "Done.")
    members = [Agent(id="a", model=scripted(answer))]
    team = Team(model=leader, members=members, db=db, offload_tool_results=store)
    out = go(mode, team, "Go.", session_id="s1")
    assert out.content == "Done." and out.member_responses[0].content == answer
    shown = out.messages[2].text
    assert shown.startswith('<result stored="false"') and len(shown) <= 4_000
    assert str(tmp_path) not in shown
    [stored] = [run for run in team.runs("s1") if run.agent_id == "a"]
    assert stored.content == answer


def test_an_error_of_ours_tells_the_model_no_path(db: SqliteDb, tmp_path: Path) -> None:
    def broken() -> str:
        """Fails."""
        raise StoreUnavailable(f"{tmp_path}/index.db is gone", reason="unreachable")

    leader = scripted(call("broken"), "Too bad.")
    out = Agent(model=leader, tools=[broken], db=db).run("Go.")
    assert str(tmp_path) not in out.messages[2].text and out.messages[2].text


@pytest.mark.parametrize("mode", MODES)
def test_a_middleware_that_tries_again_sees_what_a_tool_raised(mode: str, db: SqliteDb) -> None:
    tried: list[int] = []

    def flaky() -> str:
        """Works at the second attempt."""
        tried.append(1)
        if len(tried) == 1:
            raise ConnectionError("away")
        return "here"

    again = ToolRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    model = scripted(call("flaky"), "Done.")
    agent = Agent(model=model, tools=[flaky], middleware=[again], db=db)
    out = go(mode, agent, "Go.")
    assert out.messages[2].text == "here" and len(tried) == 2


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "app.db"
    with sqlite3.connect(file) as theirs:
        theirs.execute("CREATE TABLE orders (id)")
    before = file.read_bytes()
    with pytest.raises(SettingsError, match="another program"):
        Agent(model=scripted("hi"), db=SqliteDb(file)).run("hi")
    assert file.read_bytes() == before


@pytest.mark.parametrize("mode", MODES)
def test_answers_below_the_threshold_that_are_much_together_are_offloaded_largest_first(
    mode: str, db: SqliteDb
) -> None:
    ids = "abcdef"
    each = [f"{id}\n{noise(12_000 + 100 * n)}" for n, id in enumerate(ids)]
    members = [Agent(id=id, model=scripted(text)) for id, text in zip(ids, each, strict=True)]
    asked = calls(*(delegate(id, id=f"call_{id}") for id in ids))
    leader = scripted(asked, "Done.")
    team = Team(model=leader, members=members, db=db, offload_tool_results=True)
    go(mode, team, "Go.", session_id="s1")
    assert size(leader.seen[1]) < 50_000
    stored = [m.text.startswith("<result ") for m in leader.seen[1] if m.type == "tool"]
    assert stored[-1] and not stored[0]


def test_a_stream_that_is_left_early_can_be_gone_on_with(db: SqliteDb) -> None:
    team = Team(
        model=scripted(delegate("a"), "Done."), members=[Agent(id="a", model=scripted("fine"))],
        db=db,
    )  # fmt: skip
    events = team.run("Go.", session_id="s1", stream=True)
    assert isinstance(next(iter(events)), RunEvent)
    events.close()  # type: ignore[attr-defined]
    assert team.continue_run(session_id="s1").content == "Done."


def test_many_sessions_run_at_once_on_one_event_loop(db: SqliteDb) -> None:
    def team(n: int) -> Team:
        return Team(
            model=scripted(delegate("a"), f"Done {n}."),
            members=[Agent(id="a", model=scripted(f"{n}" * 20_000))],
            db=db, offload_tool_results=True,
        )  # fmt: skip

    async def all_of_them() -> list[str]:
        runs = (team(n).arun("Go.", session_id=f"s{n}") for n in range(8))
        return [out.content for out in await asyncio.gather(*runs)]

    assert asyncio.run(all_of_them()) == [f"Done {n}." for n in range(8)]
