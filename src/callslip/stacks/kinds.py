"""What a Python value is made of: the one place that takes a value apart.

`take_apart` answers the parts of anything that is not a scalar; the view (`callslip.stacks.shown`)
and the exact form (`callslip.stacks.exact`) both work on its answer, so they never disagree about
what a value is. It runs no code of the value's class but `__repr__`: subclasses of the built-in
containers are read through the built-in methods, fields through the instance's own dictionary.

What may live here: recognising. Adding a kind of value is a branch here, a row in the tables of
`shown` and `exact`, and a row in docs/decisions/0002-exact-values.md.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import enum
import json
import re
import sys
import types
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

__all__ = ["OPAQUE_CHARS", "Parts", "is_stream", "opaque_repr", "take_apart", "type_name"]

OPAQUE_CHARS: Final = 10_000
"""The `repr` of a value that cannot be rebuilt is cut at this length."""

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_BASES: Final[tuple[Any, ...]] = (str, int, float, bytes, list, dict, set, frozenset, tuple)


_LIBRARIES: Final = frozenset({"pandas", "polars", "pyarrow", "numpy"})
_TABLES_DEEP: Final = 3
_above: ContextVar[frozenset[int]] = ContextVar("_above", default=frozenset())
"""The tables that are being taken apart, by id."""


class Parts(NamedTuple):
    """A value, taken apart.

    `tag` names the kind, `cls` the class to rebuild (None where the tag says it all), `keys` the
    keys or field names, `items` the parts, in the order of `keys`. The first `shown` of them make
    the view; the rest is for the exact form alone. `text` is a name or a repr.
    """

    tag: str
    items: list[Any]
    keys: list[Any] | None = None
    cls: type | None = None
    shown: int = -1
    text: str = ""


def take_apart(value: Any) -> Parts:
    """The parts of a value that is not a scalar (see `callslip.stacks.scalars`). Never raises."""
    cls = type(value)
    if cls is dict:
        return Parts("dict", list(value.values()), list(value))
    if cls is list:
        return Parts("list", list(value))
    if cls is tuple:
        return Parts("tuple", list(value))
    if cls is set or cls is frozenset:
        return Parts(cls.__name__, _ordered(value))
    try:
        found = (
            _standard(value, cls)
            or _declared(value, cls)
            or _subclass(value, cls)
            or _table(value, cls)
        )
    except Exception:  # noqa: BLE001 - code of the value's own class: then it is opaque, and shown
        found = None
    return found or Parts("opaque", [], text=opaque_repr(value))


def _standard(value: Any, cls: type) -> Parts | None:
    """Containers and the like of the standard library, by exact type."""
    if cls is collections.OrderedDict:
        return Parts("ordereddict", list(value.values()), list(value))
    if cls is collections.Counter:
        return Parts("counter", list(value.values()), list(value))
    if cls is collections.defaultdict:
        factory = value.default_factory
        known = isinstance(factory, type) and getattr(builtins, factory.__name__, None) is factory
        name = factory.__name__ if known else ""
        return Parts("defaultdict", list(value.values()), list(value), text=name)
    if cls is collections.deque:
        size = "" if value.maxlen is None else str(value.maxlen)
        return Parts("deque", list(value), text=size)
    if cls is types.SimpleNamespace:
        return Parts("namespace", list(vars(value).values()), list(vars(value)))
    if cls is types.MappingProxyType:
        return Parts("proxy", [dict(value)], shown=1)
    if cls is range:
        return Parts("range", [value.start, value.stop, value.step], shown=0, text=repr(value))
    if cls is slice:
        parts = [value.start, value.stop, value.step]
        return Parts("slice", parts, shown=0, text=opaque_repr(value))
    if issubclass(cls, BaseException):
        text = _guarded(str, value)
        # Only a built-in exception is rebuilt: its `__reduce__` is code that we know.
        if getattr(builtins, cls.__name__, None) is not cls:
            return Parts("exception", [], shown=0, text=text, cls=cls)
        reduced: Any = value.__reduce__()
        state = reduced[2] if len(reduced) > 2 else None
        return Parts("exception", [reduced[1], state], shown=0, text=text, cls=cls)
    return None


def _declared(value: Any, cls: type) -> Parts | None:
    """Values of classes that say what their fields are."""
    if issubclass(cls, enum.Enum):
        name = getattr(value, "_name_", None)
        return Parts("enum", [value._value_], cls=cls, text=name if isinstance(name, str) else "")
    if _has(cls, "__dataclass_fields__") and not issubclass(cls, (*_BASES, type)):
        missing = object()
        names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
        fields = [(name, _attribute(value, name, missing)) for name in names]
        fields = [(name, item) for name, item in fields if item is not missing]
        extra = [(k, v) for k, v in _variables(value).items() if k not in names]
        every = fields + extra
        return Parts(
            "dataclass", [v for _, v in every], [k for k, _ in every], cls, shown=len(fields)
        )
    if _is_pydantic(cls):
        fields = list(_variables(value).items())
        extra = list((_attribute(value, "__pydantic_extra__", None) or {}).items())
        rest = [
            len(fields),
            _attribute(value, "__pydantic_extra__", None) is not None,
            _attribute(value, "__pydantic_fields_set__", None),
            _attribute(value, "__pydantic_private__", None),
        ]
        every = fields + extra
        items = [v for _, v in every] + rest
        return Parts("pydantic", items, [k for k, _ in every], cls, shown=len(every))
    if issubclass(cls, tuple):
        labels = getattr(cls, "_fields", None)
        items = list(tuple.__iter__(value))
        if (
            isinstance(labels, tuple)
            and len(labels) == len(items)
            and all(isinstance(label, str) for label in labels)
        ):
            return Parts("namedtuple", items, list(labels), cls)
    return None


def _subclass(value: Any, cls: type) -> Parts | None:
    """Subclasses of built-in types: the built-in value, the class, and the instance's variables."""
    for base in _BASES:
        if not issubclass(cls, base):
            continue
        plain: Any
        if base in (set, frozenset):
            plain = base(_ordered(base.__iter__(value)))
        elif base is dict:
            plain = dict(zip(dict.keys(value), dict.values(value), strict=True))
        elif base in (list, tuple):
            plain = base(base.__iter__(value))
        elif base is str:
            plain = str.__str__(value)
            plain = plain if type(plain) is str else str.__getitem__(value, slice(None))
        elif base is int:
            plain = int.__index__(value)
        elif base is float:
            plain = float.__float__(value)
        else:
            plain = bytes.__getitem__(value, slice(None))
        try:
            # A class written in C may refuse (numpy's floats do): then it is shown, not rebuilt.
            if base in (str, int, float, bytes, tuple, frozenset):
                base.__new__(cls, plain)
            else:
                base.__new__(cls)
        except TypeError:
            return Parts("lost", [plain], cls=cls, text=opaque_repr(value))
        return Parts("subclass", [plain, _variables(value) or None], cls=cls, shown=1)
    return None


