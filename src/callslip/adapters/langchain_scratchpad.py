"""LangChain: a scratchpad for `create_agent`, its plan at the end of every request.

::

    agent = create_agent(model, tools, middleware=[Scratchpad(store), Offload(store)])

State and checkpoint hold one number, the version of the files that belongs to them; so an older
checkpoint shows the plan as it was, and a run that goes on from there has its own files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest
except ImportError as error:
    raise ImportError(
        "callslip.adapters.langchain_scratchpad needs: pip install 'callslip[langchain]'"
    ) from error
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.types import Overwrite

from callslip.adapters.langchain_pad import KEY, PadState, PadTool, bound
from callslip.adapters.langchain_scope import (
    first_id,
    messages_of,
    namespace,
    scope_of,
    subject_of,
)
from callslip.adapters.langchain_sessions import ScopeOf, Sessions, SubjectOf
from callslip.errors import StoreUnavailable
from callslip.limits import PLAN_CHARS
from callslip.patterns import scratchpad
from callslip.patterns.file_tools import system_line, tools_for
from callslip.patterns.scratchpad import View
from callslip.store import ResultStore

__all__ = ["PadTool", "Scratchpad"]


class Scratchpad(Sessions, AgentMiddleware[Any, Any, Any]):
    """Middleware: `write_file`, `read_file`, `edit_file`, `list_files`, and the plan as the tail.

    scope, subject, shared   as for `Offload`: whose files a run's are, and whom they are about
    plan            the path of the plan; plan_chars  what it may take at the end of a request
    prefix          goes before the tools' names, for agents that have tools of the same ones
    """

    state_schema = PadState

    def __init__(
        self,
        store: ResultStore,
        *,
        scope: ScopeOf = scope_of,
        subject: SubjectOf = subject_of,
        shared: bool = False,
        plan: str = "todo.md",
        plan_chars: int = PLAN_CHARS,
        prefix: str = "",
    ) -> None:
        super().__init__()
        self._found_by(store, scope, subject, shared)
        self._pad: dict[str, Any] = {"plan": plan, "plan_chars": plan_chars, "prefix": prefix}
        bare = scratchpad.Scratchpad(store, name="-", **self._pad)
        self._line = system_line(bare)
        self.tools = [bound(tool, self.pad) for tool in tools_for(bare)]

    def pad(self, config: RunnableConfig, state: Any, step: str = "") -> scratchpad.Scratchpad:
        """The files of a run as its state has them. For a tool or a node of your own, too."""
        thread = (config.get("configurable") or {}).get("thread_id") or first_id(messages_of(state))
        line = "|".join((str(thread), *namespace(config)))
        known = state.get(KEY) if isinstance(state, dict) else getattr(state, KEY, None)
        if known is None and "checkpoint_id" in (config.get("metadata") or {}):
            known = 0  # gone back to before the first request: to before any file of this run
        view = View(known, line, step)
        return scratchpad.Scratchpad(self.session(config, state), view=view, **self._pad)

    # --- the plan ---------------------------------------------------------------------------------

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Note which version the model is about to see, with what others wrote meanwhile."""
        try:
            return _noted(state, self.pad(get_config(), state).list_files().version)
        except StoreUnavailable:
            return None  # the run goes on without its plan, as it does without its results

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """`before_model`, off the event loop."""
        try:
            return _noted(state, (await self.pad(get_config(), state).alist_files()).version)
        except StoreUnavailable:
            return None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]
    ) -> Any:
        """Show the plan at the very end: what stands before it never changes, for prompt caches."""
        pad = self.pad(get_config(), request.state)
        try:
            plan = pad.plan(pad.view.version)
        except StoreUnavailable:
            plan = ""
        return handler(self._told(request, plan))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """`wrap_model_call`, off the event loop."""
        pad = self.pad(get_config(), request.state)
        try:
            plan = await pad.aplan(pad.view.version)
        except StoreUnavailable:
            plan = ""
        return await handler(self._told(request, plan))

    def _told(self, request: ModelRequest[Any], plan: str) -> ModelRequest[Any]:
        given = request.system_message
        content: Any = self._line
        if given is not None and isinstance(given.content, str):
            content = f"{given.content}\n\n{self._line}"
        elif given is not None:
            content = [*given.content, {"type": "text", "text": f"\n\n{self._line}"}]
        system = given.model_copy(update={"content": content}) if given else SystemMessage(content)
        tail = [HumanMessage(plan)] if plan else []
        return request.override(system_message=system, messages=[*request.messages, *tail])


def _noted(state: Any, now: int) -> dict[str, Any] | None:
    known = state.get(KEY)
    if known is None or now > known:
        return {KEY: now}
    return None if now == known else {KEY: Overwrite(now)}  # its session ended: all is new
