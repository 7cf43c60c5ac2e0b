"""The fields of a state, whatever it is: declared, checked, and looked up by name. Pure."""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Mapping
from typing import Any

from callslip.errors import SettingsError
from callslip.handle import Envelope, Handle

__all__ = ["MISSING", "check", "handle_in", "is_id", "value_of"]

_ID = re.compile(r"res_[0-9a-f]{10,40}")


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()
"""What a state has in place of a field that was never set."""


def is_id(value: object) -> bool:
    """Whether a value looks like the id of a stored result."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def handle_in(value: object) -> str | None:
    """The id that a value carries, if it stands for a stored result."""
    if isinstance(value, Handle):
        return value.id
    if isinstance(value, Envelope):
        return None if value.handle is None else value.handle.id
    return value if is_id(value) else None  # type: ignore[return-value]


def declared(kind: object) -> dict[str, Any] | None:
    """The fields that a type declares with their types; None for a type that declares none."""
    kind = _plain(kind)
    if not isinstance(kind, type):
        return None
    names: list[str] = []
    if dataclasses.is_dataclass(kind):
        names = [each.name for each in dataclasses.fields(kind)]
    elif typing.is_typeddict(kind):
        names = list(kind.__annotations__) and sorted(
            kind.__required_keys__ | kind.__optional_keys__  # type: ignore[attr-defined]
        )
    elif hasattr(kind, "model_fields") and hasattr(kind, "model_validate"):
        names = list(kind.model_fields)
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):  # a NamedTuple: no list of values
        names = list(kind._fields)
    else:
        return None
    try:
        hints = typing.get_type_hints(kind)
    except (NameError, TypeError):  # names that exist only for a type checker
        hints = {}
    return {name: hints.get(name, Any) for name in names}


def _plain(kind: object) -> object:
    """A type without what is wrapped around it: Annotated, Required, Optional."""
    while True:
        origin = typing.get_origin(kind)
        arguments = typing.get_args(kind)
        if origin in (typing.Annotated, typing.Required, typing.NotRequired, typing.Final):
            kind = arguments[0]
        elif origin in (typing.Union, types.UnionType):
            some = [each for each in arguments if each is not type(None)]
            if len(some) != 1:
                return kind
            kind = some[0]
        else:
            return kind


def check(state: type, name: str) -> None:
    """Raise `SettingsError` unless the state declares a field of that (dotted) name."""
    kind: object = state
    path = ""
    for part in name.split("."):
        known = declared(kind)
        if known is None:
            if not path:
                raise SettingsError(
                    f"Brief({getattr(state, '__name__', state)!r}): give a TypedDict, a dataclass "
                    "or a Pydantic model"
                )
            # An object without declared fields: the name says itself what is wanted of it.
            return
        if part not in known:
            near = difflib.get_close_matches(part, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f", but {', '.join(known)}"
            where = f"{getattr(state, '__name__', 'the state')}{path and '.' + path}"
            raise SettingsError(f"{where} has no field {part!r}{hint}")
        kind = known[part]
        path = f"{path}.{part}".strip(".")


def value_of(state: Any, name: str) -> Any:
    """The value of a (dotted) field in a state of any of the kinds; MISSING if it is not set."""
    value = state
    for part in name.split("."):
        if isinstance(value, Mapping):
            value = value.get(part, MISSING)
        elif declared(type(value)) is not None:
            value = getattr(value, part, MISSING)
        else:
            return MISSING
        if value is MISSING:
            return MISSING
    return value


def parts_of(value: Any) -> Mapping[str, Any] | None:
    """An object's fields by name; None if it is no object."""
    if isinstance(value, Mapping):
        return {str(key): each for key, each in value.items()}
    known = declared(type(value))
    if known is None:
        return None
    return {name: getattr(value, name, MISSING) for name in known}
