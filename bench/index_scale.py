"""Put, page (Get), list, sweep and delete of the SQLite index, at a few sizes.

    python bench/index_scale.py [rows ...]              # default: 10000 1000000
    python bench/index_scale.py --at-once 0 [rows ...]  # the rows of all sessions come in turn

Rows are as an agent makes them: 1,200 characters of preview, 150 of arguments, 40 rows a session,
16 tenants; a hundred sessions are at work at once, and their rows come in turn. Every fourth payload is inline (2 KiB), the others have a key. All random choices are
seeded. Medians, in milliseconds; one operation is one durable transaction.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callslip.handle import Scope, Shape
from callslip.stacks import ops
from callslip.stacks.index import inserting
from callslip.stacks.index.sqlite import SqliteIndex

PER_SESSION = 40
TENANTS = 16
NOW = 1_000_000.0
PREVIEW = "a line of what a tool answered, as it stands in the envelope\n" * 20


def scope_of(session: int) -> Scope:
    return Scope(f"run-{session}", f"user-{session % 997}", f"tenant-{session % TENANTS}")


def session_of(n: int, count: int, at_once: int) -> int:
    """Whose the row `n` is, of `count` sessions."""
    at_once = min(at_once or count, count)
    group, place = divmod(n, at_once * PER_SESSION)
    return (group * at_once + place % at_once) % count


def op_of(n: int, session: int, ttl: float) -> ops.Insert:
    digest = hashlib.sha256(n.to_bytes(8, "big")).digest()
    inline = n % 4 == 0
    payload = ops.Payload(
        digest, "str", 2048, 1900, None if inline else digest.hex(), digest * 64 if inline else None
    )
    result = ops.Result(
        scope_of(session), "", digest[:16], "search_documents", "a" * 150, "",
        Shape(size=20_000, chars=20_000, lines=300), PREVIEW[:1200], NOW, payload,
    )  # fmt: skip
    text = digest.hex()
    # The generous quota makes every insert pay for asking.
    quota = ops.Quota(10**9, 10**15, 10**9, 10**15)
    return ops.Insert(result, [f"res_{text[:k]}" for k in (10, 14, 20, 32)], ttl, quota, NOW)


def timed(act: Callable[[], Any]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1000


def measure(rows: int, at_once: int) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="callslip-bench-"))
    index = SqliteIndex(folder / "index.db")
    rng = random.Random(7)
    count = rows // PER_SESSION
    # Filled without waiting for the disk, in big transactions; what is measured below is not.
    with index._pool.borrow() as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = -400000")
        n = 0
        while n < rows:
            db.execute("BEGIN IMMEDIATE")
            for _ in range(min(20_000, rows - n)):
                session = session_of(n, count, at_once)
                inserting.insert(db, op_of(n, session, 1000.0 if session % 2 else 10_000.0))
                n += 1
            db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    index.close()
    # Or the first measured commits would wait for gigabytes that the filling left unwritten.
    with open(folder / "index.db", "rb") as filled:
        os.fsync(filled.fileno())
    index = SqliteIndex(folder / "index.db")
    figures: dict[str, list[float]] = {}

    def note(name: str, act: Callable[[], Any]) -> None:
        figures.setdefault(name, []).append(timed(act))

    for k in range(300):
        note("put", lambda k=k: index.run(op_of(rows + k, rng.randrange(count // 2) * 2, 10_000.0)))
    for _ in range(2000):
        n = rng.randrange(rows)
        get = ops.Get(
            scope_of(session_of(n, count, at_once)),
            "res_" + hashlib.sha256(n.to_bytes(8, "big")).hexdigest()[:10],
            NOW + 1,
        )
        note("get", lambda get=get: index.run(get))
        assert isinstance(index.run(get), ops.Result)
    for _ in range(500):
        scope = scope_of(rng.randrange(count))
        note("list 20", lambda scope=scope: index.run(ops.List(scope, 20, 20, NOW + 1)))
        note("count", lambda scope=scope: index.run(ops.Count(scope=scope)))
    for _ in range(100):
        note("count all", lambda: index.run(ops.Count()))
        note("sessions 20", lambda: index.run(ops.Sessions(20)))
    for _ in range(40):
        scope = scope_of(rng.randrange(count // 2) * 2)
        remove = ops.Remove("closed", NOW + 1, scope.tenant, scope.user, scope.session)
        note("close a session of 40", lambda remove=remove: index.run(remove))
    for name, most, milliseconds in (("sweep 200", 200, 1000.0), ("sweep 20 ms", 10_000, 20.0)):
        for _ in range(6):
            sweep = ops.Sweep(NOW + 2000, most, milliseconds)
            note(name, lambda sweep=sweep: index.run(sweep))
    assert index.run(ops.Sweep(NOW + 2000, 1, 1.0)), "every sweep above had work"
    size = sum(file.stat().st_size for file in folder.iterdir())
    answer = {name: statistics.median(times) for name, times in figures.items()}
    answer["MiB on disk"] = size / 2**20
    index.close()
    shutil.rmtree(folder)
    return answer


def main() -> None:
    args = sys.argv[1:]
    at_once = 100
    if args[:1] == ["--at-once"]:
        at_once, args = int(args[1]), args[2:]
    sizes = [int(arg) for arg in args] or [10_000, 1_000_000]
    columns = [measure(rows, at_once) for rows in sizes]
    print(f"{'':26}" + "".join(f"{rows:>14,}" for rows in sizes))
    for name in columns[0]:
        print(f"{name:26}" + "".join(f"{column[name]:14.3f}" for column in columns))


if __name__ == "__main__":
    main()
