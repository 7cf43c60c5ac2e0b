"""The read-back tools as LangChain tools, and the line that tells a model of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import ToolRuntime

from callslip.errors import SettingsError
from callslip.session import Session
from callslip.store import ResultStore
from callslip.tool_words import VOCABULARIES
from callslip.tools import SYSTEM_LINE, Tool

_CONVERSATIONS = 256


class ReadBack(StructuredTool):
    """A read-back tool. Exempt from offloading by being of this class, whatever its name."""


class Readers:
    """The framework-free tools of the conversations that read something lately.

    A tool notices that a call is made twice in a row. A call that is run again under the same id
    is a replay, after an interrupt or from an older checkpoint: that one is answered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[object, tuple[Mapping[str, Tool], str | None]] = OrderedDict()

    def tool(self, session: Session, name: str, call_id: str | None = None) -> Tool:
        """The tool of that name over the results of a session."""
        whose = session.scope, session.subjects  # what a query saves is about them
        with self._lock:
            tools, last = self._made.pop(whose, (None, None))
            if tools is None or (call_id is not None and call_id == last):
                tools = {tool.name: tool for tool in session.tools()}
            self._made[whose] = tools, call_id
            while len(self._made) > _CONVERSATIONS:
                self._made.popitem(last=False)
        return tools[name]


def read_backs(
    store: ResultStore, session_of: Callable[[RunnableConfig, object], Session]
) -> list[ReadBack]:
    """The tools to bind: same names, same schemas, each looking up whose results it may read."""
    readers = Readers()

    def bound(tool: Tool) -> ReadBack:
        name = tool.name

        def found(runtime: ToolRuntime | None, config: RunnableConfig) -> Tool:
            if runtime is None:
                return readers.tool(session_of(config, ()), name)
            session = session_of(runtime.config, runtime.state)
            return readers.tool(session, name, runtime.tool_call_id)

        def call(config: RunnableConfig, runtime: ToolRuntime = None, **given: Any) -> str:  # type: ignore[assignment]
            return str(found(runtime, config).call(**given))

        async def acall(config: RunnableConfig, runtime: ToolRuntime = None, **given: Any) -> str:  # type: ignore[assignment]
            return str(await found(runtime, config).acall(**given))

        return ReadBack(
            name=name,
            description=tool.description,
            args_schema=tool.parameters,
            func=call,
            coroutine=acall,
        )

    return [bound(tool) for tool in store.session("-").tools()]


NAMES = frozenset[str]().union(*(words.tools for words in VOCABULARIES.values())) - {
    "list_files"  # others have one too, and ours is short
}
"""Every name that a read-back tool of ours has, in either vocabulary."""

OWN = "callslip_own"
"""In a tool message's `additional_kwargs`: a tool of ours answered it. Never sent to a model.

For tools whose names others have too (`read_file`), where a name says nothing."""


def is_own(message: ToolMessage) -> bool:
    """Whether a tool of ours answered: then it is capped, and never stored in its turn."""
    return message.name in NAMES or OWN in message.additional_kwargs


def answered(name: str, call_id: str | None, reply: str) -> Any:
    """What a tool of ours answers that is no `ReadBack`: a message that stays as it is."""
    if call_id is None:
        return str(reply)
    # Set, not given, it stays of the type that is never offloaded; behind a checkpoint it is a text.
    message = ToolMessage("", name=name, tool_call_id=call_id, additional_kwargs={OWN: True})
    message.content = reply
    return message


def told(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """The request with the one line about stored results at the end of its system prompt.

    Only where a read-back tool is bound, and once, whoever else adds it.
    """
    given = request.system_message
    bound = False
    for tool in request.tools:
        name = getattr(tool, "name", "")
        if isinstance(tool, ReadBack):
            bound = True
        elif name in NAMES:
            raise SettingsError(
                f"a tool of yours is named {name!r}, as one that reads stored results: rename it"
            )
    if not bound or (given is not None and SYSTEM_LINE in given.text):
        return request
    if given is None:
        return request.override(system_message=SystemMessage(SYSTEM_LINE))
    if isinstance(given.content, str):
        content: Any = f"{given.content}\n\n{SYSTEM_LINE}"
    else:
        content = [*given.content, {"type": "text", "text": f"\n\n{SYSTEM_LINE}"}]
    return request.override(system_message=given.model_copy(update={"content": content}))
