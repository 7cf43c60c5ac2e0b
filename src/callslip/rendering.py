"""What a stored result is shown as: a function of its row and the settings alone.

What may live here: rows to envelopes and handles.
"""

from __future__ import annotations

from callslip.handle import Handle
from callslip.settings import Settings
from callslip.stacks.ops import Result
from callslip.window import envelope

__all__ = ["handle_of", "render"]


def render(row: Result, settings: Settings) -> str:
    """The envelope of a row: a function of the row and the settings alone."""
    if row.same_as:
        return envelope.same_as(
            row.id, row.tool, row.shape, row.same_as, vocabulary=settings.vocabulary
        )
    status, _, error_type = row.status.partition(" ")
    return envelope.stored(
        row.id,
        row.tool,
        row.shape,
        row.preview,
        status=status,
        error_type=error_type,
        vocabulary=settings.vocabulary,
        preview_chars=settings.preview_chars,
    )


def handle_of(row: Result, settings: Settings) -> Handle:
    """The handle that a row is shown as."""
    return Handle(
        id=row.id,
        tool=row.tool,
        shape=row.shape,
        created_at=row.created_at,
        args=row.args,
        status=row.status,
        same_as=row.same_as,
        envelope=render(row, settings),
    )
