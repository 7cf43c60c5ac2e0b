"""`Offload` in agents and graphs of the installed LangChain, LangGraph and deepagents."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
)
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Overwrite, Send, interrupt

from callslip import SettingsError
from callslip.adapters.langchain import Offload, ReadBack, exempt, offload_tool_node, scope_of
from callslip.handle import Scope
from callslip.tools import SYSTEM_LINE
from tests.adapters.langchain_helpers import (
    THREAD,
    answer_to,
    calls,
    handle_of,
    ids_in,
    memory,
    read,
    scripted,
    session,
)

GO = {"messages": [HumanMessage("go")]}
LONG = "".join(f"row {at}\n" for at in range(5000))


@tool
def search(q: str = "") -> str:
    """Search."""
    return LONG


@tool
async def asearch(q: str = "") -> str:
    """Search."""
    return LONG


@tool(return_direct=True)
def export() -> str:
    """Export everything."""
    return LONG


def arrive(result: Any, config: Any = THREAD, **settings: Any) -> Any:
    """What the middleware makes of a tool's result, by itself."""
    offload = Offload(memory(), **settings)
    request = SimpleNamespace(
        tool=None,
        tool_call={"name": "search", "args": {}, "id": "c"},
        state={"messages": []},
        runtime=SimpleNamespace(config=config, tools=offload.tools),
    )
    return offload.wrap_tool_call(request, lambda _: result)  # type: ignore[arg-type]


# --- an agent ---------------------------------------------------------------------------------------


def test_a_long_result_is_an_envelope_and_the_tools_read_it_back() -> None:
    model = scripted(calls(("search", "c1", {"q": "x"})), read("c2", "c1", start=4999), "done")
    store = memory()
    agent = create_agent(model, [search], middleware=[Offload(store)], system_prompt="Be brief.")
    out = agent.invoke(GO, THREAD)
    assert len(answer_to(out["messages"], "c1").text) < 2000
    assert "row 4998\nrow 4999\n" in answer_to(out["messages"], "c2").text
    assert session(store).load(handle_of(out["messages"], "c1")) == LONG
    assert {"read_result", "search_result", "list_results"} <= set(model.bound)


def test_one_line_is_added_at_the_end_of_the_system_prompt_and_never_a_second() -> None:
    for prompt in ("Be brief.", None, SystemMessage([{"type": "text", "text": "Be brief."}])):
        model = scripted(calls(("search", "c1", {})), "done")
        create_agent(model, [search], middleware=[Offload(memory())], system_prompt=prompt).invoke(
            GO, THREAD
        )
        systems = [seen[0] for seen in model.seen]
        assert systems[0] == systems[1]
        assert systems[0].text.count(SYSTEM_LINE) == 1
        assert systems[0].text.endswith(SYSTEM_LINE)
        assert ("Be brief." in systems[0].text) == (prompt is not None)


def test_a_task_and_its_tools_are_served_off_the_event_loop() -> None:
    model = scripted(calls(("asearch", "c1", {})), read("c2", "c1"), "done")
    agent = create_agent(model, [asearch], middleware=[Offload(memory())])
    out = asyncio.run(agent.ainvoke(GO, THREAD))
    assert ids_in(answer_to(out["messages"], "c1").text)
    assert "row 0\n" in answer_to(out["messages"], "c2").text


@pytest.mark.parametrize("mode", ["updates", "values", "messages"])
def test_no_stream_carries_a_whole_result(mode: Any) -> None:
    model = scripted(calls(("search", "c1", {})), "done")
    agent = create_agent(model, [search], middleware=[Offload(memory())])
    parts = [repr(part) for part in agent.stream(GO, THREAD, stream_mode=mode)]
    assert any("res_" in part for part in parts)
    assert max(map(len, parts)) < 10_000


def test_what_ends_a_run_goes_to_the_caller_whole_and_is_stored_before_the_next_request() -> None:
    model = scripted(calls(("export", "c1", {})), "done")
    agent = create_agent(
        model, [export], middleware=[Offload(memory())], checkpointer=InMemorySaver()
    )
    assert agent.invoke(GO, THREAD)["messages"][-1].content == LONG
    agent.invoke(GO, THREAD)
    assert ids_in(answer_to(model.seen[-1], "c1").text)


