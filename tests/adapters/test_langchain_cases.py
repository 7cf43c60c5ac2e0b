"""Failures that people reported of other tools, replayed against the installed LangChain."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_tool_call
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, Overwrite

from callslip import ResultStore
from callslip.adapters.langchain import Offload
from callslip.limits import HARD_CAP_CHARS, TURN_CHARS
from tests.adapters.langchain_helpers import (
    INPUTS,
    THREAD,
    answer_to,
    calls,
    handle_of,
    ids_in,
    made,
    memory,
    read,
    scripted,
    session,
)


def giving(result: Any, name: str = "search", **options: Any) -> StructuredTool:
    """A tool that answers with that, whatever it is asked."""

    def fetch(q: str = "") -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    return StructuredTool.from_function(fetch, name=name, description="Fetch.", **options)


def turn(store: ResultStore, result: Any, **settings: Any) -> ToolMessage:
    """The answer to one call, as the model's next request has it."""
    model = scripted(calls(("search", "c1", {})), "done")
    agent = create_agent(model, [giving(result)], middleware=[Offload(store, **settings)])
    agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    return answer_to(model.seen[-1], "c1")


@pytest.mark.parametrize("settings", [{"tools": {"search": "never"}}, {"keep": lambda v, t: True}])
def test_case_03_no_string_is_longer_than_the_hard_cap_even_when_offloading_is_off(
    settings: dict[str, Any],
) -> None:
    text = made("03")
    store = memory(**settings)
    shown = turn(store, text).text
    assert len(text) > HARD_CAP_CHARS >= len(shown)
    assert session(store).load(ids_in(shown)[0]) == text, "and nothing of it is lost"


def test_case_03_nor_when_the_store_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here is no folder to be made")
    store = ResultStore(tmp_path / "file" / "store", spool="")
    shown = turn(store, made("03")).text
    assert len(shown) <= HARD_CAP_CHARS
    assert 'stored="false"' in shown
    assert not ids_in(shown)


def test_case_03_nor_in_what_was_there_before_us() -> None:
    history = [
        HumanMessage("go"),
        calls(("search", "old", {})),
        ToolMessage(made("03"), tool_call_id="old", name="search"),
        AIMessage("so"),
        HumanMessage("and?"),
    ]
    model = scripted("done")
    agent = create_agent(model, [], middleware=[Offload(memory(tools={"search": "never"}))])
    agent.invoke({"messages": history}, THREAD)
    assert all(len(message.text) <= HARD_CAP_CHARS for message in model.seen[0])


def test_case_09_what_a_read_back_tool_answers_is_never_offloaded() -> None:
    store = memory(threshold_chars=1000)
    model = scripted(
        calls(("search", "c1", {})),
        read("c2", "c1", start=1, limit=700),
        read("c3", "c1", start=1990),
        "done",
    )
    agent = create_agent(model, [giving(made("09"))], middleware=[Offload(store)])
    agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    assert len(answer_to(model.seen[-1], "c2").text) > 10_000
    assert "NEEDLE=4417" in answer_to(model.seen[-1], "c3").text
    assert session(store).list().total == 1


def parallel() -> tuple[ResultStore, list[ToolMessage]]:
    """One turn of the four parallel calls of case 11."""
    given = made("11")
    store = memory(threshold_chars=60_000)

    @tool
    def log(at: int) -> str:
        """The log of one tool."""
        return str(given[at]["content"])

    model = scripted(calls(*(("log", f"c{at}", {"at": at}) for at in range(4))), "done")
    offload = Offload(store)
    agent = create_agent(model, [log], middleware=[offload])
    agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    return store, [answer_to(model.seen[-1], f"c{at}") for at in range(4)]


def test_case_11_a_turn_of_parallel_results_keeps_to_its_budget() -> None:
    given = made("11")
    store, answers = parallel()
    assert sum(len(answer.text) for answer in answers) <= TURN_CHARS
    offloaded = [at for at in range(4) if answers[at].text != given[at]["content"]]
    kept = [len(given[at]["content"]) for at in range(4) if at not in offloaded]
    assert all(len(given[at]["content"]) > max(kept) for at in offloaded), "the largest went first"
    for at in offloaded:
        [id] = set(ids_in(answers[at].text))
        assert session(store).load(id) == given[at]["content"]
    assert [answer.text for answer in parallel()[1]] == [answer.text for answer in answers]


def test_case_11_the_choice_is_the_same_in_any_order() -> None:
    given = made("11")
    seen = set()
    for order in permutations(range(4)):
        offload = Offload(memory(threshold_chars=60_000))
        messages = [
            HumanMessage("go", id="h"),
            calls(*((f"t{at}", f"c{at}", {}) for at in range(4))),
            *(
                ToolMessage(given[at]["content"], tool_call_id=f"c{at}", name=f"t{at}", id=str(at))
                for at in order
            ),
        ]
        model = scripted("done")
        agent = create_agent(model, [], middleware=[offload])
        agent.invoke({"messages": messages}, THREAD)
        seen.add(tuple(answer_to(model.seen[-1], f"c{at}").text for at in range(4)))
    assert len(seen) == 1


