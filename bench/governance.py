"""What the audit and overwriting cost: put, page, list, delete with each of them off and on.

    python bench/governance.py

Medians of 300, in milliseconds, of a SQLite store in a folder; one result is 20 KB of text. "not
overwritten" is SQLite without `secure_delete`, which callslip never runs: it is the difference.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callslip import ResultStore
from callslip.stacks.index import pool

ROUNDS = 300
TEXT = "a line of what a tool answered, as it stands there\n" * 400


def timed(act: Callable[[], Any]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1000


def measure(*, audit: bool, overwrite: bool) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="callslip-bench-"))
    prepare = pool.Pool._prepare

    def without(self: pool.Pool, connection: Any) -> None:
        prepare(self, connection)
        connection.execute("PRAGMA secure_delete = OFF")

    if not overwrite:
        pool.Pool._prepare = without  # type: ignore[method-assign]
    try:
        store = ResultStore(folder, spool="", audit=audit)
        figures: dict[str, list[float]] = {}
        for n in range(ROUNDS):
            session = store.session(f"run-{n % 20}", tenant="acme", subject=f"p-{n % 50}")
            put = figures.setdefault("put", [])
            ids: list[str] = []
            put.append(timed(lambda s=session, n=n, ids=ids: ids.append(s.put(f"{n}\n{TEXT}").id)))
            read = figures.setdefault("read a page", [])
            read.append(timed(lambda s=session, ids=ids: s.read(ids[0], 200)))
            figures.setdefault("list", []).append(timed(lambda s=session: s.list()))
        for n in range(50):
            delete = figures.setdefault("delete a subject with 6 results", [])
            delete.append(timed(lambda n=n: store.delete(tenant="acme", subject=f"p-{n}")))
        for n in range(40):
            session = store.session(f"gone-{n}", tenant="acme")
            for k in range(6):
                session.put(f"{n} {k}\n{TEXT}")
            figures.setdefault("close a session with 6 results", []).append(timed(session.close))
        store.close()
    finally:
        pool.Pool._prepare = prepare  # type: ignore[method-assign]
        shutil.rmtree(folder)
    return {name: statistics.median(times) for name, times in figures.items()}


def main() -> None:
    columns = {
        "as it is": measure(audit=False, overwrite=True),
        "audit=True": measure(audit=True, overwrite=True),
        "not overwritten": measure(audit=False, overwrite=False),
    }
    print(f"{'':34}" + "".join(f"{title:>17}" for title in columns))
    for name in next(iter(columns.values())):
        print(f"{name:34}" + "".join(f"{column[name]:17.2f}" for column in columns.values()))


if __name__ == "__main__":
    main()
