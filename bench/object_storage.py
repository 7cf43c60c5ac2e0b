"""What a store on a bucket costs: requests and milliseconds of each operation, with a delay on the way.

    python -m bench.object_storage [milliseconds each way, default 15]

moto stands behind a proxy that counts; the index is SQLite, here. Also what plain files add to a put.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callslip import ResultStore, Session
from tests.servers.proxy import FaultProxy
from tests.servers.s3 import Moto

MIB = 1024 * 1024
LINES = "".join(f"{n:07d} {random.Random(n).getrandbits(200):x}\n" for n in range(180_000))
ROWS = [{"id": n, "name": f"customer {n * 7919 % 1000003}", "amount": n} for n in range(160_000)]


def main() -> None:
    delay = float(sys.argv[1]) if len(sys.argv) > 1 else 15.0
    server = Moto()
    with (
        FaultProxy("127.0.0.1", server.port, http=True) as way,
        tempfile.TemporaryDirectory() as at,
    ):
        os.environ.update(server.environ_at(way.port))
        over_a_network(Path(at), server.url("bench"), way, delay)
        plain_files(Path(at))
    server.close()


def over_a_network(at: Path, url: str, way: FaultProxy, delay: float) -> None:
    def fresh() -> Session:
        return ResultStore(at / "index", payloads=url, spool="").session("s")

    def row(name: str, act: Callable[[], Any]) -> Any:
        way.reset()
        began = time.perf_counter()
        done = act()
        took = 1000 * (time.perf_counter() - began)
        methods = Counter(line.partition(" ")[0] for line in way.log)
        said = ", ".join(f"{n} {method}" for method, n in sorted(methods.items())) or "none"
        print(f"| {name} | {said} | {way.up / 1000:,.0f} | {way.down / 1000:,.0f} | {took:.0f} |")
        return done

    session = fresh()
    session.put(random.Random(1).randbytes(60_000).hex(), tool="t")
    way.delay(delay / 1000)
    print(
        f"{len(LINES) / MIB:.1f} MiB of lines, {len(ROWS):,} rows; {2 * delay:.0f} ms a round trip\n"
    )
    print("| operation | requests | KB up | KB down | ms |\n|---|---|---|---|---|")
    small = random.Random(2).randbytes(60_000).hex()
    row("put, 120 KB", lambda: session.put(small, tool="t"))
    row("the same again", lambda: session.put(small, tool="again"))
    lines = row("put, 10 MB of text", lambda: session.put(LINES, tool="t")).id
    rows = row("put, 160,000 rows", lambda: session.put(ROWS, tool="t")).id
    noise = random.Random(3)
    stream = (noise.randbytes(MIB) for _ in range(20))
    row("put, a stream of 20 MiB of noise", lambda: session.put(stream, tool="t"))
    session = fresh()
    row("page, cold", lambda: session.read(lines, start=90_000))
    row("page, directory known", lambda: session.read(lines, start=20_000))
    row("page, in a chunk that was read", lambda: session.read(lines, start=20_050))
    row("search, all of it", lambda: session.search(lines, "^0179999"))
    row("record by number", lambda: session.get(rows, "#80000"))
    row("query, cold", lambda: fresh().query(rows, where="amount > 159990"))
    row("load", lambda: fresh().load(lines))
    row("close, 5 objects", session.close)


def plain_files(at: Path) -> None:
    print("\n| put, 10 MB of text | ms, best of 7 (median) |\n|---|---|")
    for name, query in (("a folder", ""), ("with plain files", "?plain")):
        took = []
        for turn in range(7):
            place = at / f"plain{turn}{query[1:]}"
            store = ResultStore(place / "index", payloads=(place / "p").as_uri() + query, spool="")
            session = store.session("s")
            session.put("first", tool="t")
            began = time.perf_counter()
            session.put(LINES, tool="t")
            took.append(1000 * (time.perf_counter() - began))
        print(f"| {name} | {min(took):.0f} ({statistics.median(took):.0f}) |")


if __name__ == "__main__":
    main()
