"""Finding a pattern in a text that arrives in pieces: exact, linear, in bounded memory. No I/O.

A match may lie across pieces and span lines. It is `match_bytes` long at the most: the pattern
matches as if the text ended there for it. So how the text is cut into pieces changes nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from callslip.errors import PatternError
from callslip.limits import MATCH_BYTES
from callslip.window.inert import shown

if TYPE_CHECKING:
    import re2  # type: ignore[import-untyped]

__all__ = ["PATTERN_CHARS", "Scan", "compiled", "literal_of"]

PATTERN_CHARS = 4_000
PROGRAM_SIZE = 10_000
"""Instructions of a compiled pattern. RE2 falls back to steps × instructions where its automaton
grows too large, so this bounds how long one step of a search can take."""

SPAN_BYTES = 2 * MATCH_BYTES
LOOK_AROUND = 2_048
"""Bytes kept before and after each match, for its window: HIT_CHARS of four bytes, and to spare."""

_ESCAPED = re.compile(r"\\([^0-9A-Za-z])|([\\^$.|?*+()\[{])")
_UNTAKEN = (
    (re.compile(r"\(\?<[=!]"), "look-behind is not supported"),
    (re.compile(r"\(\?[=!]"), "look-ahead is not supported"),
    (re.compile(r"\\[1-9]|\(\?P="), "back-references are not supported"),
    (re.compile(r"\(\?>|[*+?}]\+"), "atomic groups and possessive repeats are not supported"),
    (re.compile(r"\(\?\(|\(\?R|\(\?&"), "conditions and recursion are not supported"),
)


def _refused(why: str) -> PatternError:
    sentence = f"This pattern cannot be searched: {why}. Search for a plain word or a simpler one."
    return PatternError(sentence, for_model=sentence)


def literal_of(pattern: str) -> str | None:
    """The text that a pattern stands for, if it is nothing but that text; else None."""
    found: list[str] = []
    at = 0
    for match in _ESCAPED.finditer(pattern):
        if match[2] is not None:
            # A brace that repeats nothing is a brace, as in {"id": 5}.
            if match[2] != "{" or re.match(r"\{[\d,]", pattern[match.start() :]):
                return None
            continue
        found += [pattern[at : match.start()], match[1]]
        at = match.end()
    return "".join([*found, pattern[at:]])


@lru_cache(maxsize=64)
def compiled(pattern: str, case: bool = True) -> re2._Regexp:
    """`pattern` for RE2, with ^ and $ at every line. Raises PatternError, in one sentence."""
    if not pattern:
        raise _refused("it is empty")
    if len(pattern) > PATTERN_CHARS:
        raise _refused(f"it has {len(pattern):,} characters, and {PATTERN_CHARS:,} is the most")
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.case_sensitive = case
    # The end of the text is \Z in Python, which is what most models write.
    text = re.sub(r"((?:^|[^\\])(?:\\\\)*)\\Z", r"\1\\z", shown(pattern))
    try:
        found = re2.compile("(?m)" + text, options)
    except re2.error as error:
        raise _refused(_why(text, error)) from error
    if found.programsize > PROGRAM_SIZE:
        raise _refused("it is too large, its repeats multiply")
    return found


@lru_cache(maxsize=64)
def _plain(literal: bytes) -> re2._Regexp:
    import re2

    options = re2.Options()
    options.literal = True
    return re2.compile(literal, options)


def _why(pattern: str, error: Exception) -> str:
    plain = re.sub(r"\\\\", "", pattern)
    for untaken, why in _UNTAKEN:
        if untaken.search(plain):
            return why
    said = error.args[0] if error.args else ""
    said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if "too large" in said:
        return "it is too large, its repeats multiply"
    # RE2 quotes the rest of the pattern, which may be all of it.
    reason = "".join(char if char.isprintable() else " " for char in said[:60])
    return f"it is not a valid regular expression ({reason})"


class Scan:
    """One search through one text. `feed` it the text in pieces; then `total` is exact.

    `found(start, end)` is called for each match in order, byte offsets from the start of the text,
    until it returns False; from then on matches are only counted. While it runs, `peek(a, b)` gives
    any bytes from `LOOK_AROUND` before a match to `LOOK_AROUND` behind its start.

    Two empty matches never stand in one place, an empty one never right behind another match, and
    none behind the last line end, where no line is.
    """

    def __init__(
        self,
        pattern: str,
        case: bool = True,
        found: Callable[[int, int], bool] | None = None,
        match_bytes: int = MATCH_BYTES,
        deadline: float | None = None,
    ) -> None:
        literal = literal_of(pattern) if case and len(pattern) <= PATTERN_CHARS else None
        self._literal = shown(literal).encode() if literal else None
        if self._literal is not None and len(self._literal) > match_bytes:
            self._literal = None
        # For a literal, too: RE2 gets through a text without a match at twice the speed of `find`.
        self._regex: Any = (
            compiled(pattern, case) if self._literal is None else _plain(self._literal)
        )
        self._simple = self._literal is not None and not _overlaps_itself(self._literal)
        self._found = found
        self._match_bytes = match_bytes
        self._margin = max(match_bytes, LOOK_AROUND)
        self._deadline = deadline
        self._text = b""
        self._base = 0  # offset in the whole text of the first byte of _text
        self._at = 0  # where the search goes on, in _text
        self._last_end = -1  # offset in the whole text where the last match ended
        self.total = 0
        self.stopped = False
        """True if the deadline passed: `total` counts only what lies before `reached`."""

    @property
    def reached(self) -> int:
        """How many bytes of the text have been searched."""
        return self._base + self._at

    @property
    def kept_from(self) -> int:
        """The first byte of the text that may still be asked for."""
        return self._base

    def peek(self, start: int, end: int) -> bytes:
        """Bytes of the text around the match that `found` was called for."""
        return self._text[max(0, start - self._base) : max(0, end - self._base)]

    def feed(self, pieces: list[bytes], last: bool) -> None:
        """Search the next pieces of the text; `last` says that no more follow."""
        if self.stopped:
            return
        keep = max(0, self._at - LOOK_AROUND)
        self._text = b"".join([self._text[keep:], *pieces])
        self._base += keep
        self._at -= keep
        if self._literal is not None:
            self._feed_literal(self._literal, last)
        else:
            self._feed_regex(last)

    def _tell(self, start: int, end: int) -> None:
        self.total += 1
        if self._found is not None and not self._found(self._base + start, self._base + end):
            self._found = None

    def _late(self) -> bool:
        if self._deadline is not None and time.monotonic() > self._deadline:
            self.stopped = True
        return self.stopped

    def _feed_literal(self, literal: bytes, last: bool) -> None:
        text, size = self._text, len(literal)
        # Behind `limit` a match might go on into the next piece, or its window might.
        limit = len(text) if last else max(self._at, len(text) - self._margin)
        ahead = self._regex.search(text, self._at, min(len(text), limit + size - 1))
        if ahead is None:
            self._at = max(self._at, limit)
            self._late()
            return
        steps = 0
        while self._found is not None or not self._simple:
            start = text.find(literal, self._at, min(len(text), limit + size - 1))
            if start < 0:
                self._at = max(self._at, limit)
                return
            self._at = start + size
            self._tell(start, self._at)
            steps += 1
            if not steps % 4096 and self._late():
                return
        end = min(len(text), limit + size - 1)
        if end > self._at:
            # What cannot overlap itself is found at the same places from anywhere.
            self.total += text.count(literal, self._at, end)
            tail = text.rfind(literal, self._at, end)
            self._at = max(limit, tail + size if tail >= 0 else 0)
        self._late()

    def _feed_regex(self, last: bool) -> None:
        text, span = self._text, SPAN_BYTES
        size = len(text)
        while self._at < size or last:
            end = min(size, self._at + max(span, 2 * self._margin))
            final = last and end == size
            limit = size + 1 if final else _boundary(text, end - self._margin)
            if limit <= self._at and not final:
                return
            before = self.total
            ended = self._window(end, limit)
            if self.stopped or (ended and final):
                return
            # Short steps where matches are dense: a greedy pattern may look at a whole step
            # for each of them. Long ones where there is nothing.
            span = SPAN_BYTES if self.total > before else span * 4

    def _window(self, end: int, limit: int) -> bool:
        """Take the matches that start before `limit`; True if the search is at `limit`."""
        text, base, longest = self._text, self._base, self._match_bytes
        for step, match in enumerate(self._regex.finditer(text, self._at, end), 1):
            if not step % 64 and self._late():
                return False
            start, stop = match.span()
            if start >= limit:
                self._at = max(self._at, limit)
                return not self._late()
            if self._found is None and 0 < stop - start <= longest:
                # Most matches are short, and most are only counted.
                self._at = stop
                self._last_end = base + stop
                self.total += 1
                continue
            cut = stop - start > longest
            if cut:
                shorter = self._regex.search(text, start, min(end, start + longest))
                if shorter is None or shorter.start() != start:
                    self._at = start + 1
                    break
                stop = shorter.end()
            if stop > start:
                self._at = stop
                self._last_end = base + stop
                self._tell(start, stop)
            else:
                # No other empty match can stand here, and nothing longer starts here either.
                self._at = start + 1
                if base + start != self._last_end and self._is_place(start):
                    self._last_end = base + start
                    self._tell(start, start)
            if cut:
                # The iterator stands behind the long match.
                break
        else:
            self._at = max(self._at, min(limit, len(text)))
            return not self._late()
        self._late()
        return False

    def _is_place(self, at: int) -> bool:
        """Whether an empty match may stand at `at`: between characters, and in a line."""
        text = self._text
        if at < len(text):
            return text[at] & 0xC0 != 0x80
        return at > 0 and text[at - 1] != 0x0A


def _boundary(text: bytes, at: int) -> int:
    """The character boundary at or before `at`."""
    while 0 < at < len(text) and text[at] & 0xC0 == 0x80:
        at -= 1
    return max(at, 0)


def _overlaps_itself(literal: bytes) -> bool:
    return any(literal.startswith(literal[shift:]) for shift in range(1, len(literal)))
