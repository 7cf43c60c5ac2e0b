"""Whom a run is about: all that it stores goes with `delete(subject=…)`, and nothing of another's."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command, interrupt

from callslip import ResultStore, SettingsError
from callslip.adapters.langchain import Offload, offload_tool_node
from callslip.adapters.langchain_delegate import delegate, delegate_tool
from callslip.adapters.langchain_memory import Remembers
from callslip.adapters.langchain_scope import subject_of
from callslip.adapters.langchain_scratchpad import Scratchpad
from callslip.adapters.langgraph_backend import Over
from callslip.adapters.langgraph_store import FactStore
from callslip.patterns.memory import Memory
from callslip.stacks.auditops import SubjectsOf
from callslip.testing.faults import FaultyBackend
from tests.adapters.langchain_helpers import answer_to, calls, handle_of, memory, scripted

ONE, TWO = "patient-17", "patient-18"
SAID = {ONE: "zimtschnecke", TWO: "franzbroetchen"}
"""A word of each one's results, which stands in nobody else's."""
MODES = ["invoke", "ainvoke", "astream"]


def about(subject: Any, thread: str = "t") -> Any:
    given = {"thread_id": thread, "user_id": "ana", "tenant_id": "acme"}
    return {"configurable": given | ({} if subject is None else {"subject_id": subject})}


def go(graph: Any, config: Any, mode: str = "invoke", given: Any = None) -> Any:
    given = {"messages": [HumanMessage("go")]} if given is None else given
    if mode == "invoke":
        return graph.invoke(given, config)
    if mode == "ainvoke":
        return asyncio.run(graph.ainvoke(given, config))

    async def streamed() -> Any:
        return [each async for each in graph.astream(given, config, stream_mode="values")][-1]

    return asyncio.run(streamed())


@tool
def notes(of: str) -> str:
    """Much about somebody."""
    return f"{of} slept badly\n" * 3_000


@tool
def line(of: str, n: int) -> str:
    """Less."""
    return f"{of} in bed {n}\n" * 600


@tool(response_format="content_and_artifact")
def charts(of: str) -> Any:
    """A text, a picture and an artifact."""
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + of.encode() + os.urandom(30_000)).decode()
    blocks = [
        {"type": "text", "text": f"{of} has a chart\n" * 2_000},
        {"type": "image", "base64": picture, "mime_type": "image/png"},
    ]
    return blocks, {"rows": [{"of": of, "n": n} for n in range(3_000)]}


def answer(result: str, *artifacts: str) -> AIMessage:
    """A sub-agent's."""
    said = {"result": result, "evidence_ids": [], "artifacts": artifacts}
    return AIMessage(json.dumps(said))


