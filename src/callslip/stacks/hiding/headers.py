"""Rows that are lists, under names that stand in a list of their own: `{"columns": ["id", "ssn"],
"data": [[1, "…"]]}`, a first row of names, or `"columns": [{"name": "ssn", "type": "text"}]`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from callslip.stacks.hiding.fields import Fields
from callslip.stacks.hiding.scan import HIDDEN_JSON, STRING, items, members, text_of

__all__ = ["Headers"]

_OPENS = re.compile(rb'["\[]')
_COLUMNS = 2_000
_NAMED = frozenset({"name", "field", "column", "column_name", "columnname", "label", "key", "id"})


_WORK = 16
"""How often the bytes are looked at in search of lists: lists in lists are looked at once each."""


class _TooTangledError(Exception):
    pass


class Headers:
    """The lists of names that a content had so far: lists as long as one of them are its rows."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._known: dict[int, dict[int, str]] = {}

    def shown(self, raw: bytes) -> bytes:
        """The next bytes of the content, whole records of it, with the rows under masked names
        replaced."""
        try:
            return self._shown(raw)
        except (_TooTangledError, RecursionError):
            return HIDDEN_JSON

    def _shown(self, raw: bytes) -> bytes:
        if self._fields.named(raw):
            for _, parts in _lists(raw):
                self._learn(raw, parts)
        if not self._known:
            return raw
        out: list[bytes] = []
        done = 0
        for start, parts in _lists(raw):
            masked = self._known.get(len(parts))
            if masked is None or start < done or self._is_rows(raw, parts):
                continue
            # A row may well hold such a name: only what is one is left as it is.
            names = self._names(raw, parts)
            for place, name in sorted(masked.items()):
                begin, end = parts[place]
                if place not in names:
                    out += raw[done:begin], self._fields.value(name, raw[begin:end])
                    done = end
        return b"".join([*out, raw[done:]])

    def _learn(self, raw: bytes, parts: list[tuple[int, int]]) -> None:
        for place, name in self._names(raw, parts).items():
            self._known.setdefault(len(parts), {})[place] = name

    def _is_rows(self, raw: bytes, parts: list[tuple[int, int]]) -> bool:
        """Whether a list is one of rows that has as many of them as they have fields, and not a row
        of `{"v": …}` each, nor one whose items are columns of another length."""
        firsts = {raw[begin : begin + 1] for begin, _ in parts}
        if firsts == {b"["}:
            return any(len(items(raw, begin) or ()) == len(parts) for begin, _ in parts)
        if firsts != {b"{"}:
            return firsts == {b"[", b"{"}
        held = [members(raw[begin:end]) or () for begin, end in parts]
        keys = {members_[0][0] for members_ in held if len(members_) == 1}
        return not (len(keys) == 1 and all(len(members_) == 1 for members_ in held))

    def _names(self, raw: bytes, parts: list[tuple[int, int]]) -> dict[int, str]:
        """Which items of a list are masked names."""
        found: dict[int, str] = {}
        if len(parts) > _COLUMNS:
            return found
        for place, (start, end) in enumerate(parts):
            first = raw[start : start + 1]
            if first == b'"':
                names = [text_of(raw[start:end])]
            elif first == b"{":
                held = members(raw[start:end]) or ()
                values = [raw[start + a : start + b] for key, a, b in held if key.lower() in _NAMED]
                names = [text_of(value) for value in values if value[:1] == b'"']
            else:
                return {}
            for name in names:
                if self._fields.holds(name):
                    found[place] = name
        return found


def _lists(raw: bytes) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Where each list starts and its items, a list before those inside it."""
    at = 0
    left = _WORK * len(raw) + 1_000_000
    while (mark := _OPENS.search(raw, at)) is not None:
        at = mark.end()
        if mark[0] == b'"':
            string = STRING.match(raw, mark.start())
            if string is None:
                return
            at = string.end()
            continue
        parts = items(raw, mark.start())
        left -= (
            len(raw) - mark.start()
            if parts is None
            else parts[-1][1] - mark.start()
            if parts
            else 2
        )
        if left < 0:
            raise _TooTangledError
        if parts:
            yield mark.start(), parts
