"""One record of a result, by its number or by the value of a field like an id; one value of a
document, by its path. What is a long text is paged with its real line ends.

Asked for by a model, so a key that leads nowhere is answered with what there is instead.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from callslip.handle import Page, Record, Shape
from callslip.limits import FRAME_CHARS, PAGE_CAP_CHARS, PAGE_CHARS
from callslip.reading.ids import ID_LIKE, fields_with, holders, needles, own_id
from callslip.reading.page import STORED_DATA, plain_base64, read, whole
from callslip.reading.records import Records, in_stead, open_records
from callslip.stacks.ops import Flow
from callslip.stacks.paths import Dead, Found, chars_of, find, string_of
from callslip.stacks.reader import Reader
from callslip.stacks.recognise.media import decoded, is_base64, parts_of
from callslip.window.inert import attr, inert, shown
from callslip.window.survey import MediaFacts, media_of_base64, outline_of

__all__ = ["get"]

_KEY_CHARS = 120
_NAMES_SHOWN = 20
_COUNTED = 1000
_ID_NAMES = ("id", "_id", "uuid", "guid", "key", "name", "code", "slug", "sku", "title")
_GLANCE_BYTES = 32 * 1024 * 1024
"""A record asked for by its number is told of another with that id only up to this size: it takes
a look at all of them."""
_PAIR = re.compile(r"\s*([^=<>!\s][^=<>!]{0,100}?)\s*==?\s*(.*)", re.DOTALL)
_NUMBER = re.compile(r"#?(\d{1,15})(?:\.0+)?")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call: what goes into the one that continues it."""

    id: str
    key: str
    field: str
    number_first: bool = False

    def call(self, start: int = 1, column: int = 0) -> str:
        """The literal call."""
        key = self.key if self.number_first else _argument(self.key)
        parts = [f'"{attr(self.id, 80)}"', key]
        if self.field:
            parts.append(f"field={_argument(self.field)}")
        if start > 1 or column:
            parts.append(f"start={start}")
        if column:
            parts.append(f"column={column}")
        return f"get_record({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class _Value:
    """What was found: its exact text, and where."""

    raw: bytes
    json: bytes
    path: str = "$"
    number: int | None = None
    total: int = 1
    note: str = ""


def get(
    reader: Reader,
    shape: Shape,
    id: str,
    key: object,
    field: str | None = None,
    start: int = 1,
    limit: int | None = None,
    column: int = 0,
    page_chars: int = PAGE_CHARS,
) -> Flow[Record]:
    """The record or the value that `key` leads to; `field` is a path inside it.

    An int is a record's number, from 1, or else the value of an id-like field; digits in a string
    are an id first, then a number. Where both lead to a record, `str(record)` names the other.
    Other words are looked up as a path (`info.version`, `items[3].name`, `/items/3/name`; places in lists count from 0),
    as `field=value`, and among the values of id-like fields. `start`, `limit` and `column` page
    through a long text. `str(record)` is never longer than `PAGE_CAP_CHARS`.

    A key that leads nowhere gives a record with `total` 0 that says what there is instead.
    """
    number_first = isinstance(key, (int, float)) and _NUMBER.fullmatch(_key(key)) is not None
    asked = _Asked(id, _key(key), (field or "").strip(), number_first)
    if shape.kind == "media":
        return (yield from _file(reader, shape, asked))
    found = yield from _found(reader, shape, asked)
    if isinstance(found, str):
        return Record(None, "", "", None, 0, None, found)
    if asked.field:
        inside = find(found.json, asked.field)
        if isinstance(inside, Dead):
            text = _nothing(asked.field, inside, asked)
            return Record(None, "", "", found.number, 0, None, text)
        found = _Value(inside.raw, inside.raw, inside.path, found.number, found.total, found.note)
    return (
        yield from _answer(
            reader, asked, found, whole(start, 1, 1), limit, column, page_chars, shape.base64
        )
    )


def _key(key: object) -> str:
    if isinstance(key, float) and key.is_integer():
        key = int(key)
    return str(key).strip().strip("\"'`").strip() if key is not None else ""


def _argument(text: str) -> str:
    written = json.dumps(shown(text), ensure_ascii=False)
    return written if len(written) <= _KEY_CHARS and inert(written) == written else '"the same"'


# --- finding it -----------------------------------------------------------------------------------


def _found(reader: Reader, shape: Shape, asked: _Asked) -> Flow[_Value | str]:
    key = asked.key
    number = _NUMBER.fullmatch(key)
    table: Records | None = None
    if shape.records is not None:
        table = yield from open_records(reader, shape)
    if number is not None:
        at = int(number[1])
        if table is not None and 1 <= at <= table.count:
            own = yield from _by_own_id(table, shape, asked, at)
            if isinstance(own, _Value):
                return own
            raw = yield from table.exact(at)
            return _Value(raw, table.as_json([raw])[0], number=at, note=own)
        if table is None:
            return (yield from _part(reader, shape, asked, at))
    is_path = shape.table or shape.inside or table is None or key[:1] in "/$" or "[" in key
    if number is None and is_path and (shape.mime == "application/json" or shape.inside):
        body = yield from reader.body()
        walked = find(body, key)
        if isinstance(walked, Dead) and shape.inside:
            inner = yield from in_stead(reader, shape)
            within = find((yield from inner.body()), key)
            walked = within if isinstance(within, Found) else walked
        if isinstance(walked, Found):
            return _Value(walked.raw, walked.raw, walked.path)
        if table is None:
            return _nothing(key, walked, asked)
    if table is None:
        return _unread(asked, shape)
    return (yield from _by_value(table, asked))