def test_a_raised_error_stays_an_error_with_its_words() -> None:
    @tool
    def search() -> str:
        """Search."""
        raise ValueError("first words " + "x" * 50_000 + " last words")

    search.handle_tool_error = True
    model = scripted(calls(("search", "c1", {})), "done")
    agent = create_agent(model, [search], middleware=[Offload(memory())])
    with pytest.raises(ValueError, match="first words"):
        agent.invoke(GO, THREAD)
    failed = ToolMessage("first\n" + LONG + "last", tool_call_id="c", status="error")
    shown = arrive(failed)
    assert shown.status == "error"
    assert 'status="error"' in shown.text
    assert "first" in shown.text
    assert "last" in shown.text
    assert len(shown.text) < 4000


# --- whose results ----------------------------------------------------------------------------------


def test_threads_users_and_tenants_are_apart_and_equal_again_on_return() -> None:
    store = memory()
    agents = Offload(store)
    for config in (
        {"thread_id": "t", "user_id": "ana", "tenant_id": "acme"},
        {"thread_id": "t", "user_id": "bob", "tenant_id": "acme"},
        {"thread_id": "t"},
        {"thread_id": 7},
    ):
        model = scripted(calls(("search", "c1", {})), calls(("list_results", "c2", {})), "done")
        out = create_agent(model, [search], middleware=[agents]).invoke(
            GO, {"configurable": config}
        )
        scope = agents.scope({"configurable": config})
        assert scope.session == str(config["thread_id"])
        found = store.session(scope.session, user=scope.user, tenant=scope.tenant).list()
        assert [h.id for h in found.handles] == ids_in(answer_to(out["messages"], "c2").text)
        assert found.total == 1


def test_a_scope_function_decides_and_may_fall_back_to_ours() -> None:
    store = memory()
    offload = Offload(store, scope=lambda c: Scope(scope_of(c).session, tenant="fixed"))
    create_agent(scripted(calls(("search", "c", {})), "x"), [search], middleware=[offload]).invoke(
        GO, THREAD
    )
    assert store.session("t", tenant="fixed").list().total == 1


def test_without_a_thread_a_conversation_is_known_by_its_first_message() -> None:
    store = memory()
    agent = create_agent(
        scripted(calls(("search", "c1", {})), "done", lambda m: read("c3", "c1")(m), "done"),
        [search],
        middleware=[Offload(store)],
    )
    first = agent.invoke(GO)
    again = agent.invoke({"messages": [*first["messages"], HumanMessage("and?")]})
    assert "row 0\n" in answer_to(again["messages"], "c3").text
    with pytest.raises(SettingsError, match="thread_id"):
        Offload(store).scope({})


def test_a_read_back_tool_outside_a_graph_answers_for_its_config() -> None:
    store = memory()
    id = session(store).put(LONG).id
    [reader, *_] = Offload(store).tools
    assert "row 0\n" in reader.invoke({"result_id": id}, THREAD)
    elsewhere = reader.invoke({"result_id": id}, {"configurable": {"thread_id": "u"}})
    assert elsewhere.startswith("No stored result has this id here")


# --- shapes -----------------------------------------------------------------------------------------


def test_a_short_result_comes_back_as_the_very_same_object() -> None:
    for result in (
        ToolMessage("short", tool_call_id="c", artifact={"a": 1}),
        ToolMessage([{"type": "text", "text": "a"}, "b"], tool_call_id="c"),
        Command(update={"messages": [ToolMessage("short", tool_call_id="c")]}, goto="x"),
        [ToolMessage("short", tool_call_id="c")],
        None,
    ):
        assert arrive(result) is result


def long() -> ToolMessage:
    return ToolMessage(LONG, tool_call_id="c", name="search", id="m")


@pytest.mark.parametrize("as_tuples", [False, True])
def test_a_command_keeps_all_but_the_content_of_its_messages(as_tuples: bool) -> None:
    update: Any = {"messages": [HumanMessage(LONG), long()], "rows": [LONG], "n": 1}
    given = Command(
        update=list(update.items()) if as_tuples else update,
        goto=[Send("next", {"rows": LONG})],
        resume={"a": 1},
    )
    found = arrive(given)
    new = dict(found.update)
    assert (found.goto, found.resume, found.graph) == (given.goto, given.resume, None)
    assert new["messages"][0].text == LONG, "a person's words are not a tool's result"
    assert ids_in(new["messages"][1].text)
    assert new["messages"][1].id == "m"
    assert (new["rows"], new["n"]) == ([LONG], 1)


