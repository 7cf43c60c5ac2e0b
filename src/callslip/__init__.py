"""callslip: context offloading for LLM agents.

A large tool result is written to storage, the model gets a small handle with a chosen preview, and
reads back only the slice that the next step needs::

    from callslip import ResultStore

    session = ResultStore().session("run-42")
    search = session.offloaded(search)      # a long result is now an envelope
    tools = session.tools()                 # what the model reads it back with

What may live here: the public names, nothing else.
"""

from __future__ import annotations

from callslip.errors import (
    CallslipError,
    HandleError,
    HandleGone,
    NotRestorable,
    PatternError,
    PayloadDamaged,
    SettingsError,
    StoreError,
    StoreUnavailable,
    UnknownHandle,
)
from callslip.handle import Envelope, Handle, Hit, Hits, Listing, Page, Reply, Scope, Shape
from callslip.session import Session
from callslip.settings import Event
from callslip.stacks.exact import Opaque
from callslip.stacks.ops import Quota
from callslip.store import ResultStore
from callslip.tools import Tool
from callslip.window.policy import Policy

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
    "Listing",
    "NotRestorable",
    "Opaque",
    "Page",
    "PatternError",
    "PayloadDamaged",
    "Policy",
    "Quota",
    "Reply",
    "ResultStore",
    "Scope",
    "Session",
    "SettingsError",
    "Shape",
    "StoreError",
    "StoreUnavailable",
    "Tool",
    "UnknownHandle",
]
