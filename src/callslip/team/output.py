"""What a caller gets of a run: its output, and the events on the way to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import BaseMessage

Status = Literal["running", "paused", "completed"]


@dataclass(frozen=True, slots=True)
class Pause:
    """A question that a run waits with: what `interrupt()` was given, and who asked."""

    id: str
    """LangGraph's id of the interrupt: the key of its answer where a run waits with several."""
    value: Any
    member: str = ""
    """The path of the member that asks, as `researcher` or `lab/chemist`; empty for the run's own
    agent."""


@dataclass(slots=True)
class RunOutput:
    """How a run went. What is in here is for the caller: always whole, never a pointer.

    `messages` alone are what the model saw: there a long result is its envelope.
    """

    content: str
    run_id: str
    session_id: str
    user_id: str = ""
    agent_id: str = ""
    status: Status = "completed"
    messages: list[BaseMessage] = field(default_factory=list)
    """The messages of this run, without the history that it began with."""
    member_responses: list[RunOutput] = field(default_factory=list)
    """What the members answered to this run's delegations, in the order they were asked."""
    pauses: Sequence[Pause] = ()
    subjects: Sequence[str] = ()
    """Whom the run is about: what `subject=` said when it began."""

    @property
    def is_paused(self) -> bool:
        """True where the run waits for a person: answer with `continue_run(out, answer)`."""
        return self.status == "paused"

    def __str__(self) -> str:
        return self.content


Kind = Literal["content", "tool_started", "tool_completed", "completed", "paused"]


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One step of a streamed run, a member's included.

    content          more of an answer's text, in `content`
    tool_started     a call of `tool` with `args`
    tool_completed   what the model sees of its result, in `content`
    completed, paused   the end, with `output`; the last event is that of the run itself
    """

    event: Kind
    agent_id: str
    run_id: str
    content: str = ""
    tool: str = ""
    args: Any = None
    output: RunOutput | None = None
