"""Round trips of each operation on PostgreSQL and S3, counted, and what they cost at a distance.

    python -m bench.round_trips            30 ms to either server and back
    python -m bench.round_trips --ms 5

A proxy before each server delays what goes by and counts: a round trip to the index is whenever the
client speaks after it has listened, a request to the payload store is an HTTP request. The servers
are those of the tests (`tests/servers/`), on this machine: the times are the distance's.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from callslip import ResultStore
from callslip.session import Session
from tests.servers.proxy import FaultProxy


@dataclass(frozen=True)
class Counted:
    """One operation: round trips to the index, requests to the payload store, milliseconds."""

    name: str
    index: int
    objects: int
    ms: float


def text(size: int, seed: int = 0) -> str:
    """Lines of some 13 characters that pack to about half."""
    dice = random.Random(seed)
    return "".join(f"{dice.getrandbits(48):012x}\n" for _ in range(size // 13))


def operations(
    worker: Session, reader: Callable[[], Session], part: float
) -> list[tuple[str, Callable[[], object]]]:
    """What is measured, in order. `reader()` is a session of a worker that has cached nothing.

    `part` of the sizes that the names say: a test that only counts has no need of more."""
    small, large, huge = text(20_000), text(int(1e6 * part)), text(int(1e7 * part))
    many = range(int(50_000 * part))
    rows = [{"id": n, "name": f"n{n}", "v": n * 7919 % 1_000_003} for n in many]
    middle = int(40_000 * part)
    there = {
        "small": worker.put(small, tool="t").id,
        "large": worker.put(large, tool="t").id,
        "rows": worker.put(rows, tool="t").id,
        "last": worker.put(f"last\n{large}", tool="t").id,
    }
    fresh = reader()
    fresh.list()
    warm = reader()
    warm.list()
    warm.read(there["large"])
    warm.query(there["rows"], where="v > 999999")
    return [
        ("put, in the index row (20 KB)", lambda: worker.put(f"1\n{small}", tool="t")),
        ("put, an object (1 MB)", lambda: worker.put(f"1\n{large}", tool="t")),
        ("put, an object (10 MB)", lambda: worker.put(huge, tool="t")),
        ("put, a stream (1 MB)", lambda: worker.put(iter(["2\n", large]), tool="t")),
        ("put, the same again (1 MB)", lambda: worker.put(f"1\n{large}", tool="t")),
        ("page, in the index row", lambda: fresh.read(there["small"])),
        ("page, its directory not cached", lambda: fresh.read(there["large"], start=middle)),
        ("page, warm", lambda: warm.read(there["large"], start=middle)),
        ("page, the next one", lambda: warm.read(there["large"], start=middle + 100)),
        ("search of 1 MB", lambda: warm.search(there["large"], "abcde")),
        ("search of 1 MB, again", lambda: warm.search(there["large"], "abcdf")),
        ("query of 50,000 rows, cold", lambda: fresh.query(there["rows"], where="v > 999990")),
        ("query of 50,000 rows, warm", lambda: warm.query(there["rows"], where="v > 999990")),
        ("list", warm.list),
        ("delete", lambda: worker.delete(there["last"])),
    ]


def measured(
    index: FaultProxy, objects: FaultProxy, dsn: str, payloads: str, part: float = 1.0
) -> list[Counted]:
    """Run each operation once, by way of the two proxies."""
    found = []

    def session() -> Session:
        return ResultStore(dsn, payloads=payloads, spool="").session("s", user="u", tenant="t")

    for name, work in operations(session(), session, part):
        index.reset()
        objects.reset()
        began = time.perf_counter()
        work()
        ms = (time.perf_counter() - began) * 1000
        found.append(Counted(name, index.round_trips, objects.requests.total(), ms))
    return found


def main() -> None:
    from tests.servers.postgres import Postgres
    from tests.servers.s3 import Moto

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ms", type=float, default=30.0, help="to a server and back")
    delay = parser.parse_args().ms / 2000
    postgres, s3 = Postgres(), Moto()
    with ExitStack() as stack:
        stack.callback(postgres.close)
        stack.callback(s3.close)
        os.environ["XDG_STATE_HOME"] = stack.enter_context(TemporaryDirectory())
        index = stack.enter_context(FaultProxy("127.0.0.1", postgres.port))
        objects = stack.enter_context(FaultProxy("127.0.0.1", s3.port, http=True))
        os.environ.update(s3.environ_at(objects.port))
        dsn = postgres.new_database(port=index.port)
        ResultStore(dsn, payloads=s3.url("p")).session("first").put("x", tool="t")
        index.delay(delay)
        objects.delay(delay)
        print(f"| operation | index | payload store | ms at {delay * 2000:g} ms |")
        print("|---|--:|--:|--:|")
        for row in measured(index, objects, dsn, s3.url("p")):
            print(f"| {row.name} | {row.index} | {row.objects} | {row.ms:.0f} |")


if __name__ == "__main__":
    main()
