"""SQLite connections: opened with the right rights, borrowed by one thread at a time, fork-safe.

SQLite forbids more than using an inherited connection in a forked child: what the library keeps for
each open file in the process (who holds which lock) is copied too, and is wrong there. So before a
fork the operations under way are waited for and every idle connection is closed; parent and child
each open their own afterwards.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from callslip.errors import StoreUnavailable, in_words
from callslip.limits import BUSY_SECONDS
from callslip.stacks.index import schema
from callslip.stacks.index.reserve import Reserve

IDLE_KEPT = 8
FORK_SECONDS = 5.0
"""How long a fork waits for operations under way."""

MINIMUM = (3, 35, 0)  # RETURNING

_REASONS = {
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_PROTOCOL: "locked",
    sqlite3.SQLITE_FULL: "disk full",
    sqlite3.SQLITE_READONLY: "permission denied",
    sqlite3.SQLITE_PERM: "permission denied",
    sqlite3.SQLITE_AUTH: "permission denied",
    sqlite3.SQLITE_CANTOPEN: "permission denied",
    sqlite3.SQLITE_INTERRUPT: "timed out",
}
_ERRNOS = {
    errno.ENOSPC: "disk full",
    errno.EDQUOT: "disk full",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "permission denied",
}


def unavailable(error: sqlite3.Error | OSError, where: str) -> StoreUnavailable:
    """The error of ours that a backend's error becomes; the message names the file, not the SQL."""
    why = str(error)
    if isinstance(error, OSError):
        reason, why = _ERRNOS.get(error.errno or 0, "failed"), in_words(error)
    else:
        reason = _REASONS.get(primary_code(error), "failed")
        if primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            why += "; put back a backup of it, or move it away"
    return StoreUnavailable(f"the index {where} could not answer: {why}", reason=reason)


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code of an error, 0 for one that Python itself raised."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def private_folder(folder: Path) -> None:
    """Make a folder and its missing parents 0700 whatever the umask. One that exists is kept."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        try:
            each.mkdir(mode=0o700)
        except FileExistsError:
            continue  # another process was faster, and sets the same rights
        each.chmod(0o700)


def private_file(path: Path) -> None:
    """Make an empty file 0600 whatever the umask; SQLite gives its -wal and -shm the same rights."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        return
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


class _Gate:
    """Counts the operations under way in this process; closed while a fork is made."""

    def __init__(self) -> None:
        self.condition = threading.Condition(threading.Lock())
        self.under_way = 0
        self.forks = 0

    def enter(self) -> None:
        with self.condition:
            while self.forks:
                self.condition.wait()
            self.under_way += 1

    def leave(self) -> None:
        with self.condition:
            self.under_way -= 1
            if self.forks:
                self.condition.notify_all()


_gate = _Gate()
_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
_abandoned: list[sqlite3.Connection] = []
"""Connections that a forked child must neither use nor close."""


