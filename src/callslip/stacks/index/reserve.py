"""Room beside the database that is given up when a removal meets a full disk.

SQLite writes before it frees: without this, a full disk could not be emptied with callslip.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

RESERVE_BYTES = 512 * 1024
"""Enough to remove some 50 results at once; fewer at a time make room for more."""


class Reserve:
    """A file of `RESERVE_BYTES` that holds nothing."""

    def __init__(self, database: Path) -> None:
        self._path = f"{database}-reserve"

    def make(self) -> None:
        """Take the room, if there is any and it is not taken yet. Never an error."""
        with suppress(OSError):  # no room, or no right to write: there is nothing to keep it for
            descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                os.fchmod(descriptor, 0o600)  # whatever the umask
                # Random: some file systems keep no room for zeros.
                whole = os.write(descriptor, os.urandom(RESERVE_BYTES)) == RESERVE_BYTES
            except OSError:
                whole = False
            finally:
                os.close(descriptor)
            if not whole:
                os.unlink(self._path)

    def give(self) -> bool:
        """Give the room up; False if there was none."""
        try:
            os.unlink(self._path)
        except OSError:
            return False
        return True