@pytest.mark.parametrize(
    ("wrap", "unwrap"),
    [
        (lambda m: Overwrite([m]), lambda v: v.value[0].text),
        (lambda m: {"__overwrite__": [m]}, lambda v: v["__overwrite__"][0].text),
        (lambda m: m, lambda v: v.text),
        (
            lambda m: [{"role": "tool", "tool_call_id": "c", "content": m.text}],
            lambda v: v[0]["content"],
        ),
    ],
    ids=["Overwrite", "json", "bare", "dict"],
)
def test_messages_in_a_command_are_found_however_they_are_wrapped(wrap: Any, unwrap: Any) -> None:
    found = arrive(Command(update={"messages": wrap(long())}))
    assert ids_in(unwrap(found.update["messages"]))


def test_a_list_of_messages_and_commands_stays_one() -> None:
    found = arrive([long(), Command(update={"messages": [long()]}), "else"])
    assert ids_in(found[0].text)
    assert ids_in(found[1].update["messages"][0].text)
    assert found[2] == "else"


def test_a_command_for_the_parent_graph_stores_where_the_parent_reads() -> None:
    below = {"configurable": {"thread_id": "t", "checkpoint_ns": "team:1|tools:2"}}
    here = arrive(Command(update={"messages": [long()]}), below)
    above = arrive(Command(update={"messages": [long()]}, graph=Command.PARENT), below)
    alone = arrive(Command(update={"messages": [long()]}))
    assert above.update["messages"][0].text == alone.update["messages"][0].text
    assert here.update["messages"][0].text != alone.update["messages"][0].text


def test_many_short_blocks_go_together_and_the_others_stay_in_their_order() -> None:
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    blocks = [{"type": "text", "text": f'{{"id": {at}, "pad": "{"x" * 50}"}}'} for at in range(900)]
    found = arrive(ToolMessage([*blocks[:500], image, *blocks[500:]], tool_call_id="c"))
    assert [block["type"] for block in found.content] == ["text", "image"]
    assert ids_in(found.content[0]["text"])
    assert "900" in found.content[0]["text"]


