from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from callslip import ResultStore
from callslip.handle import Reply
from callslip.limits import RECALL_CHARS
from callslip.patterns.memory import Memory
from callslip.patterns.memory_tools import MemoryTool


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(ResultStore(tmp_path / "store", clock=lambda: 1_790_000_000.0), ("acme", "ana"))


def bound(memory: Memory) -> dict[str, MemoryTool]:
    return {tool.name: tool for tool in memory.tools("run-42")}


def test_a_model_remembers_recalls_and_forgets(memory: Memory) -> None:
    tools = bound(memory)
    said = tools["remember"].call(text="Ana likes tables", key="format", kind="preference")
    (fact,) = memory.list()
    assert said == f"Remembered as {fact.id}."
    assert (fact.kind, fact.source, fact.key) == ("preference", "run-42", "format")
    again = tools["remember"].call(text="ana likes tables", key="format")
    assert again == f"Known already, as {fact.id}; now told 2 times."
    new = tools["remember"].call(text="Ana likes lists", key="format", days="7")
    assert new == f'Remembered as {fact.id}, in place of: "Ana likes tables"'
    assert memory.list().facts[0].expires_at == 1_790_000_000.0 + 7 * 86_400
    found = tools["recall"].call(query="how does ana like it")
    assert isinstance(found, Reply)
    assert f'<fact id="{fact.id}" key="format" kind="preference" source="run-42"' in found
    assert "\nAna likes lists\n" in found
    assert tools["forget"].call(id=f" `{fact.id}`.") == 'Forgotten: "Ana likes lists"'
    assert tools["recall"].call(query="ana") == "Nothing is remembered yet."


def test_the_same_question_right_after_itself_gets_a_line_once(memory: Memory) -> None:
    memory.remember("zebra")
    recall = bound(memory)["recall"]
    first, second, third = (recall.call(query="zebra") for _ in range(3))
    assert first == third
    assert second.startswith("You made this very call just now")


def test_an_empty_answer_says_what_was_looked_through(memory: Memory) -> None:
    memory.remember("zebra", kind="animal")
    recall = bound(memory)["recall"]
    assert recall.call(query="yak") == (
        'None of 1 fact has to do with "yak". Ask once more in other words, or go on without.'
    )
    assert "zebra" in recall.call(query="zebra", kind="pet"), "a wrong kind is left out"


def test_a_refusal_is_one_sentence_without_the_secret(memory: Memory) -> None:
    said = bound(memory)["remember"].call(text="the password is hunter2!")
    assert said == "Not remembered: this holds a credential (password). Say it without that."


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("remember", {}),
        ("remember", {"text": None}),
        ("remember", {"text": "x" * 20_000}),
        ("remember", {"text": {"a": 1}, "key": 5, "kind": ["x"], "days": "soon", "odd": 1}),
        ("remember", {"text": "x", "key": "k" * 999, "days": 10**30}),
        ("recall", {}),
        ("recall", {"query": 5, "limit": "many", "kind": None}),
        ("recall", {"query": "\0\ud800'\"-*", "limit": -3}),
        ("recall", {"query": "x" * 100_000, "limit": 10**9}),
        ("forget", {}),
        ("forget", {"id": "mem_00000000"}),
        ("forget", {"id": "'; DROP TABLE memories; --"}),
    ],
)
def test_no_argument_makes_a_tool_raise(
    memory: Memory, name: str, arguments: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    memory.remember("x and 5")
    tool = bound(memory)[name]
    with caplog.at_level(logging.ERROR):
        reply = tool.call(**arguments)
        assert reply == asyncio.run(bound(memory)[name].acall(**arguments)) or name == "remember"
    assert 0 < len(reply) <= RECALL_CHARS
    assert not caplog.records


def test_a_fault_of_ours_is_a_sentence_and_a_log_entry(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(memory, "_recall", lambda *_: 1 / 0)
    reply = bound(memory)["recall"].call(query="x")
    assert reply.startswith("This call failed for a reason of ours")
    assert "ZeroDivisionError" in caplog.text


def test_the_entries_of_the_tools_are_small_and_always_the_same(memory: Memory) -> None:
    def entries() -> str:
        return json.dumps([[t.name, t.description, t.parameters] for t in memory.tools()])

    before = entries()
    memory.remember("zebra")
    assert entries() == before
    assert len(before) < 1_700
