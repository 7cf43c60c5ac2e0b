"""Sub-tasks in a window of their own: what is done there costs the asker its result alone.

A `Delegation` runs sub-agents through a `Runner`, which an adapter gives (LangChain:
`callslip.adapters.langchain_delegate`). Here is what no framework decides: the narrow instruction,
the answer's form and its one repair, the evidence, what is stored, the budgets and the depth.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from callslip.errors import CallslipError, SettingsError, StoreUnavailable
from callslip.patterns import answers
from callslip.patterns.answers import Delegated
from callslip.patterns.shared import SharedSession, shared_tools
from callslip.session import Session
from callslip.tool_words import VOCABULARIES
from callslip.tools import Tool

__all__ = ["Budget", "Delegated", "Delegation", "Job", "OverBudget", "Run", "Runner", "SubTask"]

logger = logging.getLogger(__name__)

_depth: ContextVar[int] = ContextVar("callslip_depth", default=0)


class OverBudget(CallslipError):
    """A sub-agent used up its steps, tokens or time; the message says which."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What one sub-agent may take. None means no such cap.

    steps    requests to its model; tokens  of all of them together, as the provider counts them or
             estimated; seconds  of wall clock. Each is looked at before a request is made and
             before a tool is run; off an event loop, `seconds` also ends what is under way.
    """

    steps: int | None = 60
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "tokens", "seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SettingsError(f"Budget({name}={value!r}): give a number above 0, or None")


@dataclass
class Meter:
    """What a sub-agent has taken so far. A runner asks `check` before each request and tool."""

    budget: Budget
    cancelled: Callable[[], bool] = lambda: False
    steps: int = 0
    tokens: int = 0
    started: float = field(default_factory=time.monotonic)

    def check(self, *, step: bool = False) -> None:
        """Raise `OverBudget` if nothing more may be done; `step` counts a request."""
        if self.cancelled():
            raise OverBudget("it was cancelled")
        left = self.seconds_left()
        if left is not None and left <= 0:
            raise OverBudget(f"it took longer than {self.budget.seconds:g} seconds")
        if self.budget.tokens is not None and self.tokens >= self.budget.tokens:
            raise OverBudget(f"it used up its {self.budget.tokens:,} tokens")
        if step:
            if self.budget.steps is not None and self.steps >= self.budget.steps:
                raise OverBudget(f"it made no answer within {self.budget.steps:,} steps")
            self.steps += 1

    def seconds_left(self) -> float | None:
        """Seconds of the time budget that are left; None without one."""
        if self.budget.seconds is None:
            return None
        return self.budget.seconds - (time.monotonic() - self.started)


@dataclass(frozen=True, slots=True)
class SubTask:
    """What a runner is to run: a fresh window with a system text and one message, these tools, and
    the session that their long results go to. `tools` are the caller's, in the runner's own kind;
    `read_back` are ours."""

    system: str
    message: str
    tools: Sequence[Any]
    read_back: Sequence[Tool]
    session: Session
    meter: Meter
    history: Any = None
    """What `Run.history` was, where the same window goes on: the repair round."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came of it: the last text, and the transcript as plain values (role, text, calls)."""

    text: str
    history: Any
    transcript: Sequence[Mapping[str, Any]]


class Runner(Protocol):
    """Runs a sub-agent with some framework. What it raises becomes one sentence, but for `passing`:
    errors that are the framework's own control flow, as interrupts are."""

    passing: tuple[type[BaseException], ...]

    def run(self, task: SubTask, /) -> Run: ...

    async def arun(self, task: SubTask, /) -> Run: ...


@dataclass(frozen=True, slots=True)
class Job:
    """One of several sub-tasks that are run at once."""

    task: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Any] = ()


