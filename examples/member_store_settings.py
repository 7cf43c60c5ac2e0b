"""Three members: one has the team's store, one opts out, one keeps settings of its own.

Prints each member's store, and what its stored history holds of its answer.

Run it with `python examples/member_store_settings.py`: scripts take the models' place. With
`CALLSLIP_MODEL=provider:model` (and that provider's key) the models are real.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from callslip import ResultStore
from callslip.adapters.langchain_script import ScriptedChat
from callslip.team import Agent, SqliteDb, Team
from callslip.testing.model import Answer, Call

MEMBERS = ("inherits", "opts-out", "own")


def ledger(member: str) -> str:
    return "\n".join(f"{member} entry {n}: {n * 7919 % 10_007} EUR" for n in range(1, 1001))


def report() -> str:
    """All entries of the ledger."""
    return ledger("the")


def model(script: Callable[[Any], Any]) -> Any:
    return os.environ.get("CALLSLIP_MODEL") or ScriptedChat(script=script)


def leads(seen: Any) -> Any:
    """The leader's script: each member in turn."""
    asked = sum(len(message.calls) for message in seen)
    if asked == len(MEMBERS):
        return Answer("All three have reported.")
    return Call("delegate_task_to_member", member_id=MEMBERS[asked], task="Report all entries.")


settings: dict[str, Any] = {
    "inherits": None,
    "opts-out": False,
    "own": ResultStore(preview_lines=2, preview_chars=200),
}
team = Team(
    name="Accounts",
    model=model(leads),
    instructions="Ask each member once.",
    members=[
        Agent(
            id=name,
            role=f"keeps the books ({name})",
            instructions="Hand in all entries, unabridged.",
            tools=[report],
            model=model(lambda seen, name=name: Answer(ledger(name))),
            offload_tool_results=settings[name],
        )
        for name in MEMBERS
    ],
    db=SqliteDb("settings.db"),
    offload_tool_results=ResultStore(threshold_chars=8_000),
)

if __name__ == "__main__":
    team.run("Let everyone report.", session_id="accounts")
    for member in team.members:
        store = member.result_store
        bound = "none" if store is None else (
            f"{store.settings.policy.threshold_chars:,} characters, "
            f"preview {store.settings.preview_chars}, "
            f"{'the team’s' if store is team.result_store else 'its own'}"
        )  # fmt: skip
        print(f"{member.id}: setting {member.offload_tool_results!r:.24}, store: {bound}")
    print()
    for run in team.runs("accounts"):
        if run.agent_id != team.id:
            held = run.messages[-1].text
            print(f"{run.agent_id}: its history holds {len(held):,} of {len(run.content):,} "
                  f"characters: {held[:60]!r}")  # fmt: skip