class Pool:
    """The connections of one index in one process."""

    def __init__(self, path: str | Path) -> None:
        self.memory = str(path) == ":memory:"
        self.path = Path(path)
        self.where = str(path)
        self.reserve = Reserve(self.path)
        self._lock = threading.Lock()
        self._idle: list[tuple[sqlite3.Connection, tuple[int, int]]] = []
        self._seen: tuple[int, int] | None = None
        self.anew: Callable[[], None] | None = None
        """Called once the file is found to be another one, before it is opened."""
        # A database in memory is one connection: one operation at a time.
        self._turn = threading.Lock()
        _pools.add(self)

    @contextmanager
    def borrow(self) -> Iterator[sqlite3.Connection]:
        """A connection for one operation. SQLite's and the system's errors become ours."""
        gate = _gate
        gate.enter()
        try:
            if self.memory:
                with self._turn, self._lent() as connection:
                    yield connection
            else:
                with self._lent() as connection:
                    yield connection
        except (sqlite3.Error, OSError) as error:
            raise unavailable(error, self.where) from error
        finally:
            gate.leave()

    @contextmanager
    def _lent(self) -> Iterator[sqlite3.Connection]:
        connection, file = self._take()
        try:
            yield connection
        except BaseException as error:
            sound = not isinstance(error, sqlite3.Error) or primary_code(error) in (
                sqlite3.SQLITE_BUSY,
                sqlite3.SQLITE_FULL,
            )
            try:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            except sqlite3.Error:
                sound = False  # The first error is the one to raise; this connection is not reused.
            if sound or self.memory:
                self._give(connection, file)
            else:
                connection.close()
            raise
        self._give(connection, file)

    def _take(self) -> tuple[sqlite3.Connection, tuple[int, int] | None]:
        file = (0, 0) if self.memory else self._file()
        seen, self._seen = self._seen, file
        if self.anew is not None and seen not in (None, (0, 0), file):
            self.anew()
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection, opened = self._idle.pop()
            if opened == file:
                return connection, file
            # The file was removed or replaced under us: writing on would write into nothing.
            connection.close()
        try:
            return self._open()
        except (sqlite3.Error, OSError) as error:
            if self.memory or unavailable(error, self.where).reason != "permission denied":
                raise
            readable = self._open_to_read()
            if readable is None:
                raise
            return readable, None

    def _open_to_read(self) -> sqlite3.Connection | None:
        """A connection to a database on read-only media, or of somebody else; None if there is
        none to be read. For one operation: another may write the file after it."""
        writable = all(os.access(each, os.W_OK) for each in (self.path, self.path.parent))
        if writable or not os.access(self.path, os.R_OK):
            return None
        # Without a log nobody has it open, and SQLite need not make the files that readers share.
        # An empty one may be a writer's who is about to write, but where nobody can.
        log = Path(f"{self.path}-wal")
        fixed = bool(os.statvfs(self.path).f_flag & os.ST_RDONLY)
        used = log.exists() and not (fixed and log.stat().st_size == 0)
        still = "" if used else "&immutable=1"
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode=ro{still}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            if not schema.check(connection, self.where):
                raise StoreUnavailable(
                    f"the index {self.where} is of an older version and cannot be written to "
                    "bring it to this one",
                    reason="permission denied",
                )
        except sqlite3.Error:
            connection.close()
            return None
        except BaseException:
            connection.close()
            raise
        return connection

    def _give(self, connection: sqlite3.Connection, file: tuple[int, int] | None) -> None:
        with self._lock:
            if file is not None and len(self._idle) < IDLE_KEPT:
                self._idle.append((connection, file))
                return
        connection.close()

    def _file(self) -> tuple[int, int]:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return (0, 0)
        if not stat.S_ISREG(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "not a regular file", str(self.path))
        return (found.st_dev, found.st_ino)

    def _open(self) -> tuple[sqlite3.Connection, tuple[int, int]]:
        if not self.memory:
            private_folder(self.path.parent)
            private_file(self.path)
        until = time.monotonic() + BUSY_SECONDS
        while True:
            file = (0, 0) if self.memory else self._file()
            connection = sqlite3.connect(
                ":memory:" if self.memory else self.path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._prepare(connection)
            except sqlite3.Error as error:
                connection.close()
                # While another process turns the file to WAL or recovers it, SQLite answers BUSY
                # at once, without its busy handler.
                if _REASONS.get(primary_code(error)) != "locked" or time.monotonic() > until:
                    raise
                time.sleep(0.005)
            except BaseException:
                connection.close()
                raise
            else:
                if not self.memory:
                    self.reserve.make()
                return connection, file

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # One snapshot: between two reads of it, a racing process may make the tables.
        connection.execute("BEGIN")
        current = schema.check(connection, self.where)
        connection.execute("COMMIT")
        if not self.memory:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # some builds of SQLite have it, some not
        connection.execute("PRAGMA cache_size = -8192")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        if not current:
            schema.migrate(connection, self.where)

    def close(self) -> None:
        """Close the idle connections. A later operation opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def forked(self) -> None:
        """In a child: start afresh. What could not be closed before the fork stays untouched."""
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        if not self.memory:
            _abandoned.extend(connection for connection, _ in self._idle)
            self._idle = []


def _before_fork() -> None:
    until = time.monotonic() + FORK_SECONDS
    with _gate.condition:
        _gate.forks += 1
        while _gate.under_way and (left := until - time.monotonic()) > 0:
            _gate.condition.wait(left)
    for pool in list(_pools):
        if not pool.memory:
            pool.close()


def _after_fork_in_parent() -> None:
    with _gate.condition:
        _gate.forks -= 1
        _gate.condition.notify_all()


def _after_fork_in_child() -> None:
    global _gate
    _gate = _Gate()
    for pool in list(_pools):
        pool.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
