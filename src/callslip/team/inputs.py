"""Results that a task names by id, put before the member that asks for them. By reference: the text
goes from store to member, and never through the leader's window. The member is a model: it gets what
a model may read, so masked fields stay masked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, HumanMessage

from callslip.access import as_it_is_now
from callslip.errors import CallslipError
from callslip.limits import HARD_CAP_CHARS
from callslip.stacks.ops import Flow
from callslip.window.inert import inert, shown
from callslip.window.policy import bounded

if TYPE_CHECKING:
    from callslip.session import Session

_ID = re.compile(r"\bres_[0-9a-z]{4,64}\b")


def named_in(session: Session, task: Sequence[BaseMessage]) -> str:
    """The results of this session whose ids a task names, each whole, together no longer than a
    provider takes. An id that is not here is left to the member, which gets the usual answer."""
    found: list[str] = []
    room = HARD_CAP_CHARS
    for id in dict.fromkeys(_ID.findall("\n".join(message.text for message in task))):
        try:
            text = session.store.run_flow(_text(session, id))
        except CallslipError:
            continue
        part = f'<input id="{id}">\n{bounded(inert(shown(text)), max(room - 200, 0))}\n</input>'
        room -= len(part)
        found.append(part)
        if room <= 400:
            break
    return "\n\n".join(found)


@as_it_is_now
def _text(session: Session, id: str) -> Flow[str]:
    _, reader = yield from session._shown(id, "read")
    return (yield from reader.body()).decode("utf-8", "replace")


def given_to(messages: Sequence[BaseMessage], inputs: str) -> list[BaseMessage]:
    """The messages of a run with its inputs behind the task; what is stored has the ids alone."""
    for at, message in enumerate(messages):
        if inputs and isinstance(message, HumanMessage):
            both = HumanMessage(f"{message.text}\n\n{inputs}", id=message.id)
            return [*messages[:at], both, *messages[at + 1 :]]
    return list(messages)