def _table(value: Any, cls: type) -> Parts | None:
    """A table, series or array of a library of these: its rows to be seen, its exact form to be kept.
    One that is inside of itself, or of several others, is opaque there."""
    above = _above.get()
    if cls.__module__.partition(".")[0] not in _LIBRARIES or id(value) in above:
        return None
    if len(above) == _TABLES_DEEP:  # each is looked at twice: its look, and its exact form
        return None
    from callslip.stacks.frames import is_frame, taken  # which stand on this module

    if not is_frame(value):
        return None
    token = _above.set(above | {id(value)})
    try:
        table = taken(value)
    finally:
        _above.reset(token)
    if table is None:
        return None
    form, body, twin = table
    return Parts("table", [json.loads(body), form, twin], shown=1)


def _attribute(value: Any, name: str, default: Any) -> Any:
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return default


def _variables(value: Any) -> dict[str, Any]:
    found = _attribute(value, "__dict__", None)
    return dict(found) if type(found) is dict else {}


def _is_pydantic(cls: type) -> bool:
    module = sys.modules.get("pydantic")
    base = getattr(module, "BaseModel", None) if module else None
    return base is not None and base in cls.__mro__


# --- what cannot be taken apart ------------------------------------------------------------------


def opaque_repr(value: object) -> str:
    """The `repr` of a value: never raises, bounded, and without the memory address, so that the
    same run made twice stores the same bytes. A generator is not touched: `<generator>`."""
    if is_stream(value):
        return f"<{type(value).__name__}>"
    return _guarded(repr, value)


def _guarded(ask: Any, value: object) -> str:
    try:
        text = ask(value)
    except Exception as error:  # noqa: BLE001 - the value's own code, and the error is told
        return f"<{type_name(type(value))}: its repr raised {type(error).__name__}>"
    text = _ADDRESS.sub("", text[: OPAQUE_CHARS + 100])
    return text if len(text) <= OPAQUE_CHARS else text[: OPAQUE_CHARS - 1] + "…"


def type_name(cls: type) -> str:
    """`module.qualname`, without the module for built-in types."""
    module, name = cls.__module__, cls.__qualname__
    return name if module == "builtins" else f"{module}.{name}"


def is_stream(value: object) -> bool:
    """Whether a value is read rather than had: a file object, an iterator or generator, or their
    asynchronous kin. Containers and strings are not."""
    cls = type(value)
    if issubclass(cls, (str, bytes, bytearray, memoryview, list, tuple, dict, set, frozenset)):
        return False
    if any(base.__module__ == "unittest.mock" for base in cls.__mro__):
        return False  # a mock has whatever it is asked for; it is no stream of anything
    if _has(cls, "__anext__") or (_has(cls, "__next__") and _has(cls, "__iter__")):
        return True
    return _has(cls, "read") and not issubclass(cls, type)


def _has(cls: type, name: str) -> bool:
    """Whether a class has an attribute, without asking its metaclass, which is code of others."""
    return any(name in vars(base) for base in cls.__mro__)


# --- the order of a set --------------------------------------------------------------------------


def _ordered(members: Any) -> list[Any]:
    """The members of a set in an order that does not hang on this process's hash seed: equal sets
    must give equal bytes. Sorted where they sort; otherwise by type and repr."""
    items = list(members)
    kinds = set(map(type, items))
    if kinds <= {int, bool} or kinds == {str} or kinds == {bytes}:
        return sorted(items)
    return sorted(items, key=lambda item: _sort_key(item, 4))


def _sort_key(item: Any, depth: int) -> tuple[str, str]:
    name = type_name(type(item))
    if depth == 0:
        return (name, "")
    if type(item) is tuple:
        return (name, repr([_sort_key(member, depth - 1) for member in item]))
    if type(item) is frozenset:
        return (name, repr(sorted(_sort_key(member, depth - 1) for member in item)))
    return (name, opaque_repr(item))
