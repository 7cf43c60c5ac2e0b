"""What an image, a PDF or a sound is, from its bytes: type, dimensions, pages, duration. Pure."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from dataclasses import dataclass
from typing import Final

__all__ = ["MediaFacts", "media_of", "media_of_base64", "mime_of"]

_HEAD: Final = 64 * 1024
_STREAMS: Final = 200
_STREAM_BYTES: Final = 1024 * 1024
_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
)
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_OBJECTS = re.compile(rb"/Type\s*/ObjStm\b.{0,200}?stream\r?\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MediaFacts:
    """What was found; 0 stands for what is not known. `size` is in bytes, `seconds` of sound."""

    mime: str
    size: int
    width: int = 0
    height: int = 0
    pages: int = 0
    seconds: float = 0.0


def mime_of(head: bytes) -> str:
    """The media type by the first bytes; empty for what is not known as media."""
    for signature, mime in _SIGNATURES:
        if head.startswith(signature):
            return mime
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}.get(
            head[8:12], ""
        )
    if head[:2] == b"BM" and head[6:10] == b"\0\0\0\0" and len(head) >= 26:
        return "image/bmp"
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        return (
            "image/avif" if brand == b"avif" else "image/heic" if brand == b"heic" else "video/mp4"
        )
    return ""


def media_of(body: bytes, size: int = 0, mime: str = "") -> MediaFacts | None:
    """The facts of a media content, from all of it or its beginning; None where it is none.

    `size` is that of the whole, if `body` is not all of it; `mime` what it was said to be.
    """
    size = size or len(body)
    mime = mime_of(body[:32]) or mime
    if not mime:
        return None
    whole = size == len(body)
    width = height = pages = 0
    seconds = 0.0
    if mime == "image/png" and body[12:16] == b"IHDR":
        width, height = _big(body[16:20]), _big(body[20:24])
    elif mime == "image/gif":
        width, height = _little(body[6:8]), _little(body[8:10])
    elif mime == "image/bmp":
        # A negative height says that the first row is the uppermost.
        width, height = _signed(body[18:22]), abs(_signed(body[22:26]))
    elif mime == "image/jpeg":
        width, height = _jpeg(body)
    elif mime == "image/webp":
        width, height = _webp(body)
    elif mime == "application/pdf":
        pages = _pages(body) if whole else 0
    elif mime == "audio/wav":
        seconds = _wav(body, size)
    return MediaFacts(mime, size, width, height, pages, seconds)


def media_of_base64(text: str, chars: int = 0) -> MediaFacts | None:
    """The facts of base64 text, perhaps with `data:…;base64,` before it; None where it holds no
    media. `text` may be the beginning of `chars` characters; `size` is that of the decoded bytes."""
    chars = chars or len(text)
    said = ""
    if text[:5] == "data:":
        before, comma, text = text.partition(",")
        if not comma or not before.endswith(";base64"):
            return None
        said = before[5:].split(";", 1)[0]
        chars -= len(before) + 1
    padding = 2 if text.endswith("==") else 1 if text.endswith("=") else 0
    head = text[:_HEAD].rstrip("=")
    head = head[: len(head) // 4 * 4].replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(head, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not said and not mime_of(raw):
        return None
    return media_of(raw, size=max(chars * 3 // 4 - padding, len(raw)), mime=said)


def _big(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def _jpeg(body: bytes) -> tuple[int, int]:
    at = 2
    # Segment by segment, to the one that starts a frame.
    while at + 9 <= len(body) and body[at] == 0xFF:
        marker = body[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in (0xC4, 0xC8, 0xCC) or not 0xC0 <= marker <= 0xCF:
            at += 2 + max(_big(body[at + 2 : at + 4]), 2)
        else:
            return _big(body[at + 7 : at + 9]), _big(body[at + 5 : at + 7])
    return 0, 0


def _webp(body: bytes) -> tuple[int, int]:
    kind = body[12:16]
    if kind == b"VP8 " and body[23:26] == b"\x9d\x01\x2a":
        return _little(body[26:28]) & 0x3FFF, _little(body[28:30]) & 0x3FFF
    if kind == b"VP8L" and body[20:21] == b"\x2f":
        bits = _little(body[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X" and len(body) >= 30:
        return _little(body[24:27]) + 1, _little(body[27:30]) + 1
    return 0, 0


def _pages(body: bytes) -> int:
    """Pages of a PDF: where they are described in the open, or else in its packed objects."""
    pages = len(_PAGE.findall(body))
    if pages:
        return pages
    for at, found in enumerate(_OBJECTS.finditer(body)):
        if at == _STREAMS:
            return 0
        try:
            # Bounded: a few bytes may unpack to very many.
            raw = zlib.decompressobj().decompress(body[found.end() :], _STREAM_BYTES)
        except zlib.error:
            continue
        pages += len(_PAGE.findall(raw))
    return pages


def _wav(body: bytes, size: int) -> float:
    at, rate = 12, 0
    while at + 8 <= len(body):
        name, length = body[at : at + 4], _little(body[at + 4 : at + 8])
        if name == b"fmt ":
            rate = _little(body[at + 16 : at + 20])
        elif name == b"data":
            # A stream's header may claim more than there is.
            return min(length, size - at - 8) / rate if rate else 0.0
        at += 8 + length + length % 2
    return 0.0
