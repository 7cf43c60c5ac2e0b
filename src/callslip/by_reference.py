"""Handles as arguments: a parameter that opts in receives the value, any other an error says so.

A model that cannot see a long text cannot copy it into the next call either; it can pass the id.

What may live here: what counts as a handle, which parameters take one, and what is given for it.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

from callslip.access import as_it_is_now
from callslip.errors import CallslipError, SettingsError
from callslip.handle import Envelope, Handle, Reply
from callslip.stacks.ops import Flow
from callslip.stacks.savedops import id_in
from callslip.tool_words import VOCABULARIES
from callslip.window.inert import plain

if TYPE_CHECKING:
    from callslip.session import Session

__all__ = ["References", "Resolved"]


_ID: Final = re.compile(r"\s*[\"'`]?(res_[0-9a-f]{10,40})[\"'`]?\s*")
_ENVELOPE: Final = re.compile(r'\s*<result (?:[a-z_]+="[^"]*" )*?id="(res_[0-9a-f]{10,40})"')
_KEYS: Final = frozenset({"$handle", "handle", "saved_to", "result_id", "id"})
_NAMED: Final = re.compile(rf'\{{\s*"(?:{"|".join(map(re.escape, sorted(_KEYS)))})"')
_WANTS_ID: Final = re.compile(r"(?:.*_)?(?:ids?|handles?|paths?|files?|refs?|keys?)", re.IGNORECASE)
_CITES: Final = re.compile(
    r"(?:.*_)?(?:artifacts|attachments|citations|evidence|references|sources)", re.IGNORECASE
)
"""Names of lists that say which results, and do not want what is in them."""
_NAME_CHARS: Final = 60
_LOOKED_AT: Final = 1_000
"""Parts of one argument that are looked at for a handle."""


class Resolved:
    """For `Annotated[str, Resolved]`: where a model passes a handle for this parameter of an
    offloaded function, the function receives the value that was stored.

    The same as `offloaded(resolve=["report"])`. Only handles of the session's own scope resolve.
    """


@dataclass(frozen=True, slots=True)
class References:
    """Which parameters of a function take handles."""

    signature: inspect.Signature | None
    opted: Mapping[str, Any]
    """Parameters that receive the value, and their types, as far as these are known."""

    @classmethod
    def of(cls, fn: Callable[..., Any], resolve: Iterable[str]) -> References:
        """Raises SettingsError where `resolve` names no parameter of the function."""
        if isinstance(resolve, str):
            resolve = [resolve]
        try:
            signature = inspect.signature(fn)
        except (TypeError, ValueError):
            signature = None
        hints = _hints(fn)
        opted = {
            name: get_args(hint)[0]
            for name, hint in hints.items()
            if any(mark is Resolved or isinstance(mark, Resolved) for mark in _marks(hint))
        }
        for name in resolve:
            known = signature is None or name in signature.parameters or _open(signature)
            if not known:
                raise SettingsError(f"resolve={name!r}: the function has no such parameter")
            hint = hints.get(name)
            opted[name] = get_args(hint)[0] if _marks(hint) else hint
        return cls(signature, opted)

    def hold(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Whether any argument may be a handle: a look that costs next to nothing."""
        return any(_about(value) for value in (*args, *kwargs.values()))

    def resolved(
        self, session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Flow[tuple[tuple[Any, ...], dict[str, Any]] | Reply]:
        """The arguments with the values of handles, or the error that a model gets."""
        if self.signature is None:
            return args, kwargs
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError:
            return args, kwargs  # the function itself says what is wrong with them
        given = bound.arguments
        try:
            for name, parameter in self.signature.parameters.items():
                if name not in given:
                    continue
                if parameter.kind is parameter.VAR_KEYWORD:
                    for key, value in given[name].items():
                        given[name][key] = yield from self._one(session, key, value)
                elif parameter.kind is not parameter.VAR_POSITIONAL:
                    given[name] = yield from self._one(session, name, given[name])
        except CallslipError as error:
            words = VOCABULARIES[session.store.settings.vocabulary]
            return Reply(f"Error: {words.worded(error.for_model)}")
        return bound.args, bound.kwargs

    def _one(self, session: Session, name: str, value: Any) -> Flow[Any]:
        if name not in self.opted:
            for place, part in _parts_of(name, value):
                id = _handle_in(part) if _about(part) else None
                if id is None or (isinstance(part, str) and _WANTS_ID.fullmatch(place)):
                    continue
                if part is not value and _CITES.fullmatch(place):
                    continue
                if isinstance(part, str) and "/" in id:
                    continue  # the path of a plain file: a function may well want to open that
                yield from self._refuse(session, name, id)
            return value
        if isinstance(value, list):
            found = []
            for item in value:
                found.append((yield from self._value(session, item, None)))
            return found
        if isinstance(value, dict) and _handle_in(value) is None:
            named = {}
            for key, item in value.items():
                named[key] = yield from self._value(session, item, None)
            return named
        return (yield from self._value(session, value, self.opted[name]))

    def _value(self, session: Session, value: Any, wanted: Any) -> Flow[Any]:
        id = _handle_in(value)
        if id is None:
            return value
        return (yield from _given(session, id, wanted))

    def _refuse(self, session: Session, name: str, id: str) -> Flow[None]:
        """Raise, if it is the handle of a result here: any other text is just a text."""
        try:
            yield from session._row(id, "load")
        except CallslipError:
            return
        others = [plain(other, _NAME_CHARS) for other in self.opted]
        takes = f" Here only {', '.join(others)} takes a handle." if others else ""
        text = (
            f"{plain(name, _NAME_CHARS)} takes the data itself, and {id} is the handle of a stored "
            f"result, which this call does not resolve.{takes} Read the part that you need and "
            "pass that."
        )
        raise CallslipError(text, for_model=text)


def _parts_of(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """What an argument may hold a handle in, and the name it has there: itself, or what is in it."""
    if isinstance(value, list):
        return [(name, item) for item in value[:_LOOKED_AT]]
    if isinstance(value, dict) and _handle_in(value) is None:
        return [(str(key), item) for key, item in islice(value.items(), _LOOKED_AT)]
    return [(name, value)]


def _about(value: Any) -> bool:
    if isinstance(value, str):
        return "res_" in value[:200]
    return isinstance(value, dict | list | Handle)


def _handle_in(value: Any) -> str | None:
    """The id, if a value is a handle and nothing else: an id, an envelope, `{"$handle": id}`; or
    the path of a plain file, which a session takes for the id."""
    if isinstance(value, Handle):
        return value.id
    if isinstance(value, Envelope):
        return value.handle.id if value.handle else None
    if isinstance(value, str):
        match = _ID.fullmatch(value) or _ENVELOPE.match(value)
        if match:
            return match[1]
        text = value.strip()
        if len(text) < 1_000 and id_in(text):
            return text
        if text[:1] != "{" or len(text) > 8_000 or not _NAMED.match(text):
            return None
        try:
            value = json.loads(text)
        except ValueError:
            return None
        return _handle_in(value) if isinstance(value, dict) else None
    if isinstance(value, dict):
        first = next(iter(value), None)
        if (len(value) == 1 and first in _KEYS) or "saved_to" in value:
            id = value.get("saved_to", value.get(first))
            return _handle_in(id) if isinstance(id, str) else None
    return None


@as_it_is_now
def _given(session: Session, id: str, wanted: Any) -> Flow[Any]:
    """The value; a text where text is wanted, and what a JSON text holds where that is wanted."""
    row, reader = yield from session._open(id, "load")
    found = yield from session._value(row, reader)
    kind = get_origin(wanted) or wanted
    if kind is str and not isinstance(found, str):
        errors = "surrogatepass" if reader.directory.source == "str" else "replace"
        return (yield from reader.body()).decode("utf-8", errors)
    if kind in (dict, list) and isinstance(found, str):
        try:
            held = json.loads(found)
        except (ValueError, RecursionError):
            return found
        return held if isinstance(held, kind) else found
    return found


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    target: Any = fn
    if not (inspect.isroutine(fn) or inspect.isclass(fn)):
        target = getattr(fn, "func", None) or type(fn).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except Exception:  # noqa: BLE001 - names that are not there at run time: then no hints
        return {}


def _marks(hint: Any) -> tuple[Any, ...]:
    return getattr(hint, "__metadata__", ())


def _open(signature: inspect.Signature) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
