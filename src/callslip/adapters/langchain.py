"""LangChain and LangGraph: long tool results stored as they arrive, and read back in slices.

::

    agent = create_agent(model, tools, middleware=[Offload(ResultStore())])

Give it last in `middleware`: then no other layer cuts a result before it. See docs/langchain.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest
except ImportError as error:
    raise ImportError(
        "callslip.adapters.langchain needs: pip install 'callslip[langchain]'"
    ) from error
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest

from callslip.adapters.langchain_desk import Desk
from callslip.adapters.langchain_exempt import exempt
from callslip.adapters.langchain_node import OffloadToolNode
from callslip.adapters.langchain_results import arrived
from callslip.adapters.langchain_scope import in_view, messages_of, scope_of, subject_of
from callslip.adapters.langchain_sessions import ScopeOf, Sessions, SubjectOf
from callslip.adapters.langchain_sweep import summarised, swept
from callslip.adapters.langchain_tools import ReadBack, read_backs, told
from callslip.errors import SettingsError
from callslip.limits import HARD_CAP_CHARS, PAGE_CAP_CHARS, TURN_CHARS
from callslip.stacks.ops import Flow
from callslip.store import ResultStore

__all__ = ["Offload", "ReadBack", "exempt", "offload_tool_node", "scope_of", "subject_of"]


class Offload(Sessions, AgentMiddleware[Any, Any, Any]):
    """Middleware for `create_agent`: what is too long for the window is stored as it arrives.
    scope           whose results a run's are, from its config: by default `scope_of`, which takes
                    `thread_id` as the session, `user_id` and `tenant_id` where given
    subject         whom they are about, from its config: by default its `subject_id`
    shared          a sub-agent or sub-graph reads what the graph above stored, and the other way
                    round; without it, it has a session of its own
    turn_chars      what the results of one turn may take together, the largest are offloaded
                    first; None for no such budget
    hard_cap_chars  no text of a tool's result is longer, whatever the policy
    media_chars     pictures and files whose base64 is longer are stored too; None keeps them all
    read_back       bind the read-back tools; without any, a result is cut to an excerpt, no handle
    """

    def __init__(
        self,
        store: ResultStore,
        *,
        scope: ScopeOf = scope_of,
        subject: SubjectOf = subject_of,
        shared: bool = False,
        turn_chars: int | None = TURN_CHARS,
        hard_cap_chars: int = HARD_CAP_CHARS,
        media_chars: int | None = None,
        read_back: bool = True,
    ) -> None:
        super().__init__()
        if hard_cap_chars < PAGE_CAP_CHARS:
            raise SettingsError(
                f"hard_cap_chars={hard_cap_chars!r}: give {PAGE_CAP_CHARS} (a page) or more"
            )
        self._found_by(store, scope, subject, shared)
        self.turn_chars = turn_chars
        self._caps = hard_cap_chars, media_chars
        self.reads_back = read_back  # also where somebody else binds the tools
        self.read_back_tools = read_backs(store, self.session)
        self.tools = self.read_back_tools if read_back else []

    in_view = staticmethod(in_view)

    def desk(self, config: RunnableConfig, state: object, reader: bool, **call: Any) -> Desk:
        """Where the results of this run go; for the nodes that share these settings."""
        own, above = self.session(config, state), self.session(config, state, parent=True)
        return Desk(own, above, reader, *self._caps, seen=self.in_view(state), **call)

    def _arrived(self, request: ToolCallRequest, result: Any) -> Flow[Any] | None:
        if isinstance(request.tool, ReadBack) or getattr(request.tool, "return_direct", False):
            return None  # our own pages stay; what ends a run goes to the caller whole
        call, runtime = request.tool_call, request.runtime
        reader = any(isinstance(tool, ReadBack) for tool in runtime.tools)
        known = {"tool": call["name"], "args": call["args"], "call_id": call["id"]}
        return arrived(self.desk(runtime.config, request.state, reader, **known), result)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        """Run the tool; what it raises, interrupts included, is not ours to catch."""
        result = handler(request)
        flow = self._arrived(request, result)
        return result if flow is None else self.store.run_flow(flow)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[..., Awaitable[Any]]
    ) -> Any:
        """`wrap_tool_call`, off the event loop."""
        result = await handler(request)
        flow = self._arrived(request, result)
        return result if flow is None else await self.store.arun_flow(flow)

    def _swept(self, state: object, config: RunnableConfig) -> Flow[dict[str, Any] | None]:
        messages = messages_of(state)
        if not messages:
            return None
        desk = self.desk(config, state, self.reads_back)
        changed = yield from swept(desk, messages, self.turn_chars)
        changed |= yield from summarised(desk, messages)
        return {"messages": [changed[at] for at in sorted(changed)]} if changed else None

    def before_model(self, state: Any, runtime: Any = None) -> dict[str, Any] | None:
        """Make small what the model is about to see. Also a node for a graph of your own."""
        return self.store.run_flow(self._swept(state, get_config()))

    async def abefore_model(self, state: Any, runtime: Any = None) -> dict[str, Any] | None:
        """`before_model`, off the event loop."""
        return await self.store.arun_flow(self._swept(state, get_config()))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]
    ) -> Any:
        """Tell the model, in one line, what an envelope is; only where it has the tools to read."""
        return handler(told(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """`wrap_model_call` for a task."""
        return await handler(told(request))


def offload_tool_node(tools: Any, store: ResultStore | Offload, **options: Any) -> OffloadToolNode:
    """A `ToolNode` for a graph of your own: the tools and the read-back tools, results offloaded.

    `options` are those of `Offload`, or give an `Offload` in place of the store. Bind the tools of
    ``node.tools_by_name`` to the model, so that it can call the read-back tools.
    """
    offload = store if isinstance(store, Offload) else Offload(store, **options)
    return OffloadToolNode(tools, offload)
