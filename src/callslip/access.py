"""May this be done? The one place where `authorize=` is asked, and where look-ups heed its answer.

What may live here: the flows that find and list rows for a session. Whoever wants a row by its id
comes through here, so that what is not allowed is, everywhere, as if it were not there.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from callslip.errors import PayloadDamaged, StoreUnavailable
from callslip.handle import Envelope, Handle, Scope, Shape
from callslip.rendering import handle_of
from callslip.stacks.auditops import Record
from callslip.stacks.ops import Flow, Get, List, Result, Tombstone, do
from callslip.stacks.telling import entry_of, told_of

if TYPE_CHECKING:
    from callslip.stacks.writing import Call
    from callslip.store import ResultStore

__all__ = [
    "Action", "allowed", "as_it_is_now", "found", "given_out", "id_of", "listed", "may_store",
    "shown_as",
]  # fmt: skip

logger = logging.getLogger("callslip")

P = ParamSpec("P")
T = TypeVar("T")

Action = str
"""`store`, `read`, `search`, `query`, `get`, `list`, `load`, `open`, `export`, `share`, `delete`."""

_LISTED = 500
"""Rows that are asked about at once when a list leaves out what is not allowed."""


def allowed(store: ResultStore, scope: Scope, handle: Handle | None, action: Action) -> bool:
    """What the store's hook says; True without one. A hook that raises says no, and so does one that
    answers what has still to be awaited or run: that is true whatever it would come to."""
    hook = store.settings.authorize
    if hook is None:
        return True
    try:
        answer: object = hook(scope, handle, action)
        if inspect.iscoroutine(answer):
            answer.close()  # it is not to be awaited any more
        if inspect.isawaitable(answer) or inspect.isgenerator(answer) or inspect.isasyncgen(answer):
            raise TypeError(f"it answered {type(answer).__name__}, not whether it may be done")
        return bool(answer)
    except Exception:
        if handle is not None:
            # The error may quote what the handle is about: it goes to the log and nowhere else.
            logger.exception("authorize= raised for %s; it counts as a no", action)
        return False


def may_store(store: ResultStore, scope: Scope, call: Call) -> Flow[bool]:
    """Whether a result of that call may be stored: asked of a handle that has no id yet."""
    handle = Handle("", call.tool, Shape(), store.now(), call.args, call.status)
    may = allowed(store, scope, handle, "store")
    if not may and store.settings.audit:
        entry = entry_of("stored", scope, store.settings.actor, store.now())
        try:
            yield from do(Record([replace(entry, tool=call.tool, outcome="denied", count=0)]))
        except StoreUnavailable as error:
            # Nothing was stored, and a run must not fail for the store's sake.
            logger.warning("a refusal could not be told to the audit: %s", error)
    return may


def id_of(given: str | Handle) -> str:
    """The id that is meant: what was given for the value is the first thing that people try."""
    if isinstance(given, Envelope):
        return given.handle.id if given.handle else ""
    return given.id if isinstance(given, Handle) else given


def found(
    store: ResultStore,
    scope: Scope,
    id: str,
    action: Action,
    meant: Callable[[Result | Tombstone], bool] | None = None,
) -> Flow[Result | Tombstone | None]:
    """The row of an id, its tombstone, or None: also where the hook says no, or it is not `meant`.

    The hook is asked in each of these cases, so that none can be told from another by the time it
    takes; where there is no such handle, it is asked about None and its answer is not used.
    """
    # What is still to be looked at is told to the audit behind that, and not as found.
    row = yield from do(Get(scope, id, store.now(), action if meant is None else ""))
    if meant is not None and row is not None and not meant(row):
        row = None
    elif meant is None and store.settings.authorize is None:
        return row  # a handle, which only the hook would see, costs as much as its envelope
    if row is None:
        handle = None
    elif isinstance(row, Tombstone):
        handle = Handle(row.id, row.tool, row.shape, 0.0, row.args)
    else:
        handle = shown_as(store, scope, row)
    may = allowed(store, scope, handle, action)
    if store.settings.audit:
        # In all these cases, too, so that the time does not tell them apart.
        entry = entry_of(action, scope, store.settings.actor, store.now())
        if told := told_of(action, row, replace(entry, id=id), may):
            yield from do(Record(told))
    return row if may and row is not None else None


def as_it_is_now(flow: Callable[P, Flow[T]]) -> Callable[P, Flow[T]]:
    """A flow that looks a result up and then reads it: once more where its object was not there.

    A result may be deleted, or stored anew, between the two: then it is gone, or there, and not
    damaged. An object that was lost is missed a second time.
    """

    @wraps(flow)
    def looked_up_again(*args: P.args, **given: P.kwargs) -> Flow[T]:
        try:
            return (yield from flow(*args, **given))
        except PayloadDamaged as error:
            if not error.missing:
                raise
        return (yield from flow(*args, **given))

    return looked_up_again


def listed(
    store: ResultStore, scope: Scope, after: int, limit: int
) -> Flow[tuple[Sequence[Result], int]]:
    """The rows that a session may list, `limit` of them after skipping `after`, and how many there
    are in all. With a hook each of its rows is asked about: a total must not count what is hidden.
    """
    if store.settings.authorize is None:
        return (yield from do(List(scope, after, limit, store.now())))
    seen: list[Result] = []
    total, place, there = 0, 0, 1
    while place < there:
        rows, there = yield from do(List(scope, place, _LISTED, store.now(), action=""))
        for row in rows:
            if allowed(store, scope, shown_as(store, scope, row), "list"):
                if after <= total < after + limit:
                    seen.append(row)
                total += 1
        place += _LISTED
    if store.settings.audit:
        entry = entry_of("list", scope, store.settings.actor, store.now())
        yield from do(Record([replace(entry, count=len(seen))]))
    return seen, total


def given_out(store: ResultStore, scope: Scope, row: Result) -> Handle:
    """The handle that a row is given out as: what may be listed, but not read, has no preview."""
    handle = shown_as(store, scope, row)
    if allowed(store, scope, handle, "read"):
        return handle
    return shown_as(store, scope, replace(row, preview=""))


def shown_as(store: ResultStore, scope: Scope, row: Result) -> Handle:
    """The handle of a row for a session of that scope, which may have it from another."""
    if row.scope == scope:
        return handle_of(row, store.settings)
    # Its plain file is the other session's: a path could not be taken back.
    settings = replace(store.settings, payloads=None)
    return replace(handle_of(row, settings), shared=True)
