"""How long a call waits when a server goes away under it, with the limits as they are.

    python -m bench.fault_waits

A worker on PostgreSQL and S3 offloads results of 300 KB, one after the other, while the way to one of
its servers is spoiled. The first call meets the fault; the ones after it find the circuit open.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from tempfile import TemporaryDirectory

from callslip import ResultStore
from tests.servers.proxy import FaultProxy

CALLS = 40
FAULTS: dict[str, Callable[[FaultProxy], None]] = {
    "refuses connections": lambda proxy: proxy.refuse(),
    "hangs": lambda proxy: proxy.hang(),
    "breaks every connection": lambda proxy: proxy.cut(500, "down"),
}
THROTTLES: dict[str, Callable[[FaultProxy], None]] = {
    "answers 503 to all": lambda proxy: proxy.slow_down(10_000),
}


def main() -> None:
    from tests.servers.postgres import Postgres
    from tests.servers.s3 import Moto

    logging.getLogger("callslip").setLevel(logging.ERROR)
    text = "".join(f"{n * 7919 % 1000003:x} {n * 104729 % 999983:x}\n" for n in range(40_000))
    postgres, s3 = Postgres(), Moto()
    with ExitStack() as stack:
        stack.callback(postgres.close)
        stack.callback(s3.close)
        os.environ["XDG_STATE_HOME"] = stack.enter_context(TemporaryDirectory())
        index = stack.enter_context(FaultProxy("127.0.0.1", postgres.port))
        objects = stack.enter_context(FaultProxy("127.0.0.1", s3.port, http=True))
        os.environ.update(s3.environ_at(objects.port))
        print(f"| what | first call, s | the {CALLS - 1} after it, s | longest of them, s | kept |")
        print("|---|--:|--:|--:|--:|")
        ways = [("the index", index, FAULTS), ("the payload store", objects, FAULTS | THROTTLES)]
        for who, proxy, faults in ways:
            for name, spoil in faults.items():
                dsn = postgres.new_database(port=index.port)
                store = ResultStore(dsn, payloads=s3.url("p"))
                session = store.session("s")
                session.put("before", tool="t")
                session.put(f"before\n{text}", tool="t")
                spoil(proxy)
                waits = []
                for n in range(CALLS):
                    began = time.perf_counter()
                    session.offload(f"{n}\n{text}", tool="t")
                    waits.append(time.perf_counter() - began)
                proxy.clear()
                late = ResultStore(dsn, payloads=s3.url("p"))
                late.gc()
                kept = late.session("s").list().total - 2
                later = waits[1:]
                print(
                    f"| {who} {name} | {waits[0]:.1f} | {sum(later):.1f} | {max(later):.2f} "
                    f"| {kept} of {CALLS} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
