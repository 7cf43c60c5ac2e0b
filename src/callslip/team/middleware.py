"""What an agent's graph does besides calling its model and tools: the history in front of each
request, failed calls as results, and long results out of the window. Pass it as `context=Run`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest

from callslip.adapters.langchain import Offload
from callslip.errors import CallslipError, RunGone
from callslip.handle import Scope
from callslip.session import Session
from callslip.stacks.ops import Flow
from callslip.store import ResultStore
from callslip.team.inputs import given_to
from callslip.team.keeping import visible
from callslip.team.records import repeats
from callslip.team.run import Run

logger = logging.getLogger("callslip")


class History(AgentMiddleware[Any, Any, Any]):
    """The transcripts of earlier runs, in front of this one's. Never in its state: a checkpoint
    has this run alone."""

    def _told(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        run = _run(request)
        messages: list[Any] = [*run.history, *given_to(request.messages, run.inputs)]
        return request.override(messages=messages)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(self._told(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(self._told(request))


class Failures(AgentMiddleware[Any, Any, Any]):
    """What a tool or a member raises is its result, so that the model can try something else: one
    that arrives as any does, in an event and a checkpoint, too."""

    def __init__(self, offload: TeamOffload | None) -> None:
        super().__init__()
        self._offload = offload

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        try:
            return handler(request)
        except (GraphBubbleUp, RunGone):
            raise  # an interrupt, a Command for the graph above, or a session that is no more
        except Exception as error:  # noqa: BLE001 - the model gets its text, the log the error
            message = _failed(request, error)
        return message if self._offload is None else self._offload.came(request, message)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[..., Awaitable[Any]]
    ) -> Any:
        try:
            return await handler(request)
        except (GraphBubbleUp, RunGone):
            raise
        except Exception as error:  # noqa: BLE001 - the model gets its text, the log the error
            message = _failed(request, error)
        return message if self._offload is None else await self._offload.acame(request, message)


def _failed(request: ToolCallRequest, error: Exception) -> ToolMessage:
    call = request.tool_call
    logger.warning("%s failed", call["name"], exc_info=error)
    if isinstance(error, CallslipError):
        text = error.for_model  # ours may name a path
    else:
        text = str(error) or type(error).__name__
    return ToolMessage(text, name=call["name"], tool_call_id=call["id"] or "", status="error")


class TeamOffload(Offload):
    """`Offload` for agents that share a session: one says "the same as …" only of what it has
    shown this model before, not of what another member has seen."""

    def __init__(self, store: ResultStore) -> None:
        super().__init__(store, scope=scope_of)

    @staticmethod
    def in_view(state: object) -> Callable[[str], bool]:
        # The history is not in the state: `_seen` decides, once the store has answered.
        return lambda id: True

    def came(self, request: ToolCallRequest, result: ToolMessage) -> Any:
        """A result that no tool gave, as one that a tool did."""
        flow = self._arrived(request, result)
        return result if flow is None else self.store.run_flow(flow)

    async def acame(self, request: ToolCallRequest, result: ToolMessage) -> Any:
        """`came`, off the event loop."""
        flow = self._arrived(request, result)
        return result if flow is None else await self.store.arun_flow(flow)

    def _arrived(self, request: ToolCallRequest, result: Any) -> Flow[Any] | None:
        flow = super()._arrived(request, result)
        return None if flow is None else self._seen(request, flow)

    def _seen(self, request: ToolCallRequest, flow: Flow[Any]) -> Flow[Any]:
        result = yield from flow
        if not isinstance(result, ToolMessage):
            return result
        run = _run(request)
        first = repeats(result.content)
        if not first:
            run.shown.update(_opened(result.content))
            return result
        if first in run.shown or visible(first, [*run.history, *request.state["messages"]]):
            return result
        run.shown.add(first)
        session = Session(self.store, Scope(run.session, user=run.user))
        try:
            handle = yield from session._handle(first)
        except CallslipError:
            return result
        return result.model_copy(update={"content": str(handle)})


def scope_of(config: RunnableConfig) -> Scope:
    """Whose results a run's are: all members' are the team's session's."""
    given = config.get("configurable") or {}
    return Scope(str(given["session_id"]), user=str(given["user_id"]))


def _opened(content: object) -> list[str]:
    if isinstance(content, str) and content.startswith('<result id="'):
        return [content.split('"', 2)[1]]
    return []


def _run(request: Any) -> Run:
    run = request.runtime.context
    assert isinstance(run, Run)
    return run
