"""One field of a brief as text: exact, on its own lines, capped, what is left out counted. Flows."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from callslip import access, offloading
from callslip.errors import StoreUnavailable
from callslip.handle import Shape
from callslip.patterns import fields
from callslip.patterns.files import inside
from callslip.session import Session
from callslip.stacks.ops import Flow, Tombstone
from callslip.tool_words import VOCABULARIES, Vocabulary
from callslip.window.envelope import human_size
from callslip.window.inert import plain

if TYPE_CHECKING:
    from callslip.patterns.brief import Show

_SCALARS = (str, bool, int, float, Decimal, datetime, date, time, timedelta, UUID, enum.Enum)
_ITEM_CHARS = 200
_SHOWN_FIELDS = 12


def line_of(label: str, show: Show, value: Any, room: int, session: Session | None) -> Flow[str]:
    """The line (or lines) of one field, `room` characters behind its label where it can be."""
    if value is fields.MISSING:
        return f"{label}: not set"
    if value is None or (
        isinstance(value, str | list | tuple | AbstractSet | Mapping) and not value
    ):
        return f"{label}: {show.empty}"
    if isinstance(value, Mapping) and _are_handles(value, show):
        return (yield from _artifacts(label, show, value, room, session))
    if (id := fields.handle_in(value)) is not None:
        return f"{label}: " + (yield from _handle(id, session))
    if isinstance(value, str):
        return (yield from _text(label, show, value, room, session))
    if isinstance(value, list | tuple | AbstractSet) and fields.declared(type(value)) is None:
        return (yield from _list(label, show, value, room, session))
    return f"{label}: {_one(value, show, room)}"


def _one(value: Any, show: Show, room: int) -> str:
    """A single value on one line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, enum.Enum):
        return plain(value.value if isinstance(value.value, str | int) else value.name, room)
    if isinstance(value, _SCALARS):
        text = value.isoformat() if isinstance(value, datetime | date | time) else str(value)
        return _line(text, room)
    parts = fields.parts_of(value)
    if parts is None:
        # Its class alone: what an object says of itself may be anything.
        return type(value).__name__ if value is not None else show.empty
    names = _named(parts, show)
    if not names:
        count = len(parts)
        return f"{count} field{'' if count == 1 else 's'}, none of them named"
    shown = [f"{_line(name, 80)} {_leaf(parts[name])}" for name in names if name in parts]
    return _line(", ".join(shown), room, made=True)


def _named(parts: Mapping[str, Any], show: Show) -> list[str]:
    if show.fields == "*" or list(show.fields) == ["*"]:
        return list(parts)
    given = [show.fields] if isinstance(show.fields, str) else list(show.fields)
    return [name for name in given if name in parts]


def _leaf(value: Any) -> str:
    """A value inside an object: a scalar, or how many there are of it. Objects stay closed."""
    if value is fields.MISSING:
        return "not set"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, _SCALARS):
        return _line(json.dumps(value) if isinstance(value, str) and not value else str(value), 200)
    if fields.declared(type(value)) is not None:
        return type(value).__name__
    if isinstance(value, list | tuple | AbstractSet | Mapping):
        return f"({len(value):,})"
    return type(value).__name__


def _line(text: str, room: int, *, made: bool = False) -> str:
    """A text on one line, inert; what is cut is counted."""
    whole = text if made else inside(plain(text, len(text) * 2 + 8))
    if len(whole) <= room:
        return whole
    note = f" [… {len(whole):,} characters in all …]"
    return whole[: max(room - len(note), 0)] + note


def _text(label: str, show: Show, value: str, room: int, session: Session | None) -> Flow[str]:
    whole = inside(plain(value, len(value) * 2 + 8))
    if len(whole) <= min(room, show.chars):
        return f"{label}: {whole}"
    where = yield from _kept(show, value, session)
    note = f" [… {len(value):,} characters in all{where} …]"
    return f"{label}: {whole[: max(room - len(note), 0)]}{note}"


