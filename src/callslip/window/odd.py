"""The odd ones out among records: the few failed among many ok.

A field says how a record fared by its name (`status`, `exit_code`, `ok`), and what is usual there
is found in a part of the records. The rest is searched for anything else, in linear time. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from callslip.window.columns import literal
from callslip.window.rowtext import json_rows

__all__ = ["Usual", "Watch", "usual_of"]

_STATUS = re.compile(
    r"(?:.*[_.\- ])?(?:status|state|result|outcome|conclusion|level|severity|verdict|health"
    r"|success|succeeded|ok|passed|exit_?code|return_?code|rc|error|failed|is_?error)"
    r"|.*(?:Status|State|Result|Outcome|ExitCode|ReturnCode|Level|Severity)",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"(?:.*[_\W])?(?:fail(?:ed|ure|ing|s)?|err(?:or|ed|ors)?|fatal|crit(?:ical)?|panic|exception"
    r"|time(?:d[_ ]?)?out|denied|rejected|refused|abort(?:ed)?|cancel(?:l?ed)?|crash(?:ed)?"
    r"|unhealthy|down|dead|broken|unreachable|invalid|alert|emerg(?:ency)?)",
    re.IGNORECASE,
)
_GOOD_FLAG = re.compile(r"(?:.*[_.\- ])?(?:success|succeeded|ok|passed)", re.IGNORECASE)
_BAD_FLAG = re.compile(r"(?:.*[_.\- ])?(?:error|failed|is_?error)", re.IGNORECASE)
_CODE = re.compile(r"(?:.*[_.\- ])?(?:exit_?code|return_?code|rc)", re.IGNORECASE)

_PLAIN: Final = frozenset({str, bool, int, type(None)})
_VALUE: Final = 40
_MOST_USUAL: Final = 4
_CHECKED: Final = 2_000
_KEPT: Final = 6


class Usual:
    """What most records have in one field; a record with anything else is odd.

    `values` are JSON texts, the most frequent first.
    """

    __slots__ = ("field", "raw", "values")

    def __init__(self, field: str, values: Sequence[str], raw: frozenset[Any]) -> None:
        self.field = field
        self.values = tuple(values)
        self.raw = raw

    def is_odd(self, record: Mapping[str, Any]) -> bool:
        value = record.get(self.field)
        return type(value) not in _PLAIN or (type(value), value) not in self.raw


def usual_of(records: Sequence[Mapping[str, Any]]) -> Usual | None:
    """The field that tells how records fared and what is usual in it; None where none does.

    Usual is what does not sound like a failure and is not rare; it must be four fifths at least.
    """
    names: dict[str, None] = {}
    for record in records[:50]:
        names.update(dict.fromkeys(name for name in record if len(name) <= 80))
    best: tuple[int, Usual] | None = None
    for name in names:
        if not _STATUS.fullmatch(name):
            continue
        found = _usual_in(name, [record.get(name) for record in records])
        if found is not None and (best is None or found[0] > best[0]):
            best = found
    return None if best is None else best[1]


def _usual_in(name: str, values: Sequence[Any]) -> tuple[int, Usual] | None:
    """How much the field tells (failures count most), and what is usual in it."""
    if len(values) < 5 or not _PLAIN.issuperset(map(type, values)):
        return None
    # True == 1: the type keeps them apart.
    counts: Counter[Any] = Counter(zip(map(type, values), values, strict=True))
    if len(counts) > max(20, len(values) // 20):
        return None
    if any(type(value) is str and len(value) > _VALUE for _, value in counts):
        return None
    total = len(values)
    bad = {key for key in counts if _is_bad(name, key[1])}
    usual = [key for key, count in counts.most_common() if key not in bad and count * 50 >= total]
    if not usual or len(usual) > _MOST_USUAL:
        return None
    covered = sum(counts[key] for key in usual)
    if covered * 5 < total * 4:
        return None
    failures = sum(counts[key] for key in bad)
    # What no record has yet may still come: a field that can fail is watched all the same.
    worth = 2 * (failures > 0) + (covered < total)
    return worth, Usual(name, [literal(key[1]) for key in usual], frozenset(usual))


def _is_bad(name: str, value: Any) -> bool:
    if type(value) is bool:
        return (not value and bool(_GOOD_FLAG.fullmatch(name))) or (
            value and bool(_BAD_FLAG.fullmatch(name))
        )
    if type(value) is int:
        return value != 0 and bool(_CODE.fullmatch(name))
    if type(value) is str:
        return bool(_BAD.fullmatch(value)) or (bool(value) and bool(_BAD_FLAG.fullmatch(name)))
    return False


class Watch:
    """Looks for odd records in JSON text, without reading the records that are as usual.

    `kept` are the first few by number, `found` how many there are; `more` says that so many records
    had to be read that it stopped there.
    """

    def __init__(self, usual: Usual, separator: bytes) -> None:
        import msgspec
        import re2  # type: ignore[import-untyped,unused-ignore]

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        words: list[bytes] = []
        for _, value in usual.raw:
            word = msgspec.json.encode(value)
            # A string ends with its quote; of anything else the end must be seen.
            ends = (b"",) if type(value) is str else (b",", b"}", b" ", b"\n", b"\r", b"\t")
            words += [word + end for end in ends]
        key = msgspec.json.encode(usual.field) + separator
        pattern = re.escape(key) + _other_than(words)
        self._pattern: Any = re2.compile(pattern, options)
        self._usual = usual
        self._checked = 0
        self.kept: list[tuple[int, bytes]] = []
        self.found = 0
        self.more = False

    def look(self, block: bytes, starts: Sequence[int], ends: Sequence[int], first: int) -> None:
        """Look at the records that lie in `block` at these offsets; `first` is the first's number.

        The records are in order and do not overlap.
        """
        if self.more or not len(starts):
            return
        before = -1
        for match in self._pattern.finditer(block, starts[0], ends[-1]):
            at = bisect_right(starts, match.start()) - 1
            if at == before or match.start() >= ends[at]:
                continue
            before = at
            self._checked += 1
            if self._checked > _CHECKED:
                self.more = True
                return
            # The key may stand in a nested object, so the record itself has to say it.
            raw = block[starts[at] : ends[at]]
            row = json_rows([raw])[0]
            if row is None or not self._usual.is_odd(row):
                continue
            self.found += 1
            if len(self.kept) < _KEPT:
                self.kept.append((first + at, raw))


def _other_than(words: Iterable[bytes]) -> bytes:
    """A pattern for text that begins with none of `words`, as short as the difference shows."""
    tree: dict[int, Any] = {}
    for word in words:
        node = tree
        for byte in word:
            node = node.setdefault(byte, {})
    # Blanks before a value are not its beginning.
    return _differs(tree, b" \t\r\n")


def _differs(node: dict[int, Any], besides: bytes = b"") -> bytes:
    known = [*node, *(byte for byte in besides if byte not in node)]
    other = b"[^" + b"".join(b"\\x%02x" % byte for byte in known) + b"]"
    deeper = [b"\\x%02x" % byte + _differs(node[byte]) for byte in node if node[byte]]
    return b"(?:" + b"|".join([other, *deeper]) + b")"
