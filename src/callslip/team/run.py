"""One run of an agent or a leader: from its record to its output, sync and async, streamed or not.

Each run is a LangGraph thread of its own, named by its id, so parallel delegations to one member
never share a state, and a run that was paused or killed goes on from its last checkpoint. What is
replayed as history are the records of runs that were completed before it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langgraph.types import Command

from callslip.errors import HandleError, LegalHold, RunGone
from callslip.stacks.index.runs import StoredRun
from callslip.store import ResultStore
from callslip.team import records
from callslip.team.inputs import named_in
from callslip.team.keeping import answer_of, exact, in_view, keep
from callslip.team.output import RunEvent, RunOutput
from callslip.team.pausing import answered, pauses_of
from callslip.team.records import Record, packed, unpacked

if TYPE_CHECKING:
    from callslip.team.db import Db
    from callslip.team.owner import Owner

NOTHING: Any = object()
"""No answer was given to what a run waits for."""


@dataclass
class Run:
    """A run under way: who runs, for whom, and below whom. The context of its graph."""

    owner: Owner
    db: Db
    store: ResultStore | None
    run_id: str
    session: str
    user: str
    path: str
    model: Any
    input: list[BaseMessage]
    stream: bool = False
    resume: Any = NOTHING
    subjects: tuple[str, ...] = ()
    """Whom it, and all that it stores, is about; of one that goes on, what its record says."""
    parent: str = ""
    place: tuple[int, ...] = ()
    call: dict[str, Any] | None = None
    """The call of the leader's that this run answers; None for one that a caller started."""
    above: ResultStore | None = None
    """The leader's store."""
    forget: bool = False
    """Nothing is kept of it once it is completed: its owner has no database."""

    history: list[BaseMessage] = field(default_factory=list)
    inputs: str = ""
    """The results that its task names, whole, where its owner asks for that."""
    outputs: dict[str, RunOutput] = field(default_factory=dict)
    """What members answered in this process, by their run's id."""
    shown: set[str] = field(default_factory=set)
    """The results whose envelopes this run's model gets, those of parallel calls included."""

    def events(self) -> Iterator[RunEvent]:
        """Run it; the last event has the output."""
        begun = self._begin()
        try:
            if begun is not None and begun.go:
                for mode, chunk in begun.graph.stream(begun.given, **begun.how):
                    yield from self._told(mode, chunk)
            last = self._end(begun)
        except RunGone:
            self._clear(begun)
            raise
        yield last

    async def aevents(self) -> AsyncIterator[RunEvent]:
        """`events` for a task; the database is asked in a thread."""
        begun = await asyncio.to_thread(self._begin)
        try:
            if begun is not None and begun.go:
                async for mode, chunk in begun.graph.astream(begun.given, **begun.how):
                    for event in self._told(mode, chunk):
                        yield event
            last = await asyncio.to_thread(self._end, begun)
        except RunGone:
            await asyncio.to_thread(self._clear, begun)
            raise
        yield last

    # --- before ---

    def _begin(self) -> _Begun | None:
        """Where it stands: new, to go on, waiting, or (None) completed already."""
        found = self.db.runs.get(self.user, self.session, self.run_id)
        if found is not None and found.status == "completed":
            return None
        if found is None:
            if self.parent and self.db.runs.get(self.user, self.session, self.parent) is None:
                raise RunGone(self.parent)
            before = self._before()
            record = Record(self.owner.id, self.place, self.input, before, subjects=self.subjects)
            row = StoredRun(self.user, self.session, self.run_id, self.path, "running", self.parent)
            self.db.runs.put(packed(row, record))
        else:
            record = unpacked(found)
            self.subjects = record.subjects
        earlier = records.history(self.db, self.user, self.session, record.history)
        self.history = in_view(self, earlier)
        if self.owner.resolve_results and self.store is not None:
            self.inputs = named_in(self.store.session(self.session, user=self.user), record.input)
        config = {
            "configurable": {
                "thread_id": self.run_id,
                "session_id": self.session,
                "user_id": self.user,
                "subject_id": list(self.subjects),  # LangGraph notes texts with a checkpoint
            },
            "recursion_limit": self.owner.recursion_limit,
        }
        graph = self.owner._graph(self)
        state = graph.get_state(config)
        given: Any = None
        if not state.values.get("messages"):
            given = {"messages": record.input}
        elif state.interrupts and self.resume is not NOTHING:
            given = Command(resume=answered(state.interrupts, self.resume))
            if found is not None:
                self.db.runs.put(packed(found, record, "running"))
        # Not `next`: it is empty where a step is done and its checkpoint is not yet written. What
        # waits and is not noted as paused has been answered, and was cut off after that.
        waits = bool(state.interrupts) and found is not None and found.status == "paused"
        go = given is not None or bool(state.tasks and not waits)
        modes = ["messages", "updates", "custom"] if self.stream else ["updates"]
        how = {
            "config": config,
            "context": self,
            "stream_mode": modes,
            "durability": "sync",  # what a killed process had done is there for the next
        }
        return _Begun(graph, given, how, go)

    def _before(self) -> list[str]:
        """The runs that this one has as its history."""
        count = self.owner.num_history_runs if self.owner.add_history_to_context else 0
        if count <= 0:
            return []
        found = self.db.runs.list(
            self.user, self.session, owner=self.path, status=("completed",), last=count
        )
        return [run.run for run in found]

    # --- on the way ---

    def _told(self, mode: str, chunk: Any) -> Iterator[RunEvent]:
        who: dict[str, Any] = {"agent_id": self.owner.id, "run_id": self.run_id}
        if not self.stream:
            return
        if mode == "custom":
            if isinstance(chunk, RunEvent):  # of a member; a tool may write what it likes
                yield chunk
        elif mode == "messages":
            message, _ = chunk
            if isinstance(message, AIMessage | AIMessageChunk) and message.text:
                yield RunEvent("content", content=message.text, **who)
        else:
            for node, update in chunk.items():
                if node not in ("model", "tools") or not isinstance(update, dict):
                    continue
                for message in update.get("messages", ()):
                    for call in getattr(message, "tool_calls", ()):
                        yield RunEvent("tool_started", tool=call["name"], args=call["args"], **who)
                    if isinstance(message, ToolMessage):
                        name = message.name or ""
                        yield RunEvent("tool_completed", tool=name, content=message.text, **who)

    # --- after ---

    def _end(self, begun: _Begun | None) -> RunEvent:
        found = self.db.runs.get(self.user, self.session, self.run_id)
        if found is None:
            raise RunGone(self.run_id)
        record = unpacked(found)
        self.subjects = record.subjects
        if begun is None:
            output = self._output(record.messages, exact(self.store, *self._whose, record))
            return self._event("completed", output)
        state = begun.graph.get_state(begun.how["config"])
        messages = state.values.get("messages", [])
        if state.interrupts:
            question = [(each.id, each.value) for each in state.interrupts]
            if question not in [[tuple(pair) for pair in pause] for pause in record.asked]:
                record.asked.append(question)
            self.db.runs.put(packed(found, record, "paused"))
            output = self._output(messages, answer_of(messages))
            output.status, output.pauses = "paused", pauses_of(state.interrupts)
            return self._event("paused", output)
        answer = answer_of(messages)
        keep(self, record, messages, answer)
        record.results = records.results_in(record.messages)
        if record.answer and record.answer not in record.results:
            record.results.append(record.answer)
        output = self._output(messages, answer)
        self.db.runs.put(packed(found, record, "completed"))
        self.db.saver.delete_thread(self.run_id)
        if self.forget:
            self.db.runs.remove(self.user, self.session, self.run_id)
        return self._event("completed", output)

    def _clear(self, begun: _Begun | None) -> None:
        """Delete what the run stored after it had been deleted itself."""
        if begun is None:
            return
        if self.store is not None:
            state = begun.graph.get_state(begun.how["config"])
            made = records.results_in(state.values.get("messages", []))
            others = self.db.runs.list(*self._whose)
            left = set().union(*(records.held(self.db, row) for row in others))
            session = self.store.session(self.session, user=self.user)
            for id in sorted(set(made) - left):
                with suppress(HandleError, LegalHold):  # it went with the session, or is to stay
                    session.delete(id)
        self.db.saver.delete_thread(self.run_id)

    @property
    def _whose(self) -> tuple[str, str]:
        return self.user, self.session

    def _event(self, kind: Any, output: RunOutput) -> RunEvent:
        return RunEvent(kind, self.owner.id, self.run_id, content=output.content, output=output)

    def _output(self, messages: list[BaseMessage], content: str) -> RunOutput:
        members = []
        if self.owner.members:
            rows = self.db.runs.list(*self._whose, parent=self.run_id)
            places = {row.run: unpacked(row) for row in rows}
            for row in sorted(rows, key=lambda row: places[row.run].place):
                record = places[row.run]
                members.append(self.outputs.get(row.run) or self._stored(row, record))
        return RunOutput(
            content=content,
            run_id=self.run_id,
            session_id=self.session,
            user_id=self.user,
            agent_id=self.owner.id,
            messages=list(messages),
            member_responses=members,
            subjects=self.subjects,
        )

    def _stored(self, row: StoredRun, record: Record) -> RunOutput:
        """What another process, or another call, had of a member."""
        return stored_output(self.store or next(iter(self.db.bound), None), row, record)


@dataclass
class _Begun:
    graph: Any
    given: Any
    how: dict[str, Any]
    go: bool


def stored_output(store: ResultStore | None, row: StoredRun, record: Record) -> RunOutput:
    """A stored run as an output: its answer exact, its messages as they are stored."""
    return RunOutput(
        content=exact(store, row.user, row.session, record),
        run_id=row.run,
        session_id=row.session,
        user_id=row.user,
        agent_id=record.agent_id,
        status=row.status,  # type: ignore[arg-type]
        messages=list(record.messages),
        subjects=record.subjects,
    )
