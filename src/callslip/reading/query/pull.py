"""Fields out of records: for each path the values that `json.loads` would give, in blocks.

The quick way decodes a block of records at once and only what is asked for (msgspec skips the rest
of a record without making objects of it). What it does not take (NaN, lone surrogates, containers,
numbers out of range) goes a slower way, record by record where it must, and never fails.

What may live here: bytes in, values out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec

from callslip.reading.together import joined

__all__ = ["Path", "Token", "field_names", "pull", "tokens"]

Path = tuple[str | int, ...]
"""Keys of objects, and places in arrays from 0, from the record inwards."""


class Token(str):
    """The JSON text of an object or an array."""

    __slots__ = ()


_AWKWARD = re.compile('["\\\\\x00-\x1f\ud800-\udfff]')
_SURROGATES = re.compile("[\ud800-\udfff]")
_Scalar = str | int | float | bool | None | msgspec.UnsetType
_ANY_KEYS: msgspec.json.Decoder[list[dict[str, msgspec.Raw]]] = msgspec.json.Decoder(
    list[dict[str, msgspec.Raw]]
)
_ONE: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])


def pull(records: Sequence[bytes], paths: Sequence[Path]) -> list[list[Any]]:
    """For each path one value a record: str, int, float, bool, None, Token or msgspec.UNSET."""
    quick = _quick_decoder(tuple(paths))
    if quick is not None:
        decoder, names = quick
        try:
            found = decoder.decode(joined(records))
        except (msgspec.MsgspecError, RecursionError):
            found = []
        if len(found) == len(records):
            return [_at(found, steps) for steps in names]
    steps: dict[Path, list[bytes]] = {}
    return [_scalars(_walked(records, path, steps)) for path in paths]


# --- the quick way --------------------------------------------------------------------------------


@lru_cache(64)
def _quick_decoder(
    paths: tuple[Path, ...],
) -> tuple[msgspec.json.Decoder[Any], list[tuple[str, ...]]] | None:
    tree: dict[str, Any] = {}
    for path in paths:
        node = tree
        for key in path[:-1]:
            if not isinstance(key, str) or _AWKWARD.search(key):
                return None
            node = node.setdefault(key, {})
            if node is None:
                return None
        last = path[-1]
        if not isinstance(last, str) or _AWKWARD.search(last) or node.get(last, None) is not None:
            return None
        node[last] = None
    places: dict[tuple[str, ...], tuple[str, ...]] = {}
    type_ = _struct(tree, (), (), places)
    names = [places[tuple(str(key) for key in path)] for path in paths]
    return msgspec.json.Decoder(list[type_]), names  # type: ignore[valid-type]


def _struct(
    tree: dict[str, Any],
    keys: tuple[str, ...],
    steps: tuple[str, ...],
    places: dict[tuple[str, ...], tuple[str, ...]],
) -> Any:
    fields: list[tuple[str, Any, Any]] = []
    names: dict[str, str] = {}
    for number, (key, inner) in enumerate(tree.items()):
        name = f"f{number}"
        names[name] = key
        here, step = (*keys, key), (*steps, name)
        if inner is None:
            places[here] = step
            fields.append((name, _Scalar, msgspec.UNSET))
        else:
            type_ = _struct(inner, here, step, places)
            fields.append((name, type_ | None | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct("Record", fields, rename=names, gc=False)


def _at(found: list[Any], steps: tuple[str, ...]) -> list[Any]:
    if len(steps) == 1:
        return list(map(attrgetter(steps[0]), found))
    first, *rest = steps
    values = list(map(attrgetter(first), found))
    for name in rest:
        # None and UNSET have no such attribute: an object that is not there has no fields.
        values = [getattr(value, name, msgspec.UNSET) for value in values]
    return values


# --- the slow way ---------------------------------------------------------------------------------


def tokens(records: Sequence[bytes], path: Path) -> list[bytes]:
    """The exact JSON text at `path` of each record; b"" where there is none."""
    return _walked(records, path, {})


def _walked(records: Sequence[bytes], path: Path, known: dict[Path, list[bytes]]) -> list[bytes]:
    current = list(records)
    for depth, key in enumerate(path):
        here = path[: depth + 1]
        if here not in known:
            known[here] = _step(current, key)
        current = known[here]
    return current


def _step(texts: list[bytes], key: str | int) -> list[bytes]:
    if isinstance(key, int):
        return [_item(text, key) for text in texts]
    places, objects = [], []
    for place, text in enumerate(texts):
        if text[:1] in (b" ", b"\t", b"\r", b"\n"):
            text = text.strip()
        if text[:1] == b"{":
            places.append(place)
            objects.append(text)
    found = [b""] * len(texts)
    try:
        decoded = _ANY_KEYS.decode(joined(objects))
    except (msgspec.MsgspecError, RecursionError):
        decoded = []
    if len(decoded) == len(objects):
        for place, record in zip(places, decoded, strict=True):
            token = record.get(key)
            if token is not None:
                found[place] = bytes(token)
        return found
    for place, text in zip(places, objects, strict=True):
        found[place] = _one(text, key)
    return found


def _one(text: bytes, key: str) -> bytes:
    try:
        return bytes(_ONE.decode(text).get(key, b""))
    except (msgspec.MsgspecError, RecursionError):
        value = _loaded(text)
        if not isinstance(value, dict) or key not in value:
            return b""
        return _dumped(value[key])


def _item(text: bytes, place: int) -> bytes:
    if text[:1] != b"[":
        return b""
    try:
        items = _ITEMS.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        value = _loaded(text)
        if isinstance(value, list) and -len(value) <= place < len(value):
            return _dumped(value[place])
        return b""
    return bytes(items[place]) if -len(items) <= place < len(items) else b""


def _scalars(texts: list[bytes]) -> list[Any]:
    plain = [text if text and text[:1] not in (b"{", b"[") else b"null" for text in texts]
    try:
        values: list[Any] = msgspec.json.decode(joined(plain))
    except (msgspec.MsgspecError, RecursionError):
        values = [_scalar(text) for text in plain]
    for place, text in enumerate(texts):
        if not text:
            values[place] = msgspec.UNSET
        elif text[:1] in (b"{", b"["):
            values[place] = Token(_valid(text))
    return values


def _scalar(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        value = _loaded(text)
        if isinstance(value, float) and math.isnan(value):
            return None
        return _SURROGATES.sub("\ufffd", value) if isinstance(value, str) else value


def _valid(text: bytes) -> str:
    """A container's text, as it is if any parser takes it."""
    if b"\\u" not in text and b"NaN" not in text and b"Infinity" not in text:
        return text.decode("utf-8", "replace")
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return _dumped(_loaded(text)).decode()
    return text.decode("utf-8", "replace")


def _loaded(text: bytes) -> Any:
    """What the standard library reads; None for what even it does not take."""
    try:
        return json.loads(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        try:
            return json.loads(text.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None


def _dumped(value: Any) -> bytes:
    """JSON that every parser takes: NaN as null, lone surrogates as U+FFFD."""
    if isinstance(value, float) and math.isinf(value):
        return b"1e999" if value > 0 else b"-1e999"
    try:
        text = json.dumps(_cleaned(value), ensure_ascii=False)
    except RecursionError:
        return b"null"
    return _SURROGATES.sub("\ufffd", text).encode()


def _cleaned(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    return value


def field_names(records: Sequence[bytes], known: dict[str, None]) -> None:
    """Add the names of the fields of these records to `known`, in the order they turn up."""
    try:
        decoded: list[Any] = list(_ANY_KEYS.decode(joined(records)))
    except (msgspec.MsgspecError, RecursionError):
        decoded = [value for value in map(_loaded, records) if isinstance(value, dict)]
    for record in decoded:
        known.update(dict.fromkeys(record))
