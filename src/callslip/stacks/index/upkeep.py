"""What gc, verify and the totals ask of the SQLite index."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from callslip.handle import Scope
from callslip.stacks import ops
from callslip.stacks.index import auditing, memory_upkeep, sessions
from callslip.stacks.index.pool import primary_code
from callslip.stacks.index.rows import payload_from, to_blob, to_text

_MOST = 2**62

_REFERENCES = (
    "((SELECT count(*) FROM results r WHERE r.payload = p.n)"
    " + (SELECT count(*) FROM files f WHERE f.payload = p.n))"
)


def garbage(db: sqlite3.Connection, op: ops.Garbage) -> Sequence[str]:
    """Do `ops.Garbage`."""
    rows = db.execute("SELECT key FROM garbage ORDER BY key LIMIT ?", (max(op.limit, 0),))
    return [to_text(key) for (key,) in rows]


def known_garbage(db: sqlite3.Connection, key: bytes) -> bool:
    """Whether that key is on the garbage list."""
    return db.execute("SELECT 1 FROM garbage WHERE key = ?", (key,)).fetchone() is not None


def forget(db: sqlite3.Connection, op: ops.Forget) -> None:
    """Do `ops.Forget`."""
    db.executemany("DELETE FROM garbage WHERE key = ?", [(to_blob(key),) for key in op.keys])
    auditing.erased(db, op)


def known_keys(db: sqlite3.Connection, op: ops.KnownKeys) -> frozenset[str]:
    """Do `ops.KnownKeys`."""
    return frozenset(
        key
        for key in op.keys
        if db.execute(
            "SELECT 1 FROM payloads WHERE key = ?1 UNION ALL SELECT 1 FROM garbage WHERE key = ?1",
            (to_blob(key),),
        ).fetchone()
    )


def payloads(db: sqlite3.Connection, op: ops.Payloads) -> Sequence[tuple[str, ops.Payload, int]]:
    """Do `ops.Payloads`, the inline data with it: verify checks that too."""
    found: list[tuple[str, ops.Payload, int]] = []
    # Tenant by tenant: a row comparison over both tables would walk the earlier ones every time.
    after_tenant, after_digest = (None, b"") if op.after is None else op.after
    start = b"" if after_tenant is None else to_blob(after_tenant)
    tenants = db.execute("SELECT n, name FROM tenants WHERE name >= ? ORDER BY name", (start,))
    for n, name in tenants:
        if len(found) >= op.limit:
            break
        resumed = after_tenant is not None and name == start
        rows = db.execute(
            "SELECT p.digest, p.form, p.packed, p.trailer, p.key, d.data,"
            f" {_REFERENCES}"
            " FROM payloads p LEFT JOIN inline d ON d.payload = p.n"
            f" WHERE p.tenant = ? AND p.digest {'>' if resumed else '>='} ?"
            " ORDER BY p.digest LIMIT ?",
            (n, after_digest if resumed else b"", op.limit - len(found)),
        )
        found += [(to_text(name), payload_from(*row[:6]), row[6]) for row in rows]
    return found


def count(db: sqlite3.Connection, op: ops.Count) -> ops.Totals:
    """Do `ops.Count`: from the running totals."""
    columns = "results, tombstones, payloads, content_bytes, packed_bytes"
    more = "files, file_bytes"
    row = None
    if op.scope is not None:
        found = sessions.find(db, op.scope)
        if found is not None:
            row = db.execute(
                f"SELECT 1 - closed, {columns}, 0, {more} FROM sessions WHERE n = ?", (found.n,)
            ).fetchone()
    elif op.tenant is not None:
        row = db.execute(
            f"SELECT sessions, {columns}, 0, {more} FROM tenants WHERE name = ?",
            (to_blob(op.tenant),),
        ).fetchone()
    else:
        names = ("sessions", *columns.split(", "))
        sums, file_sums = (
            ", ".join(f"coalesce(sum({name}), 0)" for name in each)
            for each in (names, more.split(", "))
        )
        row = db.execute(
            f"SELECT {sums}, (SELECT garbage FROM store), {file_sums} FROM tenants"
        ).fetchone()
    return ops.Totals(*(row or (0,) * 9))


def list_sessions(db: sqlite3.Connection, op: ops.Sessions) -> Sequence[tuple[Scope, float, int]]:
    """Do `ops.Sessions`: the open ones."""
    where, values = ("", []) if op.tenant is None else ("AND t.name = ?", [to_blob(op.tenant)])
    rows = db.execute(
        "SELECT s.name, s.user, t.name, s.active_at, s.results - s.dead"
        " FROM sessions s JOIN tenants t ON t.n = s.tenant"
        f" WHERE s.closed = 0 {where} ORDER BY s.active_at DESC, s.n DESC LIMIT ? OFFSET ?",
        (*values, max(op.limit, 0), min(max(op.after, 0), _MOST)),
    )
    return [
        (Scope(to_text(name), to_text(user), to_text(tenant)), active_at, live)
        for name, user, tenant, active_at, live in rows
    ]


# --- repair -------------------------------------------------------------------------------------

_TOTALS: tuple[tuple[str, str, str, str], ...] = (
    ("sessions", "results", "a session's number of results",
     "(SELECT count(*) FROM results r WHERE r.session = o.n)"),
    ("sessions", "content_bytes", "a session's bytes of content",
     "(SELECT coalesce(sum(r.size), 0) FROM results r WHERE r.session = o.n)"),
    ("sessions", "dead", "a session's number of results that ran out",
     "(SELECT count(*) FROM results r WHERE r.session = o.n AND r.seq < o.floor)"),
    ("sessions", "dead_bytes", "a session's bytes that ran out",
     "(SELECT coalesce(sum(r.size), 0) FROM results r WHERE r.session = o.n AND r.seq < o.floor)"),
    ("sessions", "tombstones", "a session's number of tombstones",
     "(SELECT count(*) FROM tombstones b WHERE b.session = o.n)"),
    ("sessions", "payloads", "a session's number of payloads",
     "(SELECT count(*) FROM (SELECT payload FROM results WHERE session = o.n"
     + " UNION SELECT payload FROM files WHERE session = o.n AND payload IS NOT NULL))"),
    ("sessions", "packed_bytes", "a session's bytes of payloads",
     "(SELECT coalesce(sum(packed), 0) FROM payloads WHERE n IN"
     + " (SELECT payload FROM results WHERE session = o.n"
     + " UNION SELECT payload FROM files WHERE session = o.n))"),
    ("sessions", "files", "a session's number of file versions",
     "(SELECT count(*) FROM files f WHERE f.session = o.n)"),
    ("sessions", "file_bytes", "a session's bytes of files",
     "(SELECT coalesce(sum(f.size), 0) FROM files f WHERE f.session = o.n)"),
    ("tenants", "files", "a tenant's number of file versions",
     "(SELECT count(*) FROM files f WHERE f.tenant = o.n)"),
    ("tenants", "file_bytes", "a tenant's bytes of files",
     "(SELECT coalesce(sum(f.size), 0) FROM files f WHERE f.tenant = o.n)"),
    ("tenants", "sessions", "a tenant's number of sessions",
     "(SELECT count(*) FROM sessions s WHERE s.tenant = o.n AND s.closed = 0)"),
    ("tenants", "results", "a tenant's number of results",
     "(SELECT count(*) FROM results r WHERE r.tenant = o.n)"),
    ("tenants", "content_bytes", "a tenant's bytes of content",
     "(SELECT coalesce(sum(r.size), 0) FROM results r WHERE r.tenant = o.n)"),
    ("tenants", "tombstones", "a tenant's number of tombstones",
     "(SELECT count(*) FROM tombstones b WHERE b.tenant = o.n)"),
    ("tenants", "payloads", "a tenant's number of payloads",
     "(SELECT count(*) FROM payloads p WHERE p.tenant = o.n)"),
    ("tenants", "packed_bytes", "a tenant's bytes of payloads",
     "(SELECT coalesce(sum(p.packed), 0) FROM payloads p WHERE p.tenant = o.n)"),
    ("store", "garbage", "the number of payloads to be deleted", "(SELECT count(*) FROM garbage)"),
)  # fmt: skip


def own_check(db: sqlite3.Connection) -> list[str]:
    """SQLite's own check of its file, one sentence for each finding."""
    try:
        rows = db.execute("PRAGMA integrity_check(20)").fetchall()
    except sqlite3.DatabaseError as error:
        if primary_code(error) != sqlite3.SQLITE_CORRUPT:
            raise
        return [f"The index's database is damaged: {error}."]
    return [f"The index's database is damaged: {row[0]}." for row in rows if row[0] != "ok"]


