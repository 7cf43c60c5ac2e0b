"""Values again, from the node table that `callslip.stacks.exact` writes.

Nothing is imported and no constructor of a stored class is called: classes are looked up among the
loaded modules, must still be of the stored kind, and their instances are made bare and filled. So
bytes from a store cannot make this process run code that it has not loaded, nor most that it has.

What may live here: reading the table. Its form: `callslip.stacks.exact`.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import enum
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from callslip.errors import NotRestorable
from callslip.stacks.scalars import BY_CODE

__all__ = ["OPAQUE", "REF", "Opaque", "local_classes", "rebuild"]

REF: Final = 1
OPAQUE: Final = 19


@dataclass(frozen=True, slots=True)
class Opaque:
    """What stands in a loaded value for an object that cannot be rebuilt: a lock, a generator, an
    instance of an ordinary class. `type` is `module.qualname`, `repr` what it said of itself when
    it was stored (without its address, 10,000 characters at the most)."""

    type: str
    repr: str


local_classes: weakref.WeakValueDictionary[tuple[str, str], type] = weakref.WeakValueDictionary()
"""Classes that this process stored: one made in a function or a script has no address that another
process could follow, but within this one its values come back."""


class _Ref:
    __slots__ = ("ticket",)

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket


def rebuild(twin: bytes) -> Any:
    """The value of an exact form. Raises NotRestorable (see `callslip.stacks.exact.decode`)."""
    table = msgspec.msgpack.decode(twin, ext_hook=_extension)
    if table["version"] != 1:
        raise NotRestorable("this object was stored by a newer callslip; upgrade to load it")
    return _Builder(table).run(table["root"])


def _extension(code: int, data: memoryview) -> Any:
    if code == REF:
        return _Ref(int.from_bytes(data, "big"))
    if code == OPAQUE:
        return Opaque(*bytes(data).decode().split("\0", 1))
    return BY_CODE[code](bytes(data))


class _Builder:
    def __init__(self, table: dict[str, Any]) -> None:
        self.nodes: dict[int, Any] = dict(zip(table["order"], table["nodes"], strict=True))
        self.names: list[list[str]] = table["classes"]
        self.classes: dict[int, type] = {}
        self.built: dict[int, Any] = {}
        self.shells: dict[int, Any] = {}
        self.later: list[Callable[[], None]] = []

    def run(self, root: Any) -> Any:
        for ticket, node in self.nodes.items():
            self.built[ticket] = self._build(ticket, node)
        for close in self.later:
            close()
        return self.built[root.ticket] if type(root) is _Ref else root

    # --- references ------------------------------------------------------------------------------

    def _solid(self, item: Any) -> Any:
        """What an item stands for; a whole that is still being built gives its empty shell."""
        if type(item) is not _Ref:
            return item
        if item.ticket in self.built:
            return self.built[item.ticket]
        return self._shell(item.ticket)

    def _solids(self, items: list[Any]) -> list[Any]:
        return [self._solid(item) for item in items] if _Ref in set(map(type, items)) else items

    def _pending(self, item: Any) -> bool:
        """Whether an item is a whole that cannot have a shell: a tuple inside its own list."""
        if type(item) is not _Ref or item.ticket in self.built:
            return False
        node = self.nodes[item.ticket]
        return type(node) is list and node[0] not in _SHELLS

    def _shell(self, ticket: int) -> Any:
        if ticket not in self.shells:
            node = self.nodes[ticket]
            tag = "dict" if type(node) is dict else node[0]
            if tag not in _SHELLS:
                raise NotRestorable(f"a {tag} that contains itself by way of a key or a constant")
            if tag in ("dataclass", "pydantic", "subclass"):
                self.shells[ticket] = self._bare(node)
            elif tag == "deque":
                self.shells[ticket] = collections.deque(maxlen=int(node[4]) if node[4] else None)
            elif tag == "defaultdict":
                factory = getattr(builtins, node[4], None) if node[4] else None
                self.shells[ticket] = collections.defaultdict(factory)
            else:
                self.shells[ticket] = _SHELLS[tag]()
        return self.shells[ticket]

    def _bare(self, node: list[Any]) -> Any:
        """An instance without its contents, made without running its class's constructor."""
        tag, items = node[0], node[1]
        if tag == "subclass":
            base = type(self._solid(items[0]))
            cls: Any = self._class(node[3], base)
            if base in (list, dict, set):
                return base.__new__(cls)
            return base.__new__(cls, self._solid(items[0]))
        cls = self._class(node[3], object)
        if tag == "dataclass" and not dataclasses.is_dataclass(cls):
            raise NotRestorable(f"{cls.__module__}.{cls.__qualname__} is no dataclass any more")
        if tag == "pydantic" and not hasattr(cls, "__pydantic_fields__"):
            raise NotRestorable(
                f"{cls.__module__}.{cls.__qualname__} is no pydantic model any more"
            )
        return object.__new__(cls)

    # --- nodes -----------------------------------------------------------------------------------

    def _build(self, ticket: int, node: Any) -> Any:
        if type(node) is dict:
            shell = self.shells.get(ticket)
            if shell is None and _Ref not in set(map(type, node.values())):
                return node
            shell = self._shell(ticket)
            self._fill_mapping(shell, list(node), list(node.values()))
            return shell
        tag, items = node[0], node[1]
        if tag in _SHELLS:
            shell = self._shell(ticket)
            self._fill(shell, tag, node)
            return shell
        if tag == "opaque":
            return Opaque(node[2][0], node[4])
        items = self._solids(items)
        if tag == "table":
            from callslip.stacks.frames import restored  # which stands on this module

            return restored(*items)
        if tag == "tuple":
            return tuple(items)
        if tag == "frozenset":
            return frozenset(items)
        if tag == "namedtuple":
            return tuple.__new__(self._class(node[3], tuple), items)
        if tag == "proxy":
            return types.MappingProxyType(items[0])
        if tag == "range":
            return range(*items)
        if tag == "slice":
            return slice(*items)
        if tag == "enum":
            return self._member(self._class(node[3], enum.Enum), node[4], items[0])
        if tag == "exception":
            return self._exception(self._class(node[3], BaseException), items)
        raise NotRestorable(f"this object holds a {tag}, which this callslip does not know")

    def _fill(self, shell: Any, tag: str, node: list[Any]) -> None:
        items = node[1]
        if tag in ("list", "deque"):
            shell.extend(self._solids([None if self._pending(i) else i for i in items]))
            for at, item in enumerate(items):
                if self._pending(item):
                    self._afterwards(shell.__setitem__, at, item)
        elif tag == "set":
            shell.update(self._solids(items))
        elif tag in ("dataclass", "namespace"):
            self._fill_fields(shell, node[2], items)
        elif tag == "pydantic":
            self._fill_model(shell, node[2], items)
        elif tag == "subclass":
            self._fill_subclass(shell, self._solids(items))
        else:
            self._fill_mapping(shell, node[2], items)

    def _fill_mapping(self, shell: Any, keys: list[Any], items: list[Any]) -> None:
        base = dict if type(shell) is not collections.OrderedDict else collections.OrderedDict
        for key, item in zip(self._solids(keys), items, strict=True):
            if self._pending(item):
                base.__setitem__(shell, key, None)
                self._afterwards(shell.__setitem__, key, item)
            else:
                base.__setitem__(shell, key, self._solid(item))

    def _fill_fields(self, shell: Any, names: list[str], items: list[Any]) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(shell, name, value)

        for name, item in zip(names, items, strict=True):
            if self._pending(item):
                self._afterwards(put, name, item)
            else:
                put(name, self._solid(item))

    def _fill_model(self, shell: Any, names: list[str], items: list[Any]) -> None:
        values = self._solids(items)
        count, has_extra, fields_set, private = values[len(names) :]
        fields = dict(zip(names[:count], values[:count], strict=True))
        extra = dict(zip(names[count:], values[count : len(names)], strict=True))
        object.__setattr__(shell, "__dict__", fields)
        object.__setattr__(shell, "__pydantic_extra__", extra if has_extra else None)
        object.__setattr__(shell, "__pydantic_fields_set__", fields_set)
        object.__setattr__(shell, "__pydantic_private__", private)

    def _fill_subclass(self, shell: Any, items: list[Any]) -> None:
        plain, variables = items
        if type(plain) is list:
            list.extend(shell, plain)
        elif type(plain) is dict:
            for key, item in plain.items():
                dict.__setitem__(shell, key, item)
        elif type(plain) is set:
            set.update(shell, plain)
        for name, item in (variables or {}).items():
            object.__setattr__(shell, name, item)

    def _afterwards(self, put: Callable[[Any, Any], None], where: Any, item: Any) -> None:
        self.later.append(lambda: put(where, self.built[item.ticket]))

    # --- classes ---------------------------------------------------------------------------------

    def _class(self, number: int, base: type) -> Any:
        if number not in self.classes:
            module, name = self.names[number]
            self.classes[number] = _find(module, name)
        cls = self.classes[number]
        if not issubclass(cls, base):
            module, name = self.names[number]
            raise NotRestorable(f"{module}.{name} is no {base.__name__} any more")
        return cls

    def _member(self, cls: Any, name: str, value: Any) -> Any:
        member = cls.__members__.get(name)
        if member is not None:
            return member
        if issubclass(cls, enum.Flag):
            return cls(value)
        raise NotRestorable(f"{cls.__module__}.{cls.__qualname__} has no member {name!r} any more")

    def _exception(self, cls: type, items: list[Any]) -> Any:
        known: Any = getattr(builtins, cls.__name__, None)
        if known is not cls:
            raise NotRestorable(f"{cls.__qualname__} is no built-in exception")
        error = known(*items[0])
        if items[1]:
            error.__setstate__(items[1])
        return error


_SHELLS: Final[dict[str, Any]] = {
    "list": list,
    "dict": dict,
    "set": set,
    "deque": collections.deque,
    "ordereddict": collections.OrderedDict,
    "counter": collections.Counter,
    "defaultdict": collections.defaultdict,
    "namespace": types.SimpleNamespace,
    "dataclass": None,
    "pydantic": None,
    "subclass": None,
}


def _find(module: str, name: str) -> type:
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    if not isinstance(found, type):
        found = local_classes.get((module, name))
    if not isinstance(found, type):
        if module in sys.modules:
            raise NotRestorable(f"there is no class {name} in the module {module} any more")
        raise NotRestorable(f"import the module {module} first: the object needs its class {name}")
    return found
