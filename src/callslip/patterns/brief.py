"""What one step of a graph shows its model of the state: chosen fields, exact, fresh and capped.

::

    SIMULATE = Brief(StewardState, "entity_id", "candidate_ids", Show("rejected", items=5),
                     "artifacts")

    def simulate(state: StewardState) -> dict:
        text = SIMULATE.render(state, session)
        ...

A field is shown only when it is named, and so is each field of an object inside it. What is too
long becomes its count, its head and a handle. The same state and session give the same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from callslip.errors import SettingsError
from callslip.patterns import fields
from callslip.patterns.rendering import line_of
from callslip.session import Session
from callslip.stacks.ops import Flow

__all__ = ["Brief", "Show", "append", "merge"]

BRIEF_CHARS = 4_000
FIELD_ITEMS = 20
FIELD_CHARS = 600
_LINE = 120
"""What a field's line takes at the most where only its count and handle are left."""
_REST = 40


@dataclass(frozen=True, slots=True)
class Show:
    """How one field is shown.

    name    the field; ``"customer.name"`` is one inside an object, and the only one shown of it
    label   what the model reads in its place; the name by default
    items   how many of a list are shown; the rest is counted, and found behind a handle
    chars   how much of a text or of a list is shown
    fields  for objects without a declared type (`dict`), and lists of objects: which of their
            fields are shown. ``"*"`` means all of them, also those that come later: say it only
            where nothing in there is secret
    empty   what stands for None, "", or an empty list
    """

    name: str
    label: str = ""
    items: int = FIELD_ITEMS
    chars: int = FIELD_CHARS
    fields: Sequence[str] = ()
    empty: str = "none"

    def __post_init__(self) -> None:
        if self.items < 0 or self.chars < 40:
            raise SettingsError(
                f"Show({self.name!r}, items={self.items!r}, chars={self.chars!r}): give items from "
                "0 and chars from 40"
            )


class Brief:
    """The fields of a state that one step's model sees, in this order.

    state   a TypedDict, a dataclass or a Pydantic model; names that it does not declare are a
            `SettingsError` here, not a leak later
    shown   names, or `Show` values
    chars   what the whole may take, its frame included

    `render(state, session)` gives the text; `arender` off the event loop. With a session a list or
    text that is too long is stored there, and handles are shown with their shape; without one they
    are counted and named only.
    """

    def __init__(self, state: type, *shown: str | Show, chars: int = BRIEF_CHARS) -> None:
        if not shown:
            raise SettingsError("Brief(…): name the fields that the model is to see")
        if chars < 400:
            raise SettingsError(f"Brief(…, chars={chars!r}): give 400 or more")
        self.state = state
        self.shown = tuple(Show(each) if isinstance(each, str) else each for each in shown)
        self.chars = chars
        for each in self.shown:
            fields.check(state, each.name)

    def __repr__(self) -> str:
        return f"Brief({self.state.__name__}, {', '.join(repr(each.name) for each in self.shown)})"

    def render(self, state: Any, session: Session | None = None) -> str:
        """The brief of this state, for the end of a request."""
        if session is None:
            return _alone(self.rendering(state, None))
        return session.store.run_flow(self.rendering(state, session))

    async def arender(self, state: Any, session: Session | None = None) -> str:
        """`render`, off the event loop."""
        if session is None:
            return _alone(self.rendering(state, None))
        return await session.store.arun_flow(self.rendering(state, session))

    def rendering(self, state: Any, session: Session | None) -> Flow[str]:
        """The flow of `render`."""
        lines: list[str] = []
        room = self.chars - len("<brief>\n\n</brief>") - _REST
        for at, show in enumerate(self.shown):
            # What comes later keeps its line: a long field never pushes another one out unsaid.
            kept = sum(_least(later) for later in self.shown[at + 1 :])
            value = fields.value_of(state, show.name)
            most = max(min(show.chars, room - kept - len(_label(show)) - 2), 0)
            text = yield from line_of(_label(show), show, value, most, session)
            if len(text) > room:
                left = len(self.shown) - at
                lines.append(f"[… no room for {left} more field{'s' if left > 1 else ''} …]")
                break
            lines.append(text)
            room -= len(text) + 1
        return "<brief>\n" + "\n".join(lines) + "\n</brief>"


def _label(show: Show) -> str:
    return show.label or show.name


def _least(show: Show) -> int:
    return len(_label(show)) + _LINE


def _alone(flow: Flow[str]) -> str:
    """A flow that has nothing to ask of a store, to its end."""
    try:
        op = next(flow)
    except StopIteration as stop:
        return str(stop.value)
    raise AssertionError(f"a brief without a session asked for {type(op).__name__}")


# --- reducers: Annotated[dict[str, str], merge], Annotated[list[str], append] ---------------------


def merge(left: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> dict[str, str]:
    """A reducer for handles by name: those of both, the newer one where both have a name.

    Handles and envelopes become their ids, so that a checkpoint holds some twenty characters each.
    """
    return {name: _id(value) for side in (left, right) if side for name, value in side.items()}


def append(left: Sequence[Any] | None, right: Any) -> list[Any]:
    """A reducer for lists that only grow: what is new goes to the end, what is there stays.

    A handle that is there already is not added again, so a step that runs twice adds nothing; other
    values are added as they are, since a list may well hold equal ones.
    """
    grown = [_id(value) for value in left or ()]
    for value in _each(right):
        new = _id(value)
        if not (fields.is_id(new) and new in grown):
            grown.append(new)
    return grown


def _each(right: Any) -> Iterator[Any]:
    if right is None:
        return
    if isinstance(right, list | tuple):
        yield from right
    else:
        yield right


def _id(value: Any) -> Any:
    handle = fields.handle_in(value)
    return value if handle is None else handle
