"""A way on where a search found nothing: an empty reply would become a final answer."""

from __future__ import annotations

import difflib
import json
import re
import time

from callslip.reading.matching import PATTERN_CHARS, Scan, literal_of
from callslip.reading.page import reading
from callslip.stacks.ops import Flow
from callslip.stacks.reader import Reader, View
from callslip.window.inert import inert, shown

__all__ = ["quoted", "way_on"]

_LOOK_BYTES = 32 * 1024 * 1024
"""How much of a large result is looked through for a suggestion; what was asked was searched whole."""

_GROUP_BYTES = 1024 * 1024
_LOOK_SECONDS = 2.0
_WORDS = 4
_WORD = re.compile(r"[^\W_]{3,40}")
_CODES = re.compile(r"\\[A-Za-z]|\(\?[^:()]*[:>]?|\[[^\]]*\]|\{[\d,]*\}")
_QUOTED_CHARS = 120


def quoted(pattern: str) -> str:
    """The pattern as the argument of a call, or words for it where it is long or not inert."""
    text = json.dumps(shown(pattern), ensure_ascii=False)
    if len(text) > _QUOTED_CHARS or inert(text) != text or not text.isprintable():
        return "the same pattern"
    return text


def way_on(reader: Reader, id: str, pattern: str, case: bool) -> Flow[str]:
    """What to try instead, in a sentence or two that end with a call to make."""
    if reader.directory.chars == 0:
        return "This result is empty."
    asked = _WORD.findall(_CODES.sub(" ", pattern))[:_WORDS]
    parts = list(dict.fromkeys(word.lower() for word in asked))
    scans: dict[str, Scan] = {}
    deadline = time.monotonic() + _LOOK_SECONDS
    if case:
        scans["case"] = Scan(pattern, case=False, deadline=deadline)
    if literal_of(pattern) is None and len(pattern) * 2 <= PATTERN_CHARS:
        scans["text"] = Scan(re.escape(pattern), case=False, deadline=deadline)
    if len(parts) > 1:
        scans |= {f"word {word}": Scan(word, case=False, deadline=deadline) for word in parts}
    first = yield from _look(reader, scans)

    ignoring = scans.get("case")
    if ignoring is not None and ignoring.total:
        again = quoted("(?i)" + pattern)
        return f'Ignoring case it occurs {_times(ignoring)}: search_result("{id}", {again}).'
    as_text = scans.get("text")
    if as_text is not None and as_text.total:
        again = quoted("(?i)" + re.escape(pattern))
        return f'As plain text it occurs {_times(as_text)}: search_result("{id}", {again}).'
    present = [word for word in parts if f"word {word}" in scans and scans[f"word {word}"].total]
    if present:
        counts = ", ".join(f"{word} ({scans[f'word {word}'].total:,})" for word in present)
        rarest = min(present, key=lambda word: scans[f"word {word}"].total)
        again = quoted("(?i)" + rarest)
        return f'Of its words these occur: {counts}. Try search_result("{id}", {again}).'
    near = _nearest(parts, first)
    if near:
        again = quoted(re.escape(near[0]))
        return f'Words like it: {", ".join(near)}. Try search_result("{id}", {again}).'
    return f"Try another word, or look at how it starts: {reading(id, 1)}."


def _times(scan: Scan) -> str:
    return "once" if scan.total == 1 else f"{scan.total:,} times"


def _look(reader: Reader, scans: dict[str, Scan]) -> Flow[str]:
    """Run the searches over one read of the result; answer the start of its text."""
    directory = reader.directory
    first = ""
    for start, end in reader.groups(_GROUP_BYTES):
        if directory.raw_start(start) >= _LOOK_BYTES:
            break
        views = [View(directory, chunk) for chunk in (yield from reader.chunks(start, end))]
        first = first or views[0].text
        pieces = [view.raw for view in views]
        for scan in scans.values():
            scan.feed(pieces, last=end == directory.chunks)
        if not scans:
            break
    return first


def _nearest(parts: list[str], text: str) -> list[str]:
    known: dict[str, str] = {}
    for word in _WORD.findall(text):
        known.setdefault(word.lower(), word)
    near: list[str] = []
    for part in parts:
        near += difflib.get_close_matches(part, list(known)[:5000], n=3, cutoff=0.7)
    return [known[word] for word in dict.fromkeys(near)][:3]
