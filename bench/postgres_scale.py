"""Put, page (Get), list, sweep and delete of the PostgreSQL index, at a few sizes.

    python bench/postgres_scale.py postgresql://… [rows ...]      # default: 10000 5000000
    python bench/postgres_scale.py postgresql://… --plans [rows]  # the plans, at one size

Each size gets a schema of its own, `bench_<rows>`, filled by the database itself with the triggers
off, vacuumed, measured and dropped; `--keep` leaves it, and a schema that is there is not filled
again. Rows are as an agent makes them: 1,200 characters of preview, 150 of arguments, 40 rows a
session, 16 tenants, 500 sessions at a time; every fourth payload is inline (2 KiB), the others have
a key. All random choices are seeded. Medians over one connection, in milliseconds; each operation is
one durable transaction, as durable as the server is set to be.
"""

from __future__ import annotations

import hashlib
import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from callslip.handle import Quota, Scope, Shape
from callslip.stacks import ops
from callslip.stacks.index.postgres import PostgresIndex, read_schema, sessions
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import shape_to_blob, to_blob

PER_SESSION = 40
AT_ONCE = 500
TENANTS = 16
NOW = 1_000_000.0
PREVIEW = ("a line of what a tool answered, as it stands in the envelope\n" * 20)[:1200]
SHAPE = Shape(size=20_000, chars=20_000, lines=300)
TABLES = ("sessions", "payloads", "results")


def scope_of(session: int) -> Scope:
    return Scope(f"run-{session}", f"user-{session % 997}", f"tenant-{session % TENANTS}")


def session_of(n: int, count: int) -> int:
    """Which session row `n` is of: the sessions run in groups, those of a group in turns."""
    group, place = divmod(n, AT_ONCE * PER_SESSION)
    first = group * AT_ONCE
    return first + place % min(AT_ONCE, count - first)


def fill(index: PostgresIndex, rows: int) -> None:
    count = rows // PER_SESSION
    last = count - count % AT_ONCE  # sessions of the last, smaller group begin here
    session = (
        f"(r / {AT_ONCE * PER_SESSION} * {AT_ONCE} + r % {AT_ONCE * PER_SESSION} %"
        f" CASE WHEN r / {AT_ONCE * PER_SESSION} * {AT_ONCE} >= {last}"
        f" THEN {max(count - last, 1)} ELSE {AT_ONCE} END)"
    )
    turn = (
        f"(r % {AT_ONCE * PER_SESSION} / CASE WHEN r / {AT_ONCE * PER_SESSION} * {AT_ONCE} >="
        f" {last} THEN {max(count - last, 1)} ELSE {AT_ONCE} END)"
    )
    digest = "sha256(int8send(r))"
    shape, preview = (
        f"decode('{blob.hex()}', 'hex')" for blob in (shape_to_blob(SHAPE), PREVIEW.encode())
    )
    tenant = f"convert_to('tenant-' || s % {TENANTS}, 'UTF8')"
    steps = (
        ("SELECT set_config('synchronous_commit', 'off', true),"
        " set_config('enable_seqscan', 'on', true),"
        " set_config('maintenance_work_mem', '512MB', true)"),
        *(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in TABLES),
        # What is emptied here is filled without a log, where wal_level is minimal.
        f"TRUNCATE {', '.join(TABLES)}",
        ("INSERT INTO sessions (n, tenant, name, \"user\", active_at, ttl, expires_at, next_seq,"
        f" results, content_bytes) OVERRIDING SYSTEM VALUE SELECT s + 1, {tenant},"
        " convert_to('run-' || s, 'UTF8'), convert_to('user-' || s % 997, 'UTF8'), 1000000,"
        " 1000 + 9000 * (1 - s % 2), 1001000 + 9000 * (1 - s % 2),"
        f" {PER_SESSION + 1}, {PER_SESSION}, {PER_SESSION * SHAPE.size}"
        f" FROM generate_series(0, {count - 1}) s"),
        ("INSERT INTO payloads (n, tenant, digest, form, packed, trailer, refs, key, data)"
        f" OVERRIDING SYSTEM VALUE SELECT r + 1, {tenant}, d, 'str', 2048, 1900, 1,"
        " CASE WHEN r % 4 <> 0 THEN convert_to(encode(d, 'hex'), 'UTF8') END,"
        " CASE WHEN r % 4 = 0 THEN decode(repeat(encode(d, 'hex'), 64), 'hex') END"
        f" FROM (SELECT r, {session} s, {digest} d FROM generate_series(0::bigint, {rows - 1}) r) x"),
        ("INSERT INTO results (n, tenant, session, seq, payload, size, created_at, id, call, tool,"
        f" status, args, shape, preview) OVERRIDING SYSTEM VALUE SELECT r + 1, {tenant}, s + 1,"
        f" turn + 1, r + 1, {SHAPE.size}, 1000000, convert_to('res_' || left(encode(d, 'hex'), 10),"
        " 'UTF8'), substr(d, 1, 16), 'search_documents', '', convert_to(repeat('a', 150), 'UTF8'),"
        f" {shape}, {preview} FROM (SELECT r, {session} s, {turn} turn, {digest} d"
        f" FROM generate_series(0::bigint, {rows - 1}) r) x"),
        ("INSERT INTO tallies (tenant, sessions, results, payloads, content_bytes, packed_bytes)"
        " SELECT s.tenant, count(*), sum(results), sum(results), sum(content_bytes),"
        " sum(results) * 2048 FROM sessions s GROUP BY s.tenant"),
        *(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'n'), {rows + 1})"
            for table in TABLES
        ),
        *(f"ALTER TABLE {table} ENABLE TRIGGER USER" for table in TABLES),
    )  # fmt: skip

    def work(db: Db) -> None:
        for step in steps:
            db.execute(step)

    index.server.transact(work, tenant=None, again=False, seconds=7200)
    with index.server.pool.borrow(time.monotonic() + 7200) as connection:
        connection.execute(f'VACUUM ANALYZE "{index.server.address.schema}".results'.encode())
        for table in ("sessions", "payloads", "tallies"):
            connection.execute(f'VACUUM ANALYZE "{index.server.address.schema}".{table}'.encode())
        connection.execute("CHECKPOINT")


