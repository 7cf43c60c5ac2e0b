"""What an agent and a team have in common: how they are set up, run, continued and cleared."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from typing import Any, Literal, overload
from uuid import uuid4

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolCallLimitMiddleware
from langchain.chat_models import init_chat_model
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage

from callslip.adapters.langchain import exempt
from callslip.errors import SettingsError
from callslip.governing import subjects_of
from callslip.store import ResultStore
from callslip.taking import Subject
from callslip.team.binding import Setting, checked, effective
from callslip.team.db import Db, InMemoryDb
from callslip.team.middleware import Failures, History, TeamOffload
from callslip.team.output import RunEvent, RunOutput
from callslip.team.printing import Printing
from callslip.team.run import NOTHING, Run
from callslip.team.stored import Sessions

Input = str | BaseMessage | Sequence[BaseMessage]


class Owner(Sessions, Printing):
    """The base of `Agent` and `Team`. Settings are read when a run begins, so they may be changed
    between runs; nothing a caller gave is modified."""

    members: Sequence[Owner] = ()
    _kind = "agent"

    def __init__(
        self,
        *,
        name: str | None = None,
        role: str | None = None,
        id: str | None = None,
        model: str | BaseChatModel | None = None,
        tools: Sequence[Any] = (),
        instructions: str | Sequence[str] = (),
        db: Db | None = None,
        offload_tool_results: Setting = None,
        tool_call_limit: int | None = None,
        add_history_to_context: bool = True,
        num_history_runs: int = 3,
        resolve_results: bool = False,
        middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
        recursion_limit: int = 200,
    ) -> None:
        if db is not None and not isinstance(db, Db):
            raise TypeError(
                f"db={db!r}: give SqliteDb(path), PostgresDb(url), InMemoryDb() or a Db of your own"
            )
        self.name = name
        self.role = role
        self.id = id or slug(name or "")
        self.model = model
        self.tools = list(tools)
        self.instructions = instructions
        self.db = db
        self.offload_tool_results = checked(offload_tool_results)
        self.tool_call_limit = tool_call_limit
        self.add_history_to_context = add_history_to_context
        self.num_history_runs = num_history_runs
        self.resolve_results = resolve_results
        self.middleware = list(middleware)
        self.recursion_limit = recursion_limit
        self.result_store: ResultStore | None = None
        """The store it runs with, as of the last time that it or its team was initialised."""
        self._warned = False
        self._made: tuple[str, BaseChatModel] | None = None
        self._scratch = InMemoryDb()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id or self._kind!r})"

    # --- setting up ---

    def initialize(self) -> None:
        """Bind this one, and below it every member, to the stores they run with. Every run does."""
        self._bind(self.db, None)

    def _bind(self, db: Db | None, inherited: ResultStore | None) -> None:
        self.id = self.id or self._kind
        self.result_store = effective(self, db, inherited)

    def _own_tools(self) -> list[Any]:
        return []

    def _prompt(self) -> str:
        lines = [f"Your role: {self.role}"] if self.role else []
        given = self.instructions
        return "\n".join([*lines, *([given] if isinstance(given, str) else given)])

    def _graph(self, run: Run) -> Any:
        """LangChain's agent for a run; its state is this run's messages, in `run.db`."""
        # Failures outside of what a caller brings: a middleware that tries again sees the error.
        offload = None if run.store is None else TeamOffload(run.store)
        middleware: list[Any] = [History(), Failures(offload)]
        if self.tool_call_limit is not None:
            limit: Any = ToolCallLimitMiddleware(run_limit=self.tool_call_limit)
            middleware.append(exempt(limit))
        middleware += self.middleware
        if offload is not None:
            middleware.append(offload)
        run.model = self._chat_model(run.model)
        return create_agent(
            run.model,
            [*self.tools, *self._own_tools()],
            system_prompt=self._prompt() or None,
            middleware=middleware,
            context_schema=Run,
            checkpointer=run.db.saver,
            name=slug(self.id) or None,  # providers refuse a message's name with spaces
        )

    def _chat_model(self, given: str | BaseChatModel) -> BaseChatModel:
        """The model of a name, made once: it has connections of its own."""
        if not isinstance(given, str):
            return given
        if self._made is None or self._made[0] != given:
            self._made = given, init_chat_model(given)
        return self._made[1]

    def _run(
        self,
        input: Input,
        session_id: str | None,
        user_id: str | None,
        stream: bool,
        subject: Subject = None,
    ) -> Run:
        if session_id == "":
            raise SettingsError("session_id='': give the conversation's id, or leave it out")
        about = subjects_of(subject)
        self.initialize()
        if self.model is None:
            raise SettingsError(f"{self!r} has no model: give a chat model or its name")
        return Run(
            owner=self,
            db=self.db or self._scratch,
            store=self.result_store,
            run_id=uuid4().hex,
            session=session_id or uuid4().hex,
            user=user_id or "",
            subjects=about,
            path=self.id,
            model=self.model,
            input=_messages(input),
            stream=stream,
            forget=self.db is None,
        )

    # --- running ---

    @overload
    def run(
        self, input: Input, *, session_id: str | None = ..., user_id: str | None = ...,
        subject: Subject = ..., stream: Literal[False] = ...,
    ) -> RunOutput: ...  # fmt: skip

    @overload
    def run(
        self, input: Input, *, session_id: str | None = ..., user_id: str | None = ...,
        subject: Subject = ..., stream: Literal[True],
    ) -> Iterator[RunEvent]: ...  # fmt: skip

    def run(
        self,
        input: Input,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        subject: Subject = None,
        stream: bool = False,
    ) -> RunOutput | Iterator[RunEvent]:
        """Answer an input, in a session that later runs go on with; a new one without an id.

        `subject` says whom the run is about, one name or several: its results and its members'
        answers and results are, for `ResultStore.delete(subject=…)`, also if it is continued.
        With `stream`, the events as they happen; the last one has the output. What the model
        raises is raised here, and `continue_run` goes on from there. Tools' errors go to the model.
        """
        run = self._run(input, session_id, user_id, stream, subject)
        return run.events() if stream else _last(run.events())

    @overload
    def arun(
        self, input: Input, *, session_id: str | None = ..., user_id: str | None = ...,
        subject: Subject = ..., stream: Literal[False] = ...,
    ) -> Coroutine[Any, Any, RunOutput]: ...  # fmt: skip

    @overload
    def arun(
        self, input: Input, *, session_id: str | None = ..., user_id: str | None = ...,
        subject: Subject = ..., stream: Literal[True],
    ) -> AsyncIterator[RunEvent]: ...  # fmt: skip

    def arun(
        self,
        input: Input,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        subject: Subject = None,
        stream: bool = False,
    ) -> Coroutine[Any, Any, RunOutput] | AsyncIterator[RunEvent]:
        """`run` for a task: await it, or iterate over it with `stream`."""
        run = self._run(input, session_id, user_id, stream, subject)
        return run.aevents() if stream else _alast(run.aevents())

    def continue_run(
        self,
        run: RunOutput | str | None = None,
        answer: Any = NOTHING,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        stream: bool = False,
    ) -> Any:
        """Go on with a run that is paused, or was cut off by an error or the end of its process.

        `run` is its output or id; with a `session_id` alone, the session's last unfinished run.
        `answer` is what the pause is answered with; for several pauses a mapping by their ids.
        Answers like `run`. Raises `SettingsError` if there is no such run.
        """
        going = self._again(run, answer, session_id, user_id, stream)
        return going.events() if stream else _last(going.events())

    def acontinue_run(
        self,
        run: RunOutput | str | None = None,
        answer: Any = NOTHING,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        stream: bool = False,
    ) -> Any:
        """`continue_run` for a task."""

        async def events() -> AsyncIterator[RunEvent]:
            given = (run, answer, session_id, user_id, stream)
            async for event in (await asyncio.to_thread(self._again, *given)).aevents():
                yield event

        return events() if stream else _alast(events())

    def _again(
        self,
        run: RunOutput | str | None,
        answer: Any,
        session_id: str | None,
        user_id: str | None,
        stream: bool,
    ) -> Run:
        if isinstance(run, RunOutput):
            session_id, user_id = run.session_id, run.user_id
            run = run.run_id
        if not session_id:
            raise SettingsError("give the run's output, or the session_id it belongs to")
        going = self._run("", session_id, user_id, stream)
        found = self._unfinished(going, run)
        if found is None:
            which = f"run {run!r}" if run else "unfinished run"
            raise SettingsError(f"there is no {which} of {self.id!r} in this session")
        going.run_id, going.resume = found, answer
        return going


def slug(name: str) -> str:
    """A name as an id: `Data Engineer` is `data-engineer`, in every process."""
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-")


def _messages(input: Input) -> list[BaseMessage]:
    if isinstance(input, str):
        return [HumanMessage(input)]
    return [input] if isinstance(input, BaseMessage) else list(input)


def _last(events: Iterator[RunEvent]) -> RunOutput:
    *_, last = events
    assert last.output is not None
    return last.output


async def _alast(events: AsyncIterator[RunEvent]) -> RunOutput:
    last = None
    async for event in events:
        last = event
    assert last is not None and last.output is not None
    return last.output


__all__ = ["Input", "Owner", "slug"]
