"""Which function of PostgreSQL's does which operation on memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callslip.stacks.index.postgres.transaction import Db

Does = Callable[[Db, Any], Any]

READS: dict[type, Does] = {}
WRITES: dict[type, Does] = {}


def drop_below(db: Db, namespace: tuple[str, ...]) -> None:
    """Delete all that is remembered in a namespace and below: its tenant or user was removed."""
