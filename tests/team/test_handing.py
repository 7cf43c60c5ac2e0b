"""One id works anywhere in the team: read by another member, or resolved into its inputs."""

from __future__ import annotations

from typing import Any

import pytest

from callslip.team import Agent, SqliteDb, Team
from tests.team.team_helpers import MODES, REPORT, call, delegate, go, ids_in, scripted, size


def handed(messages: Any) -> Any:
    """The leader names the id that it was shown."""
    id = ids_in(messages[-1].text)[0]
    return delegate("writer", f"Sum up {id}, and invented res_0000000000.", id="call_2")


@pytest.mark.parametrize("mode", MODES)
def test_a_leader_hands_a_report_on_by_its_id_and_the_member_reads_it_itself(
    mode: str, db: SqliteDb
) -> None:
    def look(messages: Any) -> Any:
        id = ids_in(messages[-1].text)[0]
        return call("search_result", result_id=id, pattern="finding 2345:")

    writer = scripted(look, lambda messages: messages[-1].text)
    members = [Agent(id="finder", model=scripted(REPORT)), Agent(id="writer", model=writer)]
    leader = scripted(delegate("finder"), handed, "Done.")
    team = Team(model=leader, members=members, db=db, offload_tool_results=True)
    out = go(mode, team, "Go.", session_id="s1")
    assert "finding 2345:" in out.member_responses[1].content
    assert max(leader.sizes) < 4_000 and max(writer.sizes) < 2_000


@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_carries_a_handle_is_resolved_into_the_members_inputs_when_asked_for(
    mode: str, db: SqliteDb
) -> None:
    writer = scripted(lambda messages: f"{messages[-1].text.count('finding ')} findings", "again")
    members = [
        Agent(id="finder", model=scripted(REPORT)),
        Agent(id="writer", model=writer, resolve_results=True),
    ]
    leader = scripted(delegate("finder"), handed, "Done.", delegate("writer", "And?"), "Done.")
    team = Team(model=leader, members=members, db=db, offload_tool_results=True)
    out = go(mode, team, "Go.", session_id="s1")
    assert out.member_responses[1].content == "3000 findings"
    task = writer.seen[0][-1].text
    id = ids_in(task)[0]
    assert f'<input id="{id}">\n{REPORT}\n</input>' in task
    assert task.count("<input ") == 1  # the invented id brings nothing
    assert max(leader.sizes) < 4_000
    # For that run only: what is stored, and replayed, has the id.
    go(mode, team, "Go.", session_id="s1")
    assert size(writer.seen[1]) < 1_000 and id in writer.seen[1][1].text


def test_without_being_asked_for_a_task_is_handed_on_as_it_is(db: SqliteDb) -> None:
    writer = scripted("fine")
    members = [Agent(id="finder", model=scripted(REPORT)), Agent(id="writer", model=writer)]
    team = Team(
        model=scripted(delegate("finder"), handed, "Done."),
        members=members, db=db, offload_tool_results=True,
    )  # fmt: skip
    team.run("Go.", session_id="s1")
    assert size(writer.seen[0]) < 1_000


def test_an_id_of_another_users_session_brings_nothing(db: SqliteDb) -> None:
    writer = scripted("fine", "fine")
    agent = Agent(id="w", model=writer, db=db, resolve_results=True, offload_tool_results=True)
    agent.initialize()
    assert agent.result_store is not None
    id = agent.result_store.session("s1", user="ana").put(REPORT).id
    agent.run(f"Sum up {id}.", session_id="s1", user_id="bob")
    assert size(writer.seen[0]) < 1_000
    agent.run(f"Sum up {id}.", session_id="s1", user_id="ana")
    assert size(writer.seen[1]) > len(REPORT)


def test_what_would_be_longer_than_a_provider_takes_is_cut_and_says_so(db: SqliteDb) -> None:
    writer = scripted("fine")
    agent = Agent(id="w", model=writer, db=db, resolve_results=True, offload_tool_results=True)
    agent.initialize()
    assert agent.result_store is not None
    session = agent.result_store.session("s1")
    ids = [session.put(f"{n} {REPORT}").id for n in range(3)]
    agent.run(f"Compare {', '.join(ids)}.", session_id="s1")
    assert size(writer.seen[0]) < 252_000
    assert "left out" in writer.seen[0][-1].text
