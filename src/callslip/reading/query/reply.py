"""The reply of a query: the total first, a few records, and the call that goes on.

What may live here: wording. Pure.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callslip.handle import Rows
from callslip.limits import FRAME_CHARS, PAGE_CAP_CHARS, ROWS_DEFAULT
from callslip.reading.page import STORED_DATA, plain_base64
from callslip.reading.query.asked import Output
from callslip.reading.suggest import quoted
from callslip.window.inert import attr, inert, shown

__all__ = ["as_object", "call_of", "matched", "selected"]

_ID_CHARS: Final = 80
_SAID_CHARS: Final = 80
_RECORD_CHARS: Final = 400
"""What a reply shows of one record at least, where several share its room."""


def as_object(outputs: list[Output], row: Sequence[Any]) -> str:
    """What was computed for one record, as a JSON object."""
    parts = []
    for output, value in zip(outputs, row, strict=True):
        text = value if output.json and value is not None else _json(value)
        parts.append(f"{json.dumps(output.name, ensure_ascii=False)}: {text}")
    return "{" + ", ".join(parts) + "}"


def _json(value: Any) -> str:
    if isinstance(value, decimal.Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "null" if math.isnan(value) else "1e999" if value > 0 else "-1e999"
    return json.dumps(value, ensure_ascii=False, default=str)


def call_of(id: str, given: Mapping[str, object]) -> str:
    """The call as it was made, without its end: `query_result("id", where="…"`."""
    call = f'query_result("{attr(id, _ID_CHARS)}"'
    for name, value in given.items():
        if value:
            text = value if isinstance(value, str) else ", ".join(map(str, _listed(value)))
            said = quoted(text)
            call += f", {name}={said if said.startswith(chr(34)) else 'the same'}"
    return call


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else [value]


def matched(
    records: list[str],
    marks: list[str],
    total: int,
    skip: int,
    count: int,
    id: str,
    held: int,
    said: str,
    call: str,
    hint: str,
    page_chars: int,
    grouped: bool,
) -> Rows:
    """The reply about one result: its records by number (`marks`), or what was made of groups."""
    name = attr(id, _ID_CHARS)
    of = f"{held:,} record{'s' * (held != 1)}"
    condition = attr(shown(said), _SAID_CHARS)
    where = f" where {condition}" if said else ""
    if grouped:
        first = f"{total:,} group{'s' * (total != 1)} in the {of} of {name}{where}."
    elif said:
        first = f"{total:,} of the {of} of {name} match{'es' * (total == 1)}{where}."
    else:
        first = f"{name} has {of}."
    if total == 0:
        return Rows((), "", 0, None, f"{first} {hint}".strip())
    if count == 0:
        return Rows((), "", total, None, f"{first} See them with {call}).")
    if not records:
        return Rows((), "", total, None, f"{first} None is left after {skip:,}; see {call}).")
    tag = f'of="{of}" id="{name}"' + (f' where="{condition}"' if said else "")
    counted = "groups" if grouped else "matched"
    return _reply(records, marks, total, skip, count, counted, tag, name, call, page_chars)


def selected(
    records: list[str],
    total: int,
    skip: int,
    count: int,
    sql: str,
    ids: Sequence[str],
    page_chars: int,
) -> Rows:
    """The reply of a select over several results."""
    said = quoted(" ".join(sql.split()))
    call = f"query_results({said}"
    if total == 0:
        names = ", ".join(attr(id, _ID_CHARS) for id in dict.fromkeys(ids))
        return Rows((), "", 0, None, f"No row comes out of this select over {names}.")
    if count == 0 or not records:
        left = "" if count == 0 else f" None is left after {skip:,}."
        return Rows((), "", total, None, f"{total:,} rows come out.{left} See them with {call}).")
    names = " ".join(attr(id, _ID_CHARS) for id in dict.fromkeys(ids))
    return _reply(records, [], total, skip, count, "total", f'id="{names}"', "", call, page_chars)


def _reply(
    records: list[str],
    marks: list[str],
    total: int,
    skip: int,
    count: int,
    counted: str,
    attributes: str,
    name: str,
    call: str,
    page_chars: int,
) -> Rows:
    most = PAGE_CAP_CHARS - FRAME_CHARS
    room = most if count > ROWS_DEFAULT else min(most, page_chars)
    lines, cut = _lines(records, marks, room)
    taken = len(lines)
    last = skip + taken
    following = {"after": last} if last < total else None
    reach = f"{skip + 1}-{last}" if taken > 1 else f"{last}"
    tag = f'<rows {counted}="{total}" shown="{reach}" {attributes}>'
    notes = [STORED_DATA]
    if cut and marks:
        number = marks[cut[0]][1:-1]
        notes.append(f'#{number} is cut: get_record("{name}", {number}) has it whole.')
    elif cut:
        notes.append("Longer values are cut.")
    if following is not None:
        notes.append(f"{total - last:,} more: {call}, after={last}).")
    rendered = "\n".join([tag, *lines, "</rows>", " ".join(notes)])
    text = "\n".join(_one_line(record) for record in records[:taken])
    return Rows(tuple(records[:taken]), text, total, following, rendered)


def _one_line(record: str) -> str:
    """JSON has line ends between its parts only; inside of strings there are none."""
    return " ".join(record.splitlines()) if "\n" in record or "\r" in record else record


def _lines(records: list[str], marks: list[str], room: int) -> tuple[list[str], list[int]]:
    """As many records as the room holds, one a line, and the places of those that are cut."""
    lines: list[str] = []
    cut: list[int] = []
    used = 0
    each = max(_RECORD_CHARS, room // len(records))
    for place, record in enumerate(records):
        mark = marks[place] if marks else ""
        text, _ = plain_base64(inert(_one_line(record)))
        most = min(each, room) - len(mark) - 1
        if len(text) > most:
            # Room that shorter ones leave is for the longer ones.
            left = room - used - sum(min(len(other) + 8, each) for other in records[place + 1 :])
            most = max(most, left - len(mark) - 1)
        if len(text) > most:
            text = text[: most - 1] + "…"
        if used + len(mark) + len(text) + 1 > room and lines:
            break
        if text.endswith("…") and len(text) == most:
            cut.append(place)
        lines.append(mark + text)
        used += len(mark) + len(text) + 1
    return lines, cut