def test_case_12_of_content_blocks_only_the_long_texts_are_replaced() -> None:
    blocks = made("12")
    store = memory()
    model = scripted(calls(("search", "c1", {})), "done")
    agent = create_agent(model, [giving(blocks)], middleware=[Offload(store)])
    out = agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    content: Any = answer_to(out["messages"], "c1").content
    assert isinstance(content, list)
    assert [block["type"] for block in content] == ["text", "text", "image", "text"]
    assert content[1:3] == blocks[1:3]
    for at in (0, 3):
        assert len(content[at]["text"]) < 2000
        [id] = set(ids_in(content[at]["text"]))
        assert session(store).load(id) == blocks[at]["text"]


def test_case_13_every_other_field_of_the_message_is_kept() -> None:
    given = ToolMessage(**made("13"))
    seen: list[Any] = []

    @wrap_tool_call
    def spy(request: Any, handler: Any) -> Any:
        seen.append(handler(request))
        return seen[-1]

    def search() -> ToolMessage:
        """Search."""
        return given

    model = scripted(calls(("search", "call_1", {})), "done")
    agent = create_agent(model, [tool(search)], middleware=[spy, Offload(memory())])
    agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    before, after = given.model_dump(), seen[0].model_dump()
    assert ids_in(after.pop("content"))
    before.pop("content")
    assert after == before


@pytest.mark.parametrize("wrapped", ["langgraph", "unknown"])
def test_case_15_wrapped_messages_in_a_command_do_not_end_the_run(wrapped: str) -> None:
    store = memory()
    if wrapped == "unknown":
        update = made("15")["update"]
    else:
        update = {"messages": Overwrite([ToolMessage("q" * 90_000, tool_call_id="c")]), "n": 1}
    command = Command(update=update, goto="next", graph=Command.PARENT)
    found = arrive(store, command)
    assert (found.goto, found.graph) == ("next", Command.PARENT)
    if wrapped == "unknown":
        assert found is command
        return
    messages = found.update["messages"]
    assert isinstance(messages, Overwrite)
    assert ids_in(messages.value[0].text)
    assert found.update["n"] == 1


def arrive(store: ResultStore, result: Any) -> Any:
    """What the middleware makes of a tool's result, by itself."""
    from types import SimpleNamespace

    offload = Offload(store)
    runtime = SimpleNamespace(config=THREAD, tools=offload.tools)
    request = SimpleNamespace(
        tool=None,
        tool_call={"name": "search", "args": {}, "id": "c"},
        state={"messages": []},
        runtime=runtime,
    )
    return offload.wrap_tool_call(request, lambda _: result)  # type: ignore[arg-type]


def test_case_21_what_waits_for_a_person_passes_and_a_failure_keeps_its_type() -> None:
    waiting, failed = made("21")
    store = memory()
    assert turn(store, waiting).text == json.dumps(waiting)
    shown = turn(memory(), failed).text
    assert 'error_type="rate_limit"' in shown
    assert 'status="error"' in shown
    assert "E_LIMIT" in shown
    assert len(shown) < 4000


def test_case_23_every_call_is_answered_once_and_in_order() -> None:
    history: list[Any] = []
    for message in made("23"):
        if message["role"] == "user":
            history.append(HumanMessage(message["content"]))
        elif message["role"] == "assistant":
            history.append(calls(*(("t", call["id"], {}) for call in message["tool_calls"])))
        else:
            history.append(
                ToolMessage(message["content"], tool_call_id=message["tool_call_id"], name="t")
            )
    model = scripted("done")
    agent = create_agent(model, [], middleware=[Offload(memory())])
    agent.invoke({"messages": history}, THREAD)
    seen = model.seen[0][1:]  # the system line stands first
    assert [type(m) for m in seen] == [type(m) for m in history]
    answered = [m.tool_call_id for m in seen if isinstance(m, ToolMessage)]
    assert answered == ["a", "b", "c"]
    assert sum(len(m.text) for m in seen) < 6000


@pytest.mark.parametrize("how", ["raised", "returned"])
def test_case_27_a_structured_error_keeps_its_code_inline(how: str) -> None:
    whole = json.loads((INPUTS / "27_error_structured.json").read_text())
    store = memory()
    text = json.dumps(whole["structuredContent"] if how == "raised" else whole)
    failing = giving(ToolException(text), handle_tool_error=True)
    model = scripted(calls(("search", "c1", {})), "done")
    fetch = failing if how == "raised" else giving(whole)
    agent = create_agent(model, [fetch], middleware=[Offload(store)])
    agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    answer = answer_to(model.seen[-1], "c1")
    assert answer.status == ("error" if how == "raised" else "success")
    assert 'status="error"' in answer.text
    assert "RATE_LIMITED" in answer.text
    assert "retry_after" in answer.text
    assert len(answer.text) < 4000
    assert session(store).load(ids_in(answer.text)[0]) == text


