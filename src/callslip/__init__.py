"""callslip: context offloading for LLM agents.

A large tool result is written to storage, the model gets a small handle with a chosen preview, and
reads back only the slice that the next step needs::

    from callslip import ResultStore

    session = ResultStore().session("run-42")
    search = session.offloaded(search)      # a long result is now an envelope
    tools = session.tools()                 # what the model reads it back with

What may live here: the public names, nothing else. Each is loaded when it is first asked for, so
that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callslip.by_reference import Resolved
    from callslip.errors import (
        CallslipError,
        HandleError,
        HandleGone,
        LegalHold,
        NotRestorable,
        PatternError,
        PayloadDamaged,
        QueryError,
        SettingsError,
        StoreError,
        StoreUnavailable,
        UnknownHandle,
    )
    from callslip.handle import (
        Envelope,
        Handle,
        Hit,
        Hits,
        Listing,
        Page,
        Quota,
        Record,
        Reply,
        Rows,
        Scope,
        Shape,
        Shared,
    )
    from callslip.session import Session
    from callslip.settings import Event, Retention
    from callslip.stacks.exact import Opaque
    from callslip.store import ResultStore
    from callslip.tools import Tool
    from callslip.window.policy import Policy
    from callslip.window.profile import top

__version__ = "0.1.0"

__all__ = [
    "CallslipError",
    "Envelope",
    "Event",
    "Handle",
    "HandleError",
    "HandleGone",
    "Hit",
    "Hits",
    "LegalHold",
    "Listing",
    "NotRestorable",
    "Opaque",
    "Page",
    "PatternError",
    "PayloadDamaged",
    "Policy",
    "QueryError",
    "Quota",
    "Record",
    "Reply",
    "Resolved",
    "ResultStore",
    "Retention",
    "Rows",
    "Scope",
    "Session",
    "SettingsError",
    "Shape",
    "Shared",
    "StoreError",
    "StoreUnavailable",
    "Tool",
    "UnknownHandle",
    "top",
]

_ELSEWHERE = {
    "Event": "settings",
    "Opaque": "stacks.exact",
    "Policy": "window.policy",
    "Resolved": "by_reference",
    "ResultStore": "store",
    "Retention": "settings",
    "Session": "session",
    "Tool": "tools",
    "top": "window.profile",
}
_VALUES = {
    "Envelope",
    "Handle",
    "Hit",
    "Hits",
    "Listing",
    "Page",
    "Quota",
    "Record",
    "Reply",
    "Rows",
    "Scope",
    "Shape",
    "Shared",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        # `callslip.limits` and the like, as after `import callslip.limits`.
        try:
            return import_module(f"callslip.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"callslip.{name}":
                raise
            raise AttributeError(f"module 'callslip' has no attribute {name!r}") from None
    home = _ELSEWHERE.get(name) or ("handle" if name in _VALUES else "errors")
    value = getattr(import_module(f"callslip.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
