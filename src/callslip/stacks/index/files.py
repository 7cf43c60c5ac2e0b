"""Scratch files in SQLite: versions along branches, and the views that they make.

A branch is a run of versions that follow each other; it is forked off another at one of that
one's versions. So a path in a view is found with one look-up for each branch that led to it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from callslip.stacks.fileops import File, FindWrite, ListFiles, ReadFile, View, WriteFile, Wrote
from callslip.stacks.index.rows import (
    payload_from,
    shape_from_blob,
    shape_to_blob,
    to_blob,
    to_text,
)

if TYPE_CHECKING:
    from callslip.stacks.index.sessions import Session

_FILE = "f.path, f.version, f.shape, f.written_at, p.digest, p.form, p.packed, p.trailer, p.key"
_FROM = "FROM files f LEFT JOIN payloads p ON p.n = f.payload"

_At = tuple[int, int]
"""A branch and a version in it; (0, 0) before the first."""


def _file(row: Sequence[Any], data: bytes | None) -> File:
    payload = None if row[4] is None else payload_from(row[4], row[5], row[6], row[7], row[8], data)
    return File(to_text(row[0]), row[1], shape_from_blob(row[2]), payload, row[3])


# --- views --------------------------------------------------------------------------------------


def resolve(db: sqlite3.Connection, session: int, view: View) -> _At | None:
    """Where a view stands; None if it has no such version."""
    if view.version is None:
        return _latest(db, session)
    at: _At | None = (0, 0)
    if view.version != 0:
        row = db.execute(
            "SELECT branch, version FROM files WHERE session = ? AND version = ?",
            (session, min(view.version, 2**62)),
        ).fetchone()
        at = None if row is None else (row[0], row[1])
    if not view.line:
        return at
    if at is None:
        return _latest(db, session)
    line, step = to_blob(view.line), to_blob(view.step)
    while (after := _next(db, session, at, line, step)) is not None:
        at = after
    return at


def _latest(db: sqlite3.Connection, session: int) -> _At:
    row = db.execute(
        "SELECT branch, version FROM files WHERE session = ? ORDER BY version DESC LIMIT 1",
        (session,),
    ).fetchone()
    return (0, 0) if row is None else (row[0], row[1])


def _next(db: sqlite3.Connection, session: int, at: _At, line: bytes, step: bytes) -> _At | None:
    """The latest child of a version that a line follows."""
    branches = db.execute(
        "SELECT branch FROM branches WHERE session = ? AND parent = ? AND forked_at = ?",
        (session, *at),
    ).fetchall()
    found: _At | None = None
    for (branch,) in [*branches, *([(at[0],)] if at[0] else [])]:
        row = db.execute(
            "SELECT version, line, step FROM files WHERE session = ? AND branch = ?"
            " AND version > ? ORDER BY version LIMIT 1",
            (session, branch, at[1]),
        ).fetchone()
        if row is None or (row[1] == line and (not step or row[2] != step)):
            continue
        if found is None or row[0] > found[1]:
            found = (branch, row[0])
    return found


def _spans(db: sqlite3.Connection, session: int, at: _At) -> list[_At]:
    """The branches that led to a version, each with the last version that counts, nearest first."""
    spans = []
    while at[0]:
        spans.append(at)
        row = db.execute(
            "SELECT parent, forked_at FROM branches WHERE session = ? AND branch = ?",
            (session, at[0]),
        ).fetchone()
        at = (row[0], row[1])
    return spans


def _find(db: sqlite3.Connection, session: int, at: _At, path: bytes) -> File | None:
    """A path in the view at `at`."""
    for branch, last in _spans(db, session, at):
        row = db.execute(
            f"SELECT {_FILE}, d.data {_FROM}"
            " LEFT JOIN inline d ON d.payload = p.n WHERE f.session = ? AND f.path = ?"
            " AND f.branch = ? AND f.version <= ? ORDER BY f.version DESC LIMIT 1",
            (session, path, branch, last),
        ).fetchone()
        if row is not None:
            return _file(row, row[9])
    return None


# --- operations ---------------------------------------------------------------------------------


def read(db: sqlite3.Connection, op: ReadFile, session: Session | None) -> File | None:
    """Do `fileops.ReadFile`."""
    if session is None or session.ended(op.now):
        return None
    at = resolve(db, session.n, op.view)
    return None if at is None else _find(db, session.n, at, to_blob(op.path))


def list_all(
    db: sqlite3.Connection, op: ListFiles, session: Session | None
) -> tuple[Sequence[File], int | None]:
    """Do `fileops.ListFiles`."""
    if session is None or session.ended(op.now):
        at: _At | None = (0, 0) if not op.view.version or op.view.line else None
    else:
        at = resolve(db, session.n, op.view)
    if at is None or session is None:
        return (), None if at is None else at[1]
    newest: dict[bytes, File] = {}
    for branch, last in _spans(db, session.n, at):
        rows = db.execute(
            f"SELECT {_FILE} {_FROM} WHERE f.session = ? AND f.version IN (SELECT max(version)"
            " FROM files WHERE session = ? AND branch = ? AND version <= ? GROUP BY path)",
            (session.n, session.n, branch, last),
        )
        for row in rows:
            newest.setdefault(row[0], _file(row, None))
    return [newest[path] for path in sorted(newest)], at[1]


def find_write(db: sqlite3.Connection, op: FindWrite, session: Session | None) -> File | None:
    """Do `fileops.FindWrite`."""
    if session is None or session.ended(op.now) or not op.call:
        return None
    return _written_by(db, session.n, op.call)


def _written_by(db: sqlite3.Connection, session: int, call: bytes) -> File | None:
    row = db.execute(
        f"SELECT {_FILE} {_FROM} WHERE f.session = ? AND f.call = ? AND f.call <> x''",
        (session, call),
    ).fetchone()
    return None if row is None else _file(row, None)


def standing(db: sqlite3.Connection, op: WriteFile, session: Session) -> Wrote | _At:
    """Where a write goes on from; or the answer, where nothing is to be written."""
    if op.call and (before := _written_by(db, session.n, op.call)) is not None:
        return Wrote("replayed", before)
    at = resolve(db, session.n, op.view)
    if at is None:
        # A writer from a state that is gone: what is there now is what it must be told of.
        at = _latest(db, session.n)
    found = _find(db, session.n, at, to_blob(op.path))
    if op.expect is not None and op.expect != (0 if found is None else found.version):
        return Wrote("stale", found)
    if found is not None and found.payload and found.payload.digest == op.payload.digest:
        return Wrote("same", found)
    return at


def add(db: sqlite3.Connection, op: WriteFile, session: Session, payload: int, at: _At) -> File:
    """Write a new version after `at`, with the row number of its payload."""
    ((version,),) = db.execute(
        "UPDATE sessions SET next_file = next_file + 1 WHERE n = ? RETURNING next_file - 1",
        (session.n,),
    ).fetchall()
    path, branch = to_blob(op.path), _branch_for(db, session.n, at)
    db.execute(
        "INSERT INTO files (tenant, session, version, branch, path, payload, size, shape, line,"
        " step, call, written_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            session.tenant,
            session.n,
            version,
            branch,
            path,
            payload,
            op.shape.size,
            shape_to_blob(op.shape),
            to_blob(op.view.line),
            to_blob(op.view.step),
            op.call,
            op.now,
        ),
    )
    written = _find(db, session.n, (branch, version), path)
    assert written is not None
    return written


def _branch_for(db: sqlite3.Connection, session: int, at: _At) -> int:
    """The branch of a new version after `at`: the same if it is that one's end, else a new one."""
    if at[0]:
        (last,) = db.execute(
            "SELECT max(version) FROM files WHERE session = ? AND branch = ?", (session, at[0])
        ).fetchone()
        if last == at[1]:
            return at[0]
    (branch,) = db.execute(
        "SELECT coalesce(max(branch), 0) + 1 FROM branches WHERE session = ?", (session,)
    ).fetchone()
    db.execute(
        "INSERT INTO branches (session, branch, parent, forked_at) VALUES (?, ?, ?, ?)",
        (session, branch, *at),
    )
    return int(branch)


