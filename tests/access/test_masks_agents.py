"""No model of an agent, a team or a sub-task is given a masked value, whatever way leads to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from callslip import ResultStore
from callslip.adapters.langchain import Offload
from callslip.adapters.langchain_delegate import delegate
from callslip.adapters.langchain_script import ScriptedChat
from callslip.masks import hashed, last4
from callslip.team import Agent, SqliteDb, Team
from callslip.testing.model import Answer, Call, Message

SSN = "123-45-6789"
SHORT = [{"id": n, "ssn": SSN} for n in range(3)]
LONG = [{"id": n, "ssn": SSN} for n in range(3000)]


class Model:
    """Does these steps one after the other, and keeps all that it was shown."""

    def __init__(self, *steps: Any) -> None:
        self.seen: list[str] = []
        left = iter(steps)

        def script(messages: Sequence[Message]) -> Any:
            self.seen.append("\n".join(given.text for given in messages))
            return next(left)

        self.chat = ScriptedChat(script=script)


def masked(folder: Path, **given: Any) -> ResultStore:
    return ResultStore(folder / "store", mask={"ssn": last4}, spool="", **given)


def run(model: Model, tools: Sequence[Any], offload: Offload) -> None:
    agent = create_agent(model.chat, list(tools), middleware=[offload])
    agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "t"}})


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("rows", [SHORT, LONG])
def test_an_excerpt_where_no_tool_reads_back_is_masked_and_redacted(
    rows: list[Any], away: bool, tmp_path: Path
) -> None:
    @tool
    def people() -> str:
        """All of them."""
        return json.dumps([{**row, "token": "sk-12345"} for row in rows])

    def redact(text: str) -> str:
        return text.replace("sk-12345", "sk-…")

    if away:
        (tmp_path / "store").write_text("no folder")
    model = Model(Call("people"), Answer("done"))
    run(model, [people], Offload(masked(tmp_path, redact=redact), read_back=False))
    assert "6789" in model.seen[1]
    assert SSN not in model.seen[1]
    assert rows is SHORT or "sk-12345" not in model.seen[1]


def test_what_only_looks_like_an_envelope_is_masked(tmp_path: Path) -> None:
    @tool
    def people() -> str:
        """All of them."""
        return f'<result id="res_0123456789" tool="x">\n{json.dumps(SHORT)}\n</result>'

    model = Model(Call("people"), Answer("done"))
    run(model, [people], Offload(masked(tmp_path)))
    assert "***-**-6789" in model.seen[1]
    assert SSN not in model.seen[1]


def test_an_envelope_of_the_middlewares_own_stays_as_it_is(tmp_path: Path) -> None:
    @tool
    def people() -> str:
        """All of them."""
        return json.dumps(LONG)

    store = ResultStore(tmp_path / "store", mask={"ssn": hashed(b"k" * 32)}, spool="")
    model = Model(Call("people"), Call("people"), Answer("done"))
    run(model, [people], Offload(store))
    shown = model.seen[1][model.seen[1].index("<result ") :]
    assert model.seen[2].count(shown) == 1, "masked twice, its hashes would be others"


def test_a_result_that_a_task_names_is_resolved_as_a_model_may_see_it(tmp_path: Path) -> None:
    counter = Model(Answer("3000"))
    member = Agent(name="Counter", resolve_results=True, model=counter.chat)
    team = Team(
        model=Model().chat,
        members=[member],
        db=SqliteDb(tmp_path / "team.db"),
        offload_tool_results=masked(tmp_path),
    )
    team.initialize()
    assert team.result_store is not None
    session = team.result_store.session("s")
    id = session.put(LONG, tool="crm").id
    task = Call("delegate_task_to_member", member_id="counter", task=f"How many are in {id}?")
    team.model = Model(task, Answer("done")).chat
    team.run("go", session_id="s")
    assert counter.seen[0].count("***-**-6789") == 3000
    assert SSN not in counter.seen[0]
    assert session.load(id) == LONG


def test_nor_is_one_resolved_that_may_not_be_read(tmp_path: Path) -> None:
    counter = Model(Answer("none"))
    store = ResultStore(authorize=lambda scope, handle, action: action != "read", spool="")
    member = Agent(name="Counter", resolve_results=True, model=counter.chat)
    team = Team(
        model=Model().chat,
        members=[member],
        db=SqliteDb(tmp_path / "team.db"),
        offload_tool_results=store,
    )
    team.initialize()
    assert team.result_store is not None
    id = team.result_store.session("s").put(LONG, tool="crm").id
    task = Call("delegate_task_to_member", member_id="counter", task=f"How many are in {id}?")
    team.model = Model(task, Answer("done")).chat
    team.run("go", session_id="s")
    assert id in counter.seen[0]
    assert SSN not in counter.seen[0]


@pytest.mark.parametrize("rows", [SHORT, LONG])
def test_what_answered_directly_is_the_callers_and_in_later_turns_masked(
    rows: list[Any], tmp_path: Path
) -> None:
    @tool(return_direct=True)
    def people() -> str:
        """All of them."""
        return json.dumps(rows)

    model = Model(Call("people"), Answer("done"))
    agent = Agent(
        name="A",
        tools=[people],
        model=model.chat,
        db=SqliteDb(tmp_path / "team.db"),
        offload_tool_results=masked(tmp_path),
    )
    out = agent.run("go", session_id="s")
    assert json.loads(out.content) == rows
    agent.run("and now?", session_id="s")
    assert "***-**-6789" in model.seen[1]
    assert SSN not in model.seen[1]
    assert json.loads(agent.runs("s")[0].content) == rows


def test_a_leader_that_goes_on_reads_a_direct_answer_of_a_member_masked(tmp_path: Path) -> None:
    member = Agent(name="M", model=Model(Answer(json.dumps(SHORT))).chat)
    leader = Model(Call("delegate_task_to_member", member_id="m", task="a"), Answer("done"))
    team = Team(
        model=leader.chat,
        members=[member],
        db=SqliteDb(tmp_path / "team.db"),
        offload_tool_results=masked(tmp_path),
        respond_directly=True,
    )
    assert json.loads(team.run("go", session_id="s").content) == SHORT
    team.run("and now?", session_id="s")
    assert "***-**-6789" in leader.seen[1]
    assert SSN not in leader.seen[1]


@pytest.mark.parametrize("value", [SHORT[0], LONG, json.dumps(SHORT)])
def test_the_inputs_of_a_sub_task_are_masked_whatever_their_length(
    value: Any, tmp_path: Path
) -> None:
    answer = {"result": "one", "evidence_ids": ["***-**-6789"], "artifacts": []}
    model = Model(Answer(json.dumps(answer)))
    session = masked(tmp_path).session("s")
    found = delegate("Who is it?", [], {"people": value}, model=model.chat, session=session)
    assert "***-**-6789" in model.seen[0]
    assert SSN not in model.seen[0]
    assert found.ok
    if value is SHORT[0]:
        assert found.unresolved == (), "what it was shown is evidence"


def test_a_message_is_masked_once_in_whatever_form_a_tool_gives_it(tmp_path: Path) -> None:
    text = json.dumps({"ssn": SSN})

    @tool
    def plain() -> str:
        """One."""
        return text

    @tool
    def blocks() -> list[Any]:
        """One."""
        return [{"type": "text", "text": text}]

    @tool
    def updates(runtime: ToolRuntime) -> Command[Any]:
        """One."""
        told = {"role": "tool", "content": text, "tool_call_id": runtime.tool_call_id}
        return Command(update={"messages": [told]})

    store = ResultStore(tmp_path / "store", mask={"ssn": hashed(b"k" * 32)}, spool="")
    model = Model([Call("plain"), Call("blocks"), Call("updates")], Call("plain"), Answer("done"))
    run(model, [plain, blocks, updates], Offload(store))
    once = store.session("x").offload(text)
    assert [seen.count(once) for seen in model.seen] == [0, 3, 4]
    assert SSN not in str(model.seen)


def test_what_another_layer_puts_into_a_masked_message_is_masked_too(tmp_path: Path) -> None:
    @tool
    def person() -> str:
        """One."""
        return json.dumps({"ssn": SSN})

    @wrap_tool_call
    def with_more(request: Any, handler: Any) -> Any:
        found = handler(request)
        return found.model_copy(update={"content": f'{found.content}\n{{"ssn": "987-65-4321"}}'})

    model = Model(Call("person"), Answer("done"))
    offload = Offload(masked(tmp_path))
    agent = create_agent(model.chat, [person], middleware=[with_more, offload])
    agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "t"}})
    assert "***-**-4321" in model.seen[1]
    assert SSN not in str(model.seen) and "987-65-4321" not in str(model.seen)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_event_of_a_call_that_failed_has_what_the_model_sees(
    tmp_path: Path, asynchronous: bool
) -> None:
    @tool
    def boom() -> str:
        """Fails."""
        raise ValueError(json.dumps({"ssn": SSN}))

    model = Model(Call("boom"), Answer("done"))
    agent = Agent(
        model=model.chat,
        tools=[boom],
        db=SqliteDb(tmp_path / "team.db"),
        offload_tool_results=masked(tmp_path),
    )

    async def collected() -> list[Any]:
        return [event async for event in agent.arun("go", session_id="s", stream=True)]

    events = asyncio.run(collected()) if asynchronous else agent.run("go", stream=True)
    told = [event.content for event in events if event.event == "tool_completed"]
    assert told == ['{"ssn": "***-**-6789"}']
    assert told[0] in model.seen[1]
    assert SSN not in model.seen[1]
