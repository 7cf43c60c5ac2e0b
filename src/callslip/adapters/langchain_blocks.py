"""What is in a content block of a message: text, media, or anything else. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_MEDIA = frozenset({"image", "image_url", "audio", "input_audio", "video", "media"})


@dataclass(frozen=True, slots=True)
class Encoded:
    """A picture, a sound or a file that stands in a block itself, as base64."""

    data: str

    def raw(self) -> bytes | None:
        """The bytes; None if it is no base64 after all."""
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            return None


def text_in(block: Any) -> str | None:
    """The text of a text block, of whatever provider; None for any other."""
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) and block.get("type") not in _MEDIA else None


def with_text(block: Any, text: str) -> Any:
    """The same block with another text; its other fields stay."""
    return text if isinstance(block, str) else {**block, "text": text}


def is_media(block: Any) -> bool:
    """Whether a model sees a block as a picture, a sound or a file, inline or by reference."""
    return isinstance(block, dict) and (
        block.get("type") in _MEDIA
        or (block.get("type") in ("file", "document") and text_in(block) is None)
        and not _text_source(block)
    )


def encoded(block: Any) -> Encoded | None:
    """The inline data of a media block in the forms of LangChain, OpenAI and Anthropic."""
    if not is_media(block):
        return None
    places = [block]
    for name in ("source", "image_url", "file", "input_audio"):
        place = block.get(name)
        places.append(place if isinstance(place, dict) else {"url": place})
    for place in places:
        for key in ("data", "base64", "url", "file_data"):
            data = place.get(key)
            if isinstance(data, str) and (key in ("data", "base64") or data.startswith("data:")):
                return Encoded(data.partition(",")[2] if data.startswith("data:") else data)
    return None


def joined(texts: Sequence[str]) -> str | list[str]:
    """Several texts as one value: a line each where each is one line, else a list of them."""
    return list(texts) if any("\n" in text for text in texts[:-1]) else "\n".join(texts)


def _text_source(block: dict[str, Any]) -> bool:
    source = block.get("source")
    return isinstance(source, dict) and source.get("type") in ("text", "content")