def op_of(n: int, session: int, ttl: float) -> ops.Insert:
    digest = hashlib.sha256(n.to_bytes(8, "big")).digest()
    inline = n % 4 == 0
    payload = ops.Payload(
        digest, "str", 2048, 1900, None if inline else digest.hex(), digest * 64 if inline else None
    )
    result = ops.Result(
        scope_of(session), "", digest[:16], "search_documents", "a" * 150, "", SHAPE, PREVIEW, NOW,
        payload,
    )  # fmt: skip
    text = digest.hex()
    # The generous quota makes every insert pay for asking.
    quota = Quota(10**9, 10**15, 10**9, 10**15)
    return ops.Insert(result, [f"res_{text[:k]}" for k in (10, 14, 20, 32)], ttl, quota, NOW)


def get_of(n: int, count: int) -> ops.Get:
    name = hashlib.sha256(n.to_bytes(8, "big")).hexdigest()[:10]
    return ops.Get(scope_of(session_of(n, count)), f"res_{name}", NOW + 1)


def measure(index: PostgresIndex, rows: int) -> dict[str, float]:
    rng = random.Random(7)
    count = rows // PER_SESSION
    figures: dict[str, list[float]] = {}

    def note(name: str, act: Callable[[], Any]) -> None:
        start = time.perf_counter()
        act()
        figures.setdefault(name, []).append((time.perf_counter() - start) * 1000)

    for k in range(320):
        op = op_of(rows + k, rng.randrange(count // 2) * 2, 10_000.0)
        note("put" if k >= 20 else "(warming up)", lambda op=op: index.run(op))
    there = 0
    for _ in range(2000):
        get = get_of(rng.randrange(rows), count)
        note("page (Get)", lambda get=get: index.run(get))
        there += isinstance(index.run(get), ops.Result)
    assert there > 1800, "a schema that was measured before and kept has lost few"
    for _ in range(500):
        scope = scope_of(rng.randrange(count))
        note("list 20 of 40", lambda scope=scope: index.run(ops.List(scope, 20, 20, NOW + 1)))
        note("count a session", lambda scope=scope: index.run(ops.Count(scope=scope)))
    for _ in range(100):
        note("count the store", lambda: index.run(ops.Count()))
        note("sessions 20", lambda: index.run(ops.Sessions(20)))
    gone: set[int] = set()
    for name, tombstones in (("close a session of 40", True), ("delete a session of 40", False)):
        for _ in range(40):
            session = rng.choice([s for s in range(0, count, 2) if s not in gone][:5000])
            gone.add(session)
            scope = scope_of(session)
            remove = ops.Remove(
                "closed", NOW + 1, scope.tenant, scope.user, scope.session, tombstones=tombstones
            )
            note(name, lambda remove=remove: index.run(remove))
    for name, most, milliseconds in (
        ("sweep 200 rows", 200, 1000.0),
        ("sweep 20 ms", 10_000, 20.0),
    ):
        for _ in range(9):
            sweep = ops.Sweep(NOW + 2000, most, milliseconds)
            note(name, lambda sweep=sweep: index.run(sweep))
    assert index.run(ops.Sweep(NOW + 2000, 1, 1.0)), "every sweep above had work"
    answer = {name: statistics.median(times) for name, times in figures.items() if name[0] != "("}
    schema = index.server.address.schema
    size = (
        "SELECT sum(pg_total_relation_size(c.oid)) / 1048576.0 FROM pg_class c JOIN pg_namespace n"
        f" ON n.oid = c.relnamespace WHERE n.nspname = '{schema}' AND c.relkind = 'r'"
    )
    found = index.server.transact(lambda db: db.execute(size), tenant=None, again=True)
    answer["MiB on disk"] = float(found[0][0])
    return answer


def plans(index: PostgresIndex, rows: int) -> None:
    """Print how the database finds what the hot operations ask for."""
    count = rows // PER_SESSION
    get = get_of(rows // 2, count)

    def explain(name: str, sql: str, tenant: bytes | None) -> None:
        asked = f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {sql}"
        answer = index.server.transact(
            lambda db: db.execute(asked), tenant=tenant, again=True, seconds=60
        )
        print(f"--- {name}", *(line for (line,) in answer), "", sep="\n")

    key = sessions.key_of(get.scope)
    values = dict(zip(("_tenant", "_name", "_user"), key, strict=True))
    values |= {"_id": to_blob(get.id), "_shared": b"\x01" + key[1]}
    page = read_schema.GET.replace("_now", str(get.now))
    for name, value in values.items():
        page = re.sub(rf"\b{name}\b", f"decode('{value.hex()}', 'hex')", page)
    explain("page (Get)", page, key[0])
    for name, sql in (
        ("the next session to sweep", ("SELECT * FROM sessions WHERE expires_at IS NOT NULL AND NOT held AND"
         " expires_at < 1002000 ORDER BY expires_at LIMIT 1 FOR UPDATE SKIP LOCKED")),
        ("the rows of it that go", ("SELECT seq FROM results WHERE session = 7 AND seq >= 0 AND seq <"
         " 9223372036854775807 ORDER BY seq LIMIT 20")),
        ("old tombstones", ("SELECT session, id FROM tombstones WHERE gone_at < 1000000"
         " ORDER BY gone_at LIMIT 20 FOR UPDATE SKIP LOCKED")),
        ("the tenant's oldest", ("SELECT session, seq FROM results WHERE tenant = 'tenant-3'"
         " ORDER BY n LIMIT 1")),
    ):  # fmt: skip
        explain(name, sql, None)


def main() -> None:
    options = {arg for arg in sys.argv[1:] if arg.startswith("--")}
    url, *numbers = [arg for arg in sys.argv[1:] if arg not in options]
    sizes = [int(number) for number in numbers] or [10_000, 5_000_000]
    columns = []
    for rows in sizes:
        index = PostgresIndex(f"{url}?schema=bench_{rows}&connections=1")
        if not index.run(ops.Count()).results:
            start = time.perf_counter()
            fill(index, rows)
            print(f"filled with {rows:,} in {time.perf_counter() - start:.0f} s", file=sys.stderr)
        if "--plans" in options:
            plans(index, rows)
        else:
            columns.append(measure(index, rows))
        if "--keep" not in options:
            drop = f'DROP SCHEMA "{index.server.address.schema}" CASCADE'
            index.server.transact(lambda db, drop=drop: db.execute(drop), tenant=None, again=False)
        index.close()
    if columns:
        print(f"{'':26}" + "".join(f"{rows:>14,}" for rows in sizes))
        for name in columns[0]:
            print(f"{name:26}" + "".join(f"{column[name]:14.3f}" for column in columns))


if __name__ == "__main__":
    main()
