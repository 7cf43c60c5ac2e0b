"""What a look at a whole content finds, where that is no list of records: its outline.

`outline_of` is asked once, when a content is stored; the answer goes into `Sample.outline` and is
all that the preview needs. A kind is a module with a frozen answer and one line below.

What may live here: pure functions of bytes, linear in them. No I/O, no framework.
"""

from __future__ import annotations

from callslip.window.survey.diff import DiffOutline, diff_of, looks_like_diff
from callslip.window.survey.document import DocumentOutline, Part, TextPart, document_of
from callslip.window.survey.markup import MarkupOutline, looks_like, markup_of
from callslip.window.survey.media import MediaFacts, media_of, media_of_base64, mime_of
from callslip.window.survey.parts import step

__all__ = [
    "DiffOutline",
    "DocumentOutline",
    "MarkupOutline",
    "MediaFacts",
    "Outline",
    "Part",
    "TextPart",
    "media_of_base64",
    "outline_of",
    "step",
    "text_mime",
]

Outline = DocumentOutline | DiffOutline | MarkupOutline | MediaFacts


def outline_of(body: bytes, mime: str, *, size: int = 0) -> Outline | None:
    """The outline of a content by its media type; None where there is none to have.

    `body` is all of it, or its beginning where `size` says that there is more: then a JSON text has
    none, and a diff or a page says that it was looked at in part. Linear: 10 MB of JSON take less than 60 ms,
    of a page or a diff less than 100.
    """
    whole = size <= len(body)
    if "json" in mime and "ndjson" not in mime:
        return document_of(body) if whole else None
    if mime == "text/x-diff":
        return diff_of(body, whole)
    if mime in ("text/html", "text/markdown"):
        return markup_of(body, mime, whole)
    if mime.startswith(("image/", "audio/", "video/")) or mime == "application/pdf":
        return media_of(body, size, mime)
    return None


def text_mime(head: bytes) -> str:
    """The media type of a content by its beginning, as far as previews tell types apart: media,
    a diff, HTML or Markdown; empty for the rest (JSON and tables are not looked for)."""
    return mime_of(head) or ("text/x-diff" if looks_like_diff(head) else looks_like(head))
