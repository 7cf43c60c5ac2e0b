"""The scratchpad in LangChain agents: the plan as the tail, versions by checkpoint, no lost update."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from callslip import ResultStore
from callslip.adapters.langchain import Offload
from callslip.adapters.langchain_scratchpad import Scratchpad
from callslip.patterns.scratchpad import Scratchpad as Pad
from tests.adapters.langchain_helpers import Scripted, answer_to, calls, memory, scripted

THREAD: Any = {"configurable": {"thread_id": "t"}}


def write(call: str, content: str, path: str = "todo.md", **more: Any) -> AIMessage:
    return calls(("write_file", call, {"path": path, "content": content, **more}))


def edit(call: str, old: str, new: str, path: str = "todo.md") -> AIMessage:
    return calls(("edit_file", call, {"path": path, "old": old, "new": new}))


def tails(model: Scripted) -> list[str]:
    """The last message of each request, where it is the plan."""
    return [seen[-1].text if seen[-1].text.startswith("<plan") else "" for seen in model.seen]


def ask(agent: Any, text: str = "Go", config: Any = None) -> Any:
    return agent.invoke({"messages": [HumanMessage(text)]}, config or THREAD)


def test_the_plan_stands_at_the_end_of_every_request_and_nowhere_else() -> None:
    store = memory()
    model = scripted(
        write("1", "Goal\n- [ ] a\n- [ ] b"),
        edit("2", "[ ] a", "[x] a"),
        edit("3", "[ ] b", "[x] b"),
        "done",
    )
    saver = InMemorySaver()
    agent = create_agent(model, middleware=[Scratchpad(store)], checkpointer=saver)
    final = ask(agent)
    assert [tail.split("\n")[2:4] for tail in tails(model)] == [
        [], ["- [ ] a", "- [ ] b"], ["- [x] a", "- [ ] b"], ["- [x] a", "- [x] b"],
    ]  # fmt: skip
    # Only the tail changes: without it, each request begins with the whole of the one before.
    for before, after in zip(model.seen, model.seen[1:], strict=False):
        plain = [m for m in before if not m.text.startswith("<plan")]
        assert after[: len(plain)] == plain
    assert not [m for m in final["messages"] if "<plan" in m.text]
    assert "scratchpad_version" not in final
    for checkpoint in saver.list(THREAD):
        values = checkpoint.checkpoint["channel_values"]
        assert not [m for m in values.get("messages", []) if "<plan" in m.text]
        assert isinstance(values.get("scratchpad_version", 0), int)
    assert model.bound == ["write_file", "read_file", "edit_file", "list_files"]
    assert "todo.md" in model.seen[0][0].text


def test_it_works_the_same_on_an_event_loop() -> None:
    async def run() -> None:
        store = memory()
        model = scripted(write("1", "Goal"), edit("2", "Goal", "Aim"), "done")
        agent = create_agent(model, middleware=[Scratchpad(store)], checkpointer=InMemorySaver())
        await agent.ainvoke({"messages": [HumanMessage("Go")]}, THREAD)
        assert [tail.split("\n")[1:2] for tail in tails(model)] == [[], ["Goal"], ["Aim"]]

    asyncio.run(run())


def test_the_plan_is_intact_after_compaction_and_in_a_new_process(tmp_path: Path) -> None:
    def agent(model: Scripted) -> Any:
        saver = SqliteSaver(sqlite3.connect(tmp_path / "check.db", check_same_thread=False))
        summary = SummarizationMiddleware(
            scripted(*["the summary"] * 9), trigger=("messages", 4), keep=("messages", 1)
        )
        return create_agent(
            model, middleware=[summary, Scratchpad(ResultStore(tmp_path / "s"))], checkpointer=saver
        )

    plan = "Goal: everything\n- [ ] one\n- [ ] two"
    first = scripted(write("1", plan), edit("2", "[ ] one", "[x] one"), edit("3", "two", "2"), "ok")
    ask(agent(first))
    second = scripted("still there")
    ask(agent(second), "What is the plan?")
    assert any("the summary" in m.text for m in second.seen[0])
    assert not [m for m in second.seen[0] if isinstance(m, ToolMessage)]
    assert "Goal: everything\n- [x] one\n- [ ] 2\n</plan>" in tails(second)[0]


def test_an_older_checkpoint_shows_its_plan_and_goes_on_with_its_own_files() -> None:
    store, saver = memory(), InMemorySaver()
    model = scripted(
        write("1", "plan one"),
        "first",
        write("2", "plan two"),
        write("n", "abandoned", "notes.md"),
        "second",
    )
    agent = create_agent(model, middleware=[Scratchpad(store)], checkpointer=saver)
    ask(agent)
    ask(agent, "Again")
    # The end of the first run, as it is kept; the same thread goes on from there another way.
    [then] = [
        state for state in agent.get_state_history(THREAD)
        if not state.next and state.values["messages"][-1].text == "first"
    ]  # fmt: skip
    other = scripted(
        calls(("list_files", "l", {})),
        edit("3", "one", "three"),
        calls(("list_files", "m", {})),
        "third",
    )
    agent = create_agent(other, middleware=[Scratchpad(store)], checkpointer=saver)
    final = ask(agent, "Otherwise", then.config)
    assert [tail.split("\n")[1] for tail in tails(other)] == [
        "plan one", "plan one", "plan three", "plan three"
    ]  # fmt: skip
    assert answer_to(final["messages"], "l").text == "1 file.\ntodo.md  version 1  1 line  8B"
    assert answer_to(final["messages"], "3").text.startswith("Edited todo.md: version 4")
    assert "notes.md" not in answer_to(final["messages"], "m").text
    # And the abandoned run still has its own.
    last = scripted(calls(("read_file", "r", {"path": "notes.md"})), "fourth")
    [later] = [
        state for state in agent.get_state_history(THREAD)
        if not state.next and state.values["messages"][-1].text == "second"
    ]  # fmt: skip
    agent = create_agent(last, middleware=[Scratchpad(store)], checkpointer=saver)
    final = ask(agent, "Back", later.config)
    assert tails(last)[0].split("\n")[1] == "plan two"
    assert "abandoned" in answer_to(final["messages"], "r").text


def test_a_run_that_goes_back_to_its_beginning_has_no_plan_yet() -> None:
    store, saver = memory(), InMemorySaver()
    Pad(store.session("t")).write_file("brief.md", "from outside, before")
    agent = create_agent(
        scripted(write("1", "plan one"), "first"),
        middleware=[Scratchpad(store)],
        checkpointer=saver,
    )
    ask(agent)
    *_, begun, _ = agent.get_state_history(THREAD)
    assert "scratchpad_version" not in begun.values
    other = scripted(calls(("list_files", "l", {})), write("2", "plan two"), "second")
    agent = create_agent(other, middleware=[Scratchpad(store)], checkpointer=saver)
    final = agent.invoke(None, begun.config)
    assert tails(other)[0] == ""
    assert answer_to(final["messages"], "l").text.startswith("1 file.\nbrief.md")
    assert answer_to(final["messages"], "2").text.startswith("Wrote todo.md: version 3")
    assert tails(other)[2].split("\n")[1] == "plan two"


def test_what_somebody_else_writes_is_shown_and_a_stale_write_is_told() -> None:
    store = memory()
    outside = Pad(store.session("t"))

    @tool
    def meanwhile(text: str) -> str:
        """Somebody else writes."""
        outside.write_file("todo.md", text)
        return "ok"

    model = scripted(
        write("1", "mine"),
        calls(
            ("meanwhile", "2", {"text": "theirs"}),
            ("write_file", "3", {"path": "todo.md", "content": "mine again"}),
        ),
        write("4", "both"),
        "done",
    )
    agent = create_agent(
        model, [meanwhile], middleware=[Scratchpad(store)], checkpointer=InMemorySaver()
    )
    # One after the other: the write of the same turn comes when the other's is done.
    final = agent.invoke({"messages": [HumanMessage("Go")]}, THREAD | {"max_concurrency": 1})
    assert answer_to(final["messages"], "3").text.startswith(
        "Nothing was written: todo.md is at version 2"
    )
    assert tails(model)[2].split("\n")[1] == "theirs"
    assert answer_to(final["messages"], "4").text.startswith("Wrote todo.md: version 3")
    assert outside.text("todo.md") == "both"


def test_parallel_edits_of_one_turn_all_hold() -> None:
    store = memory()
    model = scripted(
        write("0", "a\nb\nc\nd"),
        calls(
            *[
                ("edit_file", f"{x}", {"path": "todo.md", "old": x, "new": x.upper()})
                for x in "abcd"
            ]
        ),
        "done",
    )
    agent = create_agent(model, middleware=[Scratchpad(store)], checkpointer=InMemorySaver())
    ask(agent)
    assert tails(model)[2].split("\n")[1:5] == ["A", "B", "C", "D"]
    assert Pad(store.session("t")).text("todo.md") == "A\nB\nC\nD"


def test_a_replayed_tool_step_is_answered_not_done_again() -> None:
    store, saver = memory(), InMemorySaver()
    model = scripted(write("0", "a"), edit("1", "a", "b"), "done")
    agent = create_agent(model, middleware=[Scratchpad(store)], checkpointer=saver)
    first = ask(agent)
    [before_edit] = [
        state for state in agent.get_state_history(THREAD)
        if state.next == ("tools",) and state.values["messages"][-1].tool_calls[0]["id"] == "1"
    ]  # fmt: skip
    agent = create_agent(scripted("done"), middleware=[Scratchpad(store)], checkpointer=saver)
    again = agent.invoke(None, before_edit.config)
    assert answer_to(again["messages"], "1").text == answer_to(first["messages"], "1").text
    assert Pad(store.session("t")).list_files().version == 2


def test_threads_and_users_have_their_own_files_and_a_sub_agent_its_own_unless_shared() -> None:
    store = memory()

    def run(config: Any, *script: Any, **options: Any) -> Scripted:
        model = scripted(*script)
        ask(create_agent(model, middleware=[Scratchpad(store, **options)]), config=config)
        return model

    run(THREAD, write("1", "mine"), "ok")
    other = {"configurable": {"thread_id": "other"}}
    assert tails(run(other, "ok")) == [""]
    assert tails(run({"configurable": {"thread_id": "t", "user_id": "ana"}}, "ok")) == [""]
    # The same thread without any checkpoint: the latest.
    assert "mine" in tails(run(THREAD, "ok"))[0]

    for shared in (False, True):
        inner = scripted("seen")
        sub = create_agent(inner, middleware=[Scratchpad(store, shared=shared)])

        @tool
        def ask_sub() -> str:
            """A sub-agent, which finds its config in its context."""
            final = sub.invoke({"messages": [HumanMessage("Go")]})  # noqa: B023
            return str(final["messages"][-1].text)

        outer = scripted(calls(("ask_sub", "1", {})), "ok")
        ask(create_agent(outer, [ask_sub], middleware=[Scratchpad(store)]))
        assert (tails(inner) != [""]) == shared


def test_replies_are_not_offloaded_and_the_plan_does_not_hinder_offloading() -> None:
    store = memory(threshold_chars=200)

    @tool
    def big() -> str:
        """Much."""
        return "much of it\n" * 500

    model = scripted(
        write("1", "long note " * 100, "notes.md"),
        calls(("read_file", "2", {"path": "notes.md"})),
        calls(("big", "3", {})),
        write("4", "Goal"),
        "done",
    )
    agent = create_agent(
        model, [big], middleware=[Scratchpad(store), Offload(store)], checkpointer=InMemorySaver()
    )
    final = ask(agent)
    assert "long note long note" in answer_to(final["messages"], "2").text
    assert answer_to(final["messages"], "2").text.startswith('<file path="notes.md"')
    assert answer_to(final["messages"], "3").text.startswith('<result id="res_')
    assert store.session("t").list().total == 1


def test_pages_of_scratch_files_are_never_stored_as_results_whatever_the_budget() -> None:
    store = memory(threshold_chars=100)
    pad = Pad(store.session("t"))
    for name in "abcd":
        pad.write_file(f"{name}.txt", f"{name} line\n" * 300)
    model = scripted(
        calls(*(("read_file", name, {"path": f"{name}.txt"}) for name in "abcd")),
        "read",
        "again",
    )
    agent = create_agent(
        model,
        middleware=[Scratchpad(store), Offload(store, turn_chars=500)],
        checkpointer=InMemorySaver(),
    )
    ask(agent)
    final = ask(agent, "And again")
    pages = [m for m in final["messages"] if isinstance(m, ToolMessage)]
    assert [page.text.count("line\n") > 100 for page in pages] == [True] * 4
    assert store.session("t").list().total == 0


def test_a_store_that_is_away_does_not_stop_a_run(tmp_path: Path) -> None:
    (tmp_path / "index.db").mkdir()
    model = scripted(write("1", "Goal"), "done")
    agent = create_agent(model, middleware=[Scratchpad(ResultStore(tmp_path, spool=""))])
    final = ask(agent)
    assert answer_to(final["messages"], "1").text.startswith("The store could not answer")
    assert tails(model) == ["", ""]


def test_the_tools_work_in_a_bare_tool_node() -> None:
    store = memory()
    middleware = Scratchpad(store)
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(middleware.tools))
    graph.add_edge(START, "tools")
    app = graph.compile()
    final = app.invoke({"messages": [HumanMessage("x"), write("1", "Goal")]}, THREAD)
    assert answer_to(final["messages"], "1").text.startswith("Wrote todo.md: version 1")
    assert Pad(store.session("t")).text("todo.md") == "Goal"
