"""A single agent over four turns: one long result, read in slices in every turn after.

Run it with `python examples/offload_agent_results.py`: a script takes the model's place. With
`CALLSLIP_MODEL=provider:model` (and that provider's key) the model is real.
"""

from __future__ import annotations

import os
from typing import Any

from callslip.adapters.langchain_script import ScriptedChat
from callslip.team import Agent, SqliteDb
from callslip.testing.model import Answer, Call, id_shown


def service_log(service: str) -> str:
    """The log of a service."""
    lines = [f"12:{n // 60:02d}:{n % 60:02d} INFO {service} request {n} done" for n in range(3000)]
    lines[1742] = f"12:29:02 ERROR {service} payment gateway answered 502, giving up"
    lines[2100] = f"12:35:00 WARN {service} queue is 9,000 long"
    return "\n".join(lines)


def script(seen: Any) -> Any:
    """Fetch the log once, search it for the word that each question is about, answer."""
    last = seen[-1]
    if last.role == "user":
        if not any(message.tool == "service_log" for message in seen):
            return Call("service_log", service="shop")
        return search(seen, last.text)
    if last.tool == "service_log":
        question = next(message.text for message in reversed(seen) if message.role == "user")
        return search(seen, question)
    return Answer(last.text.split("> ")[1].splitlines()[0])


def search(seen: Any, question: str) -> Call:
    pattern = "ERROR" if "wrong" in question else "WARN" if "warned" in question else "request 7 "
    return Call("search_result", result_id=id_shown(seen, "service_log"), pattern=pattern)


agent = Agent(
    name="Operator",
    model=os.environ.get("CALLSLIP_MODEL") or ScriptedChat(script=script),
    tools=[service_log],
    db=SqliteDb("agent.db"),
    offload_tool_results=True,
    num_history_runs=10,
)

if __name__ == "__main__":
    for question in (
        "What went wrong in the shop?",
        "What was it warned of?",
        "And request 7?",
        "Once more: what went wrong?",
    ):
        out = agent.run(question, session_id="shop")
        transcript = sum(len(m.text) for run in agent.runs("shop") for m in run.messages)
        print(f"{question}\n  {out.content}\n  the transcript has {transcript:,} characters")
    store = agent.result_store
    assert store is not None
    [handle] = store.session("shop").list().handles
    print(f"stored: {handle.id}, {handle.lines:,} lines of {handle.tool}, {handle.size:,} bytes")
    exact = store.session("shop").load(handle.id) == service_log("shop")
    print(f"what your code loads is what the tool returned: {exact}")
