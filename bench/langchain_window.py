"""One scripted task of 60 turns and 15 MB of results, in LangChain agents: what each request held.

    python -m bench.langchain_window

The same task, tools and scripted model in several arrangements: with nothing, with `Offload`, with
LangChain's ContextEditingMiddleware, with deepagents' eviction of large results (its
FilesystemMiddleware in the same agent), and with a whole deep agent. In every third turn the model
asks for a result of 750 kB, twenty in all: a log, a JSON array in one line, the same with
indentation, a CSV. In the other turns it looks one item up, by what the arrangement gives it: a
search in what was stored, or else a small tool. Checkpoints go to SQLite with LangGraph's own
saver, every step.

`largest request` is the characters of all messages of a request, without system prompt and tools.
`checkpoint` is the last one, what every further step carries; `due to results` is what it has more
than the last checkpoint of the first row, where each large result is one line. `all steps` is the
database with every step in it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

from callslip import ResultStore
from callslip.adapters.langchain import Offload

TURNS = 60
EVERY = 3
RESULT_CHARS = 750_000
Call = tuple[str, dict[str, Any]]
LooksUp = Callable[[int, str], Call]


def item(at: int, n: int) -> dict[str, Any]:
    return {
        "id": at,
        "batch": n,
        "worker": at % 16,
        "state": "finished",
        "note": f"item {at} of batch {n} was checked against the register, without a finding",
    }


def log(n: int) -> str:
    line = "2026-11-30T10:%02d:%02d worker-%d INFO finished item %d of batch %d without a finding\n"
    return "".join(line % (at // 60 % 60, at % 60, at % 16, at, n) for at in range(10_000))


def result(n: int) -> str:
    """A large result of one of four kinds."""
    kind, items = n // EVERY % 4, [item(at, n) for at in range(5_000)]
    if kind == 0:
        return log(n)[:RESULT_CHARS]
    if kind == 1:
        return json.dumps(items)[:RESULT_CHARS]
    if kind == 2:
        return json.dumps(items, indent=2)[:RESULT_CHARS]
    rows = (",".join(map(str, row.values())) for row in (item(at, n) for at in range(8_000)))
    return ("\n".join(["id,batch,worker,state,note", *rows]))[:RESULT_CHARS]


@tool
def fetch(n: int) -> str:
    """Fetch all items of a batch."""
    return result(n)


@tool("fetch")
def fetch_short(n: int) -> str:
    """Fetch all items of a batch."""
    return f"batch {n} has 5,000 items, all finished"


@tool
def note(n: int) -> str:
    """A small answer."""
    return f"item {n} of the batch was finished by worker-{n % 16}; nothing else is known of it"


class Scripted(BaseChatModel):
    """Fetches every third turn, and looks things up in between."""

    look_up: Any
    sizes: list[int]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
        self.sizes.append(sum(size(message) for message in messages if message.type != "system"))
        turn = len(self.sizes)
        if turn > TURNS:
            answer = AIMessage("done")
        else:
            large = turn % EVERY == 1
            name, args = ("fetch", {"n": turn}) if large else self.look_up(turn, texts(messages))
            call = {"name": name, "args": args, "id": f"call_{turn}", "type": "tool_call"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def size(message: BaseMessage) -> int:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return len(message.text) + sum(len(str(call["args"])) + len(call["name"]) for call in calls)


def texts(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(message.text[-3000:] for message in messages if message.type == "tool")


def in_ours(turn: int, seen: str) -> Call:
    ids = re.findall(r"res_[0-9a-f]+", seen)
    pattern = f"item {turn * 37} of"
    return "search_result", {"result_id": ids[-1], "pattern": pattern}


def in_files(turn: int, seen: str) -> Call:
    paths = re.findall(r"/large_tool_results/\w+", seen)
    pattern = f"item {turn * 37} of"
    return "grep", {"pattern": pattern, "path": paths[-1], "output_mode": "content"}


def in_none(turn: int, seen: str) -> Call:
    return "note", {"n": turn * 37}


def short(model: Any, saver: Any) -> Any:
    return create_agent(model, [fetch_short, note], checkpointer=saver)


def plain(model: Any, saver: Any) -> Any:
    return create_agent(model, [fetch, note], checkpointer=saver)


def ours(model: Any, saver: Any) -> Any:
    store = ResultStore(tempfile.mkdtemp(prefix="callslip-bench-"))
    return create_agent(model, [fetch, note], middleware=[Offload(store)], checkpointer=saver)


def editing(model: Any, saver: Any) -> Any:
    edits = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=100_000, keep=3)])
    return create_agent(model, [fetch, note], middleware=[edits], checkpointer=saver)


def evicting(model: Any, saver: Any) -> Any:
    from deepagents.backends import StateBackend
    from deepagents.middleware.filesystem import FilesystemMiddleware

    files = FilesystemMiddleware(backend=StateBackend())
    return create_agent(model, [fetch, note], middleware=[files], checkpointer=saver)


def deep(model: Any, saver: Any) -> Any:
    from deepagents import create_deep_agent

    return create_deep_agent(model, [fetch, note], checkpointer=saver)


def run(make: Callable[[Any, Any], Any], look_up: LooksUp) -> tuple[int, int, int]:
    """The largest request in characters; the last checkpoint and the whole database in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "checkpoints.db"
        connection = sqlite3.connect(file, check_same_thread=False)
        model = Scripted(look_up=look_up, sizes=[])
        agent = make(model, SqliteSaver(connection))
        config = {"configurable": {"thread_id": "bench"}, "recursion_limit": 1000}
        agent.invoke({"messages": [HumanMessage("Look into every batch.")]}, config)
        query = "select length(checkpoint) from checkpoints order by checkpoint_id desc limit 1"
        [last] = connection.execute(query).fetchone()
        connection.execute("pragma wal_checkpoint(truncate)")
        connection.close()
        return max(model.sizes), last, file.stat().st_size


def main() -> None:
    rows: list[tuple[str, Callable[[Any, Any], Any], LooksUp]] = [
        ("nothing, results of one line", short, in_none),
        ("nothing", plain, in_none),
        ("callslip `Offload`", ours, in_ours),
        ("LangChain `ContextEditingMiddleware`", editing, in_none),
        ("deepagents `FilesystemMiddleware`", evicting, in_files),
        ("deepagents `create_deep_agent`", deep, in_files),
    ]
    print("| | largest request | last checkpoint | of it due to results | all steps |")
    print("|---|---:|---:|---:|---:|")
    least = 0
    for name, make, look_up in rows:
        most, checkpoint, database = run(make, look_up)
        least = least or checkpoint
        # A deep agent keeps its messages as differences: its last checkpoint says nothing.
        due = f"{(checkpoint - least) / 1000:,.0f} kB" if checkpoint >= least else "–"
        print(
            f"| {name} | {most:,} chars | {checkpoint / 1000:,.0f} kB | {due} "
            f"| {database / 1e6:,.1f} MB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
