"""A leader hands a long report to the next member by naming its id.

Twice: an editor that reads what it needs of it, and a counter that asks for the whole text in its
own window (`resolve_results=True`). The report never goes through the leader's.

Run it with `python examples/handing_a_result_to_a_member.py`: scripts take the models' place. With
`CALLSLIP_MODEL=provider:model` (and that provider's key) the models are real.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from callslip.adapters.langchain_script import ScriptedChat
from callslip.team import Agent, SqliteDb, Team
from callslip.testing.model import Answer, Call, id_shown

REPORT = "\n".join(
    f"finding {n}: the pump at station {n % 61} {'LEAKS' if n == 1789 else 'is tight'}, "
    f"pressure {n * 37 % 90 / 10} bar"
    for n in range(1, 2501)
)


def inspection() -> str:
    """The protocol of the inspection."""
    return REPORT


def script(*steps: Any) -> Callable[[Any], Any]:
    left: Iterator[Any] = iter(steps)

    def step(seen: Any) -> Any:
        given = next(left)
        return given(seen) if callable(given) else given

    return step


def model(*steps: Any) -> Any:
    return os.environ.get("CALLSLIP_MODEL") or ScriptedChat(script=script(*steps))


def named(seen: Any) -> str:
    """The id that the task names, as a member reads it."""
    return next(word.strip(".,") for word in seen[-1].text.split() if word.startswith("res_"))


inspector = Agent(name="Inspector", role="has the inspection's protocol", tools=[inspection],
                  instructions="Hand in the whole protocol, unabridged.",
                  model=model(Call("inspection"), Answer(REPORT)))  # fmt: skip
editor = Agent(name="Editor", role="finds the one thing that matters in a report",
               model=model(
                   lambda seen: Call("search_result", result_id=named(seen), pattern="LEAKS"),
                   lambda seen: Answer(seen[-1].text.split("> ")[1].splitlines()[0]),
               ))  # fmt: skip
counter = Agent(name="Counter", role="counts in a text that it has in full before it",
                resolve_results=True,
                model=model(lambda seen: Answer(
                    f"{seen[-1].text.count('is tight'):,} pumps are tight")))  # fmt: skip


def hand(member: str, task: str) -> Callable[[Any], Call]:
    return lambda seen: Call(
        "delegate_task_to_member",
        member_id=member,
        task=f"{task} Report: {id_shown(seen, 'delegate_task_to_member')}",
    )


leader = model(
    Call("delegate_task_to_member", member_id="inspector", task="Give me the protocol."),
    hand("editor", "Which pump leaks?"),
    # The report's id is the first that was shown.
    lambda seen: hand("counter", "How many pumps are tight?")(
        [message for message in seen if message.text.startswith("<result ")]
    ),
    Answer("Done."),
)
team = Team(
    name="Waterworks",
    model=leader,
    members=[inspector, editor, counter],
    instructions="Hand a report on by its id. End with what the members found.",
    db=SqliteDb("handing.db"),
    offload_tool_results=True,
)

if __name__ == "__main__":
    out = team.run("Which pump leaks, and how many are tight?", session_id="waterworks")
    for member in out.member_responses:
        short = (
            member.content if len(member.content) < 200 else f"{len(member.content):,} characters"
        )
        print(f"{member.agent_id}: {short}")
    seen = sum(len(message.text) for message in out.messages)
    print(f"The leader's messages have {seen:,} characters.")
    print(f"leader: {out.content}")