class Place:
    """A store on a disk, and what can be found there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = ResultStore(folder / "store", spool=folder / "spool", audit=True)

    def has(self, word: str) -> bool:
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return any(word.encode() in path.read_bytes() for path in files)

    def forgets_one_and_keeps_two(self, count: int) -> None:
        """Delete what is about the first: `count` of them, all of it, and nothing else."""
        store = self.store
        for name, said in SAID.items():
            assert self.has(said) and self.has(name)
        two = set(self.kept())
        assert store.acting("dpo").delete(tenant="acme", subject=ONE) == count
        assert not self.has(SAID[ONE]) and not self.has(ONE)
        assert self.has(SAID[TWO]) and self.has(TWO)
        left = set(self.kept())
        assert left < two and len(two) - len(left) == count
        proof = store.proof(tenant="acme", subject=ONE)
        assert proof.complete and len(proof.deleted) == count
        assert {entry.actor for entry in proof.deleted} == {"dpo"}
        assert store.verify().ok
        stats = store.stats(tenant="acme")
        assert stats.garbage == 0
        assert store.delete(tenant="acme", subject=TWO) == len(left), "all else is about the other"
        assert not self.has(SAID[TWO]) and store.stats(tenant="acme").payloads == 0

    def kept(self) -> Iterator[str]:
        for entry in self.store.audit(tenant="acme", limit=999):
            if entry.action not in ("stored", "remembered") or not entry.id:
                continue
            session = self.store.session(entry.session or "-", user=entry.user, tenant="acme")
            facts = Memory(self.store, ("acme", "ana"))
            if entry.id.startswith("res_"):
                ids = [handle.id for handle in session.list(limit=99).handles]
            elif entry.id.startswith("mem_"):
                ids = [fact.id for fact in facts.list().facts]
            else:
                known = self.store._backend.index.run(SubjectsOf(session.scope, entry.id))
                ids = [entry.id] if known else []
            if entry.id in ids:
                yield f"{entry.session} {entry.id}"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    found.store.close()


# --- results ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_all_that_an_agent_offloads_is_about_the_runs_subject(place: Place, mode: str) -> None:
    for name, said in SAID.items():
        of = {"of": said}
        model = scripted(
            calls(("notes", f"a{said}", of), ("charts", f"b{said}", of)),
            calls(*(("line", f"{n}{said}", {"of": said, "n": n}) for n in range(6))),  # a turn
            lambda m, said=said: calls(  # type: ignore[misc]
                ("query_result", f"q{said}",
                 {"result_id": m[4].artifact["result_id"], "where": "n < 99", "save_as": "few"}),
            ),
            "done",
        )  # fmt: skip
        tools = [notes, charts, line]
        offload = Offload(place.store, media_chars=1_000)
        final = go(create_agent(model, tools, middleware=[offload]), about(name), mode)
        assert "few" in answer_to(final["messages"], f"q{said}").text
    # The notes; a text, a picture, an artifact; three of the turn; what the query saved.
    place.forgets_one_and_keeps_two(8)


@pytest.mark.parametrize("mode", MODES)
def test_an_excerpt_is_stored_about_the_runs_subject(place: Place, mode: str) -> None:
    for name, said in SAID.items():
        model = scripted(calls(("notes", said, {"of": said})), "done")
        offload = Offload(place.store, read_back=False)
        final = go(create_agent(model, [notes], middleware=[offload]), about([name]), mode)
        assert "res_" not in answer_to(final["messages"], said).text
    place.forgets_one_and_keeps_two(1)


def test_a_result_about_several_goes_with_any_of_them(place: Place) -> None:
    said = SAID[ONE]
    model = scripted(calls(("notes", "1", {"of": said})), "done")
    agent = create_agent(model, [notes], middleware=[Offload(place.store)])
    go(agent, about([TWO, ONE]))
    assert place.store.delete(tenant="acme", subject=ONE) == 1
    assert not place.has(said) and not place.has(TWO)


@pytest.mark.parametrize("mode", MODES)
def test_a_graph_of_ones_own_and_its_sub_graphs_store_about_the_runs_subject(
    place: Place, mode: str
) -> None:
    offload = Offload(place.store)

    @tool
    def up(of: str, runtime: ToolRuntime) -> Any:
        """Tell the graph above."""
        said = ToolMessage(f"{of} is up\n" * 3_000, tool_call_id=runtime.tool_call_id or "")
        return Command(update={"messages": [said]}, graph=Command.PARENT)

    def graph(steps: list[AIMessage]) -> Any:
        inner, outer = StateGraph(MessagesState), StateGraph(MessagesState)
        inner.add_node("model", lambda state: {"messages": [steps[0]]})
        inner.add_node("tools", offload_tool_node([notes, up], offload))
        inner.add_node("again", lambda state: {"messages": [steps[1]]})
        inner.add_node("tell", offload_tool_node([notes, up], offload))
        inner.add_edge(START, "model")
        inner.add_edge("model", "tools")
        inner.add_edge("tools", "again")
        inner.add_edge("again", "tell")
        outer.add_node("ward", inner.compile())
        outer.add_node("sweep", offload.before_model)
        outer.add_edge(START, "ward")
        outer.add_edge("ward", "sweep")
        return outer.compile()

    for name, said in SAID.items():
        steps = [calls((each, f"{each}{said}", {"of": said})) for each in ("notes", "up")]
        go(graph(steps), about(name), mode)
    assert {each.split()[0] for each in place.kept()} == {"t", "t|ward"}
    place.forgets_one_and_keeps_two(2)


def test_what_a_resumed_run_stores_is_about_its_subject_and_a_replay_about_the_same(
    place: Place,
) -> None:
    @tool
    def ask(of: str) -> str:
        """Ask a person, then fetch."""
        return f"{of} may go home\n" * 3_000 + interrupt("May I?")

    saver = InMemorySaver()
    for name, said in SAID.items():
        of = {"of": said}
        model = scripted(calls(("notes", f"n{said}", of), ("ask", f"a{said}", of)), "done")
        agent = create_agent(
            model, [notes, ask], middleware=[Offload(place.store)], checkpointer=saver
        )
        go(agent, about([name]))
        final = go(agent, about([name]), given=Command(resume="yes"))
        assert "yes" in place.store.session("t", user="ana", tenant="acme").load(
            handle_of(final["messages"], f"a{said}")
        )
    assert ONE not in str(list(saver.list(None))), "what LangGraph notes of a config is texts"
    place.forgets_one_and_keeps_two(2)


def test_what_waits_in_the_spool_is_delivered_about_the_runs_subject(place: Place) -> None:
    store = place.store
    real = store._backend.index
    for name, said in SAID.items():
        store._backend.index = FaultyBackend(real, times=None)
        model = scripted(calls(("notes", said, {"of": said})), "done")
        go(create_agent(model, [notes], middleware=[Offload(store)]), about(name))
        store._backend.index = real
        store.gc()
    place.forgets_one_and_keeps_two(1)


# --- sub-agents, files and facts --------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_what_a_sub_agent_leaves_is_about_the_runs_subject(place: Place, mode: str) -> None:
    offload = Offload(place.store)
    for name, said in SAID.items():
        sub = scripted(
            calls(("notes", said, {"of": said})),
            lambda m, said=said: answer(f"{said} is well. " * 900, handle_of(m, said)),  # type: ignore[misc]
        )
        inputs = {"long": f"{said} was ill. " * 3_000}
        outer = scripted(calls(("delegate", said, {"task": "look", "inputs": inputs})), "done")
        tools = [delegate_tool(sub, [notes], offload, keep_transcript=True)]
        final = go(create_agent(outer, tools, middleware=[offload]), about(name), mode)
        assert answer_to(final["messages"], said).text.count("res_") == 2
    # The input, the artifact, the long answer and the transcript.
    place.forgets_one_and_keeps_two(4)


def test_a_sub_agent_stores_about_the_subject_of_the_session_that_asks(place: Place) -> None:
    session = place.store.session("t", user="ana", tenant="acme", subject=ONE)
    seen = []

    def look(messages: Any) -> AIMessage:
        seen.append(place.store.delete(tenant="acme", subject=ONE))
        return answer("well")

    sub = scripted(calls(("notes", "1", {"of": SAID[ONE]})), look)
    assert delegate("look", [notes], model=sub, session=session).ok
    assert seen == [1], "also while it works"


@pytest.mark.parametrize("mode", MODES)
def test_scratch_files_of_a_run_are_about_its_subject(place: Place, mode: str) -> None:
    pad = Scratchpad(place.store)
    for thread, (name, said) in enumerate(SAID.items()):
        path = f"{said}.md"
        model = scripted(
            calls(("write_file", f"w{said}", {"path": path, "content": f"{said}\n- [ ] a"})),
            calls(("edit_file", f"e{said}", {"path": path, "old": "[ ]", "new": "[x]"})),
            "done",
        )
        agent = create_agent(model, middleware=[pad], checkpointer=InMemorySaver())
        go(agent, about(name, str(thread)), mode)
    place.forgets_one_and_keeps_two(2)


@pytest.mark.parametrize("mode", MODES)
def test_facts_of_a_run_are_about_its_subject(place: Place, mode: str) -> None:
    remembers = Remembers(place.store)
    for name, said in SAID.items():  # in one conversation, with one set of tools
        model = scripted(calls(("remember", said, {"text": f"{said} likes tea"})), "done")
        go(create_agent(model, [], middleware=[remembers]), about(name), mode)
        remembers.memory(about(name)).remember(f"{said} likes milk")
    place.forgets_one_and_keeps_two(2)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_put_into_langgraphs_store_in_a_run_is_about_its_subject(
    place: Place, mode: str
) -> None:
    facts = FactStore(place.store, root=("acme",))

    @tool
    def keep(of: str, runtime: ToolRuntime) -> str:
        """Keep it."""
        assert runtime.store is not None
        runtime.store.put(("ana",), of, {"text": f"{of} likes tea"})
        return "kept"

    @tool
    async def akeep(of: str, runtime: ToolRuntime) -> str:
        """Keep it."""
        assert runtime.store is not None
        await runtime.store.aput(("ana",), of, {"text": f"{of} likes tea"})
        return "kept"

    which = keep if mode == "invoke" else akeep
    for name, said in SAID.items():
        model = scripted(calls((which.name, said, {"of": said})), "done")
        go(create_agent(model, [which], store=facts), about(name), mode)
    facts.put(("ana",), "ward", {"text": "the ward has a garden"})  # outside of a run: of nobody
    place.store.delete(tenant="acme", subject=ONE)
    assert {item.key for item in facts.search(("ana",))} == {SAID[TWO], "ward"}
    assert not place.has(SAID[ONE])


def test_a_memory_over_another_store_refuses_what_it_could_not_delete() -> None:
    from langgraph.store.memory import InMemoryStore

    remembers = Remembers(Over(InMemoryStore()))
    model = scripted(calls(("remember", "1", {"text": "17 likes tea"})), "done")
    final = go(create_agent(model, [], middleware=[remembers]), about(ONE))
    assert "takes no subject=" in answer_to(final["messages"], "1").text


# --- how it is said ---------------------------------------------------------------------------------


def test_a_function_of_the_config_says_whom_a_run_is_about(place: Place) -> None:
    def ward(config: Any) -> list[str]:
        return [*subject_of(config), config["configurable"]["ward"]]

    offload = Offload(place.store, subject=ward)
    config = about(ONE)
    config["configurable"]["ward"] = "ward-3"
    model = scripted(calls(("notes", "1", {"of": SAID[ONE]})), "done")
    go(create_agent(model, [notes], middleware=[offload]), config)
    assert offload.subjects(config) == (ONE, "ward-3")
    assert place.store.delete(tenant="acme", subject="ward-3") == 1
    pad = Scratchpad(place.store, subject=ward).pad(config, {})
    assert pad.session.subjects == (ONE, "ward-3")
    facts = Remembers(place.store, subject=ward).memory(config)
    assert facts.subjects == (ONE, "ward-3")


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
@pytest.mark.parametrize("wrong", [17, "", [""], ["a", 7], {"a": 1}, "x" * 5_000])
def test_what_is_no_subject_is_said_before_anything_is_done(wrong: Any, mode: str) -> None:
    @tool
    def act() -> str:
        """Do something."""
        done.append(1)
        return "done"

    done: list[int] = []
    store = memory()
    model = scripted(calls(("act", "1", {})), "done")
    agent = create_agent(model, [act], middleware=[Offload(store)])
    with pytest.raises(SettingsError, match="^subject_id="):
        go(agent, about(wrong), mode)
    graph = StateGraph(MessagesState)
    graph.add_node("tools", offload_tool_node([act], store))
    graph.add_edge(START, "tools")
    with pytest.raises(SettingsError, match="^subject_id="):
        go(graph.compile(), about(wrong), mode, {"messages": [calls(("act", "1", {}))]})
    assert (done, model.seen) == ([], [])


def test_without_a_subject_a_run_is_about_nobody() -> None:
    store = memory(audit=True)
    offload = Offload(store)
    model = scripted(calls(("notes", "1", {"of": "x"})), "done")
    go(create_agent(model, [notes], middleware=[offload]), about(None))
    assert offload.subjects(about(None)) == offload.subjects(about([])) == ()
    assert store.session("t", user="ana", tenant="acme").list().total == 1
