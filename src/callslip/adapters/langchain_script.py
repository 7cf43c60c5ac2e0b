"""A LangChain chat model that follows a script of `callslip.testing.model`: examples without a key.

::

    model = ScriptedChat(script=ScriptedModel([Call("search", q="x"), Answer("done")]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

try:
    from langchain_core.language_models.chat_models import BaseChatModel
except ImportError as error:
    raise ImportError(
        "callslip.adapters.langchain_script needs: pip install 'callslip[langchain]'"
    ) from error
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from callslip.testing.model import Answer, Call, Message

__all__ = ["ScriptedChat"]

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


class ScriptedChat(BaseChatModel):
    """`script` is any function of the messages so far that gives a `Call`, several, or an `Answer`.

    `requests` holds the characters of the messages of each request, in order.
    """

    script: Callable[[Sequence[Message]], Any]
    requests: list[int] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "callslip-script"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """The tools are those that the script names; nothing is sent anywhere."""
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        seen = [_plain(message) for message in messages]
        self.requests.append(sum(message.chars for message in seen))
        step = self.script(seen)
        if isinstance(step, Answer):
            answer = AIMessage(str(step.resolved(seen).text))
        else:
            made = sum(len(message.calls) for message in seen)
            calls = [step] if isinstance(step, Call) else list(step)
            answer = AIMessage(
                "",
                tool_calls=[
                    {
                        "name": call.tool,
                        "args": dict(call.resolved(seen).arguments),
                        "id": f"call_{made + at}",
                        "type": "tool_call",
                    }
                    for at, call in enumerate(calls, 1)
                ],
            )
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _plain(message: BaseMessage) -> Message:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return Message(
        _ROLES.get(message.type, message.type),  # type: ignore[arg-type]
        str(message.text),
        calls=tuple(Call(call["name"], call["args"]) for call in calls),
        tool=message.name or "" if isinstance(message, ToolMessage) else "",
    )
