"""The index in one SQLite file: every `IndexOp`, each in one transaction.

Safe from many threads, processes and forks. Readers never wait for a writer (WAL); writers take
turns, up to `limits.BUSY_SECONDS`. A commit is on the disk when the operation returns.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from callslip.errors import SettingsError, StoreUnavailable
from callslip.handle import Scope
from callslip.limits import BUSY_SECONDS
from callslip.stacks import fileops, memoryops, ops
from callslip.stacks.index import adopting, files, memory, retention, sessions, upkeep
from callslip.stacks.index.pool import MINIMUM, Pool
from callslip.stacks.index.rows import (
    payload_from,
    shape_from_blob,
    shape_to_blob,
    to_blob,
    to_text,
)
from callslip.stacks.index.sessions import Session

T = TypeVar("T")

TOUCH_SECONDS = 1.0
"""How long a read waits for other writers to note its activity, before it leaves that out."""

_FREES = (ops.Remove, ops.Sweep, ops.Forget, ops.Repair, memoryops.ForgetFacts)
"""What makes room, and so must not fail for want of it."""

_logger = logging.getLogger(__name__)

_RESULT = (
    "r.id, r.call, r.tool, r.args, r.status, r.shape, r.preview, r.created_at, r.same_as,"
    " p.digest, p.form, p.packed, p.trailer, p.key"
)


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
        self._reads: dict[type, Callable[[sqlite3.Connection, Any], Any]] = {
            ops.FindPayload: adopting.find,
            ops.Garbage: upkeep.garbage,
            ops.Payloads: upkeep.payloads,
            ops.KnownKeys: upkeep.known_keys,
            ops.Count: upkeep.count,
            ops.Sessions: upkeep.list_sessions,
            **memory.READS,
        }
        self._activities: dict[type, Callable[[sqlite3.Connection, Any, Any], Any]] = {
            ops.Get: _get,
            ops.List: _list,
            fileops.ReadFile: files.read,
            fileops.ListFiles: files.list_all,
            fileops.FindWrite: files.find_write,
        }
        self._writes: dict[type, Callable[[sqlite3.Connection, Any], Any]] = {
            ops.Insert: _insert,
            ops.Replace: adopting.replace,
            fileops.WriteFile: _write_file,
            ops.Remove: retention.remove,
            ops.Forget: upkeep.forget,
            **memory.WRITES,
        }

    def run(self, op: ops.Op[T], /) -> T:
        """Do one operation, as its docstring in `callslip.stacks.ops` says."""
        try:
            answer = self._run(op)
        except StoreUnavailable as error:
            if error.reason != "disk full" or type(op) not in _FREES or self._pool.memory:
                raise
            self._make_room()
            answer = self._run(op)
        if type(op) is ops.Forget and not self._pool.memory:
            self._pool.reserve.make()  # objects were deleted: there may be room again
        return cast("T", answer)

    def _make_room(self) -> None:
        self._pool.reserve.give()
        try:
            # The log may be longer than what the database grows by when it is worked in.
            with self._pool.borrow() as db, _patience(db, TOUCH_SECONDS):
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except StoreUnavailable as error:
            _logger.info("the log could not be shortened on a full disk: %s", error.reason)

    def close(self) -> None:
        """Let go of the file; a later operation opens it again. `:memory:` starts empty."""
        self._pool.close()

    def _run(self, op: Any) -> Any:
        kind = type(op)
        if kind in self._activities:
            return self._active(self._activities[kind], op)
        if kind is ops.Sweep:
            return self._sweep(op)
        if kind is ops.PayloadPlace:
            return self._place(op)
        with self._pool.borrow() as db:
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

    def _place(self, op: ops.PayloadPlace) -> str | None:
        with self._pool.borrow() as db:
            with _transaction(db, "DEFERRED"):
                known = adopting.place(db)
            if known is not None or op.where is None:
                return known
            with _transaction(db, "IMMEDIATE"):
                return adopting.record_place(db, op.where)

    def _sweep(self, op: ops.Sweep) -> bool:
        with self._pool.borrow() as db:
            with _transaction(db, "DEFERRED"):
                if not retention.more(db, op.now):
                    return False
            with _patience(db, op.milliseconds / 1000):
                try:
                    with _transaction(db, "IMMEDIATE"):
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


# --- reads --------------------------------------------------------------------------------------


def _result(scope: Scope, row: Sequence[Any], data: bytes | None) -> ops.Result:
    return ops.Result(
        scope=scope,
        id=to_text(row[0]),
        call=row[1],
        tool=to_text(row[2]),
        args=to_text(row[3]),
        status=to_text(row[4]),
        shape=shape_from_blob(row[5]),
        preview=to_text(row[6]),
        created_at=row[7],
        same_as=to_text(row[8]),
        payload=payload_from(row[9], row[10], row[11], row[12], row[13], data),
    )


def _row(
    db: sqlite3.Connection, scope: Scope, session: int, id: bytes
) -> tuple[int, ops.Result] | None:
    row = db.execute(
        f"SELECT {_RESULT}, r.seq, d.data FROM results r JOIN payloads p ON p.n = r.payload"
        " LEFT JOIN inline d ON d.payload = p.n WHERE r.session = ? AND r.id = ?",
        (session, id),
    ).fetchone()
    return None if row is None else (row[14], _result(scope, row, row[15]))


def _get(
    db: sqlite3.Connection, op: ops.Get, session: Session | None
) -> ops.Result | ops.Tombstone | None:
    if session is None:
        return None
    found = _row(db, op.scope, session.n, to_blob(op.id))
    if found is not None:
        seq, result = found
        if seq >= session.floor and not session.expired(op.now):
            return result
        at = session.floor_at if seq < session.floor else session.expires_at
        assert at is not None
        return ops.Tombstone(result.id, result.tool, result.args, result.shape, "expired", at)
    row = db.execute(
        "SELECT id, tool, args, shape, why, gone_at FROM tombstones WHERE session = ? AND id = ?",
        (session.n, to_blob(op.id)),
    ).fetchone()
    if row is None:
        return None
    return ops.Tombstone(
        to_text(row[0]), to_text(row[1]), to_text(row[2]), shape_from_blob(row[3]), row[4], row[5]
    )


def _list(
    db: sqlite3.Connection, op: ops.List, session: Session | None
) -> tuple[Sequence[ops.Result], int]:
    total = 0 if session is None else session.live(op.now)
    after, limit = max(op.after, 0), min(op.limit, total)
    if session is None or after >= total or limit <= 0:
        return (), total
    rows = db.execute(
        f"SELECT {_RESULT} FROM results r JOIN payloads p ON p.n = r.payload"
        " WHERE r.session = ? AND r.seq >= ? ORDER BY r.seq LIMIT ?",
        (session.n, _seq_at(db, session, after, total), limit),
    )
    return [_result(op.scope, row, None) for row in rows], total


def _seq_at(db: sqlite3.Connection, session: Session, after: int, total: int) -> int:
    """The seq of the live row that `after` others come before."""
    where = "FROM results WHERE session = ? AND seq >= ?"
    first, last = (
        db.execute(f"SELECT {edge}(seq) {where}", (session.n, session.floor)).fetchone()[0]
        for edge in ("min", "max")
    )
    if last - first + 1 == total:
        # No gaps: nothing was deleted out of the middle. So a list's end costs what its start does.
        return int(first + after)
    order, skip = ("ASC", after) if after * 2 < total else ("DESC", total - 1 - after)
    (seq,) = db.execute(
        f"SELECT seq {where} ORDER BY seq {order} LIMIT 1 OFFSET ?",
        (session.n, session.floor, skip),
    ).fetchone()
    return int(seq)


# --- insert -------------------------------------------------------------------------------------


def _insert(db: sqlite3.Connection, op: ops.Insert) -> ops.Inserted | None:
    given, scope = op.result.payload, op.result.scope
    stored = adopting.find(db, ops.FindPayload(scope.tenant, given.digest))
    if adopting.is_gone(db, given, stored):
        return None
    with adopting.held(db, scope.tenant, stored):
        session = sessions.open_session(db, scope, op.ttl, op.now)
        payload, adopted = adopting.adopt(db, session.tenant, given, stored)
        id, created, ended = _take_id(db, op, session, payload)
        if created:
            if ended is not None:
                # The row of an earlier life makes room. Holding its payload meanwhile keeps the trigger
                # from releasing what the new row needs.
                db.execute("UPDATE payloads SET refs = refs + 1 WHERE n = ?", (payload,))
                db.execute("DELETE FROM results WHERE session = ? AND seq = ?", (session.n, ended))
            _add_row(db, op.result, session, payload, id)
            if ended is not None:
                db.execute("UPDATE payloads SET refs = refs - 1 WHERE n = ?", (payload,))
            retention.enforce(db, op.quota, session.n, session.next_seq, op.now)
            # After the quota, so that it never names a row which this very insert pushed out. A row
            # that names another was never shown in full, so it is not the one to name.
            db.execute(
                "UPDATE results SET same_as = coalesce((SELECT id FROM results WHERE payload = ?"
                " AND session = ? AND seq >= ? AND seq < ? AND same_as = x'' ORDER BY seq LIMIT 1),"
                " x'')"
                " WHERE session = ? AND seq = ?",
                (payload, session.n, session.floor, session.next_seq, session.n, session.next_seq),
            )
        found = _row(db, scope, session.n, id)
        assert found is not None
        return ops.Inserted(result=found[1], created=created, adopted=adopted)


def _write_file(db: sqlite3.Connection, op: fileops.WriteFile) -> fileops.Wrote | None:
    stored = adopting.find(db, ops.FindPayload(op.scope.tenant, op.payload.digest))
    if adopting.is_gone(db, op.payload, stored):
        return None
    with adopting.held(db, op.scope.tenant, stored):
        session = sessions.open_session(db, op.scope, op.ttl, op.now)
        at = files.standing(db, op, session)
        if isinstance(at, fileops.Wrote):
            return at
        payload, adopted = adopting.adopt(db, session.tenant, op.payload, stored)
        written = files.add(db, op, session, payload, at)
        if not retention.enforce(db, op.quota, session.n, -1, op.now):
            raise StoreUnavailable("the files as they stand fill the quota", reason="over quota")
        return fileops.Wrote("written", written, adopted)


def _take_id(
    db: sqlite3.Connection, op: ops.Insert, session: Session, payload: int
) -> tuple[bytes, bool, int | None]:
    """The id for this call and content, whether a row must be made for it, and the seq of a row
    with that id which ran out with an earlier life of the session.

    An id that this call and content had before wins over a shorter one that became free: a replay
    gives the same handle.
    """
    ids = [to_blob(id) for id in sorted(op.ids, key=len)]
    marks = ", ".join("?" * len(ids))
    call, digest = op.result.call, op.result.payload.digest
    taken: dict[bytes, tuple[int | None, bool]] = {}
    for id, seq, own in db.execute(
        f"SELECT id, seq, call = ? AND payload = ? FROM results"
        f" WHERE session = ? AND id IN ({marks})",
        (call, payload, session.n, *ids),
    ):
        taken[id] = (seq, bool(own))
    for id, own in db.execute(
        f"SELECT id, call = ? AND digest = ? FROM tombstones WHERE session = ? AND id IN ({marks})",
        (call, digest, session.n, *ids),
    ):
        taken[id] = (None, bool(own))
    for id in ids:
        seq, own = taken.get(id, (None, False))
        if not own:
            continue
        if seq is None:
            db.execute("DELETE FROM tombstones WHERE session = ? AND id = ?", (session.n, id))
        return id, seq is None or seq < session.floor, seq
    for id in ids:
        if id not in taken:
            return id, True, None
    raise StoreUnavailable("every id offered for a result is taken in its session", reason="failed")


def _add_row(
    db: sqlite3.Connection, result: ops.Result, session: Session, payload: int, id: bytes
) -> None:
    db.execute(
        "INSERT INTO results (tenant, session, seq, id, call, payload, size, created_at, same_as,"
        " tool, status, args, shape, preview) VALUES (?, ?, ?, ?, ?, ?, ?, ?, x'', ?, ?, ?, ?, ?)",
        (
            session.tenant,
            session.n,
            session.next_seq,
            id,
            result.call,
            payload,
            result.shape.size,
            result.created_at,
            to_blob(result.tool),
            to_blob(result.status),
            to_blob(result.args),
            shape_to_blob(result.shape),
            to_blob(result.preview),
        ),
    )
    db.execute("UPDATE sessions SET next_seq = next_seq + 1 WHERE n = ?", (session.n,))
