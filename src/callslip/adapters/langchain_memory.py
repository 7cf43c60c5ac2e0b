"""LangChain: memory's tools in an agent, each run with the namespace of its own user.

::

    agent = create_agent(model, tools, middleware=[Remembers(ResultStore())])
    agent.invoke(…, {"configurable": {"thread_id": "1", "user_id": "ana", "tenant_id": "acme"}})

What it adds to a request is the entries of its tools: no prompt, no facts, nothing before a model
asks. See docs/memory.md.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

try:
    from langchain.agents.middleware import AgentMiddleware
except ImportError as error:
    raise ImportError(
        "callslip.adapters.langchain_memory needs: pip install 'callslip[langchain]'"
    ) from error
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import ToolRuntime

from callslip.adapters.langchain_scope import SubjectOf, scope_of, subject_of
from callslip.adapters.langchain_tools import answered
from callslip.errors import SettingsError
from callslip.governing import subjects_of
from callslip.patterns.memory import Keeps, Memory
from callslip.patterns.memory_tools import MemoryTool

__all__ = ["FactTool", "Remembers", "namespace_of"]

_CONVERSATIONS = 256
NamespaceOf = Callable[[RunnableConfig], tuple[str, ...]]


def namespace_of(config: RunnableConfig) -> tuple[str, ...]:
    """Whose facts a run's are: tenant and user, as `scope_of` finds them in its config.

    Raises `SettingsError` where there is neither: facts that are nobody's would be everybody's.
    """
    scope = scope_of(config)
    if not scope.user and not scope.tenant:
        raise SettingsError(
            "this run names no user_id and no tenant_id: invoke the agent with "
            '{"configurable": {"user_id": …}}, or give Remembers a namespace= function'
        )
    return (scope.tenant or "-", scope.user) if scope.user else (scope.tenant,)


class FactTool(StructuredTool):
    """A tool over memory. What it answers is never offloaded."""


class Remembers(AgentMiddleware[Any, Any, Any]):
    """Middleware for `create_agent`: the tools `remember`, `recall` and `forget`, and nothing else.

    namespace   whose facts a run's are, from its config: by default `namespace_of`
    subject     whom they are about, from its config: by default its `subject_id`
    options     those of `Memory`: `embed`, `screen`, `most_facts`, `most_bytes`
    """

    def __init__(
        self,
        store: Keeps,
        *,
        namespace: NamespaceOf = namespace_of,
        subject: SubjectOf = subject_of,
        **options: Any,
    ) -> None:
        super().__init__()
        self.store = store
        self._namespace_of, self._subject_of = namespace, subject
        self._options = options
        self._lock = threading.Lock()
        self._made: OrderedDict[object, tuple[dict[str, MemoryTool], str | None]] = OrderedDict()
        # Wrong options are told here, not at the first call.
        self.tools = [self._bound(tool) for tool in Memory(store, "-", **options).tools()]

    def memory(self, config: RunnableConfig) -> Memory:
        """The memory of a run, for a tool or a node of your own."""
        about = self._subject_of(config)
        return Memory(self.store, self._namespace_of(config), subject=about, **self._options)

    def _tool(self, name: str, config: RunnableConfig, call_id: str | None) -> MemoryTool:
        """The tool of a conversation: it notices a call made twice in a row. One that is run again
        under the same id is a replay, and answered."""
        session = scope_of(config).session
        whose = (self._namespace_of(config), subjects_of(self._subject_of(config)), session)
        with self._lock:
            tools, last = self._made.pop(whose, (None, None))
            if tools is None or (call_id is not None and call_id == last):
                tools = {each.name: each for each in self.memory(config).tools(session)}
            self._made[whose] = tools, call_id
            while len(self._made) > _CONVERSATIONS:
                self._made.popitem(last=False)
        return tools[name]

    def _bound(self, tool: MemoryTool) -> FactTool:
        name = tool.name

        def call(config: RunnableConfig, runtime: ToolRuntime = None, **given: Any) -> Any:  # type: ignore[assignment]
            id = None if runtime is None else runtime.tool_call_id
            return answered(name, id, self._tool(name, config, id).call(**given))

        async def acall(config: RunnableConfig, runtime: ToolRuntime = None, **given: Any) -> Any:  # type: ignore[assignment]
            id = None if runtime is None else runtime.tool_call_id
            return answered(name, id, await self._tool(name, config, id).acall(**given))

        return FactTool(
            name=name,
            description=tool.description,
            args_schema=tool.parameters,
            func=call,
            coroutine=acall,
        )