class Delegation:
    """Sub-agents of one conversation: their results and artifacts go to `session`.

    max_result_tokens  a longer result is stored, and shown as its head and a handle
    keep_transcript    store each transcript, behind `Delegated.transcript`; else it is dropped
    max_depth          how deep sub-agents may delegate in turn; 1: not at all
    resolves           says of an evidence id that the inputs do not hold whether it is known
                       elsewhere
    """

    def __init__(
        self,
        runner: Runner,
        session: Session,
        *,
        max_result_tokens: int = 300,
        budget: Budget | None = None,
        keep_transcript: bool = False,
        max_depth: int = 2,
        resolves: Callable[[str], bool] | None = None,
        instructions: str = "",
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        if max_result_tokens < 20 or max_depth < 1:
            raise SettingsError(
                f"max_result_tokens={max_result_tokens!r}, max_depth={max_depth!r}: give 20 or "
                "more, and 1 or more"
            )
        self.runner = runner
        self.session = session
        self.max_result_tokens = max_result_tokens
        self.budget = budget or Budget()
        self.keep_transcript = keep_transcript
        self.max_depth = max_depth
        self.resolves = resolves
        self.instructions = instructions
        self.cancelled = cancelled

    def run(
        self, task: str, tools: Sequence[Any] = (), inputs: Mapping[str, Any] | None = None
    ) -> Delegated:
        """Have a sub-agent do a task, here. What goes wrong in it is said in the answer, not raised."""
        steps = self._steps(task, tools, inputs or {})
        token = _depth.set(_depth.get() + 1)
        try:
            todo = next(steps)
            while True:
                try:
                    came: Any = self.runner.run(todo)
                except Exception as error:
                    if isinstance(error, self.runner.passing):
                        raise
                    todo = steps.throw(error)
                else:
                    todo = steps.send(came)
        except StopIteration as stop:
            done: Delegated = stop.value
            return done
        finally:
            _depth.reset(token)
            steps.close()

    async def arun(
        self, task: str, tools: Sequence[Any] = (), inputs: Mapping[str, Any] | None = None
    ) -> Delegated:
        """`run` as a coroutine. Cancelling it cancels the sub-agent; its time budget ends it too."""
        import asyncio

        steps = self._steps(task, tools, inputs or {})
        token = _depth.set(_depth.get() + 1)
        try:
            todo = await asyncio.to_thread(_first, steps)
            while isinstance(todo, SubTask):
                left = todo.meter.seconds_left()
                error: Exception | None = None
                came: Any = None
                try:
                    came = await asyncio.wait_for(self.runner.arun(todo), left)
                except TimeoutError as timeout:
                    spent = todo.meter.seconds_left()
                    ours = spent is not None and spent <= 0.01
                    seconds = self.budget.seconds or 0
                    error = (
                        OverBudget(f"it took longer than {seconds:g} seconds") if ours else timeout
                    )
                except Exception as raised:
                    if isinstance(raised, self.runner.passing):
                        raise
                    error = raised
                todo = await asyncio.to_thread(_sent, steps, came, error)
            return todo
        finally:
            _depth.reset(token)
            await asyncio.to_thread(steps.close)

    def run_all(self, jobs: Sequence[Job], at_once: int = 4) -> list[Delegated]:
        """Several sub-agents at once, in threads. The answers come in the order of the jobs; one
        that fails says so, and hinders no other."""
        from concurrent.futures import ThreadPoolExecutor
        from contextvars import copy_context

        def start(job: Job) -> Any:
            return pool.submit(copy_context().run, self.run, job.task, job.tools, job.inputs)

        with ThreadPoolExecutor(max(at_once, 1), thread_name_prefix="delegate") as pool:
            waiting = [start(job) for job in jobs]
            return [each.result() for each in waiting]

    async def arun_all(self, jobs: Sequence[Job], at_once: int = 4) -> list[Delegated]:
        """`run_all` as a coroutine. Cancelling it cancels all of them."""
        import asyncio

        gate = asyncio.Semaphore(max(at_once, 1))

        async def one(job: Job) -> Delegated:
            async with gate:
                return await self.arun(job.task, job.tools, job.inputs)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(job)) for job in jobs]
        return [task.result() for task in tasks]

    # --- one policy for both ----------------------------------------------------------------------

    def _steps(
        self, task: str, tools: Sequence[Any], inputs: Mapping[str, Any]
    ) -> Generator[SubTask, Run, Delegated]:
        """What is done, in order: yields what a runner is to run, and gets what came of it."""
        if _depth.get() > self.max_depth:
            return answers.failed(
                f"Not delegated: sub-agents may delegate {self.max_depth - 1:,} levels deep, and "
                "this would be one more. Do the task here."
            )
        meter = Meter(self.budget, self.cancelled)
        own = SharedSession.beside(self.session)
        transcript: Sequence[Mapping[str, Any]] = ()
        about: tuple[str, ...] | None = None
        try:
            given = answers.given(self.session, inputs)
            about = given.about
            own.share(given.handles)
            sub = SubTask(
                answers.system(self.max_result_tokens, self.instructions),
                answers.message(task, given),
                tools,
                shared_tools(own),
                own.session,
                meter,
            )
            run = yield sub
            transcript = run.transcript
            found = answers.parsed(run.text)
            if isinstance(found, str):
                repair = SubTask(
                    sub.system, answers.repair(found), tools, sub.read_back, own.session, meter,
                    run.history,
                )  # fmt: skip
                run = yield repair
                transcript = [*transcript, *run.transcript]
                found = answers.parsed(run.text)
            if isinstance(found, str):
                done = answers.failed(
                    f"The sub-agent gave no answer in the agreed form, also when asked again: {found}."
                )
            else:
                done = answers.delivered(
                    self.session, own, given, found, self.max_result_tokens, self.resolves
                )
        except OverBudget as error:
            done = answers.failed(f"The sub-agent was stopped: {error}.")
        except GeneratorExit:
            raise
        except Exception as error:  # one sentence for the asker, the log gets the error
            logger.warning("a sub-agent failed", exc_info=error)
            words = VOCABULARIES[self.session.store.settings.vocabulary]
            done = answers.failed(words.worded(answers.sentence(error)))
        finally:
            own.end()
        return self._noted(done, transcript, meter, about)

    def _noted(
        self,
        done: Delegated,
        transcript: Sequence[Mapping[str, Any]],
        meter: Meter,
        about: tuple[str, ...] | None,
    ) -> Delegated:
        kept = ""
        if self.keep_transcript and transcript:
            try:
                said = list(transcript)
                kept = self.session.put(said, tool="delegate transcript", subject=about).id
            except StoreUnavailable as error:
                logger.warning("a sub-agent's transcript was not kept: %s", error)
        seconds = time.monotonic() - meter.started
        return done.noted(kept, meter.steps, meter.tokens, seconds)


def _first(steps: Generator[SubTask, Run, Delegated]) -> SubTask | Delegated:
    try:
        return next(steps)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def _sent(
    steps: Generator[SubTask, Run, Delegated], came: Run, error: Exception | None
) -> SubTask | Delegated:
    try:
        return steps.send(came) if error is None else steps.throw(error)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
