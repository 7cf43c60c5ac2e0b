"""A JSON document: its top-level keys with kind and size, where its largest parts are, and the
head and tail of the text that it may hold most of all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from callslip.handle import Shape
from callslip.window.envelope import human_size
from callslip.window.preview import diff, log, outline, rows, runs, text
from callslip.window.preview.media import described
from callslip.window.preview.parts import counted, cut, fits, quiet
from callslip.window.preview.sample import Sample
from callslip.window.survey import DocumentOutline, Part

__all__ = ["part_line", "render"]

_NAME = 40
_TELLING = re.compile(
    r"(?:exit_?code|return_?code|status|state|code|error|errors|message|success|ok|total|count"
    r"|next|cursor|is_?error|name|title|truncated|result|id)",
    re.IGNORECASE,
)
_INSIDE: tuple[Callable[[Sample, Shape, int, int], str | None], ...] = (
    rows.render,
    diff.render,
    outline.render,
    runs.render,
    log.render,
    text.render,
)


def render(sample: Sample, shape: Shape, lines: int, chars: int) -> str | None:
    """None for what has no outline, or is short enough to be shown as it is."""
    known = sample.outline
    if not isinstance(known, DocumentOutline):
        return None
    if fits(sample.whole, shape, lines, chars):
        return None
    root = known.root
    if root.type in ("object", "list"):
        unit = "top-level key" if root.type == "object" else "item"
        many = counted(root.count, unit) if root.count >= 0 else f"many {unit}s"
        label = f"an outline of JSON, {many}"
    else:
        label = f"an outline of JSON, one {root.type}"
    room = chars - len(label) - 1
    has_more = known.text is not None or known.inner is not None
    made = [*map(quiet, _listed(known, room * 2 // 5 if has_more else room * 3 // 5, lines))]
    room -= sum(len(line) + 1 for line in made)
    inside = _around(known, room // (4 if has_more else 2))
    made += inside
    room -= sum(len(line) + 1 for line in inside)
    if known.inner is not None:
        where = f"{_path(known.inner_path) or 'it'} holds JSON text:"
        inner = [_root_line(known.inner), *_listed(known.inner, room * 3 // 5, lines)]
        inner += _largest(known.inner.largest, room - sum(len(line) + 1 for line in inner) - 90)
        made += map(quiet, _fitting([where, *inner], room))
    elif known.text is not None:
        made += _text(known, lines, room)
    else:
        said = {part.path for part in known.around}
        more = [part for part in known.largest if part.path not in said]
        made += map(quiet, _largest(more, room))
    return "\n".join([label, *made])


def _listed(known: DocumentOutline, room: int, most: int) -> list[str]:
    """The top-level keys, a line for each as long as there is room, then by name alone."""
    root, parts = known.root, known.parts
    if root.type == "list":
        return _items(known, room)
    if root.type != "object":
        return [cut(part_line(root), room)] if room > 20 else []
    width = max(60, room // 3)
    full = [cut(part_line(part), width) for part in parts]
    total = root.count if root.count >= 0 else len(parts)
    if len(full) <= most and total == len(parts) and sum(len(x) + 1 for x in full) <= room:
        return full
    # All keys are named if they fit; a line to themselves is for the largest and for short values.
    names = [cut(part.path or '""', _NAME) for part in parts]
    budget = room - min(sum(len(name) + 2 for name in names) + 24, room // 2)
    worth = sorted(range(len(parts)), key=lambda i: (not _tells(parts[i]), -parts[i].size, i))
    chosen: set[int] = set()
    for i in worth:
        if len(full[i]) + 1 <= budget and len(chosen) < most:
            budget -= len(full[i]) + 1
            chosen.add(i)
    made = [full[i] for i in sorted(chosen)]
    room -= sum(len(line) + 1 for line in made)
    others = [name for i, name in enumerate(names) if i not in chosen]
    named = [_named(part) for i, part in enumerate(parts) if i not in chosen]
    if sum(len(name) + 2 for name in named) + 30 <= room:
        others = named
    line, left = "also: ", total - len(chosen)
    for at, name in enumerate(others):
        end = f"and {left - at:,} more keys"
        if len(line) + len(name) + 2 + len(end) > room:
            line += end
            break
        line += name + (", " if at + 1 < left else "")
    return [*made, line] if left and len(line) <= room else made


def _tells(part: Part) -> bool:
    """Whether a key is one that a reader looks for first, and its value is short."""
    return bool(_TELLING.fullmatch(part.path)) and bool(part.value) and part.size <= 80


def _named(part: Part) -> str:
    name = cut(part.path or '""', _NAME)
    return f"{name}: {part.value}" if part.value and len(part.value) <= 40 else name


def _around(known: DocumentOutline, room: int) -> list[str]:
    """The members of what most of the document is in, short values that tell first."""
    last = {part.path for part in known.around}
    # What is shown as text further down needs no line here.
    text = known.text.path if known.text is not None else known.inner_path or None
    ranked = sorted(
        (part for part in known.around if part.path != text and not _opened(part.path, last)),
        key=lambda part: (not (part.value and part.size <= 80), -part.size),
    )
    chosen: list[Part] = []
    width = max(80, room // 2)
    for part in ranked:
        line = cut(part_line(part), width)
        if len(line) + 1 > room:
            break
        room -= len(line) + 1
        chosen.append(part)
    kept = [part for part in known.around if part in chosen]
    return [quiet(cut(part_line(part), width)) for part in kept]


def _opened(path: str, others: set[str]) -> bool:
    return any(other.startswith((f"{path}.", f"{path}[")) for other in others)


def _items(known: DocumentOutline, room: int) -> list[str]:
    root = known.root
    each = f" of {root.each}s" if root.each else ""
    keys = f" with {', '.join(cut(name, _NAME) for name in root.names)}" if root.names else ""
    made = [cut(f"a list{each}{keys}", max(room // 2, 40))]
    room -= len(made[0]) + 1
    for part in known.parts[:8]:
        line = cut(f"[{part.path}] {_what(part)}", max(60, room // 3))
        if len(line) + 1 > room:
            break
        made.append(line)
        room -= len(line) + 1
    return made


def _root_line(known: DocumentOutline) -> str:
    return f"{_what(known.root)}:"


def part_line(part: Part) -> str:
    """A part in one line: `items: list of 300 objects (term, definition), 51.2KB`."""
    return f"{_path(part.path) or 'the whole'}: {_what(part)}"


def _path(path: str) -> str:
    """A path, a long one by its beginning and its end."""
    return path if len(path) <= 80 else f"{path[:40]}…{path[-39:]}"


def _what(part: Part) -> str:
    size = f", {human_size(part.size)}" if part.size >= 1024 else ""
    if part.media is not None:
        return f"{described(part.media)}, as base64"
    if part.type == "object":
        if part.count < 0:
            return f"object{size}"
        if part.value:
            return part.value
        few = part.names[:5] if part.each else part.names
        each = f", each {_a(part.each)}" if part.each else ""
        more = ", …" if part.count > len(few) else ""
        names = ", ".join(cut(name, _NAME) or '""' for name in few)
        inside = f"{':' if each else ''} {names}{more}" if each else f" ({names}{more})"
        return f"object with {counted(part.count, 'key')}{each}{size}{inside}"
    if part.type == "list":
        if part.count < 0:
            return f"list of many items{size}"
        if part.value:
            return part.value
        items = counted(part.count, part.each or "item")
        names = ", ".join(cut(name, _NAME) for name in part.names)
        return f"list of {items}{f' ({names})' if names else ''}{size}"
    if part.type == "string" and (part.count > 60 or part.lines > 1):
        lines = f", {counted(part.lines, 'line')}" if part.lines > 1 else ""
        holds = f" holding {part.holds}" if part.holds else ""
        return f"string{holds}, {counted(part.count, 'character')}{lines}: {part.value}"
    return part.value


def _a(word: str) -> str:
    return f"an {word}" if word[:1] in "aeiou" else f"a {word}"


def _largest(parts: Sequence[Part], room: int) -> list[str]:
    if not parts:
        return []
    return _fitting(["Largest parts, by path:", *(part_line(part) for part in parts)], room)


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """Those of the lines that fit, in order; none where only the first, a title, would."""
    made: list[str] = []
    for line in lines:
        line = cut(line, max(80, room // 2)) if len(line) > room else line
        if len(line) + 1 > room:
            break
        made.append(line)
        room -= len(line) + 1
    return made if len(made) > 1 else []


def _text(known: DocumentOutline, lines: int, room: int) -> list[str]:
    """What the document's long string says, as a text of its own."""
    part = known.text
    if part is None:
        return []
    name = _path(part.path) or "it"
    for render in _INSIDE:
        made = render(part.sample, part.shape, lines, room - len(name) - 30)
        if made is not None:
            # Quiet already, and its notes are ours.
            shown, _, body = made.partition("\n")
            what = "rows" if part.sample.profile is not None else "text"
            return [quiet(f"{name} as {what}, {shown}:"), *body.rstrip("\n").split("\n")]
    return []
