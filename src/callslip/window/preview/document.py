"""A JSON document: its top-level keys with kind and size, where its largest parts are, and the
head and tail of the text that it may hold most of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from callslip.handle import Shape
from callslip.window.envelope import human_size
from callslip.window.preview import diff, log, outline, runs, text
from callslip.window.preview.media import described
from callslip.window.preview.parts import counted, cut, quiet
from callslip.window.preview.sample import Sample
from callslip.window.survey import DocumentOutline, Part

__all__ = ["part_line", "render"]

_NAME = 40
_INSIDE: tuple[Callable[[Sample, Shape, int, int], str | None], ...] = (
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
    if sample.whole and shape.chars + 60 <= chars and shape.lines <= lines:
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
    made = _listed(known, room * 2 // 5 if has_more else room * 3 // 4, lines)
    room -= sum(len(line) + 1 for line in made)
    if known.inner is not None:
        where = f"{cut(known.inner_path or 'it', 80)} holds JSON text:"
        inner = [_root_line(known.inner), *_listed(known.inner, room * 3 // 5, lines)]
        inner += _largest(known.inner.largest, room - sum(len(line) + 1 for line in inner) - 90)
        made += _fitting([where, *inner], room)
    elif known.text is not None:
        made += _fitting(_text(known, lines, room), room)
    else:
        made += _largest(known.largest, room)
    return "\n".join([label, *(quiet(line) for line in made)])


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
    worth = sorted(range(len(parts)), key=lambda i: (-parts[i].size, i))
    chosen: set[int] = set()
    for i in worth:
        if len(full[i]) + 1 <= budget and len(chosen) < most:
            budget -= len(full[i]) + 1
            chosen.add(i)
    made = [full[i] for i in sorted(chosen)]
    room -= sum(len(line) + 1 for line in made)
    others = [name for i, name in enumerate(names) if i not in chosen]
    line, left = "also: ", total - len(chosen)
    for at, name in enumerate(others):
        end = f"and {left - at:,} more keys"
        if len(line) + len(name) + 2 + len(end) > room:
            line += end
            break
        line += name + (", " if at + 1 < left else "")
    return [*made, line] if left and len(line) <= room else made


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
    return f"{cut(part.path or 'the whole', 80)}: {_what(part)}"


def _what(part: Part) -> str:
    size = f", {human_size(part.size)}" if part.size >= 1024 else ""
    if part.media is not None:
        return f"{described(part.media)}, as base64"
    if part.type == "object":
        if part.count < 0:
            return f"object{size}"
        each = f", each {_a(part.each)}" if part.each else ""
        more = ", …" if part.count > len(part.names) else ""
        names = ", ".join(cut(name, _NAME) for name in part.names)
        inside = f" ({names}{more})" if part.names else ""
        return f"object with {counted(part.count, 'key')}{each}{inside}{size}"
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
    name = cut(part.path or "it", 80)
    for render in _INSIDE:
        made = render(part.sample, part.shape, lines, room - len(name) - 30)
        if made is not None:
            shown, _, body = made.partition("\n")
            return [f"{name} as text, {shown}:", *body.rstrip("\n").split("\n")]
    return []
