"""Fields by name, and their values replaced where they stand: in JSON, and in JSON within texts.

A plain name is a field of that name at any depth; `user.ssn` is a field `ssn` of a field `user`, or
one that is itself called `user.ssn`. Case does not matter. Of a list each item is replaced. All
else keeps its bytes.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from callslip.stacks.hiding.scan import (
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

__all__ = ["Fields", "Said"]

logger = logging.getLogger("callslip")

Said = Callable[[Any], Any]
_OBJECT_MOST: Final = 16 * 1024
"""Bytes of a text that are searched for the end of a value that begins in it: a text may begin many
that never end."""

_DEEP: Final = 16
"""How deep masked fields are followed into each other, into lists and into JSON inside strings;
what lies deeper is hidden as a whole."""

_OPEN_MOST: Final = 20
"""Values without an end that are looked for in one piece of a text; then they are taken for such."""

_TOKENS = re.compile(rb'"([^"\\\n]*+)"|"(?:[^"\\]|\\.)*+"', re.DOTALL)
_ESCAPED = rb"\\u[0-9a-fA-F]{4}"
_LINE_END = re.compile(rb"[\r\n]|\Z")


class Fields:
    """The fields that are masked, each with the function that says what is shown."""

    def __init__(self, fields: Mapping[str, Said]) -> None:
        self._flat: dict[str, Said] = {}
        self._below: dict[str, list[tuple[tuple[str, ...], Said]]] = {}
        self._told: set[str] = set()
        self._lone: dict[str, re.Pattern[bytes]] = {}
        for name, said in fields.items():
            low = name.lower()
            self._flat[low] = said
            first, *rest = low.split(".")
            if first and all(rest) and rest:
                self._below.setdefault(first, []).append((tuple(rest), said))
        self._plainly = {
            name.encode("utf-8", "surrogatepass") for name in {*self._flat, *self._below}
        }
        every = sorted({*self._flat, *self._below}, key=len, reverse=True)
        last = {name.split(".")[-1] or name for name in self._flat} | set(self._flat)
        names = b"|".join(re.escape(name.encode("utf-8", "surrogatepass")) for name in every)
        near = b"|".join(re.escape(name.encode("utf-8", "surrogatepass")) for name in last)
        self._near = re.compile(near + b"|" + _ESCAPED, re.IGNORECASE)
        self._keys = re.compile(rb'"(' + names + rb')"[ \t\r\n]*:[ \t\r\n]*', re.IGNORECASE)
        self._values = re.compile(rb'"(?:' + names + rb')"[ \t\r\n]*[,}\]]', re.IGNORECASE)
        self._texts = re.compile(
            rb"(\\*)([\"'])(" + names + rb")\1\2[ \t\r\n]*:[ \t\r\n]*", re.IGNORECASE
        )

    def of(self, name: str) -> Said | None:
        """The function of a field of that very name; None if it is not masked."""
        return self._flat.get(name.strip().lower())

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
            json.dumps(found, allow_nan=False)
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
        return self._strings(raw, final, deep) if b"\\" in raw else self._plain(raw, final, deep)

    def _plain(self, raw: bytes, final: bool, deep: int) -> tuple[bytes, int]:
        """Without a backslash every quote is a string's: names can be searched for."""
        out: list[bytes] = []
        done = 0
        for match in self._keys.finditer(raw):
            start = match.end()
            if match.start() < done:
                continue
            end = value_end(raw, start)
            if end is None:
                if not final:
                    return b"".join([*out, raw[done : match.start()]]), match.start()
                return b"".join([*out, raw[done:start], HIDDEN_JSON]), len(raw)
            if end == start:
                continue
            key = match[1].decode("utf-8", "surrogatepass").lower()
            out += raw[done:start], self._value(key, raw[start:end], deep)
            done = end
        return b"".join([*out, raw[done:]]), len(raw)

    def _strings(self, raw: bytes, final: bool, deep: int) -> tuple[bytes, int]:
        """String by string: a key may be written with escapes, a string may hold JSON."""
        out: list[bytes] = []
        done = end = 0
        for token in _TOKENS.finditer(raw):
            end, plain = token.end(), token[1]
            if plain is not None and plain.lower() not in self._plainly and plain.isascii():
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
                if plain is not None or not self.near(token[0]):
                    continue
                new, at = self._inner(token[0], deep), end
            else:
                key = text_of(token[0]).lower()
                start = skip(raw, colon + 1)
                if key not in self._flat and key not in self._below:
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
        new = self.json(raw, deep=deep + 1)[0] if opens else self.text(raw)[0]
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
            return raw
        flat = raw[:1] == b"{" and not (b"\\" in raw or b"[" in raw or b"{" in raw[1:])
        if flat and not rest[1:] and (quick := self._within(raw, rest[0], said)) is not None:
            return quick
        parts = members(raw) if raw[:1] == b"{" else [("", *at) for at in items(raw) or ()]
        if parts is None or (not parts and self.near(raw)):
            return HIDDEN_JSON  # it does not parse: what is masked in it cannot be told
        out: list[bytes] = []
        done = 0
        for key, start, end in parts:
            if raw[:1] == b"{" and key.lower() != rest[0]:
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
            written = re.escape(name.encode("utf-8", "surrogatepass"))
            keys = re.compile(rb'"' + written + rb'"[ \t\r\n]*(:?)[ \t\r\n]*', re.IGNORECASE)
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
        return _dumped(self.shown(key, said, _loaded(raw)))

    # --- JSON within a text -----------------------------------------------------------------------

    def text(self, raw: bytes, *, final: bool = True) -> tuple[bytes, int]:
        """A text with the values replaced in whatever it holds of JSON, or of Python's own form; and
        how much of `raw` that is, as for `json`.

        Names in other clothes (`ssn=1`, `<ssn>1</ssn>`) are no fields.
        """
        if not self._near.search(raw):
            return raw, len(raw)
        out: list[bytes] = []
        done, most, left = 0, _OBJECT_MOST, _OPEN_MOST
        for match in self._texts.finditer(raw):
            if match.start() < done:
                continue
            key = match[3].decode("utf-8", "surrogatepass").lower()
            start = match.end()
            short = len(raw) - start < most
            if short and not final and not match[1] and value_end(raw, start) is None:
                return b"".join([*out, raw[done : match.start()]]), match.start()
            new, end = self._in_text(key, raw, start, match[1], most)
            if new is HIDDEN_JSON and (left := left - 1) == 0:
                most = 64
            out += raw[done:start], new
            done = end
        return b"".join([*out, raw[done:]]), len(raw)

    def _in_text(
        self, key: str, raw: bytes, start: int, escape: bytes, most: int
    ) -> tuple[bytes, int]:
        """What takes the place of the value at `start`, whose quotes have `escape` before them."""
        mark = raw[start : start + len(escape) + 1]
        if escape and mark[: len(escape)] == escape and mark[-1:] in (b'"', b"'"):
            end = raw.find(mark, start + len(mark))
            while end > 0 and raw[end - 1 : end] == b"\\":
                end = raw.find(mark, end + 1)
            if end < 0:
                return mark + HIDDEN.encode() + mark, _line_end(raw, start)
            value: Any = decoded(raw[start + len(mark) : end])
            return mark + self._said(key, value, mark) + mark, end + len(mark)
        if escape and mark[:1] in (b"{", b"["):
            return HIDDEN.encode(), _line_end(raw, start)
        stop = value_end(raw, start, most)
        if stop is None:
            return HIDDEN_JSON, _line_end(raw, start)
        if stop == start:
            return b"", start
        found = raw[start:stop]
        if mark[:1] == b"'":
            value = decoded(found[1:-1])
            return b"'" + self._said(key, value, b"'") + b"'", stop
        return self._value(key, found, 0), stop

    def _said(self, key: str, value: Any, mark: bytes) -> bytes:
        """What is shown of a text, without what would end it early."""
        said = self._flat.get(key)
        new = HIDDEN if said is None else self.shown(key, said, value)
        text = new if isinstance(new, str) else json.dumps(new)
        for char in ("\\", mark[-1:].decode(), "\n"):
            text = text.replace(char, " ")
        return text.encode("utf-8", "surrogatepass")


def _line_end(raw: bytes, at: int) -> int:
    match = _LINE_END.search(raw, at)
    return match.start() if match else len(raw)


def _is_string(raw: bytes) -> bool:
    """Whether a text is a JSON string itself, and not just something in quotes."""
    text = raw.strip()
    match = STRING.match(text)
    return match is not None and match.end() == len(text)


def _dumped(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _loaded(raw: bytes) -> Any:
    text = decoded(raw)
    try:
        return json.loads(text, strict=False)
    except ValueError:
        return text
