"""A model that follows a script, and a small agent loop, to test tools without a model.

::

    run = run_agent(
        ScriptedModel([
            Call("search", query="red"),
            Call("search_result", lambda seen: {"result_id": id_shown(seen), "pattern": "1499"}),
            Answer(lambda seen: seen[-1].text),
        ]),
        [session.offloaded(search), *session.tools()],
        "What is result 1499?",
    )
    assert run.largest < 8_000

The tools are real, only the decisions are written down. A script that does not fit them is an
error (`ScriptError`), never a reply that the script goes on from.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from callslip.handle import Handle, Hits, Listing, Page, Record, Rows
from callslip.tools import Tool

__all__ = [
    "Answer",
    "Call",
    "Message",
    "Request",
    "Run",
    "ScriptError",
    "ScriptedModel",
    "arun_agent",
    "id_shown",
    "run_agent",
]

_ID = re.compile(r"\bres_[a-z0-9]{10,40}\b")
_REQUESTS = 200
_SHOWN = 200


class ScriptError(AssertionError):
    """The script does not fit: the message names the step, and what there is instead."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, with nothing of any framework in it.

    `user` and `system` have a text. `assistant` has the calls it makes, or the text that ends the
    run. `tool` has the text that a call came back with; `tool` is then its name.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[Call, ...] = ()
    tool: str = ""

    @property
    def chars(self) -> int:
        """The characters that it takes in a window: its text, names and arguments."""
        called = sum(len(call.tool) + len(_json(call.arguments)) for call in self.calls)
        return len(self.text) + len(self.tool) + called


Seen: TypeAlias = Sequence[Message]


class Call:
    """A step that calls a tool by name: with arguments, or with a function of the messages so far
    that gives the arguments as a mapping."""

    __slots__ = ("arguments", "tool")

    def __init__(
        self,
        tool: str,
        /,
        given: Mapping[str, Any] | Callable[[Seen], Mapping[str, Any]] | None = None,
        **arguments: Any,
    ) -> None:
        if given is not None and arguments:
            raise ScriptError(
                f"Call({tool!r}): give arguments by name, or a mapping or function, not both"
            )
        self.tool = tool
        self.arguments: Any = arguments if given is None else given

    def __repr__(self) -> str:
        if callable(self.arguments):
            return f"{self.tool}(…)"
        return f"{self.tool}({', '.join(f'{k}={v!r:.60}' for k, v in self.arguments.items())})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Call)
            and self.tool == other.tool
            and bool(self.arguments == other.arguments)
        )

    __hash__ = None  # type: ignore[assignment]  # arguments are a dict

    def resolved(self, seen: Seen) -> Call:
        """The same call with its arguments worked out and checked to be JSON by name."""
        arguments = self.arguments(seen) if callable(self.arguments) else self.arguments
        if not isinstance(arguments, Mapping) or not all(isinstance(k, str) for k in arguments):
            raise ScriptError(f"the arguments of {self.tool} must be a mapping, not {arguments!r}")
        return Call(self.tool, dict(arguments))


@dataclass(frozen=True, slots=True)
class Answer:
    """The step that ends a run: a text, or a function of the messages so far that gives it."""

    text: str | Callable[[Seen], str]

    def resolved(self, seen: Seen) -> Answer:
        """The same answer, as a text."""
        text = self.text(seen) if callable(self.text) else self.text
        if not isinstance(text, str):
            raise ScriptError(f"the answer must be a string, not {text!r}")
        return Answer(text)


Turn: TypeAlias = "Answer | Sequence[Call]"
Step: TypeAlias = (
    "Call | Answer | Sequence[Call] | Callable[[Seen], Call | Answer | Sequence[Call]]"
)
Model: TypeAlias = Callable[[Seen], "Call | Answer | Sequence[Call]"]
"""What `run_agent` needs of a model: the messages so far in, a step out. `ScriptedModel` is one."""


