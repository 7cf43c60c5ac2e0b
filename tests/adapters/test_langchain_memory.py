from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import ToolRuntime

from callslip import ResultStore, SettingsError
from callslip.adapters.langchain import Offload
from callslip.adapters.langchain_memory import Remembers
from callslip.adapters.langgraph_store import FactStore
from callslip.patterns.memory import Memory
from tests.adapters.langchain_helpers import answer_to, calls, scripted
from tests.conftest import Clock

WEEK = 7 * 86_400


def run(user: str, thread: str) -> Any:
    return {"configurable": {"thread_id": thread, "user_id": user, "tenant_id": "acme"}}


def ask(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def test_a_preference_told_in_one_session_is_used_a_week_later_by_one_recall(
    tmp_path: Path,
) -> None:
    clock = Clock()
    first = ResultStore(tmp_path / "store", clock=clock)
    told = {"text": "Ana wants conflicts side by side", "key": "conflicts", "kind": "preference"}
    model = scripted(calls(("remember", "1", told)), "noted")
    agent = create_agent(model, [], middleware=[Remembers(first)])
    agent.invoke(ask("Show conflicts side by side from now on."), run("ana", "monday"))
    first.close()

    clock.at += WEEK
    second = ResultStore(tmp_path / "store", clock=clock)
    model = scripted(
        calls(("recall", "2", {"query": "how to show conflicts"})), "side by side it is"
    )
    agent = create_agent(model, [], middleware=[Remembers(second)])
    done = agent.invoke(ask("Show me the conflicts."), run("ana", "next monday"))
    answer = answer_to(done["messages"], "2").text
    assert "\nAna wants conflicts side by side\n" in answer
    assert 'source="monday"' in answer
    assert "7 days ago" in answer
    assert len(model.seen) == 2, "one recall was enough"

    model = scripted(calls(("recall", "3", {"query": "how to show conflicts"})), "I do not know")
    agent = create_agent(model, [], middleware=[Remembers(second)])
    done = agent.invoke(ask("Show me the conflicts."), run("bob", "next monday"))
    assert answer_to(done["messages"], "3").text == "Nothing is remembered yet."


def test_a_session_that_never_asks_sends_the_very_bytes_it_would_without_memory(
    tmp_path: Path,
) -> None:
    @tool
    def lookup(name: str) -> str:
        """Look something up."""
        return f"{name} is 7"

    store = ResultStore(tmp_path / "store")
    for n in range(50):
        Memory(store, ("acme", "ana")).remember(f"fact number {n} of ana")

    def requests(middleware: list[Any]) -> tuple[list[bytes], list[str]]:
        model = scripted(calls(("lookup", "1", {"name": "x"})), "7")
        agent = create_agent(model, [lookup], middleware=middleware, system_prompt="Be brief.")
        agent.invoke({"messages": [HumanMessage("what is x?", id="h")]}, run("ana", "t"))
        sent = [
            json.dumps(
                [m.model_dump(exclude={"id", "response_metadata"}) for m in seen], default=str
            ).encode()
            for seen in model.seen
        ]
        return sent, model.bound

    without, few = requests([])
    with_memory, more = requests([Remembers(store)])
    assert with_memory == without
    assert sorted(more) == sorted([*few, "remember", "recall", "forget"])


def test_its_answers_are_never_offloaded_and_bring_no_line_of_their_own(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "store", threshold_chars=50)
    Memory(store, ("acme", "ana")).remember("zebra " * 60)
    model = scripted(calls(("recall", "1", {"query": "zebra"})), "done")
    agent = create_agent(
        model, [], middleware=[Remembers(store), Offload(store)], checkpointer=InMemorySaver()
    )
    done = agent.invoke(ask("zebra?"), run("ana", "t"))
    assert answer_to(done["messages"], "1").text.startswith('<facts shown="1"')


def test_nor_are_they_changed_in_a_later_turn(tmp_path: Path) -> None:
    store = ResultStore(
        tmp_path, threshold_chars=600, preview_chars=100, mask={"ssn": lambda value: "?"}
    )
    middleware = Remembers(store)
    memory = middleware.memory(run("ana", "1"))
    for number in range(9):
        memory.remember(f'Tea is fact {number} {{"ssn": "1{number}"}} ' + f"word{number} " * 20)
    model = scripted(calls(("recall", "r", {"query": "tea"})), "one", "two")
    agent = create_agent(
        model, [], middleware=[middleware, Offload(store)], checkpointer=InMemorySaver()
    )
    for text in ("Tea?", "And now?"):
        agent.invoke(ask(text), run("ana", "1"))
    first, later = (answer_to(model.seen[at], "r").text for at in (1, 2))
    assert len(first) > 600
    assert later == first


def test_the_same_recall_twice_in_a_row_gets_a_line(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "store")
    Memory(store, ("acme", "ana")).remember("zebra")
    same = {"query": "zebra"}
    model = scripted(calls(("recall", "1", same)), calls(("recall", "2", same)), "done")
    agent = create_agent(model, [], middleware=[Remembers(store)])
    done = agent.invoke(ask("zebra?"), run("ana", "t"))
    assert answer_to(done["messages"], "2").text.startswith("You made this very call just now")


async def _asked(store: ResultStore) -> str:
    model = scripted(calls(("recall", "1", {"query": "zebra"})), "done")
    agent = create_agent(model, [], middleware=[Remembers(store)])
    return answer_to((await agent.ainvoke(ask("?"), run("ana", "t")))["messages"], "1").text


@pytest.mark.asyncio
async def test_an_async_agent_gets_the_same(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "store")
    await Memory(store, ("acme", "ana")).aremember("zebra")
    assert "\nzebra\n" in await _asked(store)


def test_a_run_of_nobody_is_told_so_by_the_tool(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "store")
    model = scripted(calls(("recall", "1", {"query": "zebra"})), "done")
    agent = create_agent(model, [], middleware=[Remembers(store)])
    with pytest.raises(SettingsError, match="user_id"):
        agent.invoke(ask("?"), {"configurable": {"thread_id": "t"}})
    with pytest.raises(SettingsError, match="embed"):
        Remembers(store, embed=5)


def test_a_tool_that_uses_the_graphs_store_uses_this_one(tmp_path: Path) -> None:
    @tool
    def note(text: str, runtime: ToolRuntime) -> str:
        """Note something."""
        assert runtime.store is not None
        runtime.store.put(("ana",), "note", {"text": text})
        return str([item.value for item in runtime.store.search(("ana",), query="zebras")])

    store = ResultStore(tmp_path / "store")
    model = scripted(calls(("note", "1", {"text": "a zebra"})), "done")
    agent = create_agent(model, [note], store=FactStore(store, root=("acme",)))
    done = agent.invoke(ask("note it"))
    assert answer_to(done["messages"], "1").text == "[{'text': 'a zebra'}]"
    assert [fact.text for fact in Memory(store, ("acme", "ana")).recall("zebra")] == ["a zebra"]