def _by_own_id(table: Records, shape: Shape, asked: _Asked, at: int) -> Flow[_Value | str]:
    """The record whose own id is this number, where ids come first; else what to say of it."""
    name = own_id(table.fields)
    digits = asked.key
    if not name or not digits.isdecimal() or (asked.number_first and shape.size > _GLANCE_BYTES):
        return ""
    found = yield from holders(table, name, digits)
    numbers = [number for number, _ in found]
    if not found or numbers == [at]:
        return ""
    inside = f", field={_argument(asked.field)}" if asked.field else ""
    call = f'get_record("{attr(asked.id, 80)}", '
    if asked.number_first:
        if at in numbers:
            return ""
        other = _argument(f"{name}={digits}")
        return f"{attr(name, 60)} {digits} is record {numbers[0]}: {call}{other}{inside})."
    note = f'Record number {at} is another: {call}"#{at}"{inside}).' if at != numbers[0] else ""
    if len(found) > 1:
        others = ", ".join(map(str, numbers[1:9]))
        note = f"{attr(name, 60)} has this value in {len(found):,} records; also {others}. {note}"
    raw = found[0][1]
    return _Value(raw, table.as_json([raw])[0], "$", numbers[0], len(found), note.strip())


def _unread(asked: _Asked, shape: Shape) -> str:
    said = f'search_result("{attr(asked.id, 80)}", pattern)'
    return f"This result is text of {shape.lines:,} lines, without records or fields; use {said}."


def _part(reader: Reader, shape: Shape, asked: _Asked, number: int) -> Flow[_Value | str]:
    """What a number means where there are no records: the n-th file in base64, or a line."""
    inner = yield from in_stead(reader, shape)
    if shape.base64:
        body = yield from inner.body()
        files = list(parts_of(body))
        if 1 <= number <= len(files):
            start, end = files[number - 1]
            note = f"The result has {len(files):,} such files." if len(files) > 1 else ""
            text = body[start:end]
            return _Value(text, json.dumps(text.decode()).encode(), "$", number, 1, note)
    return f'Line {number:,}: read_result("{attr(asked.id, 80)}", start={number}).'


def _by_value(table: Records, asked: _Asked) -> Flow[_Value | str]:
    """The records one of whose id-like fields has this value; else one of any field."""
    pair = _PAIR.fullmatch(asked.key)
    named = pair[1] if pair and (pair[1] in table.fields or not table.fields) else ""
    wanted = pair[2].strip().strip("\"'") if pair and named else asked.key
    hits: dict[str, list[int]] = {}
    first: dict[str, bytes] = {}
    for group in table.holding(needles(wanted)):
        for number, raw in (yield from group):
            for name in fields_with(table.as_json([raw])[0], wanted):
                hits.setdefault(name, []).append(number)
                first.setdefault(name, raw)
    name = named if named in hits else "" if named else _likeliest(hits)
    if not name:
        return _no_record(table, asked, named, wanted, hits)
    numbers = hits[name]
    note = f"{attr(name, 60)} has this value in {_counted(len(numbers), 'record')}"
    if len(numbers) > 1:
        others = ", ".join(map(str, numbers[1:9]))
        note += f"; the others are {others}{', …' if len(numbers) > 9 else ''}"
    return _Value(
        first[name],
        table.as_json([first[name]])[0],
        number=numbers[0],
        total=len(numbers),
        note=note + ".",
    )


def _likeliest(hits: dict[str, list[int]]) -> str:
    """The field that was meant: the most id-like, then the one with the fewest such records."""

    def rank(name: str) -> tuple[int, int, str]:
        low = name.lower()
        place = _ID_NAMES.index(low) if low in _ID_NAMES else 20
        if place == 20 and ID_LIKE.fullmatch(name):
            place = 15
        return place, len(hits[name]), name

    return min(hits, key=rank, default="")


def _no_record(
    table: Records, asked: _Asked, named: str, wanted: str, hits: dict[str, list[int]]
) -> str:
    id = attr(asked.id, 80)
    if _NUMBER.fullmatch(asked.key):
        return f"There is no record {asked.key}: this result has {table.count:,} records."
    where = f"a {attr(named, 60)} of" if named else "a field that is exactly"
    names = ", ".join(attr(name, 60) for name in table.fields[:_NAMES_SHOWN])
    said = f"None of {table.count:,} records has {where} {attr(shown(wanted), 60)}."
    return f'{said} Fields: {names}. Try search_result("{id}", pattern), or a record number.'


