"""A stored run, unpacked: what a next run, a resumed one and a caller's audit need of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from callslip.adapters.langchain_blocks import text_in
from callslip.stacks.index.runs import StoredRun
from callslip.team.db import Db

_SERDE = JsonPlusSerializer()
_STAND_IN = re.compile(r'<result id="(res_[0-9a-z]+)"(?: tool="[^"]*" same_as="(res_[0-9a-z]+)")?')


@dataclass(slots=True)
class Record:
    """What a run's row holds."""

    agent_id: str
    place: tuple[int, ...] = ()
    """Where in its parent's transcript it was delegated: the order of the members' answers."""
    input: list[BaseMessage] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    """The runs that this one saw before its input: fixed at its beginning, so that a resumed run
    has the very conversation that it paused in."""
    asked: list[Any] = field(default_factory=list)
    """What it has paused with, in order; the ids and questions of each pause."""
    messages: list[BaseMessage] = field(default_factory=list)
    """The transcript that later runs replay; empty until the run is completed."""
    content: str | None = None
    """The answer; None where it is the result `answer`."""
    answer: str = ""
    results: list[str] = field(default_factory=list)
    """The ids that the transcript names as its own results."""
    subjects: tuple[str, ...] = ()
    """Whom it is about: fixed at its beginning, so that one that goes on stores about the same."""


def unpacked(run: StoredRun) -> Record:
    """The record in a row."""
    form, _, data = run.data.partition(b"\0")
    found = _SERDE.loads_typed((form.decode(), data))
    about = tuple(each.decode("utf-8", "surrogatepass") for each in found.get("subjects", ()))
    return Record(**{**found, "place": tuple(found["place"]), "subjects": about})


def packed(run: StoredRun, record: Record, status: str | None = None) -> StoredRun:
    """The row with a record in it."""
    whole = {name: getattr(record, name) for name in Record.__dataclass_fields__}
    # As bytes: what a serializer makes of half a pair would be another's name.
    whole["subjects"] = [each.encode("utf-8", "surrogatepass") for each in record.subjects]
    form, data = _SERDE.dumps_typed(whole)
    return replace(run, data=form.encode() + b"\0" + data, status=status or run.status)


def results_in(messages: Iterable[BaseMessage]) -> list[str]:
    """The ids of the results that stand-ins in these messages name, and of those they repeat."""
    found: dict[str, None] = {}
    for message in messages:
        if not isinstance(message, AIMessage | ToolMessage):
            continue
        content = message.content
        for block in [content] if isinstance(content, str) else content:
            match = _STAND_IN.match(text_in(block) or "")
            found.update(dict.fromkeys(id for id in (match.groups() if match else ()) if id))
        artifact = getattr(message, "artifact", None)
        if isinstance(artifact, dict) and isinstance(artifact.get("result_id"), str):
            found[artifact["result_id"]] = None
    return list(found)


def repeats(content: object) -> str:
    """The id of the first result with this content, where a text is only a line that names it."""
    match = _STAND_IN.match(content) if isinstance(content, str) else None
    return (match and match[2]) or ""


def held(db: Db, run: StoredRun) -> set[str]:
    """The ids that a run in any state has stored or been shown."""
    record = unpacked(run)
    if run.status == "completed":
        return set(record.results)
    found = db.saver.get_tuple({"configurable": {"thread_id": run.run, "checkpoint_ns": ""}})
    messages = found.checkpoint["channel_values"].get("messages", []) if found else []
    return {*record.results, *results_in(messages)}


def history(db: Db, user: str, session: str, runs: Sequence[str]) -> list[BaseMessage]:
    """The transcripts of these runs; of one that was deleted meanwhile, nothing."""
    found = (db.runs.get(user, session, run) for run in runs)
    return [message for run in found if run for message in unpacked(run).messages]
