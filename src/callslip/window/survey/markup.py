"""The outline of HTML and Markdown: title, headings with their lines, links. Pure."""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Heading", "MarkupOutline", "looks_like", "markup_of"]

_HEADINGS: Final = 500
_LOOKED: Final = 10_000
_TEXT: Final = 120
_TITLE = re.compile(rb"<title[^>]*>(.{0,500}?)</title", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_SPACE = re.compile(r"\s+")
_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,2000}?-->\s*)*<(?:!doctype html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_MARKDOWN_LINE = re.compile(rb"^(?:#{1,6} \S|```|[*-] \S|\d+\. \S|> |\|.*\|)|\]\(", re.MULTILINE)
_MARKDOWN_HEADING = re.compile(rb"^#{1,6} +\S", re.MULTILINE)
_CODE = re.compile(rb"^#(?:!|include|define|if|pragma)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, its level from 1 and its line from 1."""

    level: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class MarkupOutline:
    """`headings` are the first 500 of `count`; `whole` is False where a part was looked at."""

    mime: str
    title: str
    headings: tuple[Heading, ...]
    count: int
    links: int
    images: int = 0
    tables: int = 0
    code_blocks: int = 0
    whole: bool = True


def looks_like(head: bytes) -> str:
    """`text/html`, `text/markdown` or nothing, by the beginning of a text."""
    head = head[: 16 * 1024].removeprefix(b"\xef\xbb\xbf")
    if _HTML_START.match(head):
        return "text/html"
    if _CODE.search(head):
        return ""
    headings = len(_MARKDOWN_HEADING.findall(head))
    lines = head.count(b"\n") + 1
    marks = len(_MARKDOWN_LINE.findall(head))
    # A comment of a script begins with # too, but nothing else in it looks like Markdown.
    if (
        headings
        and marks > headings
        and marks * 12 >= lines
        and (headings >= 2 or head[:1] == b"#")
    ):
        return "text/markdown"
    return ""


def markup_of(body: bytes, mime: str, whole: bool = True) -> MarkupOutline | None:
    """The outline; None where there is neither a heading nor a title."""
    made = _html(body, whole) if mime == "text/html" else _markdown(body, whole)
    return made if made.headings or made.title else None


def _html(body: bytes, whole: bool) -> MarkupOutline:
    pattern = _compiled(rb"(?i)<h[1-6](?:\s[^>]*)?>")
    headings: list[Heading] = []
    count, line, at = 0, 1, 0
    for match in pattern.finditer(body):
        if count == _LOOKED:
            whole = False
            break
        count += 1
        if len(headings) < _HEADINGS:
            line += body.count(b"\n", at, match.start())
            at = match.start()
            end = body.find(b"</", match.end(), match.end() + 2000)
            # Up to its own end tag: other tags may stand in it.
            while end >= 0 and body[end + 2 : end + 4].lower() != match[0][1:3].lower():
                end = body.find(b"</", end + 2, match.end() + 2000)
            text = _plain(body[match.end() : end]) if end >= 0 else ""
            if text:
                headings.append(Heading(match[0][2] - 48, text, line))
    title = _TITLE.search(body[: 64 * 1024])
    found = _compiled(rb"<(?:[Aa]\s|[Ii][Mm][Gg]\s|[Tt][Aa][Bb][Ll][Ee][\s>])").findall(body)
    tags = Counter(tag[1:2].lower() for tag in found)
    return MarkupOutline(
        mime="text/html",
        title=_plain(title[1]) if title else "",
        headings=tuple(headings),
        count=count,
        links=tags[b"a"],
        images=tags[b"i"],
        tables=tags[b"t"],
        whole=whole,
    )


def _markdown(body: bytes, whole: bool) -> MarkupOutline:
    # A fence hides what looks like a heading inside it.
    pattern = _compiled(rb"(?m)^(?:#{1,6}[ \t]+.*| {0,3}(?:```|~~~).*)")
    headings: list[Heading] = []
    count, line, at, fence, fences = 0, 1, 0, b"", 0
    for number, match in enumerate(pattern.finditer(body)):
        if number == _LOOKED:
            whole = False
            break
        raw = match[0].strip()
        if raw[:1] != b"#":
            if not fence:
                fence, fences = raw[:3], fences + 1
            elif raw[:3] == fence and not raw.strip(fence[:1]):
                fence = b""
            continue
        if fence:
            continue
        count += 1
        if len(headings) < _HEADINGS:
            line += body.count(b"\n", at, match.start())
            at = match.start()
            marks = raw[:7].split(b" ", 1)[0].split(b"\t", 1)[0]
            text = _clean(raw[len(marks) :].strip().rstrip(b"#").decode("utf-8", "replace"))
            if text:
                headings.append(Heading(len(marks), text, line))
    links = body.count(b"](")
    images = len(_compiled(rb"!\[[^\]\n]{0,300}\]\(").findall(body)) if links else 0
    return MarkupOutline(
        mime="text/markdown",
        title="",
        headings=tuple(headings),
        count=count,
        links=links - images,
        images=images,
        code_blocks=fences,
        whole=whole,
    )


def _compiled(pattern: bytes) -> Any:
    import re2  # type: ignore[import-untyped,unused-ignore]

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern, options)


def _plain(raw: bytes) -> str:
    return _clean(html.unescape(_TAG.sub("", raw.decode("utf-8", "replace"))))


def _clean(text: str) -> str:
    # A heading's own link sign says nothing.
    return _SPACE.sub(" ", text).strip().rstrip("¶").strip()[:_TEXT]
