"""Scratch files in PostgreSQL: a read, a list and a write are one round trip each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from callslip.errors import StoreUnavailable
from callslip.stacks.fileops import File, FindWrite, ListFiles, ReadFile, View, WriteFile, Wrote
from callslip.stacks.index.postgres import sessions
from callslip.stacks.index.postgres.base_files import FULL
from callslip.stacks.index.postgres.base_functions import GONE
from callslip.stacks.index.postgres.inserting import caps_of, place_of
from callslip.stacks.index.postgres.sessions import Session, session_from
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import (
    payload_from,
    scope_key,
    shape_from_blob,
    shape_to_blob,
    to_blob,
    to_text,
)

_FILE = "f.path, f.version, f.shape, f.written_at, p.digest, p.form, p.packed, p.trailer, p.key"


def _file(row: Sequence[Any], data: bytes | None) -> File:
    payload = None
    if row[4] is not None:
        payload = payload_from(row[4], row[5], row[6], row[7], row[8], data)
    return File(to_text(row[0]), row[1], shape_from_blob(row[2]), payload, row[3])


def _found(row: Sequence[Any] | None, now: float) -> tuple[File | None, Session | None]:
    """The file and the session of a row of both, and the payload's data behind."""
    if row is None:
        return None, None
    session, found = session_from(row), row[sessions.WIDTH :]
    if session.ended(now) or found[0] is None:
        return None, session
    return _file(found, found[9]), session


def _view(view: View) -> tuple[int | None, bytes, bytes]:
    version = None if view.version is None else min(view.version, 2**62)
    return version, to_blob(view.line), to_blob(view.step)


def read(db: Db, op: ReadFile) -> tuple[File | None, Session | None]:
    """Do `fileops.ReadFile`; with the session, whose activity it is."""
    row = db.finish(
        f"SELECT {sessions.COLUMNS}, {_FILE}, p.data FROM sessions s"
        " CROSS JOIN LATERAL resolve_view(s.n, %s, %s, %s) v"
        " LEFT JOIN LATERAL file_in(s.n, v._branch, v._at, %s) f ON true"
        f" LEFT JOIN payloads p ON p.n = f.payload WHERE {sessions.WHERE}",
        (*_view(op.view), to_blob(op.path), *scope_key(op.scope)),
    ).fetchone()
    return _found(row, op.now)


def list_all(db: Db, op: ListFiles) -> tuple[tuple[Sequence[File], int | None], Session | None]:
    """Do `fileops.ListFiles`; with the session, whose activity it is."""
    rows = db.finish(
        f"SELECT {sessions.COLUMNS}, v._at, {_FILE} FROM sessions s"
        " CROSS JOIN LATERAL resolve_view(s.n, %s, %s, %s) v"
        " LEFT JOIN LATERAL files_in(s.n, v._branch, v._at) f ON true"
        f" LEFT JOIN payloads p ON p.n = f.payload WHERE {sessions.WHERE} ORDER BY f.path",
        (*_view(op.view), *scope_key(op.scope)),
    )
    session = session_from(rows[0]) if rows else None
    if session is None or session.ended(op.now):
        return ((), 0 if not op.view.version or op.view.line else None), session
    at = rows[0][sessions.WIDTH]
    if at is None:
        return ((), None), session
    found = [row[sessions.WIDTH + 1 :] for row in rows]
    return ([_file(row, None) for row in found if row[0] is not None], at), session


def find_write(db: Db, op: FindWrite) -> tuple[File | None, Session | None]:
    """Do `fileops.FindWrite`; with the session, whose activity it is."""
    row = db.finish(
        f"SELECT {sessions.COLUMNS}, {_FILE}, NULL FROM sessions s"
        " LEFT JOIN files f ON f.session = s.n AND f.call = %s AND f.call <> ''"
        f" LEFT JOIN payloads p ON p.n = f.payload WHERE {sessions.WHERE}",
        (op.call, *scope_key(op.scope)),
    ).fetchone()
    return _found(row, op.now)


def write(db: Db, op: WriteFile) -> Wrote | None:
    """Do `fileops.WriteFile`."""
    values = (
        *scope_key(op.scope), op.ttl, op.now, to_blob(op.path), shape_to_blob(op.shape),
        op.shape.size, *_view(op.view), op.expect, op.call, *place_of(op.payload),
        caps_of(op.quota), [to_blob(name) for name in op.subjects],
    )  # fmt: skip
    marks = ", ".join(["%s"] * (len(values) - 2))
    try:
        row = db.finish(f"SELECT * FROM write_file({marks}, %s::bigint[], %s::bytea[])", values)[0]
    except psycopg.Error as error:
        if error.sqlstate == GONE:
            db.rollback()
            return None
        if error.sqlstate == FULL:
            raise StoreUnavailable(
                "the files as they stand fill the quota", reason="over quota"
            ) from None
        raise
    outcome, adopted, *found = row
    return Wrote(outcome, None if found[0] is None else _file(found, found[9]), adopted)
