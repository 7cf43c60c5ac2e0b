"""Entries of the audit as both databases keep them, and which of them a `Trail` asks for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callslip.stacks.auditops import Entry, Trail
from callslip.stacks.index.rows import to_blob, to_text

_TEXTS = ("actor", "tenant", "user", "session", "id", "tool")

COLUMNS = 'at, action, outcome, actor, tenant, "user", session, id, tool, count, cause, detail'
"""What is written of an entry; what is read has its `n` behind."""


def values_of(entry: Entry) -> tuple[Any, ...]:
    """The values of `COLUMNS`."""
    texts = (to_blob(getattr(entry, name)) for name in _TEXTS)
    rest = (entry.count, to_blob(entry.cause), to_blob(entry.detail))
    return entry.at, entry.action, entry.outcome, *texts, *rest


def entry_from(row: Sequence[Any]) -> Entry:
    """The entry of `COLUMNS` and `n`."""
    at, action, outcome, *texts = row[:9]
    count, cause, detail, n = row[9:]
    named = dict(zip(_TEXTS, map(to_text, texts), strict=True))
    return Entry(
        action=action,
        at=at,
        outcome=outcome,
        count=count,
        cause=to_text(cause),
        detail=to_text(detail),
        n=n,
        **named,
    )


def wanted(op: Trail) -> list[tuple[str, object]]:
    """What an entry must be to be asked for: each a column with its comparison, and a value."""
    found: list[tuple[str, object]] = [("n >", op.after)]
    for name in ("tenant", "user", "session", "id", "cause"):
        if (given := getattr(op, name)) is not None:
            found.append((f'"{name}" =', to_blob(given)))
    for test, limit in (("action =", op.action), ("at >=", op.since), ("at <", op.until)):
        if limit is not None:
            found.append((test, limit))
    return found
