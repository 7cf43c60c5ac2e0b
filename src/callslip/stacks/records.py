"""Where the records of a JSON array are, found while its bytes stream by.

The bytes of a record are never touched: a record is a pair of offsets into the text as it came.

How it works. JSON is parsed deterministically from the front, so if the text from the start of a
record up to some comma is, between brackets, a valid array, then that comma does stand between two
records. The scanner guesses such commas from the look of the first records, lets msgspec check
the guess (700 MB/s), and where no guess holds walks on with the standard library's decoder, one
value at a time.

Objects that all have the same bytes between them, as nearly always, are found in leaps: cut a
window wherever those bytes occur, and let msgspec read the pieces as one JSON text a line. A cut
inside a string or a nested list would leave a piece that is no JSON; a place between two records
that was not cut would leave a comma behind. So if all pieces are valid, they are the records.

What may live here: offsets and nothing else. No I/O.
"""

from __future__ import annotations

import json
import re
from array import array
from itertools import accumulate
from operator import add
from typing import Final

import msgspec

__all__ = ["HEAD_BYTES", "MAX_RECORD_BYTES", "WHOLE_RECORD_BYTES", "ArrayScanner", "by_record"]

HEAD_BYTES: Final = 64 * 1024
"""What decisions about a content are made from."""

MAX_RECORD_BYTES: Final = 4 * 1024 * 1024
"""A record longer than this makes the scanner give up: it bounds what is buffered."""

WHOLE_RECORD_BYTES: Final = 64 * 1024 * 1024
"""The same where the whole text is in memory already, so that nothing more is buffered by it."""

_GUESSES: Final = 4
_LEAP_BYTES: Final = 256 * 1024
"""A window that stays in the processor's cache."""


class _Object(msgspec.Struct, gc=False):
    """Any JSON object, of which nothing is kept."""


_LINES = msgspec.json.Decoder(_Object)
_SPLIT = msgspec.json.Decoder(list[msgspec.Raw])
# Offsets must be byte offsets, so text is decoded as latin-1: JSON's own characters are ASCII, and
# what stands inside strings does not matter here. Numbers are not converted (nor limited in size).
_STEP = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len)
_SPACE = re.compile(rb"[ \t\r\n]*")
_BOM = b"\xef\xbb\xbf"
_SPACES: Final = b" \t\r\n"
_BRACE: Final = ord("{")


