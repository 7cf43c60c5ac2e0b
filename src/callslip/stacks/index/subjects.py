"""Subjects in SQLite: whom a row is about, and removing all that is about one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from callslip.handle import Scope
from callslip.stacks.auditops import (
    FILE_ID,
    Holders,
    Removed,
    RemoveSubject,
    SubjectsOf,
)
from callslip.stacks.index import files as version_store
from callslip.stacks.index import holding, memory_rows, sessions, wiping
from callslip.stacks.index.rows import holder_from, to_blob, to_text

if TYPE_CHECKING:
    from callslip.stacks.index.sessions import Session


def add(db: sqlite3.Connection, session: Session, id: bytes, names: Sequence[str]) -> None:
    """Note that a result, or the version of a file, is about somebody."""
    db.executemany(
        "INSERT OR IGNORE INTO subjects (tenant, name, session, id) VALUES (?, ?, ?, ?)",
        [(session.tenant, to_blob(name), session.n, id) for name in names],
    )


def of_ids(db: sqlite3.Connection, session: Session, ids: Sequence[str]) -> dict[bytes, list[str]]:
    """Whom the results of those ids, or what is left of them, are about."""
    found: dict[bytes, list[str]] = {}
    for id in map(to_blob, ids):
        rows = db.execute(
            "SELECT name FROM subjects WHERE session = ? AND id = ?", (session.n, id)
        ).fetchall()
        if rows:
            found[id] = [to_text(name) for (name,) in rows]
    return found


def add_to_fact(
    db: sqlite3.Connection, space: int, id: str, tenant: str, names: Sequence[str]
) -> None:
    """Note that a fact is about somebody."""
    db.executemany(
        "INSERT OR IGNORE INTO memory_subjects (tenant, name, fact)"
        " SELECT ?, ?, n FROM memories WHERE space = ? AND id = ?",
        [(to_blob(tenant), to_blob(name), space, to_blob(id)) for name in names],
    )


def of_result(db: sqlite3.Connection, op: SubjectsOf) -> tuple[str, ...]:
    """Do `auditops.SubjectsOf`."""
    session = sessions.find(db, op.scope)
    if session is None:
        return ()
    rows = db.execute(
        "SELECT name FROM subjects WHERE session = ? AND id = ? ORDER BY name",
        (session.n, to_blob(op.id)),
    )
    return tuple(to_text(name) for (name,) in rows)


def holders(db: sqlite3.Connection, op: Holders) -> Sequence[tuple[Scope, str, str]]:
    """Do `auditops.Holders`."""
    rows = db.execute(
        "SELECT s.name, s.user, r.id, r.tool FROM tenants t JOIN payloads p ON p.tenant = t.n"
        " JOIN results r ON r.payload = p.n JOIN sessions s ON s.n = r.session"
        " WHERE t.name = ? AND p.digest = ? ORDER BY r.session, r.seq LIMIT ?",
        (to_blob(op.tenant), op.digest, max(op.limit, 0)),
    )
    return [holder_from(op.tenant, row) for row in rows]


def remove(db: sqlite3.Connection, op: RemoveSubject) -> Removed:
    """Do `auditops.RemoveSubject`."""
    tenant, name = to_blob(op.tenant), to_blob(op.subject)
    about = (
        "FROM tenants t JOIN subjects x ON x.tenant = t.n JOIN sessions s ON s.n = x.session"
        " WHERE t.name = ? AND x.name = ?"
    )
    held = db.execute(f"SELECT s.n {about} AND s.held = 1 LIMIT 1", (tenant, name)).fetchone()
    if held is not None:
        holding.refuse_session(db, held[0])
    facts = db.execute(
        "SELECT m.n, m.size, p.parts FROM memory_subjects x JOIN memories m ON m.n = x.fact"
        " JOIN memory_spaces p ON p.n = m.space WHERE x.tenant = ? AND x.name = ?",
        (tenant, name),
    ).fetchall()
    for _, _, parts in facts:
        holding.refuse_memory(db, memory_rows.parts_of(parts))
    rows = db.execute(
        f"SELECT s.n, x.id {about} LIMIT ?", (tenant, name, max(op.limit, 1))
    ).fetchall()
    results = files = 0
    for session, id in rows:
        version = to_text(id).removeprefix(FILE_ID)
        if version != to_text(id):
            files += db.execute(
                "DELETE FROM files WHERE session = ? AND version = ?", (session, int(version))
            ).rowcount
        else:
            where = "WHERE session = ? AND id = ?"
            results += db.execute(f"DELETE FROM results {where}", (session, id)).rowcount
            db.execute(f"DELETE FROM tombstones {where}", (session, id))
    for session in {session for session, _ in rows}:
        version_store.begin_anew(db, session)
        sessions.drop_empty(db, session)
    if len(rows) >= max(op.limit, 1):
        return Removed(results, files, more=True)
    for n, size, parts in facts:
        space = memory_rows.find_space(db, memory_rows.parts_of(parts))
        assert space is not None
        memory_rows.delete(db, space, n, size)
        memory_rows.settle(db, space)
    if facts:
        wiping.merge_words(db)
    return Removed(results, files, len(facts))
