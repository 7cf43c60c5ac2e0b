"""What every preview is made of: exact pieces of the text, notes of what lies between, a cap."""

from __future__ import annotations

import re

from callslip.handle import Shape
from callslip.limits import TAIL_LINES
from callslip.window.inert import inert, shown
from callslip.window.survey.media import media_of_base64

__all__ = [
    "BASE64_CHARS",
    "between",
    "clip",
    "counted",
    "cut",
    "fits",
    "is_hollow",
    "label",
    "label_all",
    "mostly_hollow",
    "note",
    "quiet",
    "split_lines",
    "unit_of",
    "without_base64",
]

BASE64_CHARS = 64
"""No preview shows more characters of base64 in a row."""

# Wrapped as mail has it, too: whole lines of one width, with the line ends of text or of JSON.
_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{60,}(?:(?:\r?\n|(?:\\r)?\\n)[A-Za-z0-9+/]{60,})+"
    r"(?:(?:\r?\n|(?:\\r)?\\n)[A-Za-z0-9+/]{1,76}={0,2}(?![A-Za-z0-9+/=]))?"
    r"|[A-Za-z0-9+/_-]{65,}={0,2}"
)
_BASE64_HEAD = 32

_HOLLOW = frozenset(" \t\r\n[]{}(),;:\"'")


def split_lines(text: str) -> list[str]:
    """The lines of `text`, ends kept; a line ends in a newline and in nothing else."""
    lines = text.split("\n")
    ended = [line + "\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def clip(line: str, width: int) -> str:
    """`line` without its end, in `width` characters: its head, an exact count, some of its tail."""
    line = line.rstrip("\r\n")
    if len(line) <= width:
        return line
    widest = len(f"[…{len(line):,} characters…]")
    room = max(width - widest, 0)
    tail = room // 4
    head = room - tail
    middle = f"[…{len(line) - head - tail:,} characters…]"
    return (line[:head] + middle + (line[-tail:] if tail else ""))[: max(width, 0)]


def note(lines: int, chars: int, unit: str = "line") -> str:
    """What is left out here, exactly, on a line of its own."""
    if lines > 0:
        return f"[… {counted(lines, unit)}, {counted(chars, 'character')} left out …]"
    return f"[… {counted(chars, 'character')} left out …]"


def between(
    shape: Shape,
    what: str,
    told: int,
    *,
    more: bool = True,
    lines: int = 0,
    chars: int = 0,
    here: int = 0,
) -> str:
    """The note above telling lines. Without the counts it is as long as it can get."""
    lines, chars, here = lines or shape.lines, chars or shape.chars, here or told
    what = what.replace("tell ", "tells ", 1) if told == 1 else what
    tell = f"{'over ' if more else ''}{counted(told, 'line')} {what}, {here:,} of them:"
    return f"[… {counted(lines, 'line')}, {counted(chars, 'character')} between; {tell}]"


def label(part: int, shape: Shape, *, chars: int | None = None) -> str:
    """How small a part is shown: `20 of 1,503 lines`, or characters where a line is cut."""
    excerpt = "an excerpt of JSON, " if "json" in shape.mime else ""
    if chars is not None:
        return f"{excerpt}{chars:,} of {shape.chars:,} characters"
    return f"{excerpt}{part:,} of {counted(shape.lines, unit_of(shape))}"


def label_all(shape: Shape) -> str:
    """The label of what is shown whole: `all 12 lines`."""
    return f"all {counted(shape.lines, unit_of(shape))}"


def unit_of(shape: Shape) -> str:
    """What a line of this content is called."""
    return "record" if shape.by_record else "line"


def quiet(text: str) -> str:
    """Content as it may stand in a preview: valid, and unable to imitate our tags and notes."""
    return inert(shown(text))


def fits(whole: bool, shape: Shape, lines: int, chars: int) -> bool:
    """Whether a content is so short that it is shown as it is, whatever its kind."""
    if not whole or shape.lines > lines + TAIL_LINES:
        return False
    # Lines may be left out, so there must be room for the notes; of one line there is but one.
    notes = 2 * len(between(shape, "", 0)) + 80 if shape.lines > 1 else 20
    return shape.chars + notes <= chars


def is_hollow(line: str) -> bool:
    """True for a line that closes brackets and says nothing."""
    return _HOLLOW.issuperset(line)


def mostly_hollow(text: str) -> bool:
    """True where more than half of the characters are brackets and blanks."""
    return sum(text.count(char) for char in " \t\r\n[]{}(),") * 2 > len(text)


def cut(text: str, width: int) -> str:
    """`text` on one line, in `width` characters; what is cut ends in `…`."""
    if len(text) > width:
        text = text[: max(width - 1, 0)] + "…" if width > 0 else ""
    return text.replace("\r", " ").replace("\n", " ")


def without_base64(text: str) -> str:
    """`text` with long runs of base64 (keys, hashes and paths without a dot may be such, too)
    shortened to their beginning and an exact count. It gets shorter by each of them."""
    return _BASE64.sub(_shortened, text)


def _shortened(found: re.Match[str]) -> str:
    run = found[0]
    media = media_of_base64(run.rstrip("="))
    if media is not None:
        pixels = f" {media.width}x{media.height} pixels" if media.width else ""
        told = f"[{media.mime}{pixels}]"
        if len(told) <= _BASE64_HEAD:
            # What it is says more than how it begins.
            return f"{told}[…{len(run):,} characters…]"
    return f"{run[:_BASE64_HEAD]}[…{len(run) - _BASE64_HEAD:,} characters…]"


def counted(number: int, unit: str) -> str:
    """`1 line`, `1,503 lines`."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"
