"""Subjects in PostgreSQL: whom a row is about, and removing all that is about one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callslip.handle import Scope
from callslip.stacks.auditops import FILE_ID, Holders, Removed, RemoveSubject, SubjectsOf
from callslip.stacks.index.memory_rows import parts_of
from callslip.stacks.index.postgres import holding, memory_spaces
from callslip.stacks.index.postgres.memories import Writing
from callslip.stacks.index.postgres.sessions import WHERE
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import holder_from, scope_key, to_blob, to_text


def of_result(db: Db, op: SubjectsOf) -> tuple[str, ...]:
    """Do `auditops.SubjectsOf`."""
    rows = db.finish(
        "SELECT x.name FROM sessions s JOIN subjects x ON x.session = s.n AND x.id = %s"
        f" WHERE {WHERE} ORDER BY x.name",
        (to_blob(op.id), *scope_key(op.scope)),
    )
    return tuple(to_text(name) for (name,) in rows)


def holders(db: Db, op: Holders) -> Sequence[tuple[Scope, str, str]]:
    """Do `auditops.Holders`."""
    rows = db.finish(
        'SELECT s.name, s."user", r.id, r.tool FROM payloads p JOIN results r ON r.payload = p.n'
        " JOIN sessions s ON s.n = r.session WHERE p.tenant = %s AND p.digest = %s"
        " ORDER BY r.session, r.seq LIMIT %s",
        (to_blob(op.tenant), op.digest, max(op.limit, 0)),
    )
    return [holder_from(op.tenant, row) for row in rows]


def remove(db: Db, op: RemoveSubject) -> Removed:
    """Do `auditops.RemoveSubject`."""
    tenant, name = to_blob(op.tenant), to_blob(op.subject)
    facts = _refuse(db, tenant, name, op)
    rows = db.execute(
        "SELECT session, id FROM subjects WHERE tenant = %s AND name = %s"
        " ORDER BY session, id LIMIT %s",
        (tenant, name, max(op.limit, 1)),
    )
    sessions = sorted({session for session, _ in rows})
    db.execute(
        "SELECT FROM sessions WHERE n = ANY(%s::bigint[]) ORDER BY n FOR UPDATE", (sessions,)
    )
    # A statement for all of a kind: far from the server, one for each row would be out of time.
    told = [(session, to_text(id)) for session, id in rows]
    versions = [
        (session, int(id.removeprefix(FILE_ID))) for session, id in told if id.startswith(FILE_ID)
    ]
    about = [row for row, (_, id) in zip(rows, told, strict=True) if not id.startswith(FILE_ID)]
    files = _delete(db, "files", "version", "bigint", versions)
    _delete(db, "tombstones", "id", "bytea", about)
    results = _delete(db, "results", "id", "bytea", about)
    for rest in (
        "DELETE FROM branches b WHERE b.session",
        "UPDATE sessions b SET next_file = 1 WHERE b.n",
    ):
        db.execute(
            f"{rest} = ANY(%s::bigint[]) AND NOT EXISTS (SELECT 1 FROM files f WHERE f.session ="
            f" b.{rest.rpartition('.')[2]})",
            (sessions,),
        )
    # A session that nothing is left of would be a trace too.
    db.execute(
        "DELETE FROM sessions WHERE n = ANY(%s::bigint[]) AND results = 0 AND tombstones = 0"
        " AND files = 0",
        (sessions,),
    )
    if len(rows) >= max(op.limit, 1):
        return Removed(results, files, more=True)
    gone = 0
    for parts in sorted(facts):
        space = memory_spaces.lock(db, parts_of(parts))
        if space is not None:
            writing = Writing(db, space)
            gone += writing.delete(facts[parts])
            writing.end()
    db.execute("SELECT fold(%s, 10000)", (tenant,))
    return Removed(results, files, gone)


def _delete(db: Db, table: str, column: str, kind: str, rows: Sequence[tuple[int, Any]]) -> int:
    sessions, ids = [session for session, _ in rows], [id for _, id in rows]
    return db.execute(
        f"DELETE FROM {table} x USING unnest(%s::bigint[], %s::{kind}[]) g (session, id)"
        f" WHERE x.session = g.session AND x.{column} = g.id",
        (sessions, ids),
    ).rowcount


def _refuse(db: Db, tenant: bytes, name: bytes, op: RemoveSubject) -> dict[bytes, list[int]]:
    """Raise `LegalHold` if any of it is held; the facts by their namespace."""
    holding.reaching(db, op.tenant)  # none is placed until this is over
    held = db.execute(
        'SELECT s."user", s.name FROM subjects x JOIN sessions s ON s.n = x.session'
        " WHERE x.tenant = %s AND x.name = %s AND s.held LIMIT 1",
        (tenant, name),
    )
    for user, session in held:
        holding.refuse(db, op.tenant, to_text(user), to_text(session))
    facts: dict[bytes, list[int]] = {}
    for n, parts in db.execute(
        "SELECT m.n, p.parts FROM memory_subjects x JOIN memories m ON m.n = x.fact"
        " JOIN memory_spaces p ON p.n = m.space WHERE x.tenant = %s AND x.name = %s",
        (tenant, name),
    ):
        facts.setdefault(parts, []).append(n)
    for parts in facts:
        holding.refuse_memory(db, parts_of(parts))
    return facts