def test_media_is_kept_or_stored_by_its_size() -> None:
    import base64

    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60_000)).decode()
    forms: list[Any] = [
        {"type": "image", "base64": data, "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        {"type": "file", "file": {"file_data": f"data:image/png;base64,{data}"}},
    ]
    for block in forms:
        message = ToolMessage([block], tool_call_id="c")
        assert arrive(message) is message
        found = arrive(message, media_chars=50_000)
        assert found.content[0]["type"] == "text"
        assert ids_in(found.content[0]["text"])
        assert data[:100] not in found.content[0]["text"]
    linked = ToolMessage([{"type": "image", "url": "https://example.org/a.png"}], tool_call_id="c")
    assert arrive(linked, media_chars=0) is linked


def test_blocks_that_are_neither_text_nor_media_are_stored_as_json() -> None:
    rows = [{"id": at, "name": f"n{at}"} for at in range(2000)]
    found = arrive(ToolMessage([{"type": "json", "json": rows}, "short"], tool_call_id="c"))
    assert ids_in(found.content[0]["text"])
    assert found.content[1] == "short"


def test_a_large_artifact_is_where_it_is_and_loads_as_it_was() -> None:
    store = memory()
    artifact = {"rows": [(at, str(at)) for at in range(5000)]}
    opaque = {"lock": object(), "pad": LONG}

    @tool(response_format="content_and_artifact")
    def rows(which: str) -> tuple[str, Any]:
        """Rows."""
        return "5,000 rows", artifact if which == "rows" else opaque

    model = scripted(calls(("rows", "a", {"which": "rows"}), ("rows", "b", {"which": "o"})), "done")
    out = create_agent(model, [rows], middleware=[Offload(store)]).invoke(GO, THREAD)
    placed = answer_to(out["messages"], "a")
    assert placed.text == "5,000 rows"
    assert session(store).load(placed.artifact["result_id"]) == artifact
    assert answer_to(out["messages"], "b").artifact is opaque, "what cannot come back stays"


# --- interrupts, limits, other middleware -----------------------------------------------------------


def test_an_interrupt_passes_and_after_it_comes_the_same_handle() -> None:
    store = memory()

    @tool
    def ask() -> str:
        """Ask a person, then fetch."""
        runs.append(1)
        return LONG + interrupt("May I?")

    runs: list[int] = []
    handles = []
    for _ in range(2):
        model = scripted(calls(("search", "c0", {}), ("ask", "c1", {})), "done")
        agent = create_agent(
            model, [search, ask], middleware=[Offload(store)], checkpointer=InMemorySaver()
        )
        paused = agent.invoke(GO, THREAD)
        assert paused["__interrupt__"][0].value == "May I?"
        out = agent.invoke(Command(resume="yes"), THREAD)
        handles.append([handle_of(out["messages"], call) for call in ("c0", "c1")])
        assert session(store).load(handles[-1][1]) == LONG + "yes"
    assert len(runs) == 4, "each ran twice"
    assert handles[0] == handles[1]
    assert session(store).list().total == 2


def test_an_edited_call_is_stored_and_the_reviewers_note_stays_readable() -> None:
    store = memory()
    review = HumanInTheLoopMiddleware(interrupt_on={"search": True})
    model = scripted(calls(("search", "c1", {"q": "a"})), "done")
    agent = create_agent(
        model, [search], middleware=[review, Offload(store)], checkpointer=InMemorySaver()
    )
    agent.invoke(GO, THREAD)
    edit = {"type": "edit", "edited_action": {"name": "search", "args": {"q": "b"}}}
    out = agent.invoke(Command(resume={"decisions": [edit]}), THREAD)
    answer = answer_to(out["messages"], "c1").text
    assert "human reviewer" in answer
    assert session(store).load(ids_in(answer)[0]) == LONG
    assert '"b"' in session(store).list().handles[0].args


def test_a_read_back_call_that_runs_again_after_an_interrupt_is_answered_again() -> None:
    store = memory()
    id = session(store).put(LONG).id

    class State(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]

    @tool
    def ask() -> str:
        """Ask."""
        return str(interrupt("?"))

    asked = calls(("read_result", "r", {"result_id": id}), ("ask", "a", {}))
    graph = StateGraph(State)
    graph.add_node("tools", offload_tool_node([ask], store))
    graph.add_edge(START, "tools")
    app = graph.compile(checkpointer=InMemorySaver())
    app.invoke({"messages": [asked]}, THREAD)
    out = app.invoke(Command(resume="yes"), THREAD)
    assert "row 0\n" in answer_to(out["messages"], "r").text


def test_read_back_calls_do_not_count_against_a_limit_of_tool_calls() -> None:
    limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="continue")
    reads = [read(f"r{at}", "c1", start=at + 1) for at in range(3)]
    model = scripted(calls(("search", "c1", {})), *reads, calls(("search", "c2", {})), "done")
    agent = create_agent(model, [search], middleware=[exempt(limit), Offload(memory())])
    out = agent.invoke(GO, THREAD)
    assert all("<page" in answer_to(out["messages"], f"r{at}").text for at in range(3))
    assert "limit exceeded" in answer_to(out["messages"], "c2").text
    assert limit.name == exempt(limit).name
    assert not isinstance(limit, type(exempt(limit))), "the one given is not modified"


def test_approval_of_everything_spares_the_read_back_tools() -> None:
    review = HumanInTheLoopMiddleware(interrupt_on={"search": True, "read_result": True})
    assert set(exempt(review).interrupt_on) == {"search"}
    assert set(review.interrupt_on) == {"search", "read_result"}
    with pytest.raises(SettingsError, match="ModelRetry"):
        exempt(ModelRetryMiddleware())


def test_context_editing_clears_neither_a_page_nor_an_envelope() -> None:
    @tool
    def small(at: int) -> str:
        """Something small."""
        return f"{at} " * 400

    edit = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=10, keep=1)])
    model = scripted(
        calls(("search", "c1", {})),
        read("c2", "c1"),
        calls(("small", "c3", {"at": 1})),
        calls(("small", "c4", {"at": 2})),
        "done",
    )
    agent = create_agent(model, [search, small], middleware=[exempt(edit), Offload(memory())])
    agent.invoke(GO, THREAD)
    seen = model.seen[-1]
    assert ids_in(answer_to(seen, "c1").text)
    assert "<page" in answer_to(seen, "c2").text
    assert answer_to(seen, "c3").text == "[cleared]"


