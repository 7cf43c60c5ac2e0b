"""What stands in the window for one value: itself, its envelope, or a bounded excerpt. Flows."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from callslip import offloading
from callslip.errors import StoreUnavailable
from callslip.handle import Scope
from callslip.limits import ENVELOPE_CHARS, REFUSED_CHARS
from callslip.session import Session
from callslip.stacks.content import canonical
from callslip.stacks.ops import Flow
from callslip.stacks.writing import Call
from callslip.store import ResultStore
from callslip.window import envelope
from callslip.window.measure import size_of
from callslip.window.policy import bounded

MASKED = "callslip_masked"
"""In a message's `response_metadata`, which no provider is sent: the content that a mask has made."""


def mark_of(content: object) -> str:
    """What stands at `MASKED` for a content: another layer may change it, and keep the mark."""
    return hashlib.sha256(canonical(content).body).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Desk:
    """One tool call's results, and where they go."""

    session: Session
    parent: Session
    """The session of the graph above: where a `Command` for it lands."""
    reader: bool
    """Whether a read-back tool is bound where the result is going."""
    hard_cap: int
    media_chars: int | None
    tool: str = "tool"
    args: Any = None
    call_id: str | None = None
    force: bool = False
    """Offload whatever its size: the turn is over its budget."""
    exempt: bool = False
    """A result of a read-back tool: nothing of it goes, but for the hard cap."""
    masked: bool = False
    """What stays inline has been masked before: a mask need not leave its own work alone."""
    seen: Callable[[str], bool] | None = None
    """Whether an earlier handle is among the messages that the model will see."""

    @property
    def store(self) -> ResultStore:
        """The store that they go to."""
        return self.session.store

    @property
    def scope(self) -> Scope:
        """Whose they are."""
        return self.session.scope

    def stays(self, value: object) -> bool:
        """Whether the value may stay in the window as it is."""
        if self.is_stand_in(value):
            return True
        if self.force or (size_of(value, self.hard_cap) or 0) > self.hard_cap:
            return False
        return self.exempt or self.session._stays(value, self.tool)

    def inline(self, value: Any) -> Any:
        """A value that stays, as the model may see it; also one that only looks like a stand-in."""
        if self.exempt or self.masked:
            return value
        return offloading.inline(self.store, value)

    def is_stand_in(self, value: object) -> bool:
        """Whether a text is what already stands in for a result: never stored in its turn.

        A text that only pretends to be one is no longer than one, and so does no harm inline; a
        mask is for it, too.
        """
        most = max(self.store.settings.preview_chars + ENVELOPE_CHARS, REFUSED_CHARS)
        return isinstance(value, str) and value.startswith("<result ") and len(value) <= most

    def call(self, status: str = "") -> Call:
        """Which call it was, as the store knows calls, and whom its result is about."""
        return self.session._call(self.tool, self.args, self.call_id, status)


def shown(desk: Desk, value: object, status: str = "") -> Flow[object]:
    """What the model gets for a value that may not stay: its envelope, or what stands in for that
    while the store is away; the value itself where an envelope would be no shorter."""
    call = desk.call(status)
    if not desk.reader:
        return (yield from _excerpt(desk, value, call))
    found = yield from offloading.offload(desk.store, desk.scope, value, call, None, desk.seen)
    return bounded(str(found), desk.hard_cap) if isinstance(found, str) else found


def _excerpt(desk: Desk, value: object, call: Call) -> Flow[object]:
    """What stands in where no tool reads it back: stored for the caller, without a handle."""
    text = offloading.in_short(desk.store, canonical(value))
    try:
        handle = yield from offloading.put(desk.store, desk.scope, value, call, None)
    except StoreUnavailable as error:
        return envelope.refused(error.reason, text, tool=call.tool, status=call.status)
    room = REFUSED_CHARS - ENVELOPE_CHARS
    excerpt = "\n" + bounded(text, room)  # its first line is a label, and there is none
    short = envelope.no_reader(
        "", call.tool, handle.shape, excerpt, status=call.status, preview_chars=room
    )
    return short if len(short) < len(text) else desk.inline(value)


def placed(desk: Desk, artifact: object) -> Flow[object]:
    """The artifact, or where it is: a checkpoint would carry all of it, once for each step.

    Only what comes back exactly goes. What cannot be measured cannot be rebuilt either, and stays;
    so does all of it while the store is away.
    """
    policy = desk.store.settings.policy
    most = policy.threshold_chars
    if artifact is None or policy.tools.get(desk.tool) == "never":
        return artifact
    if (size_of(artifact, most) or 0) <= most or size_of(artifact, sys.maxsize) is None:
        return artifact
    try:
        handle = yield from offloading.put(desk.store, desk.scope, artifact, desk.call(), None)
    except StoreUnavailable:
        return artifact
    return {"result_id": handle.id, "kind": handle.kind, "size": handle.size}
