"""The view of a value: what JSON can say of it, for reading.

`shown` turns any value into one built of what JSON has, after the table in
docs/decisions/0002-exact-values.md. It never raises on a value, follows no cycle, needs no stack,
and consumes no iterator. What the view leaves out is in the exact form (`callslip.stacks.exact`).

What may live here: how things look. Nothing is restored from a view.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, NamedTuple

from callslip.stacks.kinds import Parts, opaque_repr, take_apart, type_name
from callslip.stacks.scalars import SCALARS

__all__ = ["Shown", "shown"]

_AS_IT_IS: Final = frozenset({str, bool, type(None)})
_SCALARS: Final = _AS_IT_IS | {float, *SCALARS}
_TEXT: Final = frozenset({str})
_REPEATED: Final = 1_000_000
"""How many nodes the view may repeat, for parts that occur more than once, before it refers."""

_OBJECTS: Final = frozenset(
    {
        "dict",
        "ordereddict",
        "counter",
        "defaultdict",
        "namespace",
        "dataclass",
        "pydantic",
        "namedtuple",
    }
)
_STAND_INS: Final = frozenset({"enum", "subclass", "lost", "proxy"})


class Shown(NamedTuple):
    """A value as JSON can say it, and the names of the types (sorted) that are not JSON's own."""

    tree: Any
    types: tuple[str, ...]


class _Frame:
    """A container on the way: what is left of it, and what its parts have become."""

    __slots__ = ("done", "items", "keys", "number", "parent", "size", "step", "value")

    def __init__(
        self,
        value: Any,
        keys: list[str] | None,
        items: list[Any],
        number: int = 0,
        parent: _Frame | None = None,
    ) -> None:
        self.value = value
        self.parent = parent
        self.keys = keys
        self.items = items
        self.number = number
        self.done: list[Any] = []
        self.size = 1
        self.step = ""


def shown(value: object) -> Shown:
    """The view of any value."""
    return _Walk().run(value)


