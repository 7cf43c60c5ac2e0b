"""The handle as one JSON object: `saved_to`, `rows`, `fields`, `preview`, `hint`.

The other rendering of the same: for people whose prompts were written for it. Valid JSON whatever
the content, under the same caps as `callslip.window.envelope`, and as inert. Pure.
"""

from __future__ import annotations

import json
from typing import Any

from callslip.handle import Shape
from callslip.limits import ENVELOPE_CHARS, PREVIEW_CHARS, PREVIEW_LINES, TOOL_NAME_CHARS
from callslip.window.envelope import NO_READER, Vocabulary
from callslip.window.inert import inert, shown
from callslip.window.preview import preview
from callslip.window.preview.parts import cut, without_base64
from callslip.window.preview.rows import beside, shown_rows
from callslip.window.preview.sample import Sample

__all__ = ["handle_json"]

_NAME = 40
_HINTS = {
    "results": 'Full result stored; read with read_result("{id}") or query_result("{id}", where).',
    "files": 'Full result stored; read with read_slice("{id}") or query_file("{id}", where).',
}
_TEXT_HINTS = {
    "results": 'Full result stored; read with read_result("{id}") or search_result("{id}", pattern).',
    "files": 'Full result stored; read with read_slice("{id}") or grep_file("{id}", pattern).',
}


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
    hints = _HINTS if rows else _TEXT_HINTS
    hint = hints[vocabulary].format(id=id) if reader else NO_READER
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
    made["preview"] = [json.loads(without_base64(text)) for text in texts]
    made["shown"] = f"{len(texts)}{total}"
    while made["preview"] and len(_text({**made, "hint": hint})) > room:
        made["preview"].pop()
        made["shown"] = f"{len(made['preview'])}{total}"
    return _text({**made, "hint": hint})


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


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
