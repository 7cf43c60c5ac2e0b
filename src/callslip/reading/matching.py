"""Finding a pattern in a text that arrives in pieces: exact, linear, in bounded memory. No I/O.

A match may lie across pieces and span lines. How much is held depends on what the pattern can
match: a little where it cannot repeat without end, whole lines where it stays in one, and twice
`match_bytes` of the text else. A match longer than that may be missed, and is counted no further
than to its start: `limited` and `overlong` say so. How the text is cut into pieces changes nothing.
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

SHORT_BYTES = 64 * 1024
"""No match of a pattern that cannot repeat without end is longer: an instruction takes a byte."""

MATCH_STEPS = 64 * MATCH_BYTES
"""Bytes × instructions: a large pattern, which may be slow at each byte, looks less far."""

SPAN_BYTES = 2 * SHORT_BYTES
LOOK_AROUND = 2_048
"""Bytes kept before and after each match, for its window: HIT_CHARS of four bytes, and to spare."""

_ENDLESS = re.compile(r"[*+]|\{\d*,\}")
# Nothing that could stand for a line end or for the end of the text: a match lies in one line.
_IN_LINE = re.compile(
    r"(?:[^\\\[(\x00-\x1f]|\\[^A-Za-z0-9\x00-\x1f]|\\[dwSbBt]"
    r"|\((?!\?)|\(\?(?:i?:|i\)|P?<\w+>)"
    r"|\[(?!\^)(?:[^\\\[\]\x00-\x1f]|\\[^A-Za-z0-9\x00-\x1f]|\\[dwS])*+\])*+"
)
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
    kind, _, where = said.partition(": ")
    if where == "(?m)" + pattern:
        # Ours is no part of it.
        where = pattern
    # RE2 quotes the rest of the pattern, which may be all of it.
    where = "".join(char if char.isprintable() else " " for char in where[:40])
    reason = f'{kind} in "{where}"' if where else kind
    return f"it is not a valid regular expression, {reason}"


class Scan:
    """One search through one text. `feed` it the text in pieces; then `total` is exact.

    `found(start, end)` is called for each match in order, byte offsets from the start of the text,
    until it returns False; from then on matches are only counted. While it runs, `peek(a, b)` gives
    any bytes from `LOOK_AROUND` before a match to its end, and what is held behind that.

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
        if not isinstance(pattern, str):
            raise _refused(f"it is no str but {type(pattern).__name__}")
        literal = literal_of(pattern) if case and len(pattern) <= PATTERN_CHARS else None
        self._literal = shown(literal).encode() if literal else None
        # For a literal, too: RE2 gets through a text without a match at twice the speed of `find`.
        self._regex: Any = (
            compiled(pattern, case) if self._literal is None else _plain(self._literal)
        )
        self._simple = self._literal is not None and not _overlaps_itself(self._literal)
        self._found = found
        self.longest = match_bytes
        """Matches longer than this many bytes are not looked for."""
        self._endless = self._literal is None and _ENDLESS.search(pattern) is not None
        self._in_line = self._endless and _IN_LINE.fullmatch(pattern) is not None
        if self._endless:
            steps = MATCH_STEPS // max(self._regex.programsize, 1)
            self.longest = min(match_bytes, max(SHORT_BYTES, steps))
        self._margin = max(SHORT_BYTES, LOOK_AROUND)
        self._waiting: list[bytes] = []
        self._held = 0
        self._deadline = deadline
        self._text = b""
        self._base = 0  # offset in the whole text of the first byte of _text
        self._at = 0  # where the search goes on, in _text
        self._last_end = -1  # offset in the whole text where the last match ended
        self.total = 0
        self.stopped = False
        """True if the search ended early: `total` counts only what lies before `reached`."""
        self.limited = False
        """True if a match longer than `longest` might have been missed."""
        self.overlong = False
        """True if the last match is longer than `longest`: it ended the search."""

    @property
    def reached(self) -> int:
        """How many bytes of the text have been searched."""
        return self._base + self._at

    def peek(self, start: int, end: int) -> bytes:
        """Bytes of the text around the match that `found` was called for."""
        return self._text[max(0, start - self._base) : max(0, end - self._base)]

    def feed(self, pieces: list[bytes], last: bool) -> None:
        """Search the next pieces of the text; `last` says that no more follow."""
        if self.stopped:
            return
        self._waiting += pieces
        self._held += sum(map(len, pieces))
        # What cannot be searched yet is not joined each time anew.
        wanted = 2 * self.longest if self._endless and not self._in_line else 0
        if not last and len(self._text) - self._at + self._held <= wanted:
            return
        keep = max(0, self._at - LOOK_AROUND)
        self._text = b"".join([self._text[keep:], *self._waiting])
        self._waiting, self._held = [], 0
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
        size, span = len(self._text), SPAN_BYTES
        while self._at < size or last:
            bounds = self._bounds(span, last)
            if bounds is None:
                return
            end, limit, whole = bounds
            before = self.total
            ended = self._window(end, limit, whole)
            if self.stopped or (ended and limit > size):
                return
            # Short steps where matches are dense: a greedy pattern may look at a whole step
            # for each of them. Long ones where there is nothing.
            span = SPAN_BYTES if self.total > before else span * 4

    def _bounds(self, span: int, last: bool) -> tuple[int, int, bool] | None:
        """How far to look next, where matches may start (before `limit`), and whether any match
        that starts there is seen to its end. None: more of the text is needed."""
        text, at, size = self._text, self._at, len(self._text)
        if not self._endless:
            end = min(size, at + max(span, 2 * self._margin))
            if last and end == size:
                return end, size + 1, True
            limit = _boundary(text, end - self._margin)
            return None if limit <= at else (end, limit, True)
        far = at + 2 * self.longest
        if self._in_line:
            near = min(at + span, far) - 1
            line_end = text.find(b"\n", near, far) + 1 or text.rfind(b"\n", at, near) + 1
            if line_end:
                return line_end, line_end, True
        if size > far:
            # A byte more is there than is looked at, so no match ends at an end that is none.
            self.limited = True
            return far, _boundary(text, far - self.longest), False
        return (size, size + 1, True) if last else None

    def _window(self, end: int, limit: int, whole: bool) -> bool:
        """Take the matches that start before `limit`; True if the search is at `limit`."""
        text, base = self._text, self._base
        longest = len(text) if whole else self.longest
        far = end - self._at > 4 * SPAN_BYTES
        for step, match in enumerate(self._regex.finditer(text, self._at, end), 1):
            if ((far and step > 1) or not step % 64) and self._late():
                return False
            start, stop = match.span()
            if start >= limit:
                self._at = max(self._at, limit)
                return not self._late()
            if stop - start > longest:
                # Nobody knows where it ends, so nobody knows what comes behind it.
                self._at = stop
                self.overlong = self.stopped = True
                self._tell(start, stop)
                return False
            if self._found is None and stop > start:
                # Most matches are short, and most are only counted.
                self._at = stop
                self._last_end = base + stop
                self.total += 1
                continue
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
        self._at = max(self._at, min(limit, len(text)))
        return not self._late()

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