class ArrayScanner:
    """Finds the records of a JSON text whose top value is an array, block by block.

    ``feed(block)`` answers the absolute, flat ``(start, end)`` byte offsets of the records that are
    complete by now; each is given once, in order, and with the very block in which the next record
    starts, at the latest. Blocks may be cut anywhere. After `finish`:

    - `records`: how many were found, `objects`: whether all of them are objects;
    - `complete`: the text is one array from its first to its last byte;
    - `failed`: it is not (or a record is longer than `most`); what was found before
      holds, nothing more is found.
    """

    def __init__(self, most: int = MAX_RECORD_BYTES) -> None:
        self._most = most
        self.records = 0
        self.objects = True
        self.failed = False
        self.complete = False
        self._buffer = b""
        self._base = 0
        self._opened = False
        self._closed = False
        # The bytes from the end of a record into the next one, as seen last: what a guess looks for.
        self._between = b""

    def feed(self, block: bytes) -> array[int]:
        """Take the next bytes; answer the offsets of the records that are complete by now."""
        found: array[int] = array("Q")
        if self.failed or not block:
            return found
        self._buffer = self._buffer + block if self._buffer else bytes(block)
        if self._closed:
            self._only_space()
        elif self._opened or self._open():
            self._scan(found)
        return found

    def finish(self) -> array[int]:
        """The text is at its end: settle `complete` and `failed`. Finds no record that `feed` has
        not given, since a record is complete only where a comma or the bracket follows it."""
        self.complete = self._closed and not self.failed
        self.failed = not self.complete
        self._buffer = b""
        return array("Q")

    # --- one step at a time ----------------------------------------------------------------------

    def _open(self) -> bool:
        data = self._buffer
        at = 0
        if self._base == 0 and data[:1] == _BOM[:1]:
            if len(data) < len(_BOM):
                return False
            at = len(_BOM) if data.startswith(_BOM) else 0
        at = _skip(data, at)
        if at == len(data):
            if len(data) > HEAD_BYTES:
                self._fail()
            return False
        if data[at : at + 1] != b"[":
            self._fail()
            return False
        self._opened = True
        self._drop(at + 1)
        return True

    def _scan(self, found: array[int]) -> None:
        # The buffer starts where a record may start, or with the bracket that closes the array.
        if not self.records:
            start = _skip(self._buffer, 0)
            if self._buffer[start : start + 1] == b"]":
                self._close(start + 1)
                return
        if len(self._buffer) > _LEAP_BYTES:
            if not self._between:
                self._walk(found, 2)
            self._leap(found)
        if not self._closed and not self.failed and not self._split_to_end(found):
            if not self._between:
                self._walk(found, 2)
            if not self._closed:
                self._split_at_guess(found)
                self._walk(found)
        if not self._closed and len(self._buffer) > self._most:
            self._fail()

    def _leap(self, found: array[int]) -> None:
        """Objects with the same bytes between any two of them, a window at a time."""
        between, data = self._between, self._buffer
        at, step = _skip(data, 0), len(between) - 1
        if self._closed or between[:1] != b"}" or between[-1:] != b"{" or data[at : at + 1] != b"{":
            return
        while len(data) - at > _LEAP_BYTES:
            cut = data.rfind(between, at, at + _LEAP_BYTES)
            if cut < 0:
                break
            pieces = data[at : cut + 1].split(between)
            try:
                if len(_LINES.decode_lines(b"}\n{".join(pieces))) != len(pieces):
                    break
            except (msgspec.DecodeError, RecursionError):
                break
            # What stands in `between` of the records is not in their pieces: so the starts are the
            # sums of the pieces' sizes, and as much for each piece before.
            sums = list(accumulate(map(len, pieces), initial=self._base + at))
            count = len(pieces)
            wide = step + 1
            flat = array("Q", bytes(16 * count))
            flat[::2] = array(
                "Q", [sums[0], *map(add, sums[1:-1], range(step, count * wide, wide))]
            )
            flat[1:-1:2] = array("Q", list(map(add, sums[1:-1], range(1, count * wide, wide))))
            flat[-1] = self._base + cut + 1
            found.extend(flat)
            self.records += count
            at = cut + step
        self._drop(at)

    def _split_to_end(self, found: array[int]) -> bool:
        """The common case of a whole text in one block: all that is left, closing bracket and all.

        Also what tells a last record from one that goes on: nothing valid can follow the bracket.
        """
        data = self._buffer
        end = len(data.rstrip(_SPACES))
        if data[end - 1 : end] != b"]":
            return False
        window = data[: end - 1]
        raws = _split(window)
        if not raws:
            return False
        self._note(found, raws, window)
        self._close(end)
        return True

    def _split_at_guess(self, found: array[int]) -> None:
        between, data = self._between, self._buffer
        if not between:
            return
        stop = len(data)
        for _ in range(_GUESSES):
            cut = data.rfind(between, 0, stop)
            if cut < 0:
                return
            cut += 1  # `between` starts with the last byte of the record before the comma
            window = data[:cut]
            raws = _split(window)
            if raws:
                self._note(found, raws, window)
                self._drop(data.index(b",", cut) + 1)
                return
            stop = cut + len(between) - 2

    def _walk(self, found: array[int], most: int = -1) -> None:
        """The slow way, which is always right: one value at a time, to the last complete one (or
        `most` of them)."""
        if self.failed:
            return
        data = self._buffer
        text = data.decode("latin-1")
        at, kept = 0, 0
        try:
            while most:
                most -= 1
                start = _skip(data, at)
                if start == len(data):
                    break
                end = _STEP.raw_decode(text, start)[1]
                after = _skip(data, end)
                mark = data[after : after + 1]
                if mark == b"," or mark == b"]":
                    found.extend((self._base + start, self._base + end))
                    self.records += 1
                    self.objects = self.objects and data[start] == _BRACE
                    kept = at = after + 1
                    if mark == b"]":
                        self._close(kept)
                        return
                    following = _skip(data, at)
                    if following < len(data):
                        self._between = data[end - 1 : following + 1]
                    continue
                if mark:
                    self._fail()
                    return
                break
        except json.JSONDecodeError as error:
            # Cut short, or wrong: only more bytes can tell, unless what is wrong is at its start.
            if error.msg.startswith("Expecting value") and error.pos < len(data) - 16:
                self._fail()
                return
        except RecursionError:
            self._fail()
            return
        self._drop(kept)

    # --- bookkeeping -----------------------------------------------------------------------------

    def _note(self, found: array[int], raws: list[msgspec.Raw], window: bytes) -> None:
        """Add the offsets of `raws`, which are the records of `window` in their order."""
        sizes = [len(memoryview(raw)) for raw in raws]
        at = _skip(window, 0)
        gap = window[at + sizes[0] : _skip(window, _skip(window, at + sizes[0]) + 1)]
        starts: list[int] = []
        if gap.join(raws) == window[at:].rstrip(_SPACES):
            # The same bytes stand between any two records, as nearly always: so add up the sizes.
            width = len(gap)
            starts = [*accumulate([size + width for size in sizes[:-1]], initial=at)]
        else:
            for size in sizes:
                starts.append(at)
                at = _skip(window, _skip(window, at + size) + 1)
        if self.objects:
            self.objects = set(map(window.__getitem__, starts)) == {_BRACE}
        self.records += len(sizes)
        base = self._base
        if base:
            starts = [start + base for start in starts]
        flat = array("Q", bytes(16 * len(sizes)))
        flat[::2] = array("Q", starts)
        flat[1::2] = array("Q", list(map(add, starts, sizes)))
        found.extend(flat)

    def _drop(self, count: int) -> None:
        self._buffer = self._buffer[count:]
        self._base += count

    def _close(self, end: int) -> None:
        self._closed = True
        self._drop(end)
        self._only_space()

    def _only_space(self) -> None:
        if self._buffer.strip(_SPACES):
            self._fail()
        self._drop(len(self._buffer))

    def _fail(self) -> None:
        self.failed = True
        self._buffer = b""


def by_record(head: bytes) -> bool:
    """Whether a line of this text should be a record: it is a JSON array with fewer physical lines
    than records. `head` is its first `HEAD_BYTES`, or all of it."""
    head = head[:HEAD_BYTES]
    scanner = ArrayScanner()
    spans = scanner.feed(head)
    if len(spans) >= 4:
        return head.count(b"\n", 0, spans[-1]) + 1 < len(spans) // 2
    # One record alone fills the head: as long as it has not broken a line, count records.
    return (
        not scanner.failed
        and len(head) >= HEAD_BYTES
        and head.removeprefix(_BOM).lstrip(_SPACES)[:1] == b"["
        and b"\n" not in head
    )


def _split(window: bytes) -> list[msgspec.Raw] | None:
    try:
        return _SPLIT.decode(b"[%b]" % window)
    except (msgspec.DecodeError, RecursionError):
        return None


def _skip(data: bytes, at: int) -> int:
    found = _SPACE.match(data, at)
    return found.end() if found else at