class ScriptedModel:
    """A model that takes the steps of a list, one for each request.

    A step is a `Call`, several `Call`s in a list (made in one turn), an `Answer`, or a function of
    the messages so far that gives one of these. Raises `ScriptError` when asked for more steps than
    there are; `run_agent` raises it too if some are left.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps = tuple(steps)
        self.taken = 0
        for number, step in enumerate(self.steps, 1):
            if isinstance(step, Answer) and number < len(self.steps):
                raise ScriptError(f"step {number} of {len(self.steps)} is an answer: it ends a run")
            if not (isinstance(step, (Call, Answer)) or callable(step) or _are_calls(step)):
                raise ScriptError(
                    f"step {number} is {step!r}: give a Call, a list of Calls, an Answer "
                    "or a function of the messages"
                )

    @property
    def left(self) -> int:
        """How many steps are still to come."""
        return len(self.steps) - self.taken

    def __call__(self, seen: Seen) -> Turn:
        """The next step, worked out from the messages so far."""
        if not self.left:
            last = seen[-1].text if seen else ""
            raise ScriptError(
                f"the script has {len(self.steps)} steps and gives no answer; "
                f"the last message is {last[:_SHOWN]!r}"
            )
        step = self.steps[self.taken]
        self.taken += 1
        try:
            return _turn(step(seen) if callable(step) else step, seen)
        except Exception as error:
            last = seen[-1].text if seen else ""
            error.add_note(f"in step {self.taken} of the script, after {last[:_SHOWN]!r}")
            raise


def id_shown(seen: Seen, tool: str = "") -> str:
    """The id of the stored result that was shown last, or last by `tool`.

    It is read from the text, as a model reads it. Raises `ScriptError` if no id was shown.
    """
    for message in reversed(seen):
        if message.role == "tool" and (not tool or message.tool == tool):
            found = _ID.search(message.text)
            if found:
                return found[0]
    what = f"reply of {tool}" if tool else "reply"
    last = seen[-1].text if seen else ""
    raise ScriptError(f"no {what} shows the id of a stored result; the last is {last[:_SHOWN]!r}")


@dataclass(frozen=True, slots=True)
class Request:
    """What a model was handed for one step: all messages so far."""

    messages: tuple[Message, ...]
    chars: int
    """Characters of the messages, and of the names, descriptions and schemas of all tools."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a run went: its answer, every message, and what each request held."""

    answer: str
    messages: tuple[Message, ...]
    requests: tuple[Request, ...]
    tool_chars: int
    """The share of each request that the tools' descriptions and schemas take."""
    read_backs: int = field(default=0)
    """How many calls went to callslip's own tools."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The characters of each request, in order."""
        return tuple(request.chars for request in self.requests)

    @property
    def largest(self) -> int:
        """The characters of the largest request: what the window must be able to hold."""
        return max(self.sizes)

    @property
    def sent(self) -> int:
        """The characters of all requests together: what is paid for without a prompt cache."""
        return sum(self.sizes)

    @property
    def replies(self) -> tuple[Message, ...]:
        """What the calls came back with, in order."""
        return tuple(message for message in self.messages if message.role == "tool")


AnyTool: TypeAlias = "Tool | Callable[..., Any]"


def run_agent(model: Model, tools: Iterable[AnyTool], question: str, *, system: str = "") -> Run:
    """Ask `model`, make the calls it wants, show it what came back, until it answers.

    `tools` are functions (their name and docstring are what a model sees) and callslip's tools.
    What a function returns is shown as it is if it is text, else as JSON; what it raises, the
    caller of `run_agent` gets. Raises `ScriptError` for a call that no tool takes.
    """
    turns = _turns(model, tools, question, system)
    result: Any = None
    try:
        while True:
            tool, arguments = turns.send(result)
            result = tool.call(**arguments) if isinstance(tool, Tool) else tool(**arguments)
            if inspect.isawaitable(result):
                if inspect.iscoroutine(result):
                    result.close()
                raise ScriptError(f"{_name(tool)} is async: use arun_agent")
            if inspect.isgenerator(result):
                result = _joined(list(result))
    except StopIteration as end:
        return cast("Run", end.value)


