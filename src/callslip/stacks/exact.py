"""The exact form ("twin") of a value: a flat table of nodes, in msgpack.

Flat, so that neither depth nor cycles matter: a container is a node, and a container inside it is a
reference to another node. Nodes stand in the order in which they were finished, parts before
wholes, so that reading them in order always finds the parts built; the exceptions are cycles, which
are closed at the end. A part that occurs twice is one node, and one object again after `decode`.

Restoring imports nothing and runs no code of the stored value's making: classes are looked up among
the modules that are loaded, and rebuilt without their constructors.

What may live here: the node table, both ways. How a value is taken apart: `callslip.stacks.kinds`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from callslip.stacks.kinds import Parts, opaque_repr, take_apart, type_name
from callslip.stacks.rebuild import OPAQUE, REF, Opaque, local_classes, rebuild
from callslip.stacks.scalars import INT, SCALARS, STR

__all__ = ["Opaque", "decode", "encode", "types_of"]

VERSION: Final = 1
_NATIVE: Final = frozenset({str, int, float, bool, type(None), bytes})
_TEXT: Final = frozenset({str})
_LEAVES: Final = _NATIVE | frozenset(SCALARS)
_Ext = msgspec.msgpack.Ext


def encode(value: object, types: tuple[str, ...] = ()) -> bytes:
    """The exact form of any value. `types` is kept beside it, for `types_of`."""
    try:
        return _Encoder(careful=False).run(value, types)
    except (OverflowError, UnicodeEncodeError):
        # An integer of more than 64 bits, or a lone surrogate: msgpack has neither.
        return _Encoder(careful=True).run(value, types)


def types_of(twin: bytes) -> tuple[str, ...]:
    """The names of the types in a stored value that JSON does not have."""
    return tuple(msgspec.msgpack.decode(twin)["types"])


def decode(twin: bytes) -> Any:
    """The value again.

    Raises NotRestorable where a class is not loaded in this process, or no longer is what it was.
    """
    return rebuild(twin)


class _Encoder:
    def __init__(self, careful: bool) -> None:
        self.careful = careful
        self.tickets: dict[int, int] = {}
        self.nodes: list[Any] = []
        self.order: list[int] = []
        self.classes: dict[type, int] = {}
        self.names: list[tuple[str, str]] = []
        self.keep: list[Any] = []

    def run(self, value: object, types: tuple[str, ...]) -> bytes:
        self._walk(value)
        table = {
            "version": VERSION,
            "types": types,
            "classes": self.names,
            "order": self.order,
            "nodes": self.nodes,
            "root": self._part(value),
        }
        return msgspec.msgpack.encode(table)

    def _walk(self, root: object) -> None:
        # Either a value to take apart, or (its ticket, its parts) to write down: all that is in it
        # has been written by then, or is a whole that it is itself inside of.
        stack: list[tuple[Any, int, Parts | None]] = [(root, -1, None)]
        tickets = self.tickets
        while stack:
            item, ticket, parts = stack.pop()
            if parts is not None:
                self._write(ticket, parts)
                continue
            cls = type(item)
            if cls in _NATIVE or cls in SCALARS or id(item) in tickets:
                continue
            ticket = tickets[id(item)] = len(tickets)
            if cls is dict and _all_text(item) and _LEAVES.issuperset(map(type, item.values())):
                # The short way for a record: a dict with `str` keys that holds scalars alone.
                self.keep.append(item)
                self._write(ticket, Parts("dict", list(item.values()), list(item)))
                continue
            parts = take_apart(item)
            if parts.tag == "opaque":
                parts = parts._replace(items=[], cls=None, keys=[type_name(cls)])
            elif parts.tag == "table":
                parts = parts._replace(items=parts.items[1:])
            elif parts.tag == "lost":
                parts = Parts("opaque", [], [type_name(cls)], text=parts.text)
            elif parts.tag == "exception" and not parts.items:
                name = [type_name(cls)]
                parts = Parts("opaque", [], name, text=opaque_repr(item))
            self.keep.append((item, parts.items, parts.keys))
            stack.append((None, ticket, parts))
            if parts.tag != "pydantic" and parts.keys and not _all_text(parts.keys):
                stack += [(key, -1, None) for key in parts.keys if type(key) not in _NATIVE]
            stack += [(part, -1, None) for part in parts.items if type(part) not in _NATIVE]

    def _write(self, ticket: int, parts: Parts) -> None:
        part = self._part
        items = parts.items
        if self.careful or not _NATIVE.issuperset(map(type, items)):
            items = [part(item) for item in items]
        keys = parts.keys
        if keys is not None and not _all_text(keys):
            keys = [part(key) for key in keys]
        elif keys is not None and self.careful:
            keys = [part(key) for key in keys]
            keys = parts.keys if _all_text(keys) else keys
        node: Any
        if parts.tag == "dict" and keys is parts.keys and keys is not None:
            node = dict(zip(keys, items, strict=True))
        elif parts.tag == "list":
            node = ["list", items]
        else:
            text = part(parts.text) if self.careful else parts.text
            node = [parts.tag, items, keys, self._class(parts.cls), text]
        self.order.append(ticket)
        self.nodes.append(node)

    def _class(self, cls: type | None) -> int | None:
        if cls is None:
            return None
        if cls not in self.classes:
            self.classes[cls] = len(self.names)
            self.names.append((cls.__module__, cls.__qualname__))
            local_classes[cls.__module__, cls.__qualname__] = cls
        return self.classes[cls]

    def _part(self, item: Any) -> Any:
        cls = type(item)
        if cls in _NATIVE:
            return self._carefully(item, cls) if self.careful else item
        row = SCALARS.get(cls)
        if row is None:
            return _Ext(REF, self.tickets[id(item)].to_bytes(8, "big"))
        try:
            return _Ext(row.code, row.pack(item))
        except Exception:  # noqa: BLE001 - a released view, a time zone that raises: it is told
            return _Ext(OPAQUE, f"{type_name(cls)}\0{opaque_repr(item)}".encode("utf-8", "replace"))

    def _carefully(self, item: Any, cls: type) -> Any:
        if cls is int and not -(2**63) <= item < 2**64:
            return _Ext(INT, SCALARS[int].pack(item))
        if cls is str and not item.isascii():
            try:
                item.encode()
            except UnicodeEncodeError:
                return _Ext(STR, SCALARS[str].pack(item))
        return item


def _all_text(keys: Iterable[Any]) -> bool:
    return _TEXT.issuperset(map(type, keys))
