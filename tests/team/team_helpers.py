"""A scripted chat model for leaders and members, and what the team tests count with."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from callslip.team import RunEvent, RunOutput

Step = AIMessage | str | Callable[[Sequence[BaseMessage]], AIMessage | str]
REPORT = "\n".join(f"finding {i}: " + "d" * 60 for i in range(1, 3001))


class Scripted(BaseChatModel):
    """Takes the steps of a script, and keeps what each call was handed."""

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
        assert len(self.seen) <= len(self.script), f"no step left after {messages[-1].text[:300]!r}"
        step = self.script[len(self.seen) - 1]
        answer = step(messages) if callable(step) else step
        if isinstance(answer, str):
            answer = AIMessage(answer)
        return ChatResult(generations=[ChatGeneration(message=answer.model_copy())])

    @property
    def sizes(self) -> list[int]:
        """The characters of all messages of each call, system included."""
        return [size(messages) for messages in self.seen]


def size(messages: Sequence[BaseMessage]) -> int:
    return sum(len(message.text) for message in messages)


def scripted(*script: Step) -> Scripted:
    return Scripted(script=list(script), seen=[], bound=[])


def call(name: str, id: str = "", **args: Any) -> AIMessage:
    made = {"name": name, "args": args, "id": id or f"call_{name}", "type": "tool_call"}
    return AIMessage("", tool_calls=[made])  # type: ignore[list-item]


def calls(*each: AIMessage) -> AIMessage:
    """Several calls in one turn."""
    return AIMessage("", tool_calls=[made for message in each for made in message.tool_calls])


def delegate(member: str, task: str = "look into it", id: str = "call_1") -> AIMessage:
    return call("delegate_task_to_member", id, member_id=member, task=task)


def ids_in(text: str) -> list[str]:
    return re.findall(r"\bres_[0-9a-z]+", text)


def texts(messages: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in messages]


MODES = ["sync", "async", "stream", "astream"]


def go(mode: str, owner: Any, input: str, **given: Any) -> RunOutput:
    """Run an agent or a team in one of the four ways."""
    return _finish(mode, owner.run, owner.arun, input, **given)


def go_on(mode: str, owner: Any, *given: Any, **named: Any) -> RunOutput:
    """Continue a run in one of the four ways."""
    return _finish(mode, owner.continue_run, owner.acontinue_run, *given, **named)


def _finish(mode: str, run: Any, arun: Any, *given: Any, **named: Any) -> RunOutput:
    if mode == "sync":
        return run(*given, **named)
    if mode == "async":
        return asyncio.run(arun(*given, **named))
    if mode == "stream":
        return _last(list(run(*given, stream=True, **named)))

    async def collected() -> list[RunEvent]:
        return [event async for event in arun(*given, stream=True, **named)]

    return _last(asyncio.run(collected()))


def _last(events: list[RunEvent]) -> RunOutput:
    assert events[-1].output is not None
    return events[-1].output
