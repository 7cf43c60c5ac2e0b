"""Checking the PostgreSQL index, and mending its counts."""

from __future__ import annotations

from callslip.stacks import ops
from callslip.stacks.index.postgres import memory
from callslip.stacks.index.postgres.base_schema import COUNTED
from callslip.stacks.index.postgres.transaction import Db

_COUNTED_REFS = (
    "SELECT payload, count(*) AS refs FROM (SELECT payload FROM results UNION ALL"
    " SELECT payload FROM files WHERE payload IS NOT NULL) named GROUP BY payload"
)
_DANGLING = (
    ("results", "sessions", "session"),
    ("results", "payloads", "payload"),
    ("tombstones", "sessions", "session"),
    ("files", "sessions", "session"),
    ("files", "payloads", "payload"),
    ("branches", "sessions", "session"),
)
_OF_SESSIONS = (
    ("results", "a session's number of results", "results", "count(*)", "true"),
    ("content_bytes", "a session's bytes of content", "results", "sum(c.size)", "true"),
    ("dead", "a session's number of results that ran out", "results", "count(*)",
     "c.seq < s.floor"),
    ("dead_bytes", "a session's bytes that ran out", "results", "sum(c.size)", "c.seq < s.floor"),
    ("tombstones", "a session's number of tombstones", "tombstones", "count(*)", "true"),
    ("files", "a session's number of file versions", "files", "count(*)", "true"),
    ("file_bytes", "a session's bytes of files", "files", "sum(c.size)", "true"),
)  # fmt: skip
_OF_TENANTS = {
    "sessions": "SELECT tenant, count(*) n FROM sessions WHERE NOT closed GROUP BY tenant",
    "results": "SELECT tenant, count(*) n FROM results GROUP BY tenant",
    "content_bytes": "SELECT tenant, sum(size) n FROM results GROUP BY tenant",
    "tombstones": "SELECT tenant, count(*) n FROM tombstones GROUP BY tenant",
    "payloads": "SELECT tenant, count(*) n FROM payloads GROUP BY tenant",
    "packed_bytes": "SELECT tenant, sum(packed) n FROM payloads GROUP BY tenant",
    "files": "SELECT tenant, count(*) n FROM files GROUP BY tenant",
    "file_bytes": "SELECT tenant, sum(size) n FROM files GROUP BY tenant",
}


def repair(db: Db, op: ops.Repair) -> list[str]:
    """Do `ops.Repair`: what points nowhere, and the counts. Reads every row."""
    # One snapshot for all the counting; and where it mends, nobody changes what was counted.
    if not op.mend:
        db.begin += " ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    db.execute(
        "SELECT set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true)"
    )
    if op.mend:
        db.execute("LOCK TABLE sessions, payloads, results, tombstones, files IN EXCLUSIVE MODE")
    found = []
    for table, parent, column in _DANGLING:
        rows = db.execute(
            f"SELECT count(*) FROM {table} c WHERE c.{column} IS NOT NULL"
            f" AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.n = c.{column})"
        )
        if rows[0][0]:
            found.append(
                f"{rows[0][0]} rows of {table} point to rows of {parent} that are not there."
            )
    found += [
        f"Payload {digest.hex()[:12]} has neither a key nor data."
        for (digest,) in db.execute(
            "SELECT digest FROM payloads WHERE key IS NULL AND data IS NULL"
        )
    ]
    wrong = db.execute(
        "SELECT p.n, p.digest, p.refs, coalesce(c.refs, 0) FROM payloads p"
        f" LEFT JOIN ({_COUNTED_REFS}) c ON c.payload = p.n"
        " WHERE p.refs IS DISTINCT FROM c.refs"
    )
    for n, digest, refs, counted in wrong:
        found.append(f"Payload {digest.hex()[:12]} counts {refs} references and has {counted}.")
        if op.mend:
            db.execute("UPDATE payloads SET refs = %s WHERE n = %s", (counted, n))
            db.execute("DELETE FROM payloads WHERE n = %s AND refs = 0", (n,))
    for column, name, table, total, which in _OF_SESSIONS:
        counted = f"(SELECT coalesce({total}, 0) FROM {table} c WHERE c.session = s.n AND {which})"
        rows = db.execute(f"SELECT n FROM sessions s WHERE {column} <> {counted}")
        if rows:
            found.append(_wrong(name, len(rows)))
            if op.mend:
                numbers = [n for (n,) in rows]
                db.execute(
                    f"UPDATE sessions s SET {column} = {counted} WHERE n = ANY(%s)", (numbers,)
                )
    return found + _tenants(db, op.mend) + memory.repair(db, op.mend)


def _tenants(db: Db, mend: bool) -> list[str]:
    found = []
    for column, counted in _OF_TENANTS.items():
        rows = db.execute(
            f"SELECT tenant, coalesce(c.n, 0) - coalesce(h.n, 0) FROM ({counted}) c FULL JOIN"
            f" (SELECT tenant, sum({column}) n FROM (SELECT tenant, {column} FROM tallies"
            f" UNION ALL SELECT tenant, {column} FROM deltas) both_of_them GROUP BY tenant) h"
            " USING (tenant) WHERE coalesce(c.n, 0) <> coalesce(h.n, 0)"
        )
        if rows:
            found.append(_wrong(f"a tenant's {column.replace('_', ' ')}", len(rows)))
        for tenant, difference in rows if mend else ():
            db.execute(
                f"INSERT INTO deltas (tenant, {column}) VALUES (%s, %s)", (tenant, int(difference))
            )
    return found


def _wrong(name: str, rows: int) -> str:
    return f"{name[0].upper()}{name[1:]} is wrong in {rows} of them."


assert set(_OF_TENANTS) == set(COUNTED)
