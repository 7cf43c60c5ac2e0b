"""Fields by name, and their values replaced where they stand: in JSON, and in JSON within texts.

A plain name is a field of that name at any depth; `user.ssn` is a field `ssn` of a field `user`, or
one that is itself called `user.ssn`. Neither case matters nor how a character is written. Of a list each item is replaced. All
else keeps its bytes.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from callslip.stacks.hiding.literals import CONTAINERS, NO_VALUE, literal
from callslip.stacks.hiding.names import folded, parts_of, written
from callslip.stacks.hiding.scan import (
    DECODER,
    HIDDEN,
    HIDDEN_JSON,
    STRING,
    decoded,
    items,
    members,
    skip,
    text_of,
    value_end,
)
from callslip.stacks.hiding.texts import text_shown

__all__ = ["Fields", "Said"]

logger = logging.getLogger("callslip")

Said = Callable[[Any], Any]

_MANY: Final = frozenset({tuple, set, list})
_DEEP: Final = 16
"""How deep masked fields are followed into each other, into lists and into JSON inside strings;
what lies deeper is hidden as a whole."""

_TOKENS = re.compile(rb'"([^"\\\n]*+)"|"(?:[^"\\]|\\.)*+"', re.DOTALL)
_ESCAPED = rb"\\u[0-9a-fA-F]{4}"

# Made once: json.loads and json.dumps make one for each value where an option is given.
_STRICT = json.JSONEncoder(allow_nan=False)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class _TornError(Exception):
    pass


def _no_table(fields: Fields, raw: bytes) -> bytes | None:
    return None


class Fields:
    """The fields that are masked, each with the function that says what is shown.

    `table` says what is shown of a table within a string, None if it is none.
    """

    def __init__(
        self,
        fields: Mapping[str, Said],
        table: Callable[[Fields, bytes], bytes | None] = _no_table,
    ) -> None:
        self.table = table
        self._flat: dict[str, Said] = {}
        self._below: dict[str, list[tuple[tuple[str, ...], Said]]] = {}
        self._told: set[str] = set()
        self._lone: dict[str, re.Pattern[bytes]] = {}
        for name, said in fields.items():
            low = folded(name)
            self._flat[low] = said
            first, *rest = low.split(".")
            if first and all(rest) and rest:
                self._below.setdefault(first, []).append((tuple(rest), said))
        self._plainly = {
            name.encode("utf-8", "surrogatepass") for name in {*self._flat, *self._below}
        }
        every = sorted({*self._flat, *self._below}, key=len, reverse=True)
        last = {name.split(".")[-1] or name for name in self._flat} | set(self._flat)
        sharp = any("\u00df" in name.lower() for name in fields)
        names = b"|".join(written(name, sharp=sharp) for name in every)
        escaped = b"|".join(written(name, sharp=sharp, escaped=True) for name in every)
        near = b"|".join(written(name, sharp=sharp) for name in sorted(last))
        self._sharp = sharp
        self._near = re.compile(near + b"|" + _ESCAPED, re.IGNORECASE)
        self._keys = re.compile(rb'"(' + names + rb')"[ \t\r\n]*:[ \t\r\n]*', re.IGNORECASE)
        self._single = re.compile(rb"'(?:" + names + rb")'", re.IGNORECASE)
        self._values = re.compile(rb'"(?:' + escaped + rb')"[ \t\r\n]*[,}\]]', re.IGNORECASE)
        self._texts, self._escaped_texts = (
            re.compile(
                rb"(\\{0,64})([\"'])(" + ways + rb")\1\2[ \t\r\n]*:[ \t\r\n]*", re.IGNORECASE
            )
            for ways in (names, escaped)
        )

    def of(self, name: str) -> Said | None:
        """The function of a field of that very name; None if it is not masked."""
        return self._flat.get(self.key(name.strip()))

    def key(self, name: str) -> str:
        """The name of a field as the masked ones are known by it."""
        key = folded(name)
        if key in self._flat or key in self._below:
            return key
        return next((part for part in map(folded, parts_of(name)) if part in self._flat), key)

    def holds(self, name: str) -> bool:
        """Whether a field of that very name is masked, or one within it."""
        key = self.key(name.strip())
        return key in self._flat or key in self._below

    def value(self, name: str, raw: bytes) -> bytes:
        """What is shown of the JSON value of a field that `holds` says to be masked."""
        return self._value(self.key(name.strip()), raw, 0)

    def named(self, raw: bytes) -> bool:
        """Whether a masked name may stand in these bytes as a value, and not only as a key."""
        return self._values.search(raw) is not None

    def near(self, raw: bytes) -> bool:
        """Whether a masked name may stand in these bytes."""
        return self._near.search(raw) is not None

    def shown(self, name: str, said: Said, value: Any) -> str | int | float | bool | Any:
        """What is shown of a value, as JSON has it; `[hidden]` where its function raises."""
        try:
            found = said(value)
            if type(found) is not str:
                _STRICT.encode(found)
        except Exception as error:  # noqa: BLE001 - whatever it is, the value is not shown
            if name not in self._told:
                self._told.add(name)
                # Without the error's own words: they may quote the value.
                kind = type(error).__name__
                logger.error("mask= raised %s for a %s; such values are hidden", kind, name)
            return HIDDEN
        return found

    # --- JSON -------------------------------------------------------------------------------------

    def json(self, raw: bytes, *, final: bool = True, deep: int = 0) -> tuple[bytes, int]:
        """JSON text with the values replaced, and how much of `raw` that is: all of it, unless it is
        not `final` and the value of a masked field has not ended yet."""
        if not self.near(raw):
            return raw, len(raw)
        look = self._strings if self._tricky(raw) else self._plain
        return look(raw, final, deep)

    def _tricky(self, raw: bytes) -> bool:
        return b"\\" in raw or (b"'" in raw and self._single.search(raw) is not None)

    def lines(self, raw: bytes) -> bytes:
        """Lines of JSON, one value in each; one that is torn does not shift where strings start in
        the next."""
        if not self.near(raw):
            return raw
        if not self._tricky(raw):
            try:
                return self._plain(raw, True, 0, lines=True)[0]
            except _TornError:
                pass
        found: list[bytes] = []
        for line in raw.splitlines(keepends=True):
            bare = line.rstrip(b"\r\n")
            found += self.json(bare)[0], line[len(bare) :]
        return b"".join(found)

    def _plain(
        self, raw: bytes, final: bool, deep: int, *, lines: bool = False
    ) -> tuple[bytes, int]:
        """Without a backslash every quote is a string's: names can be searched for."""
        out: list[bytes] = []
        done = at = 0
        while (match := self._keys.search(raw, at)) is not None:
            start = match.end()
            end = value_end(raw, start)
            if lines and (end is None or b"\n" in raw[start:end]):
                raise _TornError
            if end is None:
                if not final:
                    return b"".join([*out, raw[done : match.start()]]), match.start()
                return b"".join([*out, raw[done:start], HIDDEN_JSON]), len(raw)
            at = start
            if end > start:
                key = folded(match[1].decode("utf-8", "surrogatepass"))
                out += raw[done:start], self._value(key, raw[start:end], deep)
                # Of a string that was torn, the end may be where a key starts.
                done, at = end, end - 1
        return b"".join([*out, raw[done:]]), len(raw)

    def _strings(self, raw: bytes, final: bool, deep: int) -> tuple[bytes, int]:
        """String by string: a key may be written with escapes, a string may hold JSON."""
        out: list[bytes] = []
        done = end = 0
        for token in _TOKENS.finditer(raw):
            end, plain = token.end(), token[1]
            known = plain is None or plain.lower() in self._plainly or not plain.isascii()
            if not known and b"'" not in plain:
                continue
            quote = token.start()
            if quote < done:
                continue
            colon = skip(raw, end)
            is_key = raw[colon : colon + 1] == b":"
            if plain is None and b"\n" in token[0] and self.near(token[0]):
                # No JSON string has a line end in it: where strings start is not known here.
                new, at = HIDDEN_JSON, end
            elif not is_key:
                if not self.near(token[0]):
                    continue
                new, at = self._inner(token[0], deep), end
            else:
                key = self.key(text_of(token[0]))
                start = skip(raw, colon + 1)
                if key not in self._flat and key not in self._below:
                    if self.near(token[0]):
                        out += raw[done:quote], self._inner(token[0], deep)
                        done = end
                    continue
                stop = value_end(raw, start)
                if stop is None:
                    if not final:
                        return b"".join([*out, raw[done:quote]]), quote
                    return b"".join([*out, raw[done:start], HIDDEN_JSON]), len(raw)
                if stop == start:
                    continue
                quote, new, at = start, self._value(key, raw[start:stop], deep), stop
            out += raw[done:quote], new
            done = at
        quote = raw.find(b'"', max(done, end))
        if quote < 0:
            return b"".join([*out, raw[done:]]), len(raw)
        # A string that does not end.
        if not final:
            return b"".join([*out, raw[done:quote]]), quote
        rest = HIDDEN_JSON if self.near(raw[quote:]) else raw[quote:]
        return b"".join([*out, raw[done:quote], rest]), len(raw)

    def _inner(self, token: bytes, deep: int) -> bytes:
        """A string that may hold JSON."""
        if deep >= _DEEP:
            return HIDDEN_JSON
        text = text_of(token)
        raw = text.encode("utf-8", "surrogatepass")
        if not self.near(raw):
            return token
        opens = raw.lstrip()[:1] in (b"{", b"[") or _is_string(raw)
        if opens and self._single.search(raw) and not _parses(text):
            opens = False  # Python's own form
        if opens:
            new = self.json(raw, deep=deep + 1)[0]
        else:
            new = (b"\n" in raw and self.table(self, raw)) or self.text(raw)[0]
        return token if new == raw else _dumped(new.decode("utf-8", "surrogatepass"))

    def _value(self, key: str, raw: bytes, deep: int) -> bytes:
        try:
            return self._known(key, raw, deep)
        except RecursionError:
            return HIDDEN_JSON

    def _known(self, key: str, raw: bytes, deep: int) -> bytes:
        said = self._flat.get(key)
        if said is not None:
            return self.replaced(key, said, raw)
        if deep >= _DEEP:
            return HIDDEN_JSON
        new = self.json(raw, deep=deep + 1)[0]
        for rest, said in self._below[key]:
            new = self._inside(new, rest, said, deep)
        return new

    def _inside(self, raw: bytes, rest: tuple[str, ...], said: Said, deep: int) -> bytes:
        """The field at `rest` replaced in an object, or in each object of a list."""
        if raw[:1] == b'"':
            inner = text_of(raw).encode("utf-8", "surrogatepass").strip()
            if inner[:1] not in (b"{", b"["):
                return raw
            if deep >= _DEEP:
                return HIDDEN_JSON
            new = self._inside(inner, rest, said, deep + 1)
            return raw if new == inner else _dumped(new.decode("utf-8", "surrogatepass"))
        if raw[:1] not in (b"{", b"["):
            return HIDDEN_JSON if self.near(raw) else raw
        flat = raw[:1] == b"{" and not (b"\\" in raw or b"[" in raw or b"{" in raw[1:])
        if flat and not rest[1:] and (quick := self._within(raw, rest[0], said)) is not None:
            return quick
        parts = members(raw) if raw[:1] == b"{" else [("", *at) for at in items(raw) or ()]
        if parts is None or (not parts and self.near(raw)):
            return HIDDEN_JSON  # it does not parse: what is masked in it cannot be told
        out: list[bytes] = []
        done = 0
        for key, start, end in parts:
            if raw[:1] == b"{" and folded(key) != rest[0]:
                continue
            value = raw[start:end]
            if raw[:1] == b"[":
                value = self._inside(value, rest, said, deep)
            elif rest[1:]:
                value = self._inside(value, rest[1:], said, deep)
            else:
                value = self.replaced(key, said, value)
            out += raw[done:start], value
            done = end
        return b"".join([*out, raw[done:]])

    def _within(self, raw: bytes, name: str, said: Said) -> bytes | None:
        """The field replaced in an object that holds no other, nor a backslash: found by its name.
        None where that says too little."""
        keys = self._lone.get(name)
        if keys is None:
            ways = written(name, sharp=self._sharp)
            keys = re.compile(rb'"' + ways + rb'"[ \t\r\n]*(:?)[ \t\r\n]*', re.IGNORECASE)
            self._lone[name] = keys
        match = keys.search(raw)
        if match is None:
            return None if self.near(raw) else raw
        start = match.end()
        end = value_end(raw, start)
        if not match[1] or end is None or end == start or keys.search(raw, end) is not None:
            return None
        return raw[:start] + self.replaced(name, said, raw[start:end]) + raw[end:]

    def replaced(self, key: str, said: Said, raw: bytes, deep: int = 0) -> bytes:
        """What is shown of a JSON value; of a list, of each of its items."""
        if raw[:1] == b"[":
            places = items(raw) if deep < _DEEP else None
            if places is None:
                return HIDDEN_JSON
            out: list[bytes] = []
            done = 0
            for start, end in places:
                out += raw[done:start], self.replaced(key, said, raw[start:end], deep + 1)
                done = end
            return b"".join([*out, raw[done:]])
        value = _loaded(raw)
        if value is NO_VALUE:
            return HIDDEN_JSON
        if type(value) in _MANY:
            return _dumped([self.shown(key, said, item) for item in value])
        return _dumped(self.shown(key, said, value))

    # --- JSON within a text -----------------------------------------------------------------------

    def text(self, raw: bytes, *, final: bool = True) -> tuple[bytes, int]:
        """A text with the values replaced in whatever it holds of JSON, or of Python's own form; and
        how much of `raw` that is, as for `json`.

        Names in other clothes (`ssn=1`, `<ssn>1</ssn>`) are no fields.
        """
        if not self._near.search(raw):
            return raw, len(raw)
        keys = self._escaped_texts if b"\\u" in raw else self._texts
        return text_shown(self, keys, raw, final=final)

    def told(self, key: str, value: Any) -> Any:
        """What is shown of the value of a `key` that stands in a text."""
        said = self._flat.get(key)
        return HIDDEN if said is None else self.shown(key, said, value)

    def plain(self, key: str, raw: bytes) -> bool:
        """Whether nothing of the value of that `key` is masked."""
        return key not in self._flat and not self.near(raw)


def _is_string(raw: bytes) -> bool:
    """Whether a text is a JSON string itself, and not just something in quotes."""
    text = raw.strip()
    match = STRING.match(text)
    return match is not None and match.end() == len(text)


def _parses(text: str) -> bool:
    try:
        DECODER.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _dumped(value: Any) -> bytes:
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def _loaded(raw: bytes) -> Any:
    text = decoded(raw)
    try:
        return DECODER.decode(text)
    except ValueError:
        pass
    value = literal(raw)
    if value is NO_VALUE:
        return NO_VALUE if raw[:1] in CONTAINERS else text
    return decoded(value) if isinstance(value, bytes) else value
