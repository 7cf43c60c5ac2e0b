"""A selective filter over JSON rows: callslip's engine, DuckDB on an NDJSON file, ctxtual.

python -m bench.query 10 100          sizes in megabytes; peers that are not installed are left out

Each contestant runs in a process of its own. callslip is given the exact record texts in memory, as
a reader gives them, so decompression is not in its figure; DuckDB is given a file in the page
cache; ctxtual is given the rows as Python objects, stored before the clock starts.
"""

from __future__ import annotations

import importlib.util
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

WHERE = "status = 'failed' and amount > 990"
GROUP = 4000


def rows(megabytes: float) -> list[bytes]:
    """Rows of some 260 bytes, from a fixed seed."""
    chance = random.Random(1)
    found: list[bytes] = []
    size = 0
    while size < megabytes * 1e6:
        row = {
            "id": len(found),
            "status": chance.choice(["ok", "ok", "ok", "ok", "failed", "skipped"]),
            "amount": round(chance.uniform(0, 1000), 2),
            "name": f"customer {chance.randrange(10**6)}",
            "email": f"user{len(found)}@example.org",
            "created_at": f"2026-0{chance.randrange(1, 9)}-1{chance.randrange(0, 9)}T12:00:00Z",
            "tags": chance.sample(["a", "b", "c", "d"], 2),
            "address": {"city": chance.choice(["Berlin", "Paris", "Rome", "Oslo"])},
            "note": None if chance.random() < 0.3 else "lorem ipsum dolor sit amet " * 2,
        }
        found.append(json.dumps(row).encode())
        size += len(found[-1]) + 1
    return found


class Records:
    """A source over exact record texts."""

    key = "bench"
    texts = False

    def __init__(self, records: list[bytes]) -> None:
        self._records = records
        self.count = len(records)
        self.fields = tuple(json.loads(records[0]))

    def groups(self) -> Iterator[Any]:
        for start in range(0, self.count, GROUP):
            yield self._some(start)

    def _some(self, start: int) -> Any:
        return self._records[start : start + GROUP]
        yield

    def record(self, number: int) -> Any:
        return self._records[number - 1]
        yield


def callslip(records: list[bytes], _folder: Path) -> Callable[[], int]:
    from callslip.reading.query import Tables, query
    from callslip.stacks.drive import drive

    source: Any = Records(records)
    drive(None, query(Records(records[:10]), "res_warm00", Tables(), WHERE))  # type: ignore[arg-type]
    tables = Tables()
    return lambda: drive(None, query(source, "res_bench0", tables, WHERE)).total  # type: ignore[arg-type]


def duckdb(records: list[bytes], folder: Path) -> Callable[[], int]:
    import duckdb as engine

    file = folder / "rows.ndjson"
    file.write_bytes(b"\n".join(records) + b"\n")
    connection = engine.connect(config={"threads": "2"})

    def ask() -> int:
        of = f"from read_json('{file}') where {WHERE}"
        connection.execute(f"select * {of} limit 8").fetchall()
        found = connection.execute(f"select count(*) {of}").fetchone()
        return int(found[0]) if found else 0

    return ask


def _ctxtual(store: Any, records: list[bytes]) -> Callable[[], int]:
    from ctxtual import Ctx
    from ctxtual.utils import pipeline

    ctx = Ctx(store=store)
    pipeline(ctx, name="rows")
    held = ctx.store_workspace([json.loads(row) for row in records], workspace_type="rows")
    condition = {"status": "failed", "amount": {"$gt": 990}}

    def ask() -> int:
        steps = [{"filter": condition}, {"count": True}]
        answer = ctx.dispatch_tool_call(
            "rows_pipe", {"workspace_id": held.workspace_id, "steps": steps}
        )
        return int(answer["count"])

    return ask


def ctxtual_memory(records: list[bytes], _folder: Path) -> Callable[[], int]:
    from ctxtual import MemoryStore

    return _ctxtual(MemoryStore(), records)


def ctxtual_sqlite(records: list[bytes], folder: Path) -> Callable[[], int]:
    from ctxtual import SQLiteStore

    return _ctxtual(SQLiteStore(folder / "ctxtual.db"), records)


CONTESTANTS = {f.__name__: f for f in (callslip, duckdb, ctxtual_memory, ctxtual_sqlite)}


def one(name: str, megabytes: float) -> dict[str, Any]:
    """First and later times in milliseconds, and memory over what the rows take."""
    records = rows(megabytes)
    with tempfile.TemporaryDirectory(prefix="callslip-bench-") as folder:
        ask = CONTESTANTS[name](records, Path(folder))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        times = []
        for _ in range(6):
            start = perf_counter()
            total = ask()
            times.append((perf_counter() - start) * 1000)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"total": total, "first": times[0], "then": median(times[1:]), "peak": peak / 1024}


def main() -> None:
    """Print a Markdown table."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], float(sys.argv[3]))))
        return
    print(
        "| rows | contestant | first, ms | then, ms | memory, MB | matches |\n|---|---|---|---|---|---|"
    )
    for size in sys.argv[1:] or ["10"]:
        for name in CONTESTANTS:
            if importlib.util.find_spec(name.partition("_")[0]) is None:
                continue
            command = [sys.executable, "-m", "bench.query", "--one", name, size]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(
                    f"| {size} MB | {name} | failed: {done.stderr.strip().splitlines()[-1]} | | | |"
                )
                continue
            f = json.loads(done.stdout)
            cells = f"{f['first']:.1f} | {f['then']:.1f} | {f['peak']:.0f} | {f['total']:,}"
            print(f"| {size} MB | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