# --- how they go --------------------------------------------------------------------------------


def drop(db: sqlite3.Connection, session: int, limit: int = 2**62) -> int:
    """Delete up to `limit` versions of a session, the oldest first; answer how many. A session that
    ended begins anew: what its next life writes is version 1."""
    gone = db.execute(
        "DELETE FROM files WHERE n IN"
        " (SELECT n FROM files WHERE session = ? ORDER BY version LIMIT ?)",
        (session, limit),
    ).rowcount
    begin_anew(db, session)
    return gone


def begin_anew(db: sqlite3.Connection, session: int) -> None:
    """A session without versions has no branches, and its next one is version 1."""
    for rest in ("DELETE FROM branches WHERE session", "UPDATE sessions SET next_file = 1 WHERE n"):
        db.execute(
            f"{rest} = ?1 AND NOT EXISTS (SELECT 1 FROM files WHERE session = ?1)", (session,)
        )


def evict(db: sqlite3.Connection, column: str, owner: int) -> bool:
    """Let the text of the oldest version go that a later one of its branch follows, of a `session`
    or a `tenant`; False if there is none. The version itself stays, so that views hold."""
    return (
        db.execute(
            "UPDATE files SET payload = NULL, size = 0 WHERE n = (SELECT n FROM files f"
            f" WHERE {column} = ? AND payload IS NOT NULL"
            " AND (SELECT held FROM sessions WHERE n = f.session) = 0 AND EXISTS (SELECT 1 FROM files g"
            " WHERE g.session = f.session AND g.path = f.path AND g.branch = f.branch"
            " AND g.version > f.version) ORDER BY n LIMIT 1)",
            (owner,),
        ).rowcount
        > 0
    )