def test_case_37_the_store_has_the_text_before_another_layer_cuts_it() -> None:
    given = made("37")
    store = memory()

    @wrap_tool_call
    def cutting(request: Any, handler: Any) -> Any:
        answer = handler(request)
        return answer.model_copy(update={"content": answer.text[:10_000]})

    model = scripted(calls(("search", "c1", {})), "done")
    agent = create_agent(model, [giving(given["text"])], middleware=[cutting, Offload(store)])
    agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    shown = answer_to(model.seen[-1], "c1").text
    with session(store).open(ids_in(shown)[0]) as stored:
        raw = stored.read()
    assert hashlib.sha256(raw).hexdigest() == given["sha256"]
    assert f'size="{len(raw) / 1024:.1f}KB"' in shown


def test_case_50_a_read_back_tool_asks_nobody() -> None:
    store = memory()
    fetch = giving("filler line of text\n" * 2000)
    approval = HumanInTheLoopMiddleware(interrupt_on={fetch.name: True})
    model = scripted(
        calls(("search", "c1", {})), read("c2", "c1"), read("c3", "c1", start=9), "done"
    )
    agent = create_agent(
        model, [fetch], middleware=[approval, Offload(store)], checkpointer=InMemorySaver()
    )
    paused = agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    assert paused["__interrupt__"]
    done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert done["messages"][-1].text == "done"
    assert "filler line" in answer_to(done["messages"], "c3").text


def test_case_57_without_a_reader_there_is_an_excerpt_and_no_handle() -> None:
    text = made("57")["result"]
    store = memory()
    shown = turn(store, text, read_back=False).text
    assert len(shown) <= 4000
    assert not ids_in(shown)
    assert "no tool here reads it back" in shown
    assert session(store).load(session(store).list().handles[0].id) == text, "for the caller"


@pytest.mark.parametrize("shared", [False, True])
def test_case_57_a_sub_agent_reads_its_parents_handle_only_if_shared(shared: bool) -> None:
    store = memory()
    inner = scripted(lambda m: calls(("read_result", "i1", {"result_id": m[-1].text})), "told")
    sub_agent = create_agent(inner, [], middleware=[Offload(store, shared=shared)])

    @tool
    def ask(id: str) -> str:
        """Ask the sub-agent."""
        return str(sub_agent.invoke({"messages": [HumanMessage(id)]})["messages"][-1].text)

    model = scripted(
        calls(("search", "c1", {})),
        lambda m: calls(("ask", "c2", {"id": handle_of(m, "c1")})),
        "done",
    )
    agent = create_agent(
        model,
        [giving(made("57")["result"]), ask],
        middleware=[Offload(store)],
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    got = answer_to(inner.seen[-1], "i1").text
    assert ("hit\n" in got) == shared
    if not shared:
        invented = session(store, "elsewhere").tools()[0].call(result_id="res_0000000000")
        assert got == invented, "foreign is unknown, word for word"


@pytest.mark.parametrize("settings", [{}, {"preview_chars": 0, "preview_lines": 0}])
def test_case_58_no_checkpoint_carries_a_result(tmp_path: Path, settings: dict[str, int]) -> None:
    probes = [f"MIDDLE-{at}-{'0123456789' * 5}" for at in range(3)]
    given = [
        result["content"][:2_000_000] + probes[at] + result["content"][2_000_000:]
        for at, result in enumerate(made("58"))
    ]
    connection = sqlite3.connect(tmp_path / "checkpoints.db", check_same_thread=False)

    @tool(response_format="content_and_artifact")
    def fetch(at: int) -> tuple[str, Any]:
        """Fetch one."""
        return given[at], {"rows": given[at].split("\n")}

    model = scripted(*(calls(("fetch", f"c{at}", {"at": at})) for at in range(3)), "done")
    store = memory(**settings)
    saver = SqliteSaver(connection)
    agent = create_agent(model, [fetch], middleware=[Offload(store)], checkpointer=saver)
    out = agent.invoke({"messages": [HumanMessage("go")]}, THREAD)
    query = "select checkpoint from checkpoints order by checkpoint_id"
    sizes = [len(row[0]) for row in connection.execute(query)]
    assert sizes[-1] - sizes[0] < 50_000
    connection.close()
    persisted = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(persisted) < 500_000, "all the steps there are, together"
    for at, result in enumerate(given):
        assert probes[at].encode() not in persisted
        # The default preview shows how a result begins; without one, not even that is here.
        assert (result[:64].encode() in persisted) == (not settings)
        artifact = answer_to(out["messages"], f"c{at}").artifact
        assert session(store).load(artifact["result_id"])["rows"][1] == f"{at} body"