class _Walk:
    def __init__(self) -> None:
        self.types: set[str] = set()
        self.frames: list[_Frame] = []
        self.active: dict[int, _Frame] = {}
        self.finished: dict[int, tuple[Any, int, _Frame]] = {}
        self.repeated = 0
        self.keep: list[Any] = []  # what is known by its id must stay alive

    def run(self, value: object) -> Shown:
        root: list[Any] = []
        self.frames.append(_Frame(None, None, [value]))
        while self.frames:
            frame = self.frames[-1]
            items, done = frame.items, frame.done
            while len(done) < len(items):
                item = items[len(done)]
                if type(item) in _AS_IT_IS:
                    done.append(item)
                elif not self._leaf(item, done):
                    below = self._open(item, frame)
                    if below is not None:
                        self.frames.append(below)
                        break
            else:
                self.frames.pop()
                self._finish(frame, root)
        return Shown(root[0], tuple(sorted(self.types)))

    def _leaf(self, item: Any, done: list[Any]) -> bool:
        cls = type(item)
        if cls is float:
            if isfinite(item):
                done.append(item)
            else:
                self.types.add(str(item).lstrip("-"))
                done.append(None)
            return True
        row = SCALARS.get(cls)
        if row is None:
            return False
        if cls is not int:
            self.types.add(type_name(cls))
        try:
            done.append(row.show(item))
        except Exception:  # noqa: BLE001 - a released view, a time zone that raises: it is told
            done.append(opaque_repr(item))
        return True

    def _open(self, item: Any, parent: _Frame) -> _Frame | None:
        """A frame for a container; or None, and what stands for it is in `parent.done`."""
        known = id(item)
        if known in self.active:
            self.types.add("cycle")
            parent.done.append({"$ref": _path(self.active[known])})
            return None
        if known in self.finished:
            tree, size, first = self.finished[known]
            if self.repeated + size <= _REPEATED:
                self.repeated += size
                parent.size += size
                parent.done.append(tree)
            else:
                self.types.add("repeated")
                parent.done.append({"$ref": _path(first)})
            return None
        if type(item) is dict and self._flat(item, parent):
            return None
        parts = take_apart(item)
        if parts.tag not in ("dict", "list"):
            self.types.add(type_name(type(item)))
        self.keep.append(item)
        frame = self._frame(item, parts, len(parent.done), parent)
        if frame is None and parts.tag == "table":
            tree = parts.items[0]
            size = len(tree) * (1 + len(tree[0]) if tree and hasattr(tree[0], "__len__") else 1) + 1
            self.finished[known] = (tree, size, _Frame(item, None, [], len(parent.done), parent))
            parent.size += size
            parent.done.append(tree)
        elif frame is None:
            parent.done.append(_named(parts))
        else:
            self.active[known] = frame
        return frame

    def _flat(self, item: dict[Any, Any], parent: _Frame) -> bool:
        """The short way for a record: a dict with `str` keys that holds scalars alone."""
        if not (
            _SCALARS.issuperset(map(type, item.values())) and _TEXT.issuperset(map(type, item))
        ):
            return False
        done: list[Any] = []
        for part in item.values():
            if type(part) in _AS_IT_IS:
                done.append(part)
            else:
                self._leaf(part, done)
        tree = dict(zip(item, done, strict=True))
        size = len(done) + 1
        frame = _Frame(item, None, [], len(parent.done), parent)
        self.keep.append(item)
        self.finished[id(item)] = (tree, size, frame)
        parent.size += size
        parent.done.append(tree)
        return True

    def _frame(self, item: Any, parts: Parts, number: int, parent: _Frame) -> _Frame | None:
        items = parts.items if parts.shown < 0 else parts.items[: parts.shown]
        if parts.tag in _OBJECTS and parts.keys is not None:
            frame = _Frame(item, self._keys(parts.keys[: len(items)]), items, number, parent)
        elif parts.tag in _STAND_INS:
            frame = _Frame(item, None, items[:1], number, parent)
            frame.step = "same"
        elif parts.tag in ("list", "tuple", "set", "frozenset", "deque"):
            frame = _Frame(item, None, items, number, parent)
        else:
            return None
        if parts.tag == "pydantic" and parts.keys == ["root"] and _is_root_model(item):
            frame.keys, frame.step = None, "same"
        return frame

    def _finish(self, frame: _Frame, root: list[Any]) -> None:
        if not self.frames:
            root.append(frame.done[0])
            return
        tree: Any = frame.done
        if frame.step == "same":
            tree = frame.done[0]
        elif frame.keys is not None:
            tree = dict(zip(frame.keys, frame.done, strict=True))
        parent = self.frames[-1]
        size = frame.size + len(frame.items)
        parent.size += size
        parent.done.append(tree)
        del self.active[id(frame.value)]
        self.finished[id(frame.value)] = (tree, size, frame)
        frame.items = frame.done = []

    def _keys(self, keys: list[Any]) -> list[str]:
        """Keys as JSON must have them: strings, and none twice."""
        if {str}.issuperset(map(type, keys)):
            return keys
        taken = {key for key in keys if type(key) is str}
        names: list[str] = []
        for key in keys:
            if type(key) is str:
                names.append(key)
                continue
            name = shown_key(key)
            self.types.add(f"{type_name(type(key))} key")
            if name in taken:
                name = f"{name} ({type(key).__name__})"
            number, unique = 1, name
            while unique in taken:
                number += 1
                unique = f"{name} {number}"
            taken.add(unique)
            names.append(unique)
        return names


def _path(frame: _Frame) -> str:
    """A JSON Pointer to where a container stands in the view."""
    steps: list[str] = []
    while frame.parent is not None and frame.parent.parent is not None:
        above = frame.parent
        if above.step != "same":
            name = str(frame.number) if above.keys is None else above.keys[frame.number]
            steps.append("/" + name.replace("~", "~0").replace("/", "~1"))
        frame = above
    return "#" + "".join(reversed(steps))


def shown_key(key: Any) -> str:
    """The name of a key that is not a string: as JSON would write it, else its `str` or `repr`."""
    if key is None:
        return "null"
    if type(key) is bool:
        return "true" if key else "false"
    if isinstance(key, str):
        return str.__getitem__(key, slice(None))
    row = SCALARS.get(type(key))
    if row is not None:
        name = row.show(key)
        return name if type(name) is str else opaque_repr(key) if type(name) is dict else str(name)
    return opaque_repr(key)


def _named(parts: Parts) -> Any:
    if parts.tag == "exception" and parts.cls is not None:
        return {"type": type_name(parts.cls), "message": parts.text}
    return parts.text


def _is_root_model(item: Any) -> bool:
    return bool(getattr(type(item), "__pydantic_root_model__", False))
