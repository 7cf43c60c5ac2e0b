"""What of a finished run is stored for later turns: a long answer as its envelope, the same one
that the leader gets for it; and what a caller gets back of it: the exact text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from callslip.errors import CallslipError
from callslip.handle import Envelope
from callslip.store import ResultStore
from callslip.team.records import Record, repeats

if TYPE_CHECKING:
    from callslip.session import Session
    from callslip.team.run import Run


def answer_of(messages: Sequence[BaseMessage]) -> str:
    """The text that ends a run: the last answer, or the results that were it (`return_direct`)."""
    ended: list[str] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        ended.append(str(message.text))
    if ended:
        return "\n\n".join(reversed(ended))
    return str(messages[-1].text) if messages and isinstance(messages[-1], AIMessage) else ""


def keep(run: Run, record: Record, messages: Sequence[BaseMessage], answer: str) -> None:
    """Put the transcript that later turns replay into the record.

    A caller's own view is not made of it: the answer stays exact, here or as the result it names.
    """
    made = list(messages)
    known: dict[str, str] = {}
    if run.store is not None:
        for at in range(len(made)):
            made[at] = _kept(run, made, at, known)
    record.messages = made
    record.answer = known.get(answer, "")
    record.content = None if record.answer else answer


def exact(store: ResultStore | None, user: str, session: str, record: Record) -> str:
    """The answer of a stored run, whole. Where its result was deleted, the stand-in that is left."""
    if record.content is not None:
        return record.content
    if store is not None:
        try:
            return str(store.session(session, user=user).load(record.answer))
        except CallslipError:
            pass
    return answer_of(record.messages)


def _kept(run: Run, made: Sequence[BaseMessage], at: int, known: dict[str, str]) -> BaseMessage:
    """A message as later turns see it."""
    message, store = made[at], run.store
    assert store is not None
    if isinstance(message, ToolMessage) and _ends(made, at):
        call = next(
            (
                call
                for each in made[:at]
                if isinstance(each, AIMessage)
                for call in each.tool_calls
                if call["id"] == message.tool_call_id
            ),
            None,
        )
        about: dict[str, Any] = {
            "tool": message.name or "tool",
            "args": call["args"] if call else None,
            "call_id": message.tool_call_id,
        }
    elif isinstance(message, AIMessage) and run.call and store.settings.member_responses:
        last = at == len(made) - 1
        about = run.call if last else {"tool": run.owner.id, "call_id": message.id}
        if last and run.above is not None and run.above is not store:
            # The leader's row first: so it has the leader's preview, and both show one handle.
            _session(run, run.above).offload(str(message.text), **about)
    else:
        return message
    given = str(message.text)  # LangChain's own kind of string is none to store
    found = _session(run, store).offload(given, **about)
    if not isinstance(found, Envelope):
        if found is given or not isinstance(message, ToolMessage):
            return message  # a model's own words are no tool's result
        # What ended the run went to the caller whole; a model that goes on reads it masked.
        return message.model_copy(update={"content": str(found)})
    if found.handle is not None:
        known[given] = found.handle.id
    return message.model_copy(update={"content": str(found)})


def _session(run: Run, store: ResultStore) -> Session:
    """The run's session on a store, for what is about whom the run is."""
    return store.session(run.session, user=run.user, subject=run.subjects)


def _ends(messages: Sequence[BaseMessage], at: int) -> bool:
    return all(isinstance(message, ToolMessage) for message in messages[at:])


def in_view(run: Run, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """A history in which a line that only names an earlier result has that result's envelope in its
    place, where the part of the transcript that is replayed does not show it."""
    if run.store is None:
        return list(messages)
    made: list[BaseMessage] = []
    for message in messages:
        first = repeats(message.content)
        if first and not visible(first, made):
            try:
                handle = run.store.session(run.session, user=run.user).handle(first)
            except CallslipError:
                pass  # it was deleted: the line still says what it was
            else:
                message = message.model_copy(update={"content": str(handle)})
        made.append(message)
    return made


def visible(id: str, messages: Iterable[Any]) -> bool:
    """Whether one of the messages shows the envelope of that id."""
    opening = f'<result id="{id}"'
    return any(opening in message.text for message in messages)
