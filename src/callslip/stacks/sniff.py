"""What kind of content some bytes are, from their first 64 KiB.

`sniff` looks at the head, as a put that streams has to; `settle` looks again where the whole is at
hand, and takes back what the head only promised. Both are guesses for the reader's convenience: the
bytes are stored and served the same, whatever they say.

What may live here: recognising by looks. No parsing beyond a check, no conversion.
"""

from __future__ import annotations

import csv
import json
import re
from typing import Final

from callslip.handle import Kind, Source
from callslip.stacks.records import HEAD_BYTES, ArrayScanner
from callslip.stacks.valid import is_json

__all__ = ["delimiter", "settle", "sniff"]

_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"ARROW1\x00\x00", "application/vnd.apache.arrow.file"),
)
_BOM = "\ufeff"
_LOG_LINE = re.compile(
    r"^\W{0,2}(?:(?:[\w.-]+:? )?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}"
    r"|(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
    r"|\[ *\d+\.\d{3,}\]|\d{10}(?:\.\d+)? )"
)
_MARKDOWN = re.compile(
    r"^(?:#{1,6} \S|```|[-*] \S|\d+\. \S|> \S|\|.*\|$)|\[[^\]]+\]\([^)\s]+\)", re.MULTILINE
)
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:!doctype html|html[\s>])",
    re.IGNORECASE | re.DOTALL,
)
_DIFF = re.compile(r"^(?:diff --git a/|--- [^\n]+\n\+\+\+ [^\n]+\n@@ -\d)", re.MULTILINE)


def sniff(head: bytes, source: Source, form: str) -> tuple[Kind, str]:
    """Kind and MIME type of a content, from its first `HEAD_BYTES` (or all of it, if shorter)."""
    head = head[:HEAD_BYTES]
    if form in ("json", "python", "pandas", "polars", "arrow"):
        return ("rows" if _opens_rows(head) else "document"), "application/json"
    if form == "items":
        return "rows", "application/x-ndjson"
    if source == "bytes":
        mime = _magic(head)
        if mime:
            return "media", mime
    text = head.decode("utf-8", "replace").removeprefix(_BOM)
    opening = text.lstrip()[:1]
    if opening in ("{", "["):
        found = _json(head, text)
        if found:
            return found
    return _text(text, source, head)


def settle(kind: Kind, mime: str, body: bytes) -> tuple[Kind, str]:
    """Kind and MIME type once the whole is known: JSON that is not valid is text, and rows are rows
    to the last element."""
    if mime != "application/json":
        return kind, mime
    text = body.removeprefix(b"\xef\xbb\xbf")
    try:
        valid = is_json(text)
    except RecursionError:
        return kind, mime  # deeper than a parser goes; it does look like JSON
    if not valid:
        return _text(body[:HEAD_BYTES].decode("utf-8", "replace"), "str", body[:HEAD_BYTES])
    if kind == "rows":
        scanner = ArrayScanner()
        scanner.feed(body)
        scanner.finish()
        if scanner.complete and not scanner.objects:
            return "document", mime
    return kind, mime


def _magic(head: bytes) -> str:
    for magic, mime in _MAGIC:
        if head.startswith(magic) and (magic != b"BM" or b"\x00" in head[:16]):
            return mime
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/avi"}.get(
            head[8:12], ""
        )
    if head[4:8] == b"ftyp":
        return "image/avif" if head[8:12] in (b"avif", b"avis") else "video/mp4"
    return ""


