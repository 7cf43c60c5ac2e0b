"""Forty-eight candidates, judged by a sub-agent: thirty calls of work, one sentence of answer.

The orchestrator's search is stored; it delegates the judging with the handle, and its own window
grows by the answer alone. A second sub-agent names an id that is in no input: that is caught.

Run it with `python examples/forty_eight_candidates.py`: scripts take the models' places. With
`CALLSLIP_MODEL=provider:model` (and that provider's key) `init_chat_model` makes real ones.
"""

from __future__ import annotations

import json
import os
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from callslip import ResultStore
from callslip.adapters.langchain import Offload
from callslip.adapters.langchain_delegate import delegate, delegate_tool
from callslip.adapters.langchain_script import ScriptedChat
from callslip.testing.model import Answer, Call, ScriptedModel, id_shown

STORE = ResultStore()
THREAD: Any = {"configurable": {"thread_id": "candidates"}}
TRUE = ("C-07", "C-19", "C-40")


def candidates(entity: str) -> list[dict[str, Any]]:
    """The 48 candidates for an entity, each with its whole history."""
    return [
        {
            "id": f"C-{n:02d}",
            "name": f"Müller {n % 5}",
            "tax": "DE811128135" if f"C-{n:02d}" in TRUE else f"DE{n:09d}",
            "history": f"imported for {entity}; " + "checked against the register; " * 20,
        }
        for n in range(1, 49)
    ]


def compare_entities(entity: str, candidate: str) -> str:
    """Compare an entity with one candidate, field by field."""
    row = next(row for row in candidates(entity) if row["id"] == candidate)
    same = row["tax"] == "DE811128135"
    fields = "".join(f"field {n}: {'same' if same else 'differs'}\n" for n in range(60))
    return f"{candidate}: tax number {'the same' if same else 'another'}\n{fields}"


def judge(*evidence: str) -> ScriptedChat:
    """The sub-agent's script: read the candidates, compare thirty of them, answer."""
    steps: list[Any] = [
        Call("read_result", lambda seen: {"result_id": handle_in(seen), "start": 1, "limit": 12})
    ]
    steps += [
        Call("compare_entities", entity="E-17", candidate=f"C-{n:02d}") for n in range(12, 42)
    ]
    said = f"{len(evidence)} true matches: {', '.join(evidence)}; all by the tax number."
    steps.append(
        Answer(json.dumps({"result": said, "evidence_ids": list(evidence), "artifacts": []}))
    )
    return ScriptedChat(script=ScriptedModel(steps))


def handle_in(seen: Any) -> str:
    """The handle that a sub-agent's one message shows it."""
    return str(seen[-1].text).split('<result id="')[1].split('"')[0]


def main() -> dict[str, Any]:
    real = os.environ.get("CALLSLIP_MODEL")
    sub: Any = real or judge(*TRUE)
    offload = Offload(STORE)
    script = ScriptedModel(
        [
            Call("candidates", entity="E-17"),
            Call(
                "delegate",
                lambda seen: {
                    "task": "Decide which candidates are true matches of E-17. Flag conflicts.",
                    "inputs": {"entity": "E-17", "candidates": id_shown(seen, "candidates")},
                },
            ),
            Answer(lambda seen: json.loads(seen[-1].text)["result"]),
        ]
    )
    model: Any = real or ScriptedChat(script=script)
    agent = create_agent(
        model,
        [candidates, delegate_tool(sub, [compare_entities], offload)],
        middleware=[offload],
        checkpointer=InMemorySaver(),
    )
    asked = HumanMessage("Which candidates are true matches of E-17? Delegate the judging.")
    final = agent.invoke({"messages": [asked]}, THREAD)
    print("answer:", final["messages"][-1].text)
    grown = work = None
    if not real:
        before, after = model.requests[1:3]
        grown, work = after - before, max(sub.requests)
        print(f"the sub-agent's window: {work:,} characters in {len(sub.requests)} requests")
        print(f"the orchestrator's grew by {grown:,}")

    wrong = delegate(
        "Decide which candidates are true matches of E-17.",
        [compare_entities],
        {"candidates": candidates("E-17")},
        model=real or judge("C-07", "C-77"),
        session=STORE.session("candidates"),
    )
    print("not in the inputs:", ", ".join(wrong.unresolved) or "nothing")
    STORE.session("candidates").close()
    return {"grown": grown, "work": work, "unresolved": wrong.unresolved}


if __name__ == "__main__":
    main()
