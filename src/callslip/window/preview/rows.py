"""Rows: how many, the fields with types and ranges, the odd ones out, the top or the first ones."""

from __future__ import annotations

import json
from collections.abc import Sequence

from callslip.handle import Shape
from callslip.window.columns import Field
from callslip.window.preview.parts import counted, cut, fits, mostly_hollow, quiet
from callslip.window.preview.sample import Sample
from callslip.window.profile import Profile, Row
from callslip.window.survey import DocumentOutline, Part, step

__all__ = ["beside", "field_line", "render", "row_json", "shown_rows"]

_NAME = 40
_FORMATS = {"json": "JSON array", "ndjson": "NDJSON", "csv": "table"}


def render(sample: Sample, shape: Shape, lines: int, chars: int) -> str | None:
    """None for what has no records, or is short enough to be shown as it is."""
    profile = sample.profile
    if profile is None or not profile.records or not profile.fields:
        return None
    if fits(sample.whole, shape, lines, chars):
        return None
    if profile.records < 3 and isinstance(sample.outline, DocumentOutline):
        # One or two records are no table: what is in them tells more.
        return None
    for rows in (True, False):
        made = _laid_out(profile, sample, shape, lines, chars, rows)
        if not mostly_hollow(made):
            break
    return made


def _laid_out(
    profile: Profile, sample: Sample, shape: Shape, lines: int, chars: int, rows: bool
) -> str:
    total = counted(profile.records, "record")
    room = chars - len(f"{profile.records:,} of {total}\n")
    head = [
        f"{_what(profile, shape)}, {counted(len(profile.fields) + profile.more_fields, 'field')}"
    ]
    if not profile.exact:
        head[0] += f" in the sample (described from {profile.looked:,} of them)"
    head[0] += ":"
    rest = beside(sample, shape)
    if rest:
        head.append(rest)
    head = [cut(line, max(room // 4, 40)) for line in head]
    room -= sum(len(line) + 1 for line in head)
    fields = _field_lines(profile, room * 11 // 20 if rows else room, max(lines, 1))
    room -= sum(len(line) + 1 for line in fields)
    blocks: list[str] = []
    shown = 0
    if rows:
        for title, some, share in _groups(profile):
            made = _row_lines(title, some, room * share // 100)
            if len(made) > 1:
                shown += len(made) - 1
                blocks += made
                room -= sum(len(line) + 1 for line in made)
    label = f"{shown:,} of {total}"
    return "\n".join([label, *(quiet(line) for line in (*head, *fields, *blocks))])


def _what(profile: Profile, shape: Shape) -> str:
    total = counted(profile.records, "record")
    if shape.table:
        return f"JSON document; its list {json.dumps(shape.table[:_NAME])} has {total}"
    if "tab-separated" in shape.mime:
        return f"TSV table of {total}"
    if profile.format == "csv":
        return f"CSV table of {total}"
    return f"{_FORMATS[profile.format]} of {total}"


def beside(sample: Sample, shape: Shape) -> str:
    """What stands in the document beside the list that is the rows."""
    outline = sample.outline
    if not shape.table or not isinstance(outline, DocumentOutline):
        return ""
    at = shape.table
    tops = [part for part in outline.parts if not _holds(step("", part.path, False), part, at)]
    others = [*tops, *(part for part in outline.around if not _holds(part.path, part, at))]
    if not others:
        return ""
    listed = [f"{cut(part.path, _NAME)}: {_brief(part)}" for part in others[:8]]
    more = len(others) - len(listed)
    return "beside it: " + "; ".join(listed) + (f"; {more:,} more keys" if more > 0 else "")


def _holds(path: str, part: Part, table: str) -> bool:
    """Whether the table is this part, or stands in it."""
    return any(table == at or table.startswith((f"{at}.", f"{at}[")) for at in (path, part.path))


def _brief(part: Part) -> str:
    if part.value and len(part.value) <= 64:
        return part.value
    if part.type in ("object", "list"):
        return counted(part.count, "key" if part.type == "object" else "item")
    return f"{part.type}, {part.size:,} bytes"


def _groups(profile: Profile) -> list[tuple[str, Sequence[Row], int]]:
    """The rows worth showing, each sort with its title and share of what room is left."""
    groups: list[tuple[str, Sequence[Row], int]] = []
    total = f"{profile.records:,}"
    if profile.odd:
        usual = " or ".join(profile.odd_usual[:3])
        many = f"{profile.odd_count:,} of {total}" if profile.odd_count >= 0 else "some of them"
        title = f"{cut(profile.odd_field, _NAME)} other than {usual} ({many}):"
        groups.append((title, profile.odd, 50))
    if profile.top:
        name = cut(profile.top_field, _NAME)
        groups.append((f"Largest {name} of {total}, by record number:", profile.top, 100))
    else:
        some = len(profile.first) < profile.records
        title = f"First of {total}, by record number:" if some else "By record number:"
        groups.append((title, profile.first, 100))
    return groups


def _field_lines(profile: Profile, room: int, most: int) -> list[str]:
    """A line for each field as long as there is room; the others by name alone."""
    width = max(60, room // 5)
    full = [cut(field_line(field, profile.exact), width) for field in profile.fields]
    if len(full) <= most and not profile.more_fields and sum(len(x) + 1 for x in full) <= room:
        return full
    # The names of the others need room, too: a third at the most.
    names = [cut(field.name or '""', _NAME) for field in profile.fields]
    budget = room - min(sum(len(name) + 2 for name in names) + 20, room // 3)
    chosen: list[str] = []
    for line in full[:most]:
        if len(line) + 1 > budget:
            break
        budget -= len(line) + 1
        chosen.append(line)
    room -= sum(len(line) + 1 for line in chosen)
    others = names[len(chosen) :]
    total = len(others) + profile.more_fields
    text = "also: "
    for at, name in enumerate(others):
        left = f"and {total - at:,} more"
        if len(text) + len(name) + 2 + len(left) > room:
            text += left
            break
        text += name + (", " if at + 1 < total else "")
    else:
        if profile.more_fields:
            text += f"and {profile.more_fields:,} more"
    return [*chosen, text] if total and len(text) <= room else chosen


def field_line(field: Field, exact: bool = True) -> str:
    """A field in one line: `status: string, "ok" 4,995, "failed" 5`. What is known only of a
    sample is said of it, since an exact count may stand below."""
    always, sampled = ("always ", "") if exact else ("", " in the sample")
    kinds = [name for name, _ in field.types]
    same = field.shortest == field.longest
    what: list[str] = []
    if not kinds:
        what.append(f"{always}null{sampled}")
    elif len(kinds) > 1:
        what.append(" or ".join(f"{name} {count:,}" for name, count in field.types))
    elif kinds == ["object"]:
        what.append(f"object ({', '.join(field.inner)})" if field.inner else "object")
    elif kinds == ["list"]:
        each = f" of {' or '.join(field.inner)}" if field.inner else ""
        span = field.low if field.low == field.high else f"{field.low} to {field.high}"
        what.append(f"list{each}, {span} long{sampled}")
    else:
        what.append(kinds[0])
    if field.common:
        listed = [f"{value} {count:,}" for value, count in field.common]
        if len(field.common) == 1 and field.distinct == 1:
            listed = [f"{always}{field.common[0][0]}"]
        what += listed
        if field.distinct > len(field.common):
            what.append(f"{field.distinct - len(field.common):,} other values")
        what[-1] += sampled
    elif field.low and kinds != ["list"]:
        what.append(f"{field.low} to {field.high}{sampled}")
    elif field.example:
        if field.longest > 80:
            span = f"{field.longest:,} characters"
            what.append((span if same else f"{field.shortest:,} to {span}") + sampled)
        else:
            what.append(f"like {field.example}")
    if field.nulls and kinds:
        what.append(f"{field.nulls:,} null{sampled}")
    unique = field.distinct == field.count > 1 and not field.common
    if unique and kinds in (["string"], ["integer"]):
        what.append(f"all different{sampled}")
    return f"{cut(field.name, _NAME)}: {', '.join(what)}"


def _row_lines(title: str, rows: Sequence[Row], room: int) -> list[str]:
    """The title and as many rows as fit, each on a line of its own that is JSON after its number."""
    made = [cut(title, 120)]
    room -= len(made[0]) + 1
    if not rows:
        return made
    each = _width(rows[0], room)
    for row in rows:
        line = f"{row.number}: "
        line += row_json(row, min(max(each, 80), room - len(line) - 1))
        # Rather one less than one of which hardly a field is shown.
        scant = len(made) > 1 and len(line) < len(made[1]) and len(row.cells) > line.count('":')
        if len(line) + 1 > room or line.endswith(": ") or (scant and room < len(made[1])):
            break
        made.append(line)
        room -= len(line) + 1
    return made


def _width(row: Row, room: int) -> int:
    """What a row may take: a third of the room, or more where half of its fields need more."""
    for share in (3, 2, 1):
        width = room // share - 8
        if row_json(row, width).count('":') * 2 >= len(row.cells) + row.left:
            return width
    return room - 8 if len(row.cells) < 12 else room // 2 - 8


def row_json(row: Row, width: int) -> str:
    """A record as one JSON object in `width` characters: long cells cut, then cells left out and
    counted under `…`. Empty where not even that fits."""
    for size in (120, 60, 36, 20):
        cells = [f"{_key(name)}:{_cell(text, size)}" for name, text in row.cells]
        whole = "{" + ",".join(cells) + (f',"…":"{row.left} more fields"' if row.left else "") + "}"
        if len(whole) <= width:
            return whole
    kept: list[str] = []
    used = len('{"…":"9999 more fields"}')
    for cell in cells:
        if used + len(cell) + 1 > width:
            break
        kept.append(cell)
        used += len(cell) + 1
    if not kept:
        return ""
    left = row.left + len(cells) - len(kept)
    return "{" + ",".join(kept) + f',"…":"{left} more field{"" if left == 1 else "s"}"' + "}"


def _key(name: str) -> str:
    return json.dumps(cut(name, _NAME), ensure_ascii=False)


def _cell(text: str, size: int) -> str:
    """A cell's JSON text in about `size` characters, JSON still."""
    if len(text) <= size:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return json.dumps(text[: size - 3] + "…", ensure_ascii=False)
    if isinstance(value, str):
        return json.dumps(value[: size - 3].rstrip("…") + "…", ensure_ascii=False)
    if isinstance(value, list):
        return json.dumps(f"… list of {len(value)}", ensure_ascii=False)
    if isinstance(value, dict):
        return json.dumps(f"… object of {len(value)}", ensure_ascii=False)
    return text


def shown_rows(profile: Profile, room: int) -> list[str]:
    """Rows to show as JSON objects, in `room` characters with commas: odd, top or first ones."""
    made: list[str] = []
    rows = profile.top or profile.first
    each = max(room // min(len(rows), 3) - 1, 0) if rows else 0
    for row in rows:
        text = quiet(row_json(row, min(each, room)))
        if not text or len(text) + 1 > room or (made and '"…"' in text and '"…"' not in made[0]):
            break
        made.append(text)
        room -= len(text) + 1
    return made
