"""The index in one SQLite file: every `IndexOp`, each in one transaction.

Safe from many threads, processes and forks. Readers never wait for a writer (WAL); writers take
turns, up to `limits.BUSY_SECONDS`. A commit is on the disk when the operation returns.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar, cast

from callslip.errors import SettingsError, StoreUnavailable
from callslip.limits import BUSY_SECONDS
from callslip.stacks import auditops, fileops, memoryops, ops, shareops
from callslip.stacks.checkops import CheckIndex
from callslip.stacks.index import (
    about,
    adopting,
    auditing,
    files,
    governing,
    inserting,
    keys,
    memory,
    results,
    retention,
    sessions,
    shares,
    upkeep,
    wiping,
)
from callslip.stacks.index.pool import MINIMUM, Pool
from callslip.stacks.index.sessions import Session
from callslip.stacks.keyops import SealMark

T = TypeVar("T")

TOUCH_SECONDS = 1.0
"""How long a read waits for other writers to note its activity, before it leaves that out."""

EMPTYING_SECONDS = 0.1
"""How long the log waits for readers to be emptied: writers wait as long."""

_FREES = (
    ops.Remove,
    ops.Sweep,
    ops.Forget,
    ops.Repair,
    memoryops.ForgetFacts,
    auditops.RemoveSubject,
)
"""What makes room, and so must not fail for want of it."""

_logger = logging.getLogger(__name__)


class SqliteIndex:
    """An index in the SQLite file at `path` (or `:memory:`, for this process and this object).

    The file and its folder are made at the first operation, 0600 and 0700 whatever the umask.
    Errors: `StoreUnavailable` for what may pass or be mended; `SettingsError` if the file is of
    another program or of a newer callslip.
    """

    def __init__(self, path: str | Path) -> None:
        if sqlite3.sqlite_version_info < MINIMUM:
            raise SettingsError(
                f"SQLite {'.'.join(map(str, MINIMUM))} or newer is needed;"
                f" this Python has {sqlite3.sqlite_version}"
            )
        self._pool = Pool(path)
        self._keys = keys.SqliteKeys(self._pool.path, self._pool.memory)
        self._reads: dict[type, Callable[[sqlite3.Connection, Any], Any]] = {
            ops.FindPayload: adopting.find,
            ops.Garbage: upkeep.garbage,
            ops.Payloads: upkeep.payloads,
            ops.KnownKeys: upkeep.known_keys,
            ops.Count: upkeep.count,
            ops.Sessions: upkeep.list_sessions,
            shareops.Shares: shares.list_given,
            **governing.READS,
            **memory.READS,
        }
        self._activities: dict[type, Callable[[sqlite3.Connection, Any, Any], Any]] = {
            ops.Get: results.get,
            ops.List: results.list_live,
            fileops.ReadFile: files.read,
            fileops.ListFiles: files.list_all,
            fileops.FindWrite: files.find_write,
        }
        self._writes: dict[type, Callable[[sqlite3.Connection, Any], Any]] = {
            ops.Insert: inserting.insert,
            ops.Replace: adopting.replace,
            fileops.WriteFile: inserting.write_file,
            ops.Remove: retention.remove,
            ops.Forget: upkeep.forget,
            shareops.Share: shares.share,
            shareops.Revoke: shares.revoke,
            **governing.WRITES,
            **memory.WRITES,
        }

    def run(self, op: ops.Op[T], /) -> T:
        """Do one operation, as its docstring in `callslip.stacks.ops` says."""
        inner = op.op if isinstance(op, auditops.Audited) else op
        try:
            answer = self._run(op)
        except StoreUnavailable as error:
            if error.reason != "disk full" or type(inner) not in _FREES or self._pool.memory:
                raise
            self._pool.reserve.give()
            self._empty_log()  # it may be longer than what the database grows by
            answer = self._run(op)
        if wiping.due(inner) and not self._pool.memory:
            self._empty_log()
        if type(op) is ops.Forget and not self._pool.memory:
            self._pool.reserve.make()  # objects were deleted: there may be room again
        return cast("T", answer)

    def _empty_log(self) -> None:
        try:
            with self._pool.borrow() as db, _patience(db, EMPTYING_SECONDS):
                reason = "" if wiping.empty_log(db) else "others read"
        except StoreUnavailable as error:
            reason = error.reason
        if reason:
            # What was deleted is deleted; the log that still has it goes with a later checkpoint.
            _logger.info("the log of the index could not be emptied: %s", reason)

    def close(self) -> None:
        """Let go of the file; a later operation opens it again. `:memory:` starts empty."""
        self._pool.close()
        self._keys.close()

    @property
    def anew(self) -> Callable[[], None] | None:
        """Called once the file is found to be gone, or another one, before it is opened."""
        return self._pool.anew

    @anew.setter
    def anew(self, called: Callable[[], None]) -> None:
        self._pool.anew = called

    def _run(self, op: Any) -> Any:
        kind = type(op)
        if kind in self._activities:
            return self._active(self._activities[kind], op)
        if kind is auditops.Audited:
            return self._audited(op)
        if kind is ops.Sweep:
            return self._sweep(op)
        if kind is ops.PayloadPlace:
            return self._place(op)
        if kind is SealMark:
            return self._mark(op)
        if kind in keys.KINDS:
            return self._keys.run(op)
        with self._pool.borrow() as db:
            if kind is CheckIndex:
                return about.facts(db, op)
            if kind in self._reads:
                with _transaction(db, "DEFERRED"):
                    return self._reads[kind](db, op)
            if kind in self._writes:
                with _transaction(db, "IMMEDIATE"):
                    return self._writes[kind](db, op)
            if kind is ops.Repair:
                findings = upkeep.own_check(db)
                with _transaction(db, "IMMEDIATE" if op.mend else "DEFERRED"):
                    return [*findings, *upkeep.repair(db, op)]
        raise TypeError(f"not an index operation: {op!r}")

    def _active(self, read: Callable[[sqlite3.Connection, Any, Session | None], T], op: Any) -> T:
        """A read that counts as activity of its session: `op` has a scope and a time."""
        with self._pool.borrow() as db, _transaction(db, "DEFERRED"):
            session = sessions.find(db, op.scope)
            answer = read(db, op, session)
        if session is not None and sessions.due(session, op.now):
            try:
                with (
                    self._pool.borrow() as db,
                    _patience(db, TOUCH_SECONDS),
                    _transaction(db, "IMMEDIATE"),
                ):
                    sessions.touch(db, session, op.now)
            except StoreUnavailable as error:
                # What was asked for has been read. On a full or read-only disk, going on reading
                # is worth more than the note; the next read tries again.
                _logger.warning("activity of a session could not be noted: %s", error.reason)
        return answer

    def _audited(self, op: auditops.Audited[Any]) -> Any:
        inner: Any = op.op
        if type(inner) is ops.Sweep:
            return self._sweep(inner, op)
        with (
            self._pool.borrow() as db,
            _transaction(db, "IMMEDIATE"),
            auditing.under_way(db, op),
        ):
            answer = self._in_transaction(db, inner)
            auditing.write(db, op.entries(answer))
        return answer

    def _in_transaction(self, db: sqlite3.Connection, op: Any) -> Any:
        kind = type(op)
        if kind not in self._activities:
            return {**self._reads, **self._writes}[kind](db, op)
        session = sessions.find(db, op.scope)
        answer = self._activities[kind](db, op, session)
        if session is not None and sessions.due(session, op.now):
            sessions.touch(db, session, op.now)
        return answer

    def _place(self, op: ops.PayloadPlace) -> str | None:
        return self._settled(adopting.place, adopting.record_place, op.where)

    def _mark(self, op: SealMark) -> bytes | None:
        return self._settled(keys.mark, keys.record_mark, op.mark)

    def _settled(
        self,
        read: Callable[[sqlite3.Connection], T | None],
        record: Callable[[sqlite3.Connection, T], T | None],
        given: T | None,
    ) -> T | None:
        """What the first who gave it decided for all; read without a writer's lock."""
        with self._pool.borrow() as db:
            with _transaction(db, "DEFERRED"):
                known = read(db)
            if known is not None or given is None:
                return known
            with _transaction(db, "IMMEDIATE"):
                return record(db, given)

    def _sweep(self, op: ops.Sweep, told: auditops.Audited[Any] | None = None) -> bool:
        with self._pool.borrow() as db:
            with _transaction(db, "DEFERRED"):
                if not retention.more(db, op.now):
                    return False
            with _patience(db, op.milliseconds / 1000):
                try:
                    with (
                        _transaction(db, "IMMEDIATE"),
                        auditing.under_way(db, told) if told else nullcontext(),
                    ):
                        return retention.sweep(db, op)
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                        raise
                    return True  # Others write just now: a sweep is never worth waiting for.


@contextmanager
def _transaction(db: sqlite3.Connection, mode: str) -> Iterator[None]:
    # A failure inside is rolled back by the pool, which lent the connection.
    db.execute(f"BEGIN {mode}")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@contextmanager
def _patience(db: sqlite3.Connection, seconds: float) -> Iterator[None]:
    db.execute(f"PRAGMA busy_timeout = {max(1, int(seconds * 1000))}")
    try:
        yield
    finally:
        db.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