@pytest.mark.parametrize("last", [True, False])
def test_handles_survive_a_summary(last: bool) -> None:
    store = memory()
    summing = SummarizationMiddleware(
        model=scripted("It was about rows."), trigger=("messages", 5), keep=("messages", 1)
    )
    offload = Offload(store)
    model = scripted(calls(("search", "c1", {})), "found", "noted", "done")
    agent = create_agent(
        model,
        [search],
        middleware=[summing, offload] if last else [offload, summing],
        checkpointer=InMemorySaver(),
    )
    for words in ("go", "and now?", "and then?"):
        out = agent.invoke({"messages": [HumanMessage(words)]}, THREAD)
    summary = out["messages"][0].text
    [id] = ids_in(summary)
    assert session(store).load(id) == LONG
    assert summary.startswith("Here is a summary of the conversation to date:")
    # Given last it names them at once; given first, before the request after that. Once, in any case.
    assert [ids_in(seen[1].text) for seen in model.seen[2:]] == [[id] if last else [], [id]]


# --- graphs of one's own ----------------------------------------------------------------------------


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


@tool
def part(at: int) -> str:
    """One part."""
    return f"{at}:part\n" * (1500 + at)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_node_of_ones_own_keeps_the_budget_and_reads_back(is_async: bool) -> None:
    store = memory()
    node = offload_tool_node([part, search], store, turn_chars=30_000)
    model = scripted(
        calls(*(("part", f"c{at}", {"at": at}) for at in range(4))),
        lambda m: read("r", "c3")(m),
        "done",
    )
    bound = model.bind_tools(list(node.tools_by_name.values()))

    def ask(state: State) -> Any:
        return {"messages": [bound.invoke(state["messages"])]}

    graph = StateGraph(State)
    graph.add_node("model", ask)
    graph.add_node("tools", node)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    app = graph.compile()
    out = asyncio.run(app.ainvoke(GO, THREAD)) if is_async else app.invoke(GO, THREAD)
    texts = [answer_to(out["messages"], f"c{at}").text for at in range(4)]
    assert sum(map(len, texts)) <= 30_000
    assert [bool(ids_in(text)) for text in texts] == [False, False, True, True]
    assert "3:part" in answer_to(out["messages"], "r").text
    assert '"at":3' in session(store).list().handles[-1].args.replace(" ", "")


def test_a_bare_tool_node_without_the_tools_gives_an_excerpt_and_with_them_a_handle() -> None:
    offload = Offload(memory())
    for tools, handles in (([search], 0), ([search, *offload.tools], 1)):
        node = ToolNode(tools, wrap_tool_call=offload.wrap_tool_call)
        graph = StateGraph(State)
        graph.add_node("tools", node)
        graph.add_edge(START, "tools")
        out = graph.compile().invoke({"messages": [calls(("search", "c1", {}))]}, THREAD)
        assert len(set(ids_in(answer_to(out["messages"], "c1").text))) == handles


def test_the_sweep_is_a_node_and_finds_what_came_another_way() -> None:
    store = memory()
    offload = Offload(store)
    graph = StateGraph(State)
    graph.add_node("sweep", offload.before_model)
    graph.add_edge(START, "sweep")
    app = graph.compile()
    given = [calls(("search", "c1", {"q": "x"})), ToolMessage(LONG, tool_call_id="c1")]
    out = app.invoke({"messages": given}, THREAD)
    assert ids_in(answer_to(out["messages"], "c1").text)
    assert session(store).list().handles[0].tool == "search"
    assert app.invoke({"messages": out["messages"]}, THREAD) == out, "idempotent"
    assert asyncio.run(sweeping(offload).ainvoke({"messages": given}, THREAD))


@pytest.mark.parametrize("read_back", [True, False])
def test_what_stands_in_for_a_result_is_never_stored_in_its_turn(read_back: bool) -> None:
    store = memory(threshold_chars=100)
    model = scripted(
        calls(("search", "c1", {})), calls(*(("search", f"d{at}", {"q": "x"}) for at in range(9))),
        "done", "done",
    )  # fmt: skip
    offload = Offload(store, read_back=read_back, turn_chars=1000)
    agent = create_agent(model, [search], middleware=[offload], checkpointer=InMemorySaver())
    first = agent.invoke(GO, THREAD)
    again = agent.invoke({"messages": [HumanMessage("and?")]}, THREAD)
    assert again["messages"][: len(first["messages"])] == first["messages"]
    assert {handle.size for handle in session(store).list().handles} == {len(LONG)}


def sweeping(offload: Offload) -> Any:
    graph = StateGraph(State)
    graph.add_node("sweep", offload.abefore_model)
    graph.add_edge(START, "sweep")
    return graph.compile()


