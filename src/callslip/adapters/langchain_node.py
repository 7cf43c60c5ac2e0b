"""A `ToolNode` for hand-written graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables.config import ensure_config
from langgraph.prebuilt import ToolNode

from callslip.adapters.langchain_scope import messages_of
from callslip.adapters.langchain_sweep import swept
from callslip.stacks.ops import Flow

if TYPE_CHECKING:
    from callslip.adapters.langchain import Offload


class OffloadToolNode(ToolNode):
    """The tools and the read-back tools in one node; results are offloaded as they arrive.

    Here all calls of a turn come back together, so the turn's budget is kept here too. Bind the
    tools of `tools_by_name` to the model.
    """

    def __init__(self, tools: Sequence[Any], offload: Offload, **options: Any) -> None:
        super().__init__(
            [*tools, *offload.tools],
            wrap_tool_call=offload.wrap_tool_call,
            awrap_tool_call=offload.awrap_tool_call,
            **options,
        )
        self.offload = offload

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """Run the calls of the last message."""
        self.offload.subjects(ensure_config(config))  # what is wrong is said before a tool is run
        output = super().invoke(input, config, **kwargs)
        return self.offload.store.run_flow(self._within(input, output, ensure_config(config)))

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """`invoke`, as a coroutine."""
        self.offload.subjects(ensure_config(config))
        output = await super().ainvoke(input, config, **kwargs)
        flow = self._within(input, output, ensure_config(config))
        return await self.offload.store.arun_flow(flow)

    def _within(self, input: Any, output: Any, config: Any) -> Flow[Any]:
        key = self._messages_key
        messages = output.get(key) if isinstance(output, dict) else output
        ended = {name for name, tool in self.tools_by_name.items() if tool.return_direct}
        if not isinstance(messages, list) or not all(
            isinstance(given, ToolMessage) and given.name not in ended for given in messages
        ):
            return output  # commands, and what goes to the caller whole: the sweep looks at those
        desk = self.offload.desk(config, input, self.offload.reads_back)
        asked = [given for given in messages_of(input) if isinstance(given, AIMessage)][-1:]
        changed = yield from swept(desk, [*asked, *messages], self.offload.turn_chars)
        if not changed:
            return output
        made = [changed.get(at, given) for at, given in enumerate(messages, len(asked))]
        return {**output, key: made} if isinstance(output, dict) else made
