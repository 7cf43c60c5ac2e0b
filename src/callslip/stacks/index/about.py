"""What a SQLite index says of itself."""

from __future__ import annotations

import sqlite3

from callslip.stacks.checkops import CheckIndex, IndexFacts


def facts(db: sqlite3.Connection, op: CheckIndex) -> IndexFacts:
    """Do `CheckIndex`, outside any transaction."""
    db.execute("BEGIN IMMEDIATE" if op.write else "BEGIN")
    if op.write:
        db.execute("UPDATE store SET garbage = garbage")
    else:
        db.execute("SELECT garbage FROM store").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    db.execute("ROLLBACK")
    return IndexFacts(f"SQLite {sqlite3.sqlite_version}", int(version), None)
