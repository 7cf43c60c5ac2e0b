"""HTML and Markdown: the title and the headings with their lines, and what else there is."""

from __future__ import annotations

from callslip.handle import Shape
from callslip.window.preview.parts import counted, cut, fits, quiet
from callslip.window.preview.sample import Sample
from callslip.window.survey import MarkupOutline
from callslip.window.survey.markup import Heading, markup_of

__all__ = ["render"]

_NAMES = {"text/html": "HTML", "text/markdown": "Markdown"}
_TEXT = 90


def render(sample: Sample, shape: Shape, lines: int, chars: int) -> str | None:
    """None for what is neither, has no headings, or is short enough to be shown as it is."""
    if shape.mime not in _NAMES or fits(sample.whole, shape, lines, chars):
        return None
    known = sample.outline
    if known is None:
        raw = sample.head.encode("utf-8", "surrogatepass")
        known = markup_of(raw, shape.mime, sample.whole)
    if not isinstance(known, MarkupOutline) or (known.count < 2 and not known.title):
        return None
    more = "" if known.whole else "over "
    label = f"an outline of {_NAMES[shape.mime]}, {more}{counted(known.count, 'heading')}"
    made: list[str] = []
    if known.title:
        made.append(f"title: {cut(known.title, 160)}")
    facts = [
        counted(number, unit)
        for number, unit in (
            (known.links, "link"),
            (known.images, "image"),
            (known.tables, "table"),
            (known.code_blocks, "code block"),
        )
        if number
    ]
    if facts:
        made.append(f"{', '.join(facts)}{'' if known.whole else ', in the part looked at'}")
    room = chars - len(label) - 1 - sum(len(line) + 1 for line in made)
    made += _headings(known, max(lines, 1), room)
    return "\n".join([label, *(quiet(line) for line in made)])


def _headings(known: MarkupOutline, most: int, room: int) -> list[str]:
    """The headings of the upper levels, as many levels as fit whole; else the first ones, and how
    many are left out."""
    title = "Headings, by line:"
    headings = list(known.headings)
    for deepest in range(6, 0, -1):
        kept = [heading for heading in headings if heading.level <= deepest]
        cost = sum(len(_line(heading, 1)) + 1 for heading in kept)
        if len(kept) <= most and cost + len(title) + 60 <= room and len(kept) >= 3:
            break
    else:
        kept = headings
    top = min((heading.level for heading in kept), default=1)
    made = [title]
    room -= len(title) + 1 + 60
    for heading in kept:
        line = _line(heading, top)
        if len(made) > most or len(line) + 1 > room:
            break
        made.append(line)
        room -= len(line) + 1
    left = known.count - (len(made) - 1)
    if len(made) == 1:
        return []
    if left > 0:
        more = "" if known.whole else "over "
        made.append(f"[… {more}{counted(left, 'heading')} left out …]")
    return made


def _line(heading: Heading, top: int) -> str:
    return f"{heading.line}: {'  ' * (heading.level - top)}{cut(heading.text, _TEXT)}"