def _opens_rows(head: bytes) -> bool:
    return re.match(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{", head) is not None


def _json(head: bytes, text: str) -> tuple[Kind, str] | None:
    lines = text.split("\n")
    whole = len(head) < HEAD_BYTES
    # One JSON object a line, at least two of them: NDJSON. The last may be cut.
    full = [line for line in (lines if whole else lines[:-1]) if line.strip()]
    if text.lstrip()[:1] == "{" and len(full) >= 2 and all(map(_is_object, full[:20])):
        return "rows", "application/x-ndjson"
    if _opens_rows(head):
        scanner = ArrayScanner()
        scanner.feed(head)
        # Whether it is an array is seen at its first record; a record longer than the head is one.
        if not scanner.failed and (scanner.records or not whole):
            return ("rows" if scanner.objects else "document"), "application/json"
        return None
    if whole:
        try:
            valid = is_json(head.removeprefix(b"\xef\xbb\xbf"))
        except RecursionError:
            valid = True
        return ("document", "application/json") if valid else None
    start = text.lstrip()
    after = start[1:].lstrip()[:1]
    looks = after in ('"', "}") if start[0] == "{" else after in '"[]{-0123456789tfn'
    if looks and _runs_on(start):
        return "document", "application/json"
    return None


def _runs_on(start: str) -> bool:
    """Whether a text that is cut is JSON up to the cut: the decoder fails only at its end."""
    try:
        json.loads(start)
    except json.JSONDecodeError as error:
        # An unfinished string is reported where it begins.
        return error.pos >= len(start) - 64 or error.msg.startswith("Unterminated string")
    except (RecursionError, ValueError):
        return True
    return True


def _is_object(line: str) -> bool:
    if not line.lstrip().startswith("{"):
        return False
    try:
        return is_json(line.encode("utf-8", "surrogatepass"))
    except RecursionError:
        return False


def _text(text: str, source: Source, head: bytes) -> tuple[Kind, str]:
    if source == "bytes" and head.count(b"\x00") > len(head) // 100:
        return "text", "application/octet-stream"
    if _HTML.match(text):
        return "text", "text/html"
    if _DIFF.search(text):
        return "text", "text/x-diff"
    lines = text.split("\n")[:200]
    filled = [line for line in lines if line.strip()]
    if sum(map(bool, map(_LOG_LINE.match, filled))) * 2 > len(filled) >= 2:
        return "text", "text/x-log"
    mime = _table(text, len(head) < HEAD_BYTES)
    if mime:
        return "rows", mime
    headings = len(_HEADING.findall(text))
    # Half of it headings: those are comments, of a shell script or a list.
    if 0 < headings * 2 < text.count("\n") + 2 and len(_MARKDOWN.findall(text)) >= headings + 2:
        return "text", "text/markdown"
    return "text", "text/plain"


def _table(text: str, whole: bool) -> str:
    """`text/csv` or `text/tab-separated-values` for a table with a header; "" for anything else."""
    mark = _mark(text, whole)
    return mark and ("text/tab-separated-values" if mark == "\t" else "text/csv")


def delimiter(head: bytes) -> str:
    """What stands between the cells of a CSV or TSV table with a header; "" for anything else."""
    head = head[:HEAD_BYTES]
    return _mark(head.decode("utf-8", "replace").removeprefix(_BOM), len(head) < HEAD_BYTES)


def _mark(text: str, whole: bool) -> str:
    first = text.split("\n", 1)[0]
    for mark in ("\t", ",", ";"):
        if first.count(mark) < 1:
            continue
        try:
            rows = list(csv.reader(text[:16384].splitlines(keepends=True), delimiter=mark))
        except csv.Error:
            continue
        if not whole or len(text) > 16384:
            rows = rows[:-1]  # the last one may be cut
        rows = [row for row in rows if row]
        if len(rows) >= 3 and _header(rows[0]) and all(len(row) == len(rows[0]) for row in rows):
            return mark
    return ""


def _header(cells: list[str]) -> bool:
    names = [cell.strip() for cell in cells]
    return (
        len(names) >= 2
        and len(set(names)) == len(names)
        and sum(map(bool, names)) >= len(names) - 1
        and all(len(name) <= 64 and name.count(" ") <= 6 for name in names)
        and re.fullmatch(r"[-+\d.eE%]+", names[0] or names[1]) is None
    )
