"""Logs: how they begin and end, and the lines that tell of errors, with their numbers."""

from __future__ import annotations

from callslip.handle import Shape
from callslip.limits import TAIL_LINES
from callslip.window.preview.layout import Plan, lay_out
from callslip.window.preview.sample import Sample
from callslip.window.preview.text import edges

__all__ = ["render"]


def render(sample: Sample, shape: Shape, lines: int, chars: int) -> str | None:
    """None for what is no log, or has no lines to lay out, or no errors to show."""
    if sample.look != "log" or shape.by_record or not sample.told:
        return None
    heads, tails = edges(sample, shape)
    if not heads or not tails:
        return None
    plan = Plan(min(lines, 4), min(lines, TAIL_LINES), head_share=30, tail_share=30)
    # The last one matters as much as the first.
    first, last, between = sample.telling[:1], sample.telling[:0:-1][:1], sample.telling[1:-1]
    return lay_out(
        heads, tails, shape, plan, chars, (*first, *last, *between), sample.told, sample.more
    )
