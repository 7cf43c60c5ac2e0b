"""Test runs and tracebacks: the failures and the summary, which stand at the end, get the room."""

from __future__ import annotations

import re

from callslip.handle import Shape
from callslip.window.preview.layout import Plan, lay_out
from callslip.window.preview.sample import Line, Sample
from callslip.window.preview.text import edges

__all__ = ["render"]

_CRASH = re.compile(
    r"^(?:Traceback \(most recent call last\):|panic: |goroutine \d+ \[|thread '.*' panicked at "
    r"|Exception in thread |Caused by: |    at \S+ ?\(.*:\d+|\tat [\w.$]+\(|  File \".*\", line \d+)",
    re.MULTILINE,
)
_CRASH_LINE = re.compile(
    r"^(?:(?:Uncaught |Exception in thread .* |Caused by: )?(?:[\w$]+[.:]{1,2})*\w*"
    r"(?:Error|Exception|Interrupt|Exit)(?::.*)?|panic: .*|thread '.*' panicked at .*)$"
)
_PYTEST_END = re.compile(r"^=* ?\d+ (?:failed|passed|error|skipped|warning)s?\b.* in [\d.]+s")
_TAIL_CHARS = 6_000


def render(sample: Sample, shape: Shape, lines: int, chars: int) -> str | None:
    """None for what is neither a test run with failures nor ends in a traceback."""
    if shape.by_record or shape.kind != "text":
        return None
    heads, tails = edges(sample, shape)
    if not heads or not tails:
        return None
    if sample.look == "tests":
        if not sample.told:
            return None
        telling = _causes(sample.telling)
        plan = Plan(min(lines, 3), min(lines, 12), 12, 50, "tell of failures")
        if tails and _PYTEST_END.match(tails[-1]):
            plan = Plan(min(lines, 1), 1, 12, 20, "tell of failures")
            telling = _with_summary(telling, _numbered(tails, shape))
        return lay_out(heads, tails, shape, plan, chars, telling, sample.told, sample.more)
    if sample.look == "plain" and _CRASH.search((sample.tail or sample.head)[-_TAIL_CHARS:]):
        telling = _crash_lines(tails, shape)
        plan = Plan(min(lines, 5), min(lines, 15), 20, 60)
        return lay_out(heads, tails, shape, plan, chars, telling, len(telling))
    return None


def _causes(telling: tuple[Line, ...]) -> list[Line]:
    """Without the further lines of one failure's own report: its first line says what it is."""
    kept: list[Line] = []
    before = Line(-1, "")
    for line in telling:
        # A report may hold an empty line or two of its own.
        near = line.number <= before.number + 3
        if not (near and line.text[:2] == before.text[:2] == "E "):
            kept.append(line)
        before = line
    return kept


def _with_summary(causes: list[Line], tail: list[Line]) -> list[Line]:
    """The failed tests by name, two of them for each cause: which, and why."""
    named = [line for line in tail if line.text.startswith(("FAILED ", "ERROR "))]
    numbers = {line.number for line in named}
    causes = [line for line in causes if line.number not in numbers]
    mixed: list[Line] = []
    for at in range(max(len(causes), (len(named) + 1) // 2)):
        mixed += [*named[2 * at : 2 * at + 2], *causes[at : at + 1]]
    return mixed


def _crash_lines(tails: list[str], shape: Shape) -> list[Line]:
    return [line for line in _numbered(tails, shape)[-200:] if _CRASH_LINE.match(line.text)]


def _numbered(tails: list[str], shape: Shape) -> list[Line]:
    first = shape.lines - len(tails) + 1
    return [Line(first + at, line.rstrip("\r\n")) for at, line in enumerate(tails)]
