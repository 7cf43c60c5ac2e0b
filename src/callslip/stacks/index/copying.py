"""A copy of a SQLite index while it is in use, and which version of the tables a file has."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from callslip.stacks.index import schema
from callslip.stacks.index.pool import private_file, private_folder, unavailable


def copy_index(source: Path, target: Path) -> None:
    """Copy the index as it is at one moment, into a new file; others go on reading and writing.

    The copy does not say where the payloads are: it is for payloads that are copied with it.
    Raises `StoreUnavailable` if either file cannot be used.
    """
    private_folder(target.parent)
    private_file(target)
    try:
        there = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
        here = sqlite3.connect(target, isolation_level=None)
        try:
            there.backup(here)
            here.execute("UPDATE store SET payloads = NULL")
        finally:
            here.close()
            there.close()
    except sqlite3.Error as error:
        raise unavailable(error, str(source)) from error


def version_of(path: Path) -> int:
    """The version of the tables in that file, 0 for one that is not there or has none.

    Reads only. Raises `SettingsError` for another program's file or a newer callslip's."""
    if not path.exists():
        return 0
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            schema.check(db, str(path))
            return int(db.execute("PRAGMA user_version").fetchone()[0])
        finally:
            db.close()
    except sqlite3.Error as error:
        raise unavailable(error, str(path)) from error


def newest_version() -> int:
    """The version of the tables that this callslip makes."""
    return len(schema.MIGRATIONS)