def test_an_agent_as_a_node_has_a_session_of_its_own_that_lasts() -> None:
    store = memory()
    model = scripted(calls(("search", "c1", {})), "done", read("c2", "c1"), "done")
    inner = create_agent(model, [search], middleware=[Offload(store)])
    graph = StateGraph(State)
    graph.add_node("team", inner)
    graph.add_edge(START, "team")
    app = graph.compile(checkpointer=InMemorySaver())
    app.invoke(GO, THREAD)
    out = app.invoke({"messages": [HumanMessage("and?")]}, THREAD)
    assert "row 0\n" in answer_to(out["messages"], "c2").text
    assert session(store).list().total == 0
    assert session(store, "t|team").list().total == 1


# --- next to deepagents -----------------------------------------------------------------------------


def test_next_to_deepagents_our_envelope_comes_first_and_its_files_still_work() -> None:
    from deepagents import create_deep_agent

    store = memory()
    huge = LONG * 10

    @tool
    def dump() -> str:
        """Dump."""
        return huge

    model = scripted(
        calls(("dump", "c1", {}), ("write_file", "w", {"file_path": "/a.txt", "content": "hello"})),
        lambda m: calls(
            ("read_result", "c2", {"result_id": handle_of(m, "c1")}),
            ("read_file", "f", {"file_path": "/a.txt"}),
        ),
        "done",
    )
    agent = create_deep_agent(model, [dump], middleware=[Offload(store)])
    out = agent.invoke(GO, THREAD)
    assert len(answer_to(out["messages"], "c1").text) < 2000
    assert "row 0\n" in answer_to(out["messages"], "c2").text
    assert "hello" in answer_to(out["messages"], "f").text
    assert session(store).load(handle_of(out["messages"], "c1")) == huge
    assert not [name for name in out.get("files", {}) if "large_tool_results" in name]


# --- the module itself ------------------------------------------------------------------------------


def test_the_read_back_tools_are_langchain_tools_with_our_schemas() -> None:
    store = memory()
    bound = Offload(store).tools
    for theirs, ours in zip(bound, session(store).tools(), strict=True):
        assert isinstance(theirs, ReadBack)
        assert (theirs.name, theirs.description) == (ours.name, ours.description)
        assert set(theirs.args) == set(ours.parameters["properties"])
        assert set(theirs.tool_call_schema["properties"]) == set(theirs.args)  # type: ignore[index]


def test_a_cap_below_a_page_is_refused() -> None:
    with pytest.raises(SettingsError, match="hard_cap_chars"):
        Offload(memory(), hard_cap_chars=100)


def test_the_framework_is_loaded_by_the_adapter_alone() -> None:
    code = (
        "import sys, callslip; callslip.ResultStore; "
        "print([m for m in sys.modules if m.split('.')[0] in ('langchain', 'langgraph')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_repeat_is_one_line_only_while_the_first_is_in_front_of_the_model() -> None:
    big = "row of the table\n" * 3_000

    @tool
    def fetch() -> str:
        """Much."""
        return big

    store = memory()
    agent = create_agent(
        scripted(calls(("fetch", "1", {})), calls(("fetch", "2", {})), "done"),
        [fetch],
        middleware=[Offload(store)],
    )
    found = agent.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}})
    first, second = (m.text for m in found["messages"] if isinstance(m, ToolMessage))
    assert "same_as" not in first
    assert "same_as" in second

    # The same again in a thread whose messages were taken away: shown, not named as shown.
    other = create_agent(
        scripted(calls(("fetch", "3", {})), "done"), [fetch], middleware=[Offload(store)]
    )
    found = other.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}})
    (third,) = (m.text for m in found["messages"] if isinstance(m, ToolMessage))
    assert "same_as" not in third
    assert "row of the table" in third


def test_equal_results_of_one_turn_are_shown_alike_whatever_their_order() -> None:
    @tool
    def fetch() -> str:
        """Much."""
        return "row of the table\n" * 3_000

    for _ in range(4):
        agent = create_agent(
            scripted(calls(*(("fetch", str(n), {}) for n in range(5))), "done"),
            [fetch],
            middleware=[Offload(memory())],
        )
        found = agent.invoke(
            {"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}}
        )
        seen = [m.text for m in found["messages"] if isinstance(m, ToolMessage)]
        assert ["same_as" in text for text in seen] == [False] * 5


def test_a_tool_that_takes_a_readers_name_is_a_set_up_error() -> None:
    @tool
    def read_result(result_id: str) -> str:
        """Mine."""
        return "mine"

    agent = create_agent(scripted("done"), [read_result], middleware=[Offload(memory())])
    with pytest.raises(SettingsError, match="read_result"):
        agent.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}})
