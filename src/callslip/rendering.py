"""What a stored result is shown as: a function of its row and the settings alone.

What may live here: rows to envelopes and handles.
"""

from __future__ import annotations

from callslip.handle import Handle
from callslip.settings import Settings
from callslip.stacks.ops import Result
from callslip.stacks.saving import name_of
from callslip.stacks.writing import Call, Packing
from callslip.window import envelope, handle_json
from callslip.window.preview import preview

__all__ = ["chosen", "handle_of", "refused", "render", "same", "saved_to"]


def saved_to(row: Result, settings: Settings) -> str:
    """The path of a row's plain file; "" where the store keeps none."""
    folder = settings.plain_folder
    return f"{folder}/{name_of(row)}" if folder and row.payload.key is not None else ""


def render(row: Result, settings: Settings) -> str:
    """The envelope of a row: a function of the row and the settings alone."""
    if row.same_as:
        return same(row, row.same_as, settings)
    status, _, error_type = row.status.partition(" ")
    words, chars = settings.vocabulary, settings.preview_chars
    if settings.style == "json":
        return handle_json.told_as_json(
            row.id,
            row.tool,
            row.shape,
            row.preview,
            status=status,
            vocabulary=words,
            preview_chars=chars,
            saved_to=saved_to(row, settings),
        )
    kept = row.preview
    return envelope.stored(
        row.id,
        row.tool,
        row.shape,
        handle_json.as_text(kept) if handle_json.is_json(kept) else kept,
        status=status,
        error_type=error_type,
        vocabulary=words,
        preview_chars=chars,
        saved_to=saved_to(row, settings),
    )


def same(row: Result, first: str, settings: Settings) -> str:
    """The line that stands for content which was shown before, as `first`."""
    words, path = settings.vocabulary, saved_to(row, settings)
    if settings.style == "json":
        return handle_json.same_as_json(row.id, row.shape, first, vocabulary=words, saved_to=path)
    return envelope.same_as(row.id, row.tool, row.shape, first, vocabulary=words, saved_to=path)


def refused(
    reason: str, text: str, call: Call, settings: Settings, chars: int | None = None
) -> str:
    """What a model gets of a result that could not be stored."""
    if settings.style == "json":
        return handle_json.refused_json(reason, text, chars, tool=call.tool)
    return envelope.refused(reason, text, tool=call.tool, status=call.status, chars=chars)


def chosen(packing: Packing, call: Call, settings: Settings) -> str:
    """The preview of a content, as it is kept with its row."""
    lines, chars = settings.preview_lines, settings.preview_chars
    profile = packing.sample.profile
    if settings.style == "json" and profile is not None and profile.fields:
        return handle_json.handle_json(
            handle_json.ANY_ID,
            call.tool,
            packing.seen,
            packing.sample,
            status=call.status.partition(" ")[0],
            vocabulary=settings.vocabulary,
            lines=lines,
            preview_chars=chars,
        )
    return preview(packing.sample, packing.seen, lines, chars)


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
        saved_to=saved_to(row, settings),
    )
