"""A scripted chat model, and what the LangChain tests make agents and tool calls with."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from callslip import ResultStore, Session

INPUTS = Path(__file__).parents[1] / "cases" / "inputs"
THREAD = {"configurable": {"thread_id": "t"}}
Step = AIMessage | Callable[[Sequence[BaseMessage]], AIMessage]


class Scripted(BaseChatModel):
    """Answers with the next step of a script; keeps what it was asked, and which tools it had."""

    script: list[Any]
    seen: list[list[BaseMessage]]
    bound: list[str]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        self.bound[:] = [getattr(tool, "name", "?") for tool in tools]
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
        self.seen.append(list(messages))
        step = self.script[len(self.seen) - 1]
        answer = step(messages) if callable(step) else step
        return ChatResult(generations=[ChatGeneration(message=answer)])


def scripted(*script: Step | str) -> Scripted:
    steps = [AIMessage(step) if isinstance(step, str) else step for step in script]
    return Scripted(script=steps, seen=[], bound=[])


def calls(*named: tuple[str, str, dict[str, Any]]) -> AIMessage:
    """An answer that calls tools, each given as its name, call id and arguments."""
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "id": call, "args": args, "type": "tool_call"}
            for name, call, args in named
        ],
    )


def ids_in(text: str) -> list[str]:
    return re.findall(r"res_[0-9a-f]+", text)


def handle_of(messages: Sequence[BaseMessage], call: str) -> str:
    """The handle in the answer to a call."""
    return ids_in(answer_to(messages, call).text)[0]


def answer_to(messages: Sequence[BaseMessage], call: str) -> ToolMessage:
    found = [m for m in messages if isinstance(m, ToolMessage) and m.tool_call_id == call]
    assert len(found) == 1, f"{call} has {len(found)} answers"
    return found[0]


def read(call: str, of: str, **given: Any) -> Callable[[Sequence[BaseMessage]], AIMessage]:
    """A step that reads the result of an earlier call."""
    return lambda m: calls(("read_result", call, {"result_id": handle_of(m, of), **given}))


def made(number: str) -> Any:
    """The input of a handed case."""
    [path] = INPUTS.glob(f"{number}_*.py")
    return runpy.run_path(str(path))["make"]()


def memory(**settings: Any) -> ResultStore:
    return ResultStore(":memory:", spool="", **settings)


def session(store: ResultStore, name: str = "t") -> Session:
    return store.session(name)
