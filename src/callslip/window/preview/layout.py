"""How an excerpt of lines is laid out under one cap: head, what tells, tail, exact notes between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from callslip.handle import Shape
from callslip.window.preview.parts import (
    between,
    clip,
    is_hollow,
    label,
    label_all,
    mostly_hollow,
    note,
    quiet,
    unit_of,
)
from callslip.window.preview.sample import Line

__all__ = ["Plan", "cut_text", "lay_out"]

_LEAST_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """How the room is given out: lines at the most, and shares of the characters in hundredths.

    The tail is taken first, then the head, then what tells of errors; without that the head takes
    what the tail leaves.
    """

    head_lines: int
    tail_lines: int
    head_share: int = 100
    tail_share: int = 30
    what: str = "tell of errors"


def lay_out(
    heads: Sequence[str],
    tails: Sequence[str],
    shape: Shape,
    plan: Plan,
    chars: int,
    telling: Sequence[Line] = (),
    told: int = 0,
    more: bool = False,
) -> str:
    """The preview: the first of `heads`, the last of `tails` (lines with their ends, known to be
    the content's first and last ones; they may overlap), and the telling lines that lie between.

    At most `chars` characters, its label line included. Every line of the content is shown (a long
    one clipped with a count) or counted in a note.
    """
    room = chars - len(label(shape.lines, shape)) - 1 - 2 * len(between(shape, plan.what, told))
    if sum(map(len, heads)) <= room and len(heads) == shape.lines:
        body = "".join(heads)
        if len(heads) <= plan.head_lines + plan.tail_lines:
            return f"{label_all(shape)}\n{quiet(body)}"
    hollow = 0
    ends = list(tails)
    while ends and is_hollow(ends[-1]):
        hollow += len(ends.pop())
    skipped = len(tails) - len(ends)
    if skipped < 3:
        ends, skipped, hollow = list(tails), 0, 0
    last = _pick(reversed(ends), plan.tail_lines, room * plan.tail_share // 100)[::-1]
    spare = room - sum(len(text) + 1 for text, _ in last)
    share = 100 if not telling else plan.head_share
    free = shape.lines - len(last) - skipped
    first = _pick(heads[: max(free, 0)], plan.head_lines, min(spare, room * share // 100))
    spare -= sum(len(text) + 1 for text, _ in first)
    inner = [
        line for line in telling if len(first) < line.number <= shape.lines - len(last) - skipped
    ]
    chosen = _choose(inner, spare)
    while True:
        text = _assemble(first, last, chosen, skipped, hollow, shape, plan, told, more)
        # Rather a shorter head than one of brackets and blanks.
        if len(first) > 2 and not chosen and mostly_hollow(text.partition("\n")[2]):
            first = first[: len(first) * 2 // 3]
        elif len(text) <= chars:
            return text
        elif chosen:
            chosen.pop()
        elif first:
            first.pop()
        elif last:
            last.pop(0)
        else:
            return text[: max(chars, 0)]


def cut_text(head: str, tail: str, shape: Shape, chars: int) -> str:
    """The preview of a text without useful lines: its first and its last characters.

    `tail` is empty where `head` is all of the text.
    """
    if not tail:
        if len(head) == shape.chars and len(head) + len(label_all(shape)) + 1 <= chars:
            return f"{label_all(shape)}\n{quiet(head)}"
        tail = head
    room = chars - len(label(0, shape, chars=shape.chars)) - 1
    room -= 2 * (len(note(0, shape.chars)) + 2)
    if room < 8:
        return label(0, shape, chars=0)[: max(chars, 0)]
    first = head[: room * 2 // 3]
    # Closing brackets say nothing: the tail ends where the content does.
    ends = tail.rstrip(" \t\r\n[]{}(),;:\"'")
    skipped = len(tail) - len(ends)
    if skipped < 16:
        ends, skipped = tail, 0
    take = min(room - len(first), shape.chars - len(first) - skipped)
    last = ends[len(ends) - take :] if 0 < take <= len(ends) else ends if take > 0 else ""
    left = shape.chars - len(first) - len(last) - skipped
    parts = [quiet(first)]
    if left > 0:
        parts.append(note(0, left))
    if last:
        parts.append(quiet(last))
    if skipped:
        parts.append(note(0, skipped))
    return f"{label(0, shape, chars=len(first) + len(last))}\n" + "\n".join(parts)


def _pick(lines: Iterable[str], limit: int, room: int) -> list[tuple[str, int]]:
    """The first of `lines` that fit, as shown, each with the length that it has in the content."""
    width = max(_LEAST_WIDTH, room * 2 // 5)
    picked: list[tuple[str, int]] = []
    for line in lines:
        if len(picked) >= limit:
            break
        # A reader scans the first lines whole; ends of lines only where they are short.
        text = clip(quiet(line), min(width, max(room - 1, 0 if not picked else _LEAST_WIDTH)))
        if len(text) + 1 > room:
            break
        room -= len(text) + 1
        picked.append((text, len(line)))
    return picked


def _choose(lines: Sequence[Line], room: int) -> list[Line]:
    """The telling lines that fit, the earlier given ones first, but one of each sort before others
    of a sort; in the order of their numbers."""
    width = max(_LEAST_WIDTH, room // 3)
    seen: set[str] = set()
    fresh: list[Line] = []
    same: list[Line] = []
    for line in lines:
        sort = _sort(line.text)
        (same if sort in seen else fresh).append(line)
        seen.add(sort)
    chosen: list[Line] = []
    for line in (*fresh, *same):
        text = clip(quiet(line.text), width)
        cost = len(f"{line.number}: {text}") + 1
        if cost <= room:
            room -= cost
            chosen.append(Line(line.number, text))
    return sorted(chosen, key=lambda line: line.number)


def _sort(text: str) -> str:
    """What a line says, apart from its numbers, its place and its indentation."""
    reason = text.partition(" - ")[2] if text.startswith(("FAILED ", "ERROR ")) else ""
    return " ".join("".join(char for char in reason or text if not char.isdigit()).split())


def _assemble(
    first: Sequence[tuple[str, int]],
    last: Sequence[tuple[str, int]],
    chosen: Sequence[Line],
    skipped: int,
    hollow: int,
    shape: Shape,
    plan: Plan,
    told: int,
    more: bool,
) -> str:
    if not last:
        # Nothing stands between what is left out and the closing brackets: one note for both.
        skipped = hollow = 0
    lines = shape.lines - len(first) - len(last) - skipped
    left = shape.chars - hollow - sum(length for _, length in (*first, *last))
    parts = [text for text, _ in first]
    if chosen:
        parts.append(
            between(shape, plan.what, told, more=more, lines=lines, chars=left, here=len(chosen))
        )
        parts.extend(f"{line.number}: {line.text}" for line in chosen)
        parts.append("[…]")
    elif lines > 0:
        parts.append(note(lines, left, unit_of(shape)))
    parts.extend(text for text, _ in last)
    if skipped:
        parts.append(note(skipped, hollow, unit_of(shape)))
    part = len(first) + len(last) + len(chosen)
    return f"{label(part, shape)}\n" + "\n".join(parts)