def _list(label: str, show: Show, value: Any, room: int, session: Session | None) -> Flow[str]:
    items = sorted(value, key=str) if isinstance(value, AbstractSet) else list(value)
    items = [fields.handle_in(each) or each for each in items]
    total = len(items)
    objects = [each for each in items if not isinstance(each, _SCALARS) and each is not None]
    if objects and not show.fields:
        return f"{label}: {total:,}, none of their fields named"
    head = f"{label} ({total:,}): "
    apart = "; " if objects else ", "
    texts: list[str] = []
    used = 0
    for each in items[: show.items]:
        text = "none" if each is None else _one(each, show, _ITEM_CHARS)
        if isinstance(each, str) and (apart[0] in each or each != each.strip() or not each):
            text = f'"{text}"'
        used += len(text) + len(apart)
        if used > room:
            break
        texts.append(text)
    if len(texts) == total:
        return head + apart.join(texts)
    where = yield from _kept(show, items, session, bool(objects))
    while texts and len(apart.join(texts)) + len(where) + 30 > room:
        texts.pop()
    note = f"[… {total - len(texts):,} more{where} …]"
    return head + apart.join([*texts, note])


def _kept(show: Show, value: Any, session: Session | None, objects: bool = False) -> Flow[str]:
    """Where all of a value is: stored in the session, once for each content. Only what may be shown
    is stored for the model to read: of objects, the fields that are named."""
    if session is None:
        return ", not shown"
    if objects:
        value = [_chosen(each, show) for each in value]
    call = session._call("brief", {"field": show.name}, None, "")
    try:
        handle = yield from offloading.put(session.store, session.scope, value, call, None)
    except StoreUnavailable:
        return ", not shown"
    return f', all in {handle.id}: {_words(session).search}("{handle.id}", pattern)'


def _words(session: Session | None) -> Vocabulary:
    return VOCABULARIES["results" if session is None else session.store.settings.vocabulary]


def _chosen(value: Any, show: Show) -> Any:
    parts = fields.parts_of(value)
    if parts is None:
        return value if isinstance(value, _SCALARS) or value is None else type(value).__name__
    return {name: _leaf_value(parts[name]) for name in _named(parts, show)}


def _leaf_value(value: Any) -> Any:
    return value if isinstance(value, _SCALARS) or value is None else _leaf(value)


# --- handles --------------------------------------------------------------------------------------


def _are_handles(value: Mapping[Any, Any], show: Show) -> bool:
    """Whether a mapping is one of handles by name. One without a handle does not hide the others,
    unless the fields to show are named: then it is an object."""
    if not all(isinstance(key, str) for key in value):
        return False
    are = [fields.handle_in(each) is not None for each in value.values()]
    return all(are) or (any(are) and not show.fields)


def _artifacts(
    label: str, show: Show, value: Mapping[str, Any], room: int, session: Session | None
) -> Flow[str]:
    lines = [f"{label} ({len(value):,}):"]
    for name in list(value)[: show.items]:
        id = fields.handle_in(value[name])
        what = "no handle" if id is None else (yield from _handle(id, session))
        text = f"  {_line(name, 80)}: {what}"
        room -= len(text) + 1
        if room < 0 and len(lines) > 1:
            break
        lines.append(text)
    left = len(value) - len(lines) + 1
    if left:
        lines.append(f"  [… {left:,} more; {_words(session).list}() names them …]")
    return "\n".join(lines)


def _handle(id: str, session: Session | None) -> Flow[str]:
    """A handle with the shape of what it leads to."""
    if session is None:
        return id
    try:
        found = yield from access.found(session.store, session.scope, id, "list")
    except StoreUnavailable:
        return id
    if found is None:
        return f"{id}, which is not known here"
    if isinstance(found, Tombstone):
        return f"{id}, which is gone ({found.why})"
    return f"{id}, {shape_of(found.shape)}"


def shape_of(shape: Shape) -> str:
    """A content in a few words: its kind, how much of it there is, its fields."""
    if shape.records is not None:
        count = f"{shape.records:,} records"
    elif shape.kind == "media":
        count = shape.mime
    else:
        count = f"{shape.lines:,} lines"
    names: Sequence[str] = shape.fields[:_SHOWN_FIELDS]
    known = f", fields {', '.join(_line(name, 40) for name in names)}" if names else ""
    more = f" and {len(shape.fields) - len(names)} more" if len(shape.fields) > len(names) else ""
    return f"{shape.kind}, {count}, {human_size(shape.size)}{known}{more}"
