"""The handle as one JSON object: `saved_to`, `rows`, `fields`, `preview`, `hint`.

The other rendering of the same: for people whose prompts were written for it. Valid JSON whatever
the content, under the same caps as `callslip.window.envelope`, and as inert. Pure.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from callslip.handle import Shape
from callslip.limits import (
    ENVELOPE_CHARS,
    PREVIEW_CHARS,
    PREVIEW_LINES,
    REFUSED_CHARS,
    TOOL_NAME_CHARS,
)
from callslip.window.envelope import MEDIA, NO_READER, NOT_STORED, Vocabulary, next_calls
from callslip.window.inert import inert, shown
from callslip.window.policy import ends, omission
from callslip.window.preview import preview
from callslip.window.preview.parts import cut, without_base64
from callslip.window.preview.rows import beside, shown_rows
from callslip.window.preview.sample import Sample

__all__ = [
    "ANY_ID",
    "as_text",
    "handle_json",
    "is_json",
    "refused_json",
    "same_as_json",
    "told_as_json",
]

_NAME = 40
ANY_ID = "res_" + "0" * 40
"""Stands for an id that is not known yet, and is as long as the longest."""


def handle_json(
    id: str,
    tool: str,
    shape: Shape,
    sample: Sample,
    *,
    status: str = "",
    vocabulary: Vocabulary = "results",
    reader: bool = True,
    lines: int = PREVIEW_LINES,
    preview_chars: int = PREVIEW_CHARS,
) -> str:
    """The handle as JSON, `preview_chars` + `ENVELOPE_CHARS` characters at the most.

    Rows have `rows` (how many there are), `fields` and, as `preview`, a few whole objects; `shown`
    says how many of how many, and `beside` what the document has beside a list of its. Anything else has `kind`, `shown` and its preview as text. `hint`
    comes last and names the call that reads on; `reader=False` where none is bound.
    """
    room = preview_chars + ENVELOPE_CHARS
    profile = sample.profile
    rows = profile is not None and bool(profile.fields)
    hint = _hint(id, shape, vocabulary) if reader else NO_READER
    made: dict[str, Any] = {"saved_to": id, "tool": cut(_quiet(tool), TOOL_NAME_CHARS)}
    if status:
        made["status"] = cut(status, 32)
    if profile is None or not rows:
        label, _, body = preview(sample, shape, lines, preview_chars).partition("\n")
        made |= {"kind": shape.kind, "shown": label}
        return _with_text(made, body, hint, room)
    made["rows"] = profile.records
    made["fields"] = []
    names = [cut(_quiet(field.name), _NAME) for field in profile.fields]
    left = len(names) + profile.more_fields
    budget = min(room - len(_text(made)) - len(hint) - 80, preview_chars) * 2 // 5
    for name in names:
        budget -= len(_text(name)) + 2
        if budget < 24:
            break
        made["fields"].append(name)
        left -= 1
    if left:
        made["fields"].append(f"… {left:,} more")
    total = f" of {profile.records:,} rows"
    made["shown"] = f"{len(profile.first)}{total}"
    if rest := beside(sample, shape):
        made["beside"] = cut(_quiet(rest.removeprefix("beside it: ")), preview_chars // 4)
    made["preview"] = []
    used = len(_text({**made, "hint": hint}))
    texts = shown_rows(profile, min(room - used, preview_chars))
    made["preview"] = [_object(without_base64(text)) for text in texts]
    made["shown"] = f"{len(texts)}{total}"
    while made["preview"] and len(_text({**made, "hint": hint})) > room:
        made["preview"].pop()
        made["shown"] = f"{len(made['preview'])}{total}"
    return _text({**made, "hint": hint})


def told_as_json(
    id: str,
    tool: str,
    shape: Shape,
    made: str,
    *,
    status: str = "",
    vocabulary: Vocabulary = "results",
    preview_chars: int = PREVIEW_CHARS,
    saved_to: str = "",
) -> str:
    """The handle as JSON from what was kept of its preview: `handle_json` of `ANY_ID`, or a text
    whose first line says how much it shows. `saved_to` is the path of its plain file, if any, and
    makes it as much longer."""
    hint = _hint(id, shape, vocabulary)
    where = saved_to or id
    if is_json(made):
        kept, _, _ = made.rpartition(', "hint": ')
        kept = kept.replace(f'"{ANY_ID}"', _text(where), 1)
        return kept + f', "hint": {_text(hint)}}}'
    label, _, body = made.partition("\n")
    head: dict[str, Any] = {"saved_to": where, "tool": cut(_quiet(tool), TOOL_NAME_CHARS)}
    if status:
        head["status"] = cut(status, 32)
    head |= {"kind": shape.kind, "shown": label or "all"}
    return _with_text(head, body, hint, preview_chars + ENVELOPE_CHARS + len(saved_to))


def is_json(made: str) -> bool:
    """Whether a kept preview is one of `handle_json`."""
    return made.startswith(f'{{"saved_to": "{ANY_ID}"')


def as_text(made: str) -> str:
    """A kept preview of `handle_json` as a text with its label, for the other style."""
    told = _object(made)
    return "\n".join([told["shown"], *map(_text, told["preview"])])


def same_as_json(
    id: str, shape: Shape, first: str, *, vocabulary: Vocabulary = "results", saved_to: str = ""
) -> str:
    """For content that this session has already been shown, under the handle `first`."""
    said = f"The very same content as {first}, shown before."
    calls = next_calls(first, shape, vocabulary)
    hint = f"{said} {calls[0].upper()}{calls[1:]}." if calls else said
    return _text({"saved_to": saved_to or id, "same_as": first, "hint": hint})


def refused_json(reason: str, text: str, chars: int | None = None, *, tool: str = "") -> str:
    """What a model gets of a result that could not be stored: its two ends, and no handle."""
    head = {"stored": False, "reason": cut(_quiet(reason), 40), "tool": cut(_quiet(tool), 64)}
    total = len(text) if chars is None else chars
    room = REFUSED_CHARS - 700
    first, last, left = ends(text, room)
    left += total - len(text) if left else 0
    body = first + (omission(left) + last if left else "")
    return _with_text(head | {"chars": total}, body, NOT_STORED, REFUSED_CHARS)


def _hint(id: str, shape: Shape, vocabulary: Vocabulary) -> str:
    calls = next_calls(id, shape, vocabulary)
    return f"Full result stored; {calls}." if calls else MEDIA


def _with_text(made: dict[str, Any], body: str, hint: str, room: int) -> str:
    """The object with as much of the preview's text as there is room for, escapes counted."""
    body = _quiet(body, notes=False)
    frame = len(_text({**made, "preview": "", "hint": hint}))
    keep = len(body)
    while keep and frame + len(_text(body[:keep])) - 2 + (keep < len(body)) > room:
        over = frame + len(_text(body[:keep])) - 1 - room
        keep = max(keep - max(over // 2, 1), 0)
    text = body if keep == len(body) else body[:keep] + "…"
    return _text({**made, "preview": text, "hint": hint})


def _quiet(text: str, *, notes: bool = True) -> str:
    return inert(shown(text), notes=notes)


def _object(text: str) -> Any:
    """A row's JSON as strict JSON can say it again: NaN is null, a number too large for a float
    stays as it was written."""
    return json.loads(text, parse_constant=lambda _: None, parse_float=_float)


def _float(digits: str) -> float | str:
    value = float(digits)
    return value if isfinite(value) else digits


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
