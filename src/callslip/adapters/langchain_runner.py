"""LangChain: one sub-agent of `callslip.patterns.delegate`, run by `create_agent`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolRuntime

from callslip.adapters.langchain import Offload, ReadBack
from callslip.adapters.langchain_tools import answered
from callslip.patterns.delegate import Meter, Run, SubTask
from callslip.patterns.file_tools import FileTool
from callslip.patterns.memory_tools import MemoryTool
from callslip.tools import Tool
from callslip.window.measure import estimate_tokens

__all__ = ["AgentRunner"]

_HANDED_ON = FileTool, MemoryTool
_UNBOUND: Any = {"recursion_limit": 100_000}
"""LangGraph's own limit raises without an answer; ours is the budget."""


class AgentRunner:
    """Runs each sub-task as an agent with a fresh window, its results offloaded to its own session.

    Nothing of it goes into the asker's checkpoint. `middleware` comes before ours.
    """

    passing: tuple[type[BaseException], ...] = (GraphBubbleUp,)

    def __init__(
        self, model: str | BaseChatModel, middleware: Sequence[AgentMiddleware[Any, Any, Any]] = ()
    ) -> None:
        self.model = model
        self.middleware = middleware

    def run(self, task: SubTask, /) -> Run:
        """Run it here, to its last message."""
        agent, messages = self._made(task)
        return _came(agent.invoke({"messages": messages}, _UNBOUND), len(messages) - 1)

    async def arun(self, task: SubTask, /) -> Run:
        """Run it as a coroutine."""
        agent, messages = self._made(task)
        return _came(await agent.ainvoke({"messages": messages}, _UNBOUND), len(messages) - 1)

    def _made(self, task: SubTask) -> tuple[Any, list[Any]]:
        offload = Offload(
            task.session.store,
            scope=lambda config: task.session.scope,
            subject=lambda config: task.session.subjects,
            shared=True,
            read_back=False,
        )
        # A read-back tool of the asker's would read all that the asker may.
        given = [
            _bound(tool) if isinstance(tool, _HANDED_ON) else tool
            for tool in task.tools
            if isinstance(tool, _HANDED_ON) or not isinstance(tool, Tool | ReadBack)
        ]
        own = [_bound(tool) for tool in task.read_back]
        offload.reads_back = True
        agent = create_agent(
            self.model,
            [*given, *own],
            system_prompt=task.system,
            middleware=[*self.middleware, _Metered(task.meter), offload],
            checkpointer=False,
        )
        return agent, [*(task.history or ()), HumanMessage(task.message)]


class _Metered(AgentMiddleware[Any, Any, Any]):
    """Asks the meter before each request and each tool."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """One step."""
        self._meter.check(step=True)
        response = handler(request)
        self._count(request, response)
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """One step, as a coroutine."""
        self._meter.check(step=True)
        response = await handler(request)
        self._count(request, response)
        return response

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """No tool is run once the budget is used up."""
        self._meter.check()
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same, as a coroutine."""
        self._meter.check()
        return await handler(request)

    def _count(self, request: Any, response: Any) -> None:
        for message in response.result:
            used = message.usage_metadata if isinstance(message, AIMessage) else None
            if used is not None:
                self._meter.tokens += used["total_tokens"]
            else:
                texts = [each.text for each in (*request.messages, message)]
                self._meter.tokens += estimate_tokens("\n".join(texts))


def _bound(tool: Tool) -> BaseTool:
    def call(runtime: ToolRuntime, **given: Any) -> Any:
        return answered(tool.name, runtime.tool_call_id, tool.call(**given))

    async def acall(runtime: ToolRuntime, **given: Any) -> Any:
        return answered(tool.name, runtime.tool_call_id, await tool.acall(**given))

    kind = StructuredTool if isinstance(tool, _HANDED_ON) else ReadBack
    return kind(
        name=tool.name,
        description=tool.description,
        args_schema=tool.parameters,
        func=call,
        coroutine=acall,
    )


def _came(state: Mapping[str, Any], before: int) -> Run:
    messages: Sequence[BaseMessage] = state["messages"]
    return Run(str(messages[-1].text), list(messages), [_plain(each) for each in messages[before:]])


def _plain(message: BaseMessage) -> dict[str, Any]:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    told: dict[str, Any] = {"role": message.type, "text": str(message.text)}
    if calls:
        told["calls"] = [{"tool": call["name"], "args": call["args"]} for call in calls]
    return told | ({"tool": message.name} if message.name else {})
