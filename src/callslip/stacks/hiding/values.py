"""What may be shown of what is at hand whole: a content, a text, a value. Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from callslip.stacks.content import Content, canonical, is_stream
from callslip.stacks.hiding.masker import Mask, Masker

__all__ = ["shown_content", "shown_text", "shown_value"]


def shown_content(mask: Mask | None, content: Content) -> Content:
    """The content as a model may see it."""
    if mask is None:
        return content
    body = content.body
    masker = Masker(mask, body, content.source, content.form, body)
    shown = masker.add(body) + masker.finish()
    return replace(content, body=shown, twin=None) if masker.changed else content


def shown_text(mask: Mask | None, text: str) -> str:
    """A text, JSON or not, as a model may see it."""
    return text if mask is None else shown_content(mask, canonical(text)).text


def shown_value(mask: Mask | None, value: Any) -> Any:
    """A value as a function may see it whose outcome a model reads: the value itself where nothing
    of it is masked, else what its JSON view holds, or its text. Nothing of a stream, which is not
    there yet: None."""
    if mask is None:
        return value
    if is_stream(value):
        return None
    content = canonical(value)
    shown = shown_content(mask, content)
    if shown is content:
        return value
    try:
        return shown.text if content.form in ("str", "bytes") else json.loads(shown.text)
    except ValueError:
        return shown.text
