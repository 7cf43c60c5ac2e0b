"""Plain text, and whatever no other module claims: first lines, last lines, an exact note between."""

from __future__ import annotations

import itertools
import json

from callslip.handle import Shape
from callslip.limits import TAIL_LINES
from callslip.window.preview.layout import Plan, cut_text, lay_out
from callslip.window.preview.parts import split_lines
from callslip.window.preview.sample import Sample

__all__ = ["edges", "render"]


def render(sample: Sample, shape: Shape, lines: int, chars: int) -> str:
    """Head and tail by lines; by characters where the lines are too long to be of use."""
    heads, tails = edges(sample, shape)
    if not heads or (not sample.whole and not tails and not shape.by_record):
        return cut_text(sample.head, sample.tail, shape, chars)
    if shape.lines == 1 or (shape.lines <= 3 and shape.chars > chars):
        return cut_text(sample.head, sample.tail, shape, chars)
    return lay_out(heads, tails, shape, Plan(lines, TAIL_LINES), chars)


def edges(sample: Sample, shape: Shape) -> tuple[list[str], list[str]]:
    """The content's first and last lines (records where a line is one), as far as they are whole."""
    if shape.by_record:
        return _records(sample, shape)
    if sample.whole:
        lines = split_lines(sample.head)
        return lines, lines
    heads = split_lines(sample.head)
    if heads and not heads[-1].endswith("\n"):
        heads.pop()
    return heads, split_lines(sample.tail)[1:]


def _records(sample: Sample, shape: Shape) -> tuple[list[str], list[str]]:
    """The first records of an array, and its last one: line k runs up to where record k+1 starts."""
    text, decode = sample.head, json.JSONDecoder().raw_decode
    at = text.find("[") + 1
    starts: list[int] = []
    complete = False
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text) or text[at] == "]":
            complete = sample.whole
            break
        try:
            _, end = decode(text, at)
        except (ValueError, RecursionError):
            break
        starts.append(at)
        at = end
    cuts = [0, *starts[1:], *([len(text)] if complete else [])]
    heads = [text[a:b] for a, b in itertools.pairwise(cuts)]
    if complete:
        return heads, heads
    # From the end: the object after which only the closing bracket is left is the last record.
    end_text = sample.tail or text
    for back in range(64):
        at = len(end_text) if back == 0 else at
        at = end_text.rfind("{", 0, at)
        if at < 0:
            break
        try:
            _, end = decode(end_text, at)
        except (ValueError, RecursionError):
            continue
        if end_text[end:].strip() == "]":
            return heads, [end_text[at:]]
    return heads, []
