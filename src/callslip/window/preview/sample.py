"""What a preview is chosen from: a bounded sample of a content, taken while it streams by.

The head and the tail as they are; of a log or a test run also the lines that tell of errors, with
their numbers. Bounded whatever the content's size. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from callslip.handle import Source

if TYPE_CHECKING:
    from callslip.window.profile import Profile
    from callslip.window.survey import Outline

__all__ = ["Line", "Look", "Sample", "Sampler"]

Look = Literal["plain", "log", "tests"]
"""How a text reads: which lines of it a reader would look for."""

_KEEP_BYTES = 64 * 1024
_JUDGED_BYTES = 16 * 1024
_FIRST_LINES = 24
_LAST_LINES = 8
_LINE_BYTES = 400
_COUNTED = 20_000

# A line of a log: it starts with a time, or a level, or a syslog priority.
_LOG_LINE = re.compile(
    rb"^(?:[\w.:-]{1,40} ){0,2}\W{0,3}(?:\d{4}[-/]\d\d[-/]\d\d[T ,_]|\d\d:\d\d:\d\d"
    rb"|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d|\d{10}[. ]\d|\d\d/[A-Z][a-z]{2}/\d{4}[: ])"
    rb"|^\W{0,2}(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|info|warn|error|debug)"
    rb"\W"
    rb"|^\S{1,80} - - \[\d"
    rb'|^\{"(?:ts|time|timestamp|level|@timestamp)":',
    re.MULTILINE,
)
_LOG_HEAD = re.compile(
    rb"^(?:Log started:|npm (?:WARN|ERR!)|Reading package lists|==> |#\d+ \[|\(Reading database)",
    re.MULTILINE,
)
_TESTS_HEAD = re.compile(
    rb"^(?:=+ test session starts =+|=== RUN |running \d+ tests?$|TAP version \d|1\.\.\d+$"
    rb"| *(?:PASS|FAIL) +\S+[./]\S+|(?:> )?(?:jest|vitest)\b| RUN  v\d"
    rb"|\[INFO\]  ?T E S T S|[.FEsxuXP]{8,}$|test_\w+ \([\w.]+\)|ok +\S+\t|--- FAIL: "
    rb"|\[==========\] Running|test \S+ \.\.\. )",
    re.MULTILINE,
)

_LEVEL = re.compile(rb"\b(?:DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|debug|info|warn|warning|error)\b")

# What tells of an error, level by level: where a log has levels they decide, with tracebacks.
_LEVELS = (
    rb"\b(?:ERROR|ERR|FATAL|CRITICAL|CRIT|ALERT|EMERG|PANIC|SEVERE)\b"
    rb"|[\[\"=|](?:error|fatal|critical|crit|alert|emerg|panic)[\]\"| ]"
    rb"|^(?:Traceback \(most recent|(?:\w+\.)*\w+(?:Error|Exception)(?::|$)|Caused by: )"
)
# Where it has none, words do. `liberror-perl` and `0 errors` are none.
_WORDS = (
    rb"|[ :](?:error|fatal|panic):|\b(?:FAILED|FAILURE|Traceback)\b"
    rb"|\b(?:Error|Exception|Failed|Fatal|Cannot|Could not|Unable to|Segmentation fault)\b"
    rb"|\w(?:Error|Exception)\b"
    rb"|\b(?:failed|failure|denied|refused|unreachable|timed out|out of memory|core dumped)\b"
    rb"|npm ERR!|^E: |^W: |\" 5\d\d "
)
_TESTS_FAILURE = (
    rb"^(?:(?:FAILED|ERROR) +\S|E  +\S|--- FAIL: |FAIL[: \t]|ERROR: "
    rb"| *\xe2\x97\x8f | *(?:\xe2\x9c\x95|\xe2\x9c\x97|\xe2\x9c\x98|\xc3\x97) |not ok "
    rb"|test \S+ \.\.\. FAILED|thread '.*' panicked at |[ \t]+\w+_test\.go:\d+: "
    rb"|\[  FAILED  \] |\[ERROR\] |(?:\w+\.)*\w*(?:Error|Exception)(?:: |$))"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line by its number, from 1; `text` without its end, cut if it is very long."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The bounded sample. `head` and `tail` are text views, exact, cut at character boundaries.

    Where `whole`, `head` is all of it and `tail` is empty. `telling` are the first and the last of
    the lines that tell of errors, in order; `told` counts all of them.
    """

    head: str = ""
    tail: str = ""
    whole: bool = True
    look: Look = "plain"
    telling: tuple[Line, ...] = ()
    told: int = 0
    more: bool = False
    """True where counting stopped at `told`, so that a log of nothing but errors costs no more."""
    profile: Profile | None = None
    """What is known of the records, where there are some (`callslip.window.profile`)."""
    outline: Outline | None = None
    """What a look at the whole has found, where it was had (`callslip.window.survey`)."""


