"""LangChain: the scratchpad's tools, and the one number that an agent's state keeps of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from callslip.adapters.langchain_scope import messages_of
from callslip.adapters.langchain_tools import OWN
from callslip.patterns.file_tools import FileTool, tools_for
from callslip.patterns.scratchpad import Scratchpad

KEY = "scratchpad_version"
PadOf = Callable[[RunnableConfig, Any, str], Scratchpad]
"""The files of a run: from its config, its state, and a name for the turn that is under way."""


def _later(old: int | None, new: int | None) -> int | None:
    """Of two writes of one step, the version that has both."""
    return max((n for n in (old, new) if n is not None), default=None)


class PadState(AgentState[Any]):
    """What the scratchpad adds to a state: the version of the files that the model has seen."""

    scratchpad_version: NotRequired[Annotated[int | None, PrivateStateAttr, _later]]


class PadTool(StructuredTool):
    """A tool over scratch files. What it answers is never longer than a page."""


def bound(tool: FileTool, pad_of: PadOf) -> PadTool:
    """A tool of that name and schema over the files of whichever run calls it."""

    def made(runtime: ToolRuntime, given: dict[str, Any]) -> FileTool:
        last = [each for each in messages_of(runtime.state) if isinstance(each, AIMessage)][-1:]
        calls = "\0".join(str(call["id"]) for each in last for call in each.tool_calls)
        pad = pad_of(runtime.config, runtime.state, (last[0].id if last else None) or calls)
        asked = [str(pad.view), runtime.tool_call_id, tool.name, given]
        call = hashlib.sha256(json.dumps(asked, default=str).encode()).digest()[:16]
        return next(each for each in tools_for(pad, call) if each.name == tool.name)

    def call(runtime: ToolRuntime, **given: Any) -> Command[Any]:
        one = made(runtime, given)
        return _answer(one, runtime, one.call(**given))

    async def acall(runtime: ToolRuntime, **given: Any) -> Command[Any]:
        one = made(runtime, given)
        return _answer(one, runtime, await one.acall(**given))

    return PadTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.parameters,
        func=call,
        coroutine=acall,
    )


def _answer(tool: FileTool, runtime: ToolRuntime, reply: str) -> Command[Any]:
    message = ToolMessage(
        "",
        name=tool.name,
        tool_call_id=runtime.tool_call_id,
        additional_kwargs={OWN: True},
    )
    message.content = reply  # set, not given: so it stays of the type that is never offloaded
    update: dict[str, Any] = {"messages": [message]}
    if tool.version is not None:
        update[KEY] = tool.version
    return Command(update=update)
