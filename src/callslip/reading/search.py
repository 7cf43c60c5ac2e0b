"""Searching a stored result: how many matches there are in all, and the next few as windows.

Linear in the size of the payload, in the memory of a few chunks. No reply is stored anew.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from callslip.handle import Hit, Hits
from callslip.limits import (
    CONTEXT_CAP,
    FRAME_CHARS,
    HIT_CHARS,
    HITS_CAP,
    HITS_DEFAULT,
    MATCH_BYTES,
    MATCH_CHARS,
    PAGE_CAP_CHARS,
    PAGE_CHARS,
)
from callslip.reading.matching import LOOK_AROUND, Scan
from callslip.reading.page import STORED_DATA, head_of_line, plain_base64, reading, whole
from callslip.reading.suggest import quoted, way_on
from callslip.stacks.ops import Flow
from callslip.stacks.reader import Reader, View
from callslip.window.envelope import human_size
from callslip.window.inert import attr, inert, shown

__all__ = ["search"]

GROUP_BYTES = 1024 * 1024
"""Raw bytes that one ranged read brings. Larger groups fall out of the processor's cache and are
slower by half; smaller ones cost a remote store more round trips."""

SEARCH_SECONDS = 20.0
"""RE2 is linear for one match; a pattern that looks far ahead for each of many is not."""

_LINE_END = "⏎"
_PATTERN_CHARS = 80


@dataclass(frozen=True, slots=True)
class _Found:
    """A hit, and the bytes of the text that its window shows."""

    hit: Hit
    window: tuple[int, int]
    span: tuple[int, int]
    cut: bool
    spans: int
    """Line ends inside the match."""


class _Collector:
    """Turns match offsets into hits, while the chunks that hold them are at hand."""

    def __init__(self, skip: int, count: int) -> None:
        self.found: list[_Found] = []
        self.skipped_to = 0
        """The line of the last hit that was skipped."""
        self.scan: Scan
        self._skip = skip
        self._count = count
        self._seen = 0
        self._offsets: list[int] = []
        self._views: list[View] = []
        self._end = 0

    def arrive(self, views: list[View], pieces: list[bytes]) -> None:
        """The next chunks of the text; those that cannot be asked for any more are let go."""
        past = bisect_right(self._offsets, self.scan.reached - LOOK_AROUND) - 1
        if past > 0:
            del self._offsets[:past], self._views[:past]
        for view, piece in zip(views, pieces, strict=True):
            self._offsets.append(self._end)
            self._views.append(view)
            self._end += len(piece)

    def __call__(self, start: int, end: int) -> bool:
        self._seen += 1
        if self._seen < self._skip:
            return True
        which = bisect_right(self._offsets, start) - 1
        line, column = self._views[which].place(start - self._offsets[which])
        if self._seen == self._skip:
            self.skipped_to = line
            return True
        # What is cut in two at the outer edges is one character that the window does not show.
        before = self.scan.peek(start - LOOK_AROUND, start).decode("utf-8", "ignore")
        whole = self.scan.peek(start, end)
        match = whole[: 4 * MATCH_CHARS].decode("utf-8", "ignore")[:MATCH_CHARS]
        behind = self.scan.peek(end, end + LOOK_AROUND).decode("utf-8", "ignore")
        before = before[before.rfind("\n") + 1 :]
        behind = "" if whole.endswith(b"\n") else behind.partition("\n")[0].removesuffix("\r")
        left, inner, right = _window(before, match, behind)
        text = f"{before[len(before) - left :]}{match[:inner]}{behind[:right]}"
        shortened = inner < len(match) or len(match) == MATCH_CHARS
        cut = (left < len(before) or column > len(before), shortened or right < len(behind))
        window = (
            start - len(before[len(before) - left :].encode()),
            start if shortened else end + len(behind[:right].encode()),
        )
        text = f"{'…' * cut[0]}{text}{'…' * cut[1]}"
        spans = whole.rstrip(b"\n").count(b"\n")
        hit = Hit(line, column, match, text)
        self.found.append(_Found(hit, window, (start, end), any(cut), spans))
        return len(self.found) < self._count


def _window(before: str, match: str, behind: str) -> tuple[int, int, int]:
    """How many characters of each a window of HIT_CHARS shows, the match first."""
    inner = min(len(match), HIT_CHARS)
    room = HIT_CHARS - inner
    right = min(len(behind), room - min(len(before), room // 2))
    left = min(len(before), room - right)
    return left, inner, right


def search(
    reader: Reader,
    id: str,
    pattern: str,
    context: int = 0,
    after: int | None = None,
    limit: int = HITS_DEFAULT,
    case: bool = True,
    page_chars: int = PAGE_CHARS,
    *,
    group_bytes: int = GROUP_BYTES,
    match_bytes: int = MATCH_BYTES,
    seconds: float = SEARCH_SECONDS,
    base64: bool = False,
) -> Flow[Hits]:
    """Matches of an RE2 pattern, ^ and $ at every line, in the text view as it is shown.

    `total` counts all of them; `after` skips that many, then up to `limit` are shown with `context`
    lines around each (`limit=0` only counts). A match spans lines if the pattern does. One that is
    longer than `MATCH_BYTES` is not looked for, and ends the search where it is met: the reply says
    so. A hit holds `MATCH_CHARS` of its match at the most. A search of more than `seconds` stops, and the reply says where. Nothing
    found: the reply offers a way on. `str(hits)` stays under `PAGE_CAP_CHARS`.

    Raises PatternError for what RE2 does not take, PayloadDamaged and StoreUnavailable.
    """
    directory = reader.directory
    skip = whole(after, 0, 0)
    count = min(whole(limit, 0, HITS_DEFAULT), HITS_CAP)
    around = min(whole(context, 0, 0), CONTEXT_CAP)
    # One more than asked for: context ends before the next hit, shown or not.
    collector = _Collector(skip, count + 1)
    scan = Scan(
        pattern,
        case,
        collector if count else None,
        match_bytes,
        time.monotonic() + seconds,
    )
    collector.scan = scan
    for start, end in reader.groups(group_bytes):
        views = [View(directory, chunk) for chunk in (yield from reader.chunks(start, end))]
        pieces = [view.raw for view in views]
        collector.arrive(views, pieces)
        scan.feed(pieces, last=end == directory.chunks)
        if scan.stopped:
            break

    name = attr(id, _PATTERN_CHARS)
    where = _lines_of(directory.lines, name)
    if scan.stopped and not scan.overlong:
        where += (
            f", only the first {scan.reached * 100 // max(directory.size, 1)}% searched in time"
        )
    exact = not scan.stopped
    least = "at least " if scan.overlong else ""
    said = f'{least}{_matches(scan.total)} of "{attr(shown(pattern), _PATTERN_CHARS)}" in {where}.'
    said = said[:1].upper() + said[1:]
    if scan.limited or scan.overlong:
        said += f" {_bound(scan)}"
    if scan.total == 0:
        hint = yield from way_on(reader, name, pattern, case)
        return Hits((), "", 0, None, f"{said} {hint}", exact)
    call = f'search_result("{name}", {quoted(pattern)}'
    call += ")" if case else ", ignore_case=True)"
    if count == 0:
        return Hits((), "", scan.total, None, f"{said} See them with {call}.", exact)
    if not collector.found:
        none = f"{said} None is left after {skip:,}; see {call}."
        return Hits((), "", scan.total, None, none, exact)

    wide = count > HITS_DEFAULT
    most = PAGE_CAP_CHARS - FRAME_CHARS
    room = most if wide else min(most, page_chars)
    lines, taken = yield from _rendered(reader, collector, count, around, room)
    if base64:
        lines = [plain_base64(line)[0] for line in lines]
    hits = tuple(found.hit for found in collector.found[:taken])
    first, last = skip + 1, skip + taken
    following = {"after": last} if last < scan.total else None
    total = f"at least {scan.total}" if scan.stopped else str(scan.total)
    reach = f"{first}-{last}" if last > first else str(first)
    notes = [STORED_DATA]
    if scan.stopped:
        notes.append(said)
    elif scan.limited:
        notes.append(_bound(scan))
    notes.append(f"Read around the first with {_around(id, collector.found[0])}.")
    if following is not None:
        notes.append(f"{scan.total - last:,} more: {call[:-1]}, after={last}).")
    tag = f'<hits total="{total}" shown="{reach}" id="{name}"'
    tag += f' pattern="{attr(shown(pattern), _PATTERN_CHARS)}">'
    rendered = "\n".join([tag, *lines, "</hits>", " ".join(notes)])
    text = "\n".join(_one_line(hit.text) for hit in hits)
    return Hits(hits, text, scan.total, following, rendered, exact)


def _matches(total: int) -> str:
    return "1 match" if total == 1 else f"{total:,} matches"


def _bound(scan: Scan) -> str:
    bound = f"Matches longer than {human_size(scan.longest)} are not looked for"
    return f"{bound}; one is, and nothing behind it was searched." if scan.overlong else f"{bound}."


def _lines_of(lines: int, name: str) -> str:
    return f"the 1 line of {name}" if lines == 1 else f"the {lines:,} lines of {name}"


def _around(id: str, found: _Found) -> str:
    if found.cut:
        return reading(id, found.hit.line, max(0, found.hit.column - HIT_CHARS))
    return reading(id, max(1, found.hit.line - 3))


def _one_line(text: str) -> str:
    return text.replace("\r\n", _LINE_END).replace("\n", _LINE_END)


def _rendered(
    reader: Reader, collector: _Collector, count: int, around: int, room: int
) -> Flow[tuple[list[str], int]]:
    """The lines of a reply of about `room` characters, and how many hits are in them.

    A hit's line is marked; hits that a window already shows are counted on it. No line that holds
    a hit is shown as context: unmarked, it would look like none.
    """
    every, found = collector.found, collector.found[:count]
    rows: list[str] = []
    used = taken = 0
    shown_to = (
        collector.skipped_to
    )  # the last line that is in `rows`, or belongs to an earlier page
    while taken < len(found):
        group = _together(found, taken)
        hit = group[0].hit
        add: list[str] = []
        seen = shown_to if taken else 0
        wanted = set(range(max(1, hit.line - around), hit.line))
        if taken:
            wanted |= set(range(shown_to + 1, min(shown_to + around, hit.line - 1) + 1))
        for line in sorted(number for number in wanted if number > shown_to):
            if around and seen and line > seen + 1:
                add.append("--")
            add.append(_row(" ", f"line {line}", (yield from head_of_line(reader, line))))
            seen = line
        if around and seen and hit.line > seen + 1:
            add.append("--")
        place = f"line {hit.line}, column {hit.column}" if group[0].cut else f"line {hit.line}"
        if len(group) > 1:
            place += f" ({len(group)} matches)"
        add.append(_row(">", place, hit.text))
        size = sum(map(len, add)) + len(add)
        if taken and used + size > room:
            break
        rows += add
        used += size
        taken += len(group)
        last = group[-1].hit
        spans = 0 if reader.directory.by_record else group[-1].spans
        shown_to = max(shown_to, last.line + spans)
    until = every[taken].hit.line - 1 if taken < len(every) else reader.directory.lines
    for line in range(shown_to + 1, min(shown_to + around, until, reader.directory.lines) + 1):
        row = _row(" ", f"line {line}", (yield from head_of_line(reader, line)))
        used += len(row) + 1
        if used > PAGE_CAP_CHARS - FRAME_CHARS:
            break
        rows.append(row)
    return rows, taken


def _together(found: Sequence[_Found], at: int) -> Sequence[_Found]:
    first = found[at]
    end = at + 1
    while (
        end < len(found)
        and found[end].hit.line == first.hit.line
        and found[end].span[1] <= first.window[1]
    ):
        end += 1
    return found[at:end]


def _row(mark: str, place: str, text: str) -> str:
    return f"{mark} {place}: {inert(_one_line(text))}"
