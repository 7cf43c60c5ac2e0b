"""That nothing readable is left of what was deleted: not in SQLite's free pages, not in its log.

Deleted content is overwritten where it stood (`PRAGMA secure_delete`, for every connection). What
the log still has of it goes with a checkpoint, and what the index of words has with a merge.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from callslip.stacks.auditops import RemoveSubject
from callslip.stacks.memoryops import ForgetFacts
from callslip.stacks.ops import Remove, Repair


def due(op: Any) -> bool:
    """Whether an operation means to leave nothing: then the log is emptied after it."""
    if isinstance(op, Remove):
        return not op.tombstones and op.id is None
    if isinstance(op, Repair):
        return op.mend
    return isinstance(op, RemoveSubject | ForgetFacts)


def empty_log(db: sqlite3.Connection) -> bool:
    """Bring the log into the database and cut it to nothing; False if readers are in the way."""
    return bool(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)


def merge_words(db: sqlite3.Connection) -> None:
    """Let the index of words hold no word of a deleted fact: it only notes deletions, until then."""
    db.execute("INSERT INTO memory_found (memory_found) VALUES ('optimize')")
