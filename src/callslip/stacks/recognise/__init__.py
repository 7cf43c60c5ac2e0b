"""What a content is, and where its records are: the one thing that is asked while it is packed.

A format is a class in a module of its own and one branch in `recognise`.

What may live here: pure, linear in the content; streams in bounded memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from callslip.handle import Source
from callslip.stacks.recognise.base import Recogniser, bounded_names
from callslip.stacks.recognise.documents import About, about, transposed
from callslip.stacks.recognise.lists import Array, InnerList, Known, Lines, open_list
from callslip.stacks.recognise.media import holds_base64, opens_base64
from callslip.stacks.recognise.tables import Table, row_objects
from callslip.stacks.records import HEAD_BYTES, ArrayScanner
from callslip.stacks.sniff import delimiter, settle, sniff

__all__ = [
    "LOOKED_INTO_BYTES",
    "Inner",
    "Recogniser",
    "holds_base64",
    "inner_of",
    "opens_base64",
    "recognise",
    "row_objects",
    "transposed",
]

LOOKED_INTO_BYTES: Final = 64 * 1024 * 1024
"""A document that is larger is recognised as a stream is, by its head."""


def recognise(head: bytes, source: Source, form: str, whole: bytes | None = None) -> Recogniser:
    """The recogniser of a content. `head` is its first `HEAD_BYTES` or more; `whole` all of it,
    where that is in memory: then lists inside documents and texts inside them are found for sure.
    """
    kind, mime = sniff(head[:HEAD_BYTES], source, form)
    if whole is not None and len(whole) > LOOKED_INTO_BYTES:
        whole = None
    text = head[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if mime == "application/x-ndjson":
        return Lines(head[:HEAD_BYTES])
    if mime in ("text/csv", "text/tab-separated-values"):
        return Table(head[:HEAD_BYTES], mime, delimiter(head))
    if mime == "application/json" and text[:1] == b"[":
        found = about(whole) if whole is not None and _one_record(head) else None
        return _said(found, form) or Array(head, kind, whole)
    if mime == "application/json" and text[:1] == b"{":
        return _document(head, source, form, whole)
    if whole is not None and text[:1] == b'"' and whole.rstrip(b" \t\r\n")[-1:] == b'"':
        # JSON that was encoded twice is opened once.
        try:
            found = about(whole)
        except ValueError:
            found = None
        if found is not None:
            return _Said(found)
    return Recogniser(kind, mime)


_GIVEN_AS_TEXT = frozenset({"str", "bytes", "bytearray", "memoryview"})


def _said(found: About | None, form: str) -> Recogniser | None:
    """What a document is about, if that decides how it is read.

    Who gives JSON as text gets pages of that text, to the letter. Only a long string that stands
    right at the top (`{"stdout": …}`) is read in its stead even then; a deeper one has its path.
    """
    if found is None:
        return None
    deep = found.what == "text" and any(mark in found.path for mark in ".[")
    return None if deep and form in _GIVEN_AS_TEXT else _Said(found)


def _one_record(head: bytes) -> bool:
    scanner = ArrayScanner()
    scanner.feed(head[:HEAD_BYTES])
    return not scanner.failed and scanner.records <= 1


def _document(head: bytes, source: Source, form: str, whole: bytes | None) -> Recogniser:
    if whole is None:
        opened = open_list(head[:HEAD_BYTES])
        return InnerList(head, *opened) if opened else Recogniser("document", "application/json")
    kind, mime = settle("document", "application/json", whole)
    if mime != "application/json":
        return Recogniser(kind, mime)
    found = about(whole)
    if found is not None and found.what == "list" and found.spans is not None:
        return Known(found.path, found.spans, whole)
    return _said(found, form) or Recogniser(kind, mime)


class _Said(Recogniser):
    """A document that is about one text, or is columns side by side."""

    def __init__(self, found: About) -> None:
        super().__init__("document", "application/json")
        if found.what == "columns":
            self.kind, self.format = "rows", "columns"
            self.records, self.fields = found.count, bounded_names(found.names)
        else:
            self.inside = found.path
            self.text = found.text


@dataclass(frozen=True, slots=True)
class Inner:
    """A text that is read in a document's stead: what it is, as `Shape` says it."""

    text: bytes
    recognised: Recogniser
    lines: int
    chars: int
    by_record: bool


def inner_of(recogniser: Recogniser) -> Inner | None:
    """What the text inside a document is like; None where none is read in its stead."""
    if not isinstance(recogniser, _Said) or not recogniser.inside:
        return None
    text = recogniser.text
    inner = recognise(text[: 2 * HEAD_BYTES], "str", "str", text)
    inner.inside = ""  # opened once
    inner.feed(text)
    inner.finish()
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    if inner.by_record:
        lines = max(inner.records or 0, 1)
    return Inner(text, inner, lines, len(text.decode("utf-8", "surrogatepass")), inner.by_record)
