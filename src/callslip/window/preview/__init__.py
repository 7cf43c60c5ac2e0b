"""One chosen preview for each kind of content: what a reader would look at first.

A kind is a module with `render(sample, shape, lines, chars) -> str | None` and one line below: the
first that does not answer None has chosen.

What may live here: the sample, the previews of it and what they share. Pure: no I/O, no framework.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from callslip.handle import Shape
from callslip.limits import PREVIEW_CHARS, PREVIEW_LINES
from callslip.window.policy import ends, omission
from callslip.window.preview import diff, document, log, media, outline, rows, runs, text
from callslip.window.preview.parts import quiet, without_base64
from callslip.window.preview.sample import Line, Sample, Sampler

__all__ = ["Line", "Sample", "Sampler", "own", "preview"]

_COUNT = re.compile(r"[\d,]*\d")
_CHOICES: tuple[Callable[[Sample, Shape, int, int], str | None], ...] = (
    media.render,
    rows.render,
    document.render,
    diff.render,
    outline.render,
    runs.render,
    log.render,
    text.render,
)


def preview(
    sample: Sample, shape: Shape, lines: int = PREVIEW_LINES, chars: int = PREVIEW_CHARS
) -> str:
    """The preview, `chars` characters at the most, notes included.

    Its first line says how small a part is shown (`20 of 1,503 lines`), for the envelope's opening
    tag; the rest is the excerpt, inert. `lines` bounds the lines of the head.
    """
    for render in _CHOICES:
        made = render(sample, shape, lines, chars)
        if made is not None:
            return _guarded(made)[: max(chars, 0)]
    return ""


def own(made: str, chars: int = PREVIEW_CHARS) -> str:
    """A text of the caller's as a preview: one that a tool brought along, or a failed call's.

    Inert and under the cap, its two ends where it is longer. No label where all of it is shown.
    """
    text = without_base64(quiet(made))
    longest = len(f"{len(text):,} of {len(text):,} characters\n")
    head, tail, left = ends(text, max(chars - longest, 0))
    if not left:
        return "\n" + head
    label = f"{len(head) + len(tail):,} of {len(text):,} characters"
    return f"{label}\n{head}{omission(left)}{tail}"[: max(chars, 0)]


def _guarded(made: str) -> str:
    label, line, body = made.partition("\n")
    short = without_base64(body)
    if short == body:
        return made
    if label.startswith("all "):
        # No longer all of it, then.
        label = f"{label.removeprefix('all ')}, long words cut"
    elif label.endswith(" characters"):
        label = _COUNT.sub(
            lambda found: f"{_number(found[0]) - len(body) + len(short):,}", label, 1
        )
    return label + line + short


def _number(text: str) -> int:
    return int(text.replace(",", ""))
