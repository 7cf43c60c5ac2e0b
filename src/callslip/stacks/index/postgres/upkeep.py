"""What gc, verify and the totals ask of the PostgreSQL index."""

from __future__ import annotations

from collections.abc import Sequence

from callslip.handle import Scope
from callslip.stacks import ops
from callslip.stacks.index.postgres import auditing, sessions
from callslip.stacks.index.postgres.base_schema import COUNTED
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import payload_from, scope_key, to_blob, to_text

_MOST = 2**62

_REFERENCES = (
    "((SELECT count(*) FROM results r WHERE r.payload = p.n)"
    " + (SELECT count(*) FROM files f WHERE f.payload = p.n))"
)
_TOTALS = ("sessions", "results", "tombstones", "payloads", "content_bytes", "packed_bytes")
_FILES = ("files", "file_bytes")


def garbage(db: Db, op: ops.Garbage) -> Sequence[str]:
    """Do `ops.Garbage`."""
    rows = db.finish("SELECT key FROM garbage ORDER BY key LIMIT %s", (max(op.limit, 0),))
    return [to_text(key) for (key,) in rows]


def forget(db: Db, op: ops.Forget) -> None:
    """Do `ops.Forget`."""
    auditing.erased(db, [to_blob(key) for key in op.keys], op.now)


def known_keys(db: Db, op: ops.KnownKeys) -> frozenset[str]:
    """Do `ops.KnownKeys`."""
    keys = [to_blob(key) for key in op.keys]
    rows = db.finish(
        "SELECT key FROM payloads WHERE key = ANY(%s::bytea[])"
        " UNION SELECT key FROM garbage WHERE key = ANY(%s::bytea[])",
        (keys, keys),
    )
    return frozenset(to_text(key) for (key,) in rows)


def payloads(db: Db, op: ops.Payloads) -> Sequence[tuple[str, ops.Payload, int]]:
    """Do `ops.Payloads`, the inline data with it: verify checks that too."""
    tenant, digest = (b"", b"") if op.after is None else (to_blob(op.after[0]), op.after[1])
    more = "true" if op.after is None else "(tenant, digest) > (%s, %s)"
    values = () if op.after is None else (tenant, digest)
    rows = db.finish(
        "SELECT p.tenant, p.digest, p.form, p.packed, p.trailer, p.key, p.data,"
        f" {_REFERENCES} FROM payloads p WHERE {more} ORDER BY p.tenant, p.digest LIMIT %s",
        (*values, max(op.limit, 0)),
    )
    return [(to_text(row[0]), payload_from(*row[1:7]), row[7]) for row in rows]


def count(db: Db, op: ops.Count) -> ops.Totals:
    """Do `ops.Count`: a session's from its rows, all else from the running totals."""
    if op.scope is not None:
        # Payloads that are named twice count once: only the rows know which.
        row = db.finish(
            "SELECT (NOT s.closed)::int, s.results, s.tombstones, u.n, s.content_bytes, u.size, 0,"
            " s.files, s.file_bytes FROM sessions s CROSS JOIN LATERAL"
            " (SELECT count(*) n, coalesce(sum(packed), 0)::bigint size FROM payloads WHERE n IN"
            " (SELECT payload FROM results WHERE session = s.n"
            " UNION SELECT payload FROM files WHERE session = s.n)) u"
            f" WHERE {sessions.WHERE}",
            scope_key(op.scope),
        ).fetchone()
        return ops.Totals(*(row or (0,) * 9))
    where, values = ("", ()) if op.tenant is None else ("WHERE tenant = %s", (to_blob(op.tenant),))
    sums, files = (
        ", ".join(f"coalesce(sum({name}), 0)::bigint" for name in names)
        for names in (_TOTALS, _FILES)
    )
    waiting = "(SELECT count(*) FROM garbage)" if op.tenant is None else "0"
    columns = ", ".join(COUNTED)
    row = db.finish(
        f"SELECT {sums}, {waiting}, {files} FROM (SELECT {columns} FROM tallies {where}"
        f" UNION ALL SELECT {columns} FROM deltas {where}) both_of_them",
        values * 2,
    )[0]
    return ops.Totals(*row)


def list_sessions(db: Db, op: ops.Sessions) -> Sequence[tuple[Scope, float, int]]:
    """Do `ops.Sessions`: the open ones."""
    where, values = ("", ()) if op.tenant is None else ("AND tenant = %s", (to_blob(op.tenant),))
    rows = db.finish(
        'SELECT name, "user", tenant, active_at, results - dead FROM sessions'
        f" WHERE NOT closed {where} ORDER BY active_at DESC, n DESC LIMIT %s OFFSET %s",
        (*values, max(op.limit, 0), min(max(op.after, 0), _MOST)),
    )
    return [
        (Scope(to_text(name), to_text(user), to_text(tenant)), active_at, live)
        for name, user, tenant, active_at, live in rows
    ]
