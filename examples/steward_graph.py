"""A data steward's graph: the state is the database, the transcript is short.

An entity has 2,314 possible duplicates. The graph keeps them as one stored result, its state holds
ids and handles, and each node shows its model a brief of the fields that its step needs. A person
approves at the end, in another process than the one that asked.

Run it with `python examples/steward_graph.py`: a script takes the model's place. With
`CALLSLIP_MODEL=provider:model` (and that provider's key) `init_chat_model` makes a real one.
The checkpoints are in SQLite; `PostgresSaver` takes its place without another change.
"""

from __future__ import annotations

import operator
import os
import sqlite3
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from callslip import ResultStore, Session
from callslip.adapters.langchain_script import ScriptedChat
from callslip.patterns.brief import Brief, Show, merge
from callslip.testing.model import Answer, Message


class StewardState(TypedDict):
    entity_id: str
    candidate_ids: list[str]
    rejected: Annotated[list[str], operator.add]
    decisions: Annotated[list[dict], operator.add]
    artifacts: Annotated[dict[str, str], merge]
    awaiting_approval: bool
    messages: list


COMPARE = Brief(
    StewardState,
    Show("entity_id", label="entity"),
    Show("candidate_ids", label="still to decide", items=5),
    Show("rejected", label="already rejected", items=5),
    Show("decisions", label="matches so far", fields=["id", "why"]),
    "artifacts",
)
APPROVE = Brief(
    StewardState,
    "entity_id",
    Show("decisions", label="to be merged", fields=["id", "why"]),
    Show("rejected", items=3),
)
TASK = (
    "You compare one candidate with the entity of the brief. Answer MATCH or REJECT, a colon, and "
    "why in a few words. The same tax number is a match; anything else is not."
)


def possible_duplicates(entity: str) -> list[dict[str, Any]]:
    """The search of a master data hub: much, and most of it no match."""
    return [
        {
            "id": f"C-{n:04d}",
            "name": f"Müller {'GmbH' if n % 3 else 'AG'} {n % 40}",
            "tax": "DE811128135" if n in (3, 41) else f"DE{811000000 + n * 37}",
            "score": round(1 - n / 2400, 3),
            "history": f"imported for {entity}; " + "checked; " * 12,
        }
        for n in range(2314)
    ]


def build(model: BaseChatModel, session: Session, saver: Any) -> Any:
    """The graph: find, compare one by one, ask a person, merge."""

    def find(state: StewardState) -> dict[str, Any]:
        rows = possible_duplicates(state["entity_id"])
        best = [row["id"] for row in rows if row["score"] > 0.98]
        return {"artifacts": {"duplicates": session.put(rows)}, "candidate_ids": best}

    def compare(state: StewardState) -> dict[str, Any]:
        candidate, *rest = state["candidate_ids"]
        # One record out of 2,314: the slice that this step needs.
        record = session.search(state["artifacts"]["duplicates"], f'"id":"{candidate}"', limit=1)
        asked = HumanMessage(
            f"{COMPARE.render(state, session)}\nThe entity's tax number: DE811128135\n"
            f"Candidate {candidate}:\n{record}"
        )
        said = model.invoke([SystemMessage(TASK), asked]).text
        update: dict[str, Any] = {"candidate_ids": rest, "messages": [HumanMessage(said)]}
        if said.strip().upper().startswith("MATCH"):
            update["decisions"] = [{"id": candidate, "why": said.partition(":")[2].strip()}]
        else:
            update["rejected"] = [candidate]
        return update

    def more(state: StewardState) -> Literal["compare", "ask"]:
        return "compare" if state["candidate_ids"] else "ask"

    def ask(state: StewardState) -> dict[str, Any]:
        return {"awaiting_approval": True}

    def approve(state: StewardState) -> dict[str, Any]:
        said = interrupt(APPROVE.render(state, session))
        merged = [each["id"] for each in state["decisions"]] if said == "yes" else []
        plan = session.put({"into": state["entity_id"], "merge": merged})
        return {"awaiting_approval": False, "artifacts": {"plan": plan}}

    graph = StateGraph(StewardState)
    for node in (find, compare, ask, approve):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "find")
    graph.add_edge("find", "compare")
    graph.add_conditional_edges("compare", more)
    graph.add_edge("ask", "approve")
    graph.add_edge("approve", END)
    return graph.compile(checkpointer=saver)


def decide(seen: Any) -> Answer:
    """What the script does in a model's place: it reads what it was shown, and nothing else."""
    last: Message = seen[-1]
    record = last.text.split("Candidate ")[1]
    return Answer(
        "MATCH: same tax number" if "DE811128135" in record else "REJECT: another company"
    )


def model_of() -> BaseChatModel:
    if name := os.environ.get("CALLSLIP_MODEL"):
        from langchain.chat_models import init_chat_model

        return init_chat_model(name)
    return ScriptedChat(script=decide)


def open_all(model: BaseChatModel, folder: Path) -> tuple[Any, sqlite3.Connection, Session]:
    """Everything anew, as a process does that starts."""
    checkpoints = sqlite3.connect(folder / "checkpoints.db", check_same_thread=False)
    session = ResultStore(folder / "store").session("steward-1")
    return build(model, session, SqliteSaver(checkpoints)), checkpoints, session


def main(folder: Path) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    thread: Any = {"configurable": {"thread_id": "steward-1"}}
    start = {
        "entity_id": "E-17", "candidate_ids": [], "rejected": [], "decisions": [],
        "artifacts": {}, "awaiting_approval": False, "messages": [],
    }  # fmt: skip
    model = model_of()
    graph, checkpoints, session = open_all(model, folder)
    paused = graph.invoke(start, thread)
    print("What the person is asked:\n" + paused["__interrupt__"][0].value)
    checkpoints.close()

    graph, checkpoints, session = open_all(model, folder)  # the next day, another process
    final = graph.invoke(Command(resume="yes"), thread)
    plan = session.load(final["artifacts"]["plan"])
    print(f"\nWhat your code gets: {plan}")
    size = checkpoints.execute("SELECT sum(length(checkpoint)) FROM checkpoints").fetchone()[0]
    size += checkpoints.execute("SELECT sum(length(value)) FROM writes").fetchone()[0]
    count = checkpoints.execute("SELECT count(*) FROM checkpoints").fetchone()[0]
    stored = session.handle(final["artifacts"]["duplicates"]).size
    largest = max(model.requests) if isinstance(model, ScriptedChat) else None
    print(f"\n{stored:,} bytes of candidates; {count} checkpoints of {size:,} bytes together; ")
    print(f"the largest request had {largest:,} characters." if largest else "done.")
    checkpoints.close()
    session.close()
    return {"plan": plan, "stored": stored, "checkpoints": size, "largest": largest}


if __name__ == "__main__":
    main(Path("steward"))