async def arun_agent(
    model: Model, tools: Iterable[AnyTool], question: str, *, system: str = ""
) -> Run:
    """`run_agent` on an event loop: functions may be sync or async."""
    turns = _turns(model, tools, question, system)
    result: Any = None
    try:
        while True:
            tool, arguments = turns.send(result)
            result = tool.acall(**arguments) if isinstance(tool, Tool) else tool(**arguments)
            if inspect.isawaitable(result):
                result = await result
            elif inspect.isasyncgen(result):
                result = _joined([item async for item in result])
            elif inspect.isgenerator(result):
                result = _joined(list(result))
    except StopIteration as end:
        return cast("Run", end.value)


# --- the loop, written once -----------------------------------------------------------------------


def _turns(
    model: Model, tools: Iterable[AnyTool], question: str, system: str
) -> Generator[tuple[AnyTool, dict[str, Any]], Any, Run]:
    named = _by_name(tools)
    tool_chars = sum(len(_described(tool)) for tool in named.values())
    messages = [Message("system", system)] if system else []
    messages.append(Message("user", question))
    requests: list[Request] = []
    read_backs = 0
    while len(requests) < _REQUESTS:
        seen = tuple(messages)
        requests.append(Request(seen, tool_chars + sum(message.chars for message in seen)))
        turn = _turn(model(seen), seen)
        if isinstance(turn, Answer):
            if isinstance(model, ScriptedModel) and model.left:
                raise ScriptError(f"the script answered with {model.left} steps still to come")
            answer = cast("str", turn.text)
            messages.append(Message("assistant", answer))
            return Run(answer, tuple(messages), tuple(requests), tool_chars, read_backs)
        messages.append(Message("assistant", calls=tuple(turn)))
        for call in turn:
            tool = named.get(call.tool)
            if tool is None:
                raise ScriptError(f"there is no tool {call.tool!r}, but {', '.join(named)}")
            _check(tool, call)
            read_backs += isinstance(tool, Tool)
            result = yield tool, call.arguments
            messages.append(Message("tool", _shown(result), tool=call.tool))
    raise ScriptError(f"no answer after {_REQUESTS} requests")


def _turn(step: object, seen: Seen) -> Turn:
    if isinstance(step, Answer):
        return step.resolved(seen)
    if isinstance(step, Call):
        return (step.resolved(seen),)
    if _are_calls(step):
        return tuple(call.resolved(seen) for call in cast("Sequence[Call]", step))
    raise ScriptError(f"a step came out as {step!r}: give a Call, a list of Calls or an Answer")


def _are_calls(step: object) -> bool:
    return (
        isinstance(step, (list, tuple))
        and bool(step)
        and all(isinstance(call, Call) for call in step)
    )


def _by_name(tools: Iterable[AnyTool]) -> dict[str, AnyTool]:
    named: dict[str, AnyTool] = {}
    for tool in tools:
        name = _name(tool)
        if name in named:
            raise ScriptError(f"two tools are named {name!r}")
        named[name] = tool
    return named


def _name(tool: AnyTool) -> str:
    if isinstance(tool, Tool):
        return tool.name
    return getattr(tool, "__name__", "") or type(tool).__name__


def _described(tool: AnyTool) -> str:
    """What a model is told of a tool, as text: as long as a framework would make it, or shorter."""
    if isinstance(tool, Tool):
        return tool.name + tool.description + _json(tool.parameters)
    return f"{_name(tool)}{inspect.signature(tool)}{inspect.getdoc(tool) or ''}"


def _check(tool: AnyTool, call: Call) -> None:
    """Our tools forgive what a model writes; a script that misspells an argument is a mistake."""
    if isinstance(tool, Tool):
        known = tool.parameters["properties"]
        unknown = [name for name in call.arguments if name not in known]
        if unknown:
            raise ScriptError(f"{call.tool} takes {', '.join(known)}; not {', '.join(unknown)}")
        return
    try:
        inspect.signature(tool).bind(**call.arguments)
    except TypeError as error:
        takes = f"{call.tool}{inspect.signature(tool)}"
        raise ScriptError(f"{call!r} does not fit {takes}: {error}") from None


def _joined(items: list[Any]) -> Any:
    """What a generator function gave: its text, or the list of its items."""
    return "".join(items) if all(isinstance(item, str) for item in items) else items


def _shown(result: object) -> str:
    if isinstance(result, (str, Handle, Page, Hits, Listing, Record, Rows)):
        return str(result)
    return _json(result)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
