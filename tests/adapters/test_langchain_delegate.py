"""Delegation with LangChain agents: fresh windows, given tools only, budgets, and the asker's growth."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from callslip import ResultStore
from callslip.adapters.langchain import Offload
from callslip.adapters.langchain_delegate import (
    Budget,
    Job,
    adelegate,
    adelegate_all,
    delegate,
    delegate_all,
    delegate_tool,
)
from callslip.adapters.langchain_script import ScriptedChat
from callslip.patterns.memory import Memory
from callslip.patterns.scratchpad import Scratchpad
from callslip.testing.model import Answer, Call, ScriptedModel
from tests.adapters.langchain_helpers import answer_to, calls, handle_of, memory, scripted

THREAD: Any = {"configurable": {"thread_id": "t"}}
EXAMPLES = Path(__file__).parents[2] / "examples"


def told(result: str = "ok", *evidence: str) -> str:
    return json.dumps({"result": result, "evidence_ids": list(evidence), "artifacts": []})


@tool
def lookup(key: str) -> str:
    """Much about a key."""
    return f"{key}: much of it\n" * 3_000


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # where its annotations are looked up
    spec.loader.exec_module(module)
    return module


def test_a_sub_agent_starts_empty_and_its_results_are_offloaded_in_its_own_session() -> None:
    session = memory().session("t")
    rows = session.put([{"id": f"C-{n}", "pad": "x" * 90} for n in range(400)])
    model = scripted(
        calls(("lookup", "1", {"key": "k"})),
        lambda m: calls(("search_result", "2", {"result_id": handle_of(m, "1"), "pattern": "k:"})),
        calls(("search_result", "3", {"result_id": rows.id, "pattern": '"C-7"'})),
        told("one", "C-7"),
    )
    given = [lookup, *session.tools()]
    done = delegate("Find it", given, {"rows": rows}, model=model, session=session)
    assert (done.result, done.unresolved, done.steps) == ("one", (), 4)
    assert model.bound.count("read_result") == 1, (
        "the asker's own read-back tools are not handed on"
    )
    assert model.bound[0] == "lookup"
    first = model.seen[0]
    assert [type(m).__name__ for m in first] == ["SystemMessage", "HumanMessage"]
    assert answer_to(model.seen[1], "1").text.startswith('<result id="res_')
    assert 'total="3000"' in answer_to(model.seen[2], "2").text
    assert 'total="1"' in answer_to(model.seen[3], "3").text
    assert max(sum(len(m.text) for m in seen) for seen in model.seen) < 9_000
    assert [handle.id for handle in session.list().handles] == [rows.id]
    assert session.store.stats().sessions == 1


def test_the_orchestrators_window_grows_by_the_answer_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CALLSLIP_MODEL", raising=False)
    found = example("forty_eight_candidates", monkeypatch).main()
    assert 0 < found["grown"] < 1_500
    assert found["work"] > 40_000, "what it would have carried otherwise"
    assert found["unresolved"] == ("C-77",), "the made-up id is caught"


def test_nothing_of_the_sub_agent_is_in_the_askers_checkpoint() -> None:
    store, saver = memory(), InMemorySaver()
    offload = Offload(store)
    sub = scripted(calls(("lookup", "1", {"key": "PROBE"})), told("short"))
    outer = scripted(calls(("delegate", "d", {"task": "Find PR0BE", "inputs": {}})), "done")
    agent = create_agent(
        outer, [delegate_tool(sub, [lookup], offload)], middleware=[offload], checkpointer=saver
    )
    final = agent.invoke({"messages": [HumanMessage("Go")]}, THREAD)
    assert json.loads(answer_to(final["messages"], "d").text)["result"] == "short"
    assert "PROBE" not in str(list(saver.list(None))) + str(saver.blobs)
    assert "PROBE" in str(sub.seen), "it was there while it worked"


def test_the_tool_gives_the_askers_results_by_name_and_works_on_an_event_loop() -> None:
    async def run() -> None:
        store = memory()
        offload = Offload(store)
        sub = scripted(
            lambda m: calls(("read_result", "r", {"result_id": id_in(m[-1].text), "limit": 2})),
            told("two lines"),
        )
        outer = scripted(
            calls(("lookup", "1", {"key": "k"})),
            lambda m: calls(
                ("delegate", "d", {"task": "Read", "inputs": {"log": handle_of(m, "1")}})
            ),
            "done",
        )
        agent = create_agent(
            outer, [lookup, delegate_tool(sub, [], offload)], middleware=[offload],
            checkpointer=InMemorySaver(),
        )  # fmt: skip
        final = await agent.ainvoke({"messages": [HumanMessage("Go")]}, THREAD)
        assert json.loads(answer_to(final["messages"], "d").text)["result"] == "two lines"
        assert "k: much of it" in answer_to(sub.seen[1], "r").text

    def id_in(text: str) -> str:
        return text.split('<result id="')[1].split('"')[0]

    asyncio.run(run())


def test_the_repair_goes_on_in_the_same_window() -> None:
    session = memory().session("t")
    model = scripted("It is seven.", told("seven"))
    done = delegate("How many?", model=model, session=session, keep_transcript=True)
    assert done.result == "seven"
    assert [m.text for m in model.seen[1]][1:3] == ["How many?", "It is seven."]
    assert "That is not the form" in model.seen[1][3].text
    roles = [each["role"] for each in session.load(done.transcript)]
    assert roles == ["human", "ai", "human", "ai"]


def test_budgets_and_errors_are_one_sentence() -> None:
    session = memory().session("t")

    @tool
    def broken() -> str:
        """Breaks."""
        raise RuntimeError("the register is closed")

    again = [calls(("lookup", str(n), {"key": "k"})) for n in range(9)]
    done = delegate("x", [lookup], model=scripted(*again), session=session, budget=Budget(steps=3))
    assert done.result == "The sub-agent was stopped: it made no answer within 3 steps."
    done = delegate(
        "x", [lookup], model=scripted(*again), session=session, budget=Budget(tokens=50)
    )
    assert "used up its 50 tokens" in done.result
    used = AIMessage(
        told(), usage_metadata={"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
    )
    assert delegate("x", model=scripted(used), session=session).tokens == 12
    done = delegate("x", [broken], model=scripted(calls(("broken", "1", {}))), session=session)
    assert done.result == "The sub-agent failed (RuntimeError: the register is closed)."
    assert session.store.stats().sessions == 0


def test_an_asynchronous_one_ends_in_time() -> None:
    session = memory().session("t")

    @tool
    async def forever() -> str:
        """Never comes back."""
        await asyncio.sleep(60)
        return ""

    async def run() -> None:
        started = time.monotonic()
        done = await adelegate(
            "x", [forever], model=scripted(calls(("forever", "1", {}))), session=session,
            budget=Budget(seconds=0.2),
        )  # fmt: skip
        assert "took longer than 0.2 seconds" in done.result
        assert time.monotonic() - started < 30

    asyncio.run(run())


def test_several_at_once_each_with_a_window_of_its_own() -> None:
    session = memory().session("t")

    def echo(seen: Any) -> Answer:
        return Answer(told(seen[-1].text.split("\n")[0]))

    model = ScriptedChat(script=echo)
    jobs = [Job(f"task {n}", {"n": n}) for n in range(6)]
    found = delegate_all(jobs, model=model, session=session, at_once=3)
    assert [each.result for each in found] == [f"task {n}" for n in range(6)]
    again = asyncio.run(adelegate_all(jobs, model=model, session=session, at_once=3))
    assert [each.result for each in again] == [f"task {n}" for n in range(6)]
    assert max(model.requests) < 1_500


def test_a_nested_delegation_stops_at_the_depth_limit() -> None:
    session = memory().session("t")
    deepest = scripted(told("never asked"))
    inner_tool = delegate_tool(deepest, [], session, max_depth=1)
    middle = scripted(calls(("delegate", "1", {"task": "deeper"})), told("came back"))
    done = delegate("x", [inner_tool], model=middle, session=session, max_depth=1)
    assert done.result == "came back"
    assert "Not delegated" in answer_to(middle.seen[1], "1").text
    assert deepest.seen == []


def test_a_scratchpads_tools_can_be_given() -> None:
    from callslip.patterns.scratchpad import Scratchpad

    session = memory().session("t")
    model = scripted(calls(("write_file", "1", {"path": "plan.md", "content": "x"})), told())
    assert delegate("x", Scratchpad(session).tools(), model=model, session=session).ok
    assert Scratchpad(session).text("plan.md") == "x"


def test_the_scripted_chat_model_follows_the_shipped_script() -> None:
    model = ScriptedChat(
        script=ScriptedModel(
            [[Call("lookup", key="a"), Call("lookup", key="b")], Answer(lambda m: m[-1].text[:2])]
        )
    )
    final = create_agent(model, [lookup]).invoke({"messages": [HumanMessage("Go")]})
    assert final["messages"][-1].text == "b:"
    assert [call["id"] for call in final["messages"][1].tool_calls] == ["call_1", "call_2"]
    assert model.requests[1] > model.requests[0]


def test_the_steward_graph_runs_over_two_processes_and_its_state_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CALLSLIP_MODEL", raising=False)
    found = example("steward_graph", monkeypatch).main(tmp_path / "steward")
    assert found["plan"] == {"into": "E-17", "merge": ["C-0003", "C-0041"]}
    assert found["largest"] < 1_500
    assert found["checkpoints"] < found["stored"] / 4
    assert ResultStore(tmp_path / "steward" / "store").stats().results == 0


def test_what_is_over_the_budget_of_a_turn_can_be_read_back_by_the_sub_agent() -> None:
    @tool
    def look(n: int) -> str:
        """Some lines."""
        return f"line of {n}\n" * 450

    model = scripted(
        calls(*[("look", str(n), {"n": n}) for n in range(12)]),
        lambda m: calls(("search_result", "s", {"result_id": handle_of(m, "0"), "pattern": "of"})),
        told("ok"),
    )
    session = memory().session("t")
    assert delegate("Look", [look], model=model, session=session).ok
    assert 'total="450"' in answer_to(model.seen[2], "s").text
    assert "no tool here reads it back" not in str(model.seen)


def test_a_sub_agent_has_the_tools_that_its_envelopes_name(tmp_path: Path) -> None:
    store = ResultStore(
        tmp_path / "s", vocabulary="files", payloads=f"file://{tmp_path}/plain?plain"
    )
    session = store.session("t")
    given = session.put("alpha\n" * 3000, tool="notes")
    model = scripted(
        calls(("grep_file", "1", {"path": given.id, "pattern": "alpha"})),
        calls(("read_slice", "2", {"path": given.saved_to, "limit": 2})),
        calls(("read_slice", "3", {"path": given.saved_to.replace("notes", "other")})),
        told("word " * 900),
    )
    done = delegate("Read", inputs={"notes": given}, model=model, session=session)
    assert 'grep_file("' in model.seen[0][-1].text
    assert 'total="3000"' in answer_to(model.seen[1], "1").text
    assert 'of="3000"' in answer_to(model.seen[2], "2").text
    assert "list_files()" in answer_to(model.seen[3], "3").text
    assert f'read_slice("{done.stored}")' in done.result


def test_tools_over_files_and_memory_are_handed_on_and_what_they_answer_stays(
    tmp_path: Path,
) -> None:
    store = ResultStore(tmp_path / "s", threshold_chars=600, mask={"ssn": lambda value: "?"})
    session = store.session("t", user="ana", tenant="acme")
    pad, memory = Scratchpad(session), Memory(store, ("acme", "ana"))
    pad.write_file("a.md", '{"ssn": "1"}\n' + "a line of it\n" * 100)
    for number in range(9):
        memory.remember(f'Tea is fact {number} {{"ssn": "1{number}"}} ' + f"word{number} " * 20)
    model = scripted(
        calls(("read_file", "1", {"path": "a.md"}), ("recall", "2", {"query": "tea"})),
        told("one"),
    )
    tools = [*pad.tools(), *memory.tools(), *session.tools()]
    assert delegate("Look", tools, model=model, session=session).ok
    for call, start in (("1", '<file path="a.md"'), ("2", "<facts shown=")):
        text = answer_to(model.seen[1], call).text
        assert len(text) > 600
        assert text.startswith(start)
        assert '{"ssn": "1' in text