def repair(db: sqlite3.Connection, op: ops.Repair) -> list[str]:
    """Do the rest of `ops.Repair`: what points nowhere, and the counts."""
    found = [
        f"A row of {table} points to a row of {parent} that is not there."
        for table, _, parent, _ in db.execute("PRAGMA foreign_key_check")
    ]
    found += [
        f"Payload {digest.hex()[:12]} has neither a key nor data."
        for (digest,) in db.execute(
            "SELECT digest FROM payloads WHERE key IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM inline WHERE payload = payloads.n)"
        )
    ]
    wrong = db.execute(
        f"SELECT p.n, p.digest, p.refs, {_REFERENCES} c FROM payloads p WHERE c <> p.refs OR c = 0"
    ).fetchall()
    for n, digest, refs, counted in wrong:
        found.append(f"Payload {digest.hex()[:12]} counts {refs} references and has {counted}.")
        if op.mend:
            db.execute("UPDATE payloads SET refs = ? WHERE n = ?", (counted, n))
            db.execute("DELETE FROM payloads WHERE n = ? AND refs = 0", (n,))
    for table, column, name, counted in _TOTALS:
        differing = f"FROM {table} AS o WHERE o.{column} <> {counted}"
        (differ,) = db.execute(f"SELECT count(*) {differing}").fetchone()
        if not differ:
            continue
        found.append(f"{name[0].upper()}{name[1:]} is wrong in {differ} of them.")
        if op.mend:
            db.execute(
                f"UPDATE {table} AS o SET {column} = {counted} WHERE o.{column} <> {counted}"
            )
    return found + memory_upkeep.repair(db, op.mend)