def _nothing(path: str, dead: Dead, asked: _Asked) -> str:
    where = attr(dead.path, 80) if dead.path else "the top level"
    said = f"Nothing stands at {attr(shown(path), 80)}."
    if dead.names:
        names = ", ".join(attr(name, 60) for name in dead.names[:_NAMES_SHOWN])
        more = len(dead.names) - _NAMES_SHOWN
        return f"{said} At {where} there are: {names}{f' and {more:,} more' if more > 0 else ''}."
    if dead.size is not None:
        last = dead.size - 1
        return f"{said} At {where} there is a list of {dead.size:,}: [0] to [{last}]."
    return f"{said} At {where} there is a single value."


def _counted(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


# --- answering ------------------------------------------------------------------------------------


def _answer(
    reader: Reader,
    asked: _Asked,
    found: _Value,
    start: int,
    limit: int | None,
    column: int,
    page_chars: int,
    base64: bool,
) -> Flow[Record]:
    notes = [found.note] if found.note else []
    tag = _tag(asked, found)
    value, text, is_file = _valued(found)
    if is_file is not None:
        said = f"{tag}>\n{described(is_file)}\n</page>\n"
        return _record(found, value, text, None, said + " ".join([STORED_DATA, *notes]))
    room = PAGE_CAP_CHARS - FRAME_CHARS
    limited = whole(limit, 0, 0) or None
    raw = text.encode("utf-8", "surrogatepass")
    if len(text) <= min(page_chars, room) and start == 1 and not column and limited is None:
        page = Page(shown(text), 1, 1, 1, None, "")
    else:
        name = f"value {found.number} {found.path} {asked.key}"
        below = yield from reader.derived(name, raw)
        page = yield from read(below, asked.id, start, limited, column, page_chars)
        if not page.text:
            return Record(value, text, found.path, found.number, found.total, None, page.rendered)
    if page.next is not None or page.start > 1 or column:
        lines = f"{page.start}-{page.end}" if page.end > page.start else f"{page.start}"
        tag += f' lines="{lines}" of="{page.total}"'
    body, hidden = inert(page.text), False
    if base64:
        body, hidden = plain_base64(body)
    if hidden:
        notes.append("Base64 is cut here; name its field to learn what it is.")
    if page.next is not None:
        on = asked.call(page.next["start"], page.next.get("column", 0))
        notes.append(f"Go on with {on}.")
    elif page.start > 1 or column:
        notes.append("This is the end.")
    gap = "" if body.endswith("\n") else "\n"
    rendered = f"{tag}>\n{body}{gap}</page>\n{' '.join([STORED_DATA, *notes])}"
    return _record(found, value, text, page.next, rendered)


def _record(
    found: _Value, value: Any, text: str, following: dict[str, int] | None, rendered: str
) -> Record:
    return Record(value, text, found.path, found.number, found.total, following, rendered)


def _tag(asked: _Asked, found: _Value) -> str:
    tag = f'<page id="{attr(asked.id, 80)}"'
    if found.number is not None:
        tag += f' record="{found.number}"'
    if found.path != "$":
        tag += f' path="{attr(found.path, 80)}"'
    return tag


def _valued(found: _Value) -> tuple[Any, str, MediaFacts | None]:
    """The value, its text, and what it is if it is a file in base64."""
    raw = found.raw
    if found.json is not raw and found.json[:1] == b'"':
        text = raw.decode("utf-8", "replace")
    elif raw[:1] == b'"':
        text = string_of(raw)
    else:
        text, source = chars_of(raw), chars_of(found.json)
        try:
            return json.loads(source), text, None
        except (ValueError, RecursionError):
            return source, text, None
    bare = text.encode("utf-8", "replace")
    if is_base64(bare):
        facts = media_of_base64(text.strip())
        data = decoded(bare) if facts is not None or len(bare) >= _COUNTED else None
        if data is not None:
            return data, "", facts or MediaFacts("application/octet-stream", len(data))
    return text, text, None


def described(facts: MediaFacts) -> str:
    """What a file is, in a line: `image/png, 640x420 pixels, 807,013 bytes`."""
    parts = [facts.mime]
    if facts.width:
        parts.append(f"{facts.width}x{facts.height} pixels")
    if facts.pages:
        parts.append(_counted(facts.pages, "page"))
    if facts.seconds:
        parts.append(f"{facts.seconds:g} seconds")
    parts.append(f"{facts.size:,} bytes")
    return ", ".join(parts)


def _file(reader: Reader, shape: Shape, asked: _Asked) -> Flow[Record]:
    """A result that is a file itself."""
    data = yield from reader.body()
    facts = outline_of(data, shape.mime)
    if not isinstance(facts, MediaFacts):
        facts = MediaFacts(shape.mime, shape.size)
    rendered = f"{_tag(asked, _Value(b'', b''))}>\n{described(facts)}\n</page>\n{STORED_DATA}"
    return Record(data, "", "$", None, 1, None, rendered)