class Sampler:
    """Takes a sample of what is added, block by block, at little cost.

    Blocks may be cut anywhere. What is neither a log nor a test run costs next to nothing; of
    those every line is looked at, in linear time.
    """

    def __init__(self, source: Source) -> None:
        self._errors = "surrogatepass" if source == "str" else "surrogateescape"
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0
        self._look: Look | None = None
        self._pattern: Any = None
        self._newlines = 0
        self._rest = b""
        self._first: list[Line] = []
        # The latest stretches with telling lines: (text, from where in it, newlines before it, how
        # many). Their last lines are looked for once, at the end.
        self._lately: list[tuple[bytes, int, int, int]] = []
        self._told = 0
        self._late: tuple[bytes, int] | None = None

    def add(self, block: bytes) -> None:
        """The next bytes of the content."""
        if not block:
            return
        self._seen += len(block)
        missing = _KEEP_BYTES - len(self._head)
        if missing > 0:
            self._head += block[:missing]
            rest = block[missing:]
        else:
            rest = block
        if rest:
            self._tail += rest[-_KEEP_BYTES:]
            if len(self._tail) > 4 * _KEEP_BYTES:
                # Seldom, so that many small blocks do not copy the tail each time.
                del self._tail[:-_KEEP_BYTES]
        if self._look is None:
            # Undecided until there is something to judge by; then what was held is looked at too.
            if len(self._head) < _KEEP_BYTES:
                return
            self._decide()
            if self._pattern is not None:
                self._scan(bytes(self._head))
                self._scan(rest)
        elif self._pattern is not None:
            self._scan(block)

    def finish(self) -> Sample:
        """The sample of all that was added."""
        if self._look is None:
            self._decide()
            if self._pattern is not None:
                self._scan(bytes(self._head))
        if self._pattern is not None and self._rest:
            self._match(self._rest)
        if self._late is not None:
            lines, newlines = self._late
            self._lately.append((lines, 0, newlines, 0))
        last = [line for late in self._lately for line in self._latest(*late[:3])][-_LAST_LINES:]
        cut = self._seen > len(self._head)
        tail = bytes(self._tail[-_KEEP_BYTES:])
        head = bytes(self._head)
        whole = self._seen <= len(head) + len(tail)
        if cut and whole:
            head, tail = head + tail, b""
        return Sample(
            head=self._view(head, cut_end=not whole),
            tail=self._view(tail, cut_start=True),
            whole=whole,
            look=self._look or "plain",
            telling=tuple(self._first + last),
            told=self._told,
            more=self._late is not None,
        )

    def _view(self, raw: bytes, cut_start: bool = False, cut_end: bool = False) -> str:
        if cut_start:
            # At most three bytes of a character whose start is not here.
            start = 0
            while start < min(3, len(raw)) and 0x80 <= raw[start] < 0xC0:
                start += 1
            raw = raw[start:]
        if cut_end:
            for back in range(1, min(4, len(raw)) + 1):
                byte = raw[-back]
                if byte >= 0xC0:
                    if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4):
                        raw = raw[:-back]
                    break
                if byte < 0x80:
                    break
        return raw.decode("utf-8", self._errors)

    def _decide(self) -> None:
        head = bytes(self._head[:_JUDGED_BYTES])
        lines = head.count(b"\n") + 1
        if _TESTS_HEAD.search(head[:8192]):
            self._look, pattern = "tests", _TESTS_FAILURE
        elif lines >= 8 and (
            len(_LOG_LINE.findall(head)) * 3 >= lines or _LOG_HEAD.search(head[:2048])
        ):
            levels = len(_LEVEL.findall(head)) * 2 >= lines
            self._look, pattern = "log", _LEVELS if levels else _LEVELS + _WORDS
        else:
            self._look = "plain"
            return
        import re2  # type: ignore[import-untyped,unused-ignore]

        # Byte by byte, whatever the encoding. The rest of a line goes with its first find, so that
        # a line counts once.
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        self._pattern = re2.compile(rb"(?m)(?:" + pattern + rb")[^\n]*", options)

    def _scan(self, block: bytes) -> None:
        """Look at the whole lines of what there is; the last, unfinished one waits."""
        end = block.rfind(b"\n") + 1
        if not end:
            # A line without end is not held: its beginning says what it is.
            if len(self._rest) < _KEEP_BYTES:
                self._rest += block[:_KEEP_BYTES]
            return
        self._match(self._rest + block[:end] if self._rest else block[:end])
        self._rest = block[end:][:_KEEP_BYTES]

    def _match(self, lines: bytes) -> None:
        """Count the telling lines of whole lines, and keep the first and the last few."""
        at, before = 0, self._newlines
        if self._told >= _COUNTED:
            # Only the end still matters: what it holds is found in `finish`.
            start = lines.rfind(b"\n", 0, max(len(lines) - _KEEP_BYTES, 0)) + 1
            self._late = (lines[start:], self._newlines + lines.count(b"\n", 0, start))
            self._newlines += lines.count(b"\n")
            return
        if len(self._first) < _FIRST_LINES:
            for match in self._pattern.finditer(lines):
                line, at, before = self._line(lines, match.start(), at, before)
                self._first.append(line)
                self._told += 1
                if len(self._first) == _FIRST_LINES:
                    at = match.end()
                    break
            else:
                at = len(lines)
        found = len(self._pattern.findall(lines, at)) if at < len(lines) else 0
        self._told += found
        if found:
            self._lately.append((lines, at, self._newlines, found))
            while sum(late[3] for late in self._lately[1:]) >= _LAST_LINES:
                del self._lately[0]
        self._newlines += lines.count(b"\n")

    def _latest(self, lines: bytes, after: int, newlines: int) -> list[Line]:
        """The last few telling lines after an offset, looked for from the end."""
        reach = 64 * 1024
        while True:
            start = max(after, lines.rfind(b"\n", 0, max(len(lines) - reach, 0)) + 1)
            found = list(self._pattern.finditer(lines, start))
            if len(found) >= _LAST_LINES or start == after:
                break
            reach *= 8
        kept: list[Line] = []
        at, before = 0, newlines
        for match in found[-_LAST_LINES:]:
            line, at, before = self._line(lines, match.start(), at, before)
            kept.append(line)
        return kept

    @staticmethod
    def _line(lines: bytes, match: int, at: int, before: int) -> tuple[Line, int, int]:
        """The line around an offset, that line's start, and the newlines before it."""
        start = lines.rfind(b"\n", 0, match) + 1
        before += lines.count(b"\n", at, start)
        end = lines.find(b"\n", match)
        raw = lines[start : min(end if end >= 0 else len(lines), start + _LINE_BYTES)]
        return Line(before + 1, raw.rstrip(b"\r").decode("utf-8", "replace")), start, before
