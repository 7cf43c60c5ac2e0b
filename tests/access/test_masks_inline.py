"""What is short enough to stay in the window is masked, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool

from callslip import ResultStore
from callslip.adapters.langchain import Offload
from callslip.adapters.langchain_script import ScriptedChat
from callslip.masks import hashed, last4
from callslip.session import Session
from callslip.testing.model import Answer, Call, Message

SSN = "123-45-6789"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return ResultStore(tmp_path / "store", mask={"ssn": last4}, spool="").session("run")


@dataclass
class Person:
    name: str
    ssn: str


@pytest.mark.parametrize(
    "value",
    [
        {"name": "Li", "ssn": SSN},
        [{"name": "Li", "ssn": SSN}],
        f'{{"name": "Li", "ssn": "{SSN}"}}',
        f"name,ssn\nLi,{SSN}\nBo,{SSN}\n",
        Person("Li", SSN),
    ],
)
def test_a_short_value_shows_its_masked_fields_to_nobody(session: Session, value: Any) -> None:
    shown = session.offload(value, tool="t")
    assert SSN not in str(shown) and "6789" in str(shown) and "Li" in str(shown)
    assert SSN not in str(asyncio.run(session.aoffload(value, tool="t")))
    assert SSN not in str(session.offloaded(lambda: value)())
    assert session.list().total == 0


def test_what_has_nothing_to_hide_stays_the_very_object(session: Session) -> None:
    value = {"name": "Li", "at": Path("x")}
    assert session.offload(value) is value and session.offloaded(lambda: value)() is value
    assert asyncio.run(session.aoffload(value)) is value


def test_wrapped_functions_of_every_colour_give_what_may_be_seen(session: Session) -> None:
    async def one() -> dict[str, str]:
        return {"ssn": SSN}

    def some() -> Iterator[dict[str, str]]:
        yield {"ssn": SSN}
        yield {"name": "Li"}

    async def more() -> AsyncIterator[dict[str, str]]:
        yield {"ssn": SSN}

    async def taken() -> list[Any]:
        return [item async for item in session.offloaded(more)()]

    assert SSN not in str(asyncio.run(session.offloaded(one)()))
    got = list(session.offloaded(some)())
    assert len(got) == 2 and got[1] == {"name": "Li"} and SSN not in str(got)
    assert SSN not in str(asyncio.run(taken()))


def test_a_stream_that_turns_out_short_is_masked(session: Session) -> None:
    assert SSN not in str(session.offload(iter([f'{{"ssn": "{SSN}"}}\n'])))


def test_a_short_message_of_a_tool_is_masked_once_in_every_request(tmp_path: Path) -> None:
    @tool
    def lookup(name: str) -> str:
        """Find a person."""
        return f'{{"name": "{name}", "ssn": "{SSN}"}}'

    store = ResultStore(tmp_path / "s", mask={"ssn": hashed(b"k" * 32)}, spool="")
    once = store.session("x").offload(f'{{"name": "Li", "ssn": "{SSN}"}}')
    seen: list[list[str]] = []

    def script(messages: Sequence[Message]) -> Call | Answer:
        seen.append([given.text for given in messages if given.role == "tool"])
        return Call("lookup", name="Li") if len(seen) < 3 else Answer("done")

    model = ScriptedChat(script=script)
    agent = create_agent(model, [lookup], middleware=[Offload(store)])
    agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "t"}})
    assert [len(told) for told in seen] == [0, 1, 2]
    assert all(told == once for told in [*seen[1], *seen[2]]) and SSN not in once
