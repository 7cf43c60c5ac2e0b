"""A leader with three members whose reports are long: what its transcript holds after each turn.

Run it with `python examples/offload_member_results.py`: scripts take the models' place. With
`CALLSLIP_MODEL=provider:model` (and that provider's key) the models are real. It keeps its
sessions in ./members.db; the second run goes on where the first one ended.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from callslip.adapters.langchain_script import ScriptedChat
from callslip.team import Agent, SqliteDb, Team
from callslip.testing.model import Answer, Call

SERVICES = ("gateway", "billing", "search", "ledger", "mail", "auth")


def catalogue() -> str:
    """Every service of the platform, with what it needs to run."""
    return "\n".join(
        f"{SERVICES[n % 6]}-{n:04d}: region eu-{n % 4}, {n % 7 + 1} replicas, "
        f"depends on {SERVICES[(n + 1) % 6]}-{n // 2:04d}, owner team {n % 12}"
        for n in range(1, 1201)
    )


def calendar() -> str:
    """Who is on which project in which week."""
    return "\n".join(
        f"week {n % 52 + 1}: engineer {n % 80} on project {n % 23}, {20 + n % 20} hours, "
        f"{'on call' if n % 9 == 0 else 'not on call'}"
        for n in range(1, 1501)
    )


def incidents() -> str:
    """Every incident of the year."""
    return "\n".join(
        f"incident {n}: {SERVICES[n % 6]} answered {500 + n % 5} for {n % 47 + 1} minutes; "
        f"cause: {'certificate expired' if n == 777 else 'deployment'}"
        for n in range(1, 1301)
    )


def model(script: Callable[[Any], Any]) -> Any:
    return os.environ.get("CALLSLIP_MODEL") or ScriptedChat(script=script)


def reports(tool: str) -> Callable[[Any], Any]:
    """A member's script: call the tool, and hand in all that it gave."""
    texts = {"catalogue": catalogue, "calendar": calendar, "incidents": incidents}
    return lambda seen: Call(tool) if seen[-1].role == "user" else Answer(texts[tool]())


def leads(seen: Any) -> Any:
    """The leader's script: ask the member that the question names, then answer."""
    if seen[-1].role == "user":
        member = next(name for name in ("builder", "manager", "engineer") if name in seen[-1].text)
        return Call("delegate_task_to_member", member_id=member, task=seen[-1].text)
    return Answer("It is in the report.")


builder = Agent(name="Builder", role="knows every service", tools=[catalogue],
                model=model(reports("catalogue")))  # fmt: skip
manager = Agent(name="Manager", role="knows who works on what", tools=[calendar],
                model=model(reports("calendar")))  # fmt: skip
engineer = Agent(name="Engineer", role="knows every incident", tools=[incidents],
                 model=model(reports("incidents")))  # fmt: skip

team = Team(
    name="Platform",
    model=model(leads),
    members=[builder, manager, engineer],
    instructions="Have the member hand in its whole report, unabridged.",
    db=SqliteDb("members.db"),
    offload_tool_results=True,
    num_history_runs=10,
)

if __name__ == "__main__":
    reported = 0
    for question in (
        "Ask the builder for the catalogue of all services.",
        "Ask the manager for the calendar of the year.",
        "Ask the engineer for all incidents.",
        "Ask the builder for the catalogue once more.",
    ):
        out = team.run(question, session_id="platform")
        reported += sum(len(member.content) for member in out.member_responses)
        transcript = sum(
            len(message.text)
            for run in team.runs("platform")
            if run.agent_id == team.id
            for message in run.messages
        )
        print(f"{question}\n  members have answered {reported:,} characters, "
              f"the leader's transcript has {transcript:,}")  # fmt: skip

    store = team.result_store
    assert store is not None
    print("\nWhat is stored, and read by any of them by its id:")
    for handle in store.session("platform").list().handles:
        same = f", the same as {handle.same_as}" if handle.same_as else ""
        print(f"  {handle.id}  {handle.tool}: {handle.lines:,} lines, {handle.size:,} bytes{same}")
    print(f"{store.stats().payloads} payloads, {store.stats().packed_bytes:,} bytes on disk")
