"""What a mask costs: put, first page, warm page, search and query of 10 MB, with and without.

    python -m bench.masks

CPU seconds of this process, the median of three stores each: a machine that does other work as well
gives the same figures.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from callslip import ResultStore
from callslip.masks import hidden, last4

COUNT = 48_000
MASKS: dict[str, Any] = {
    "no mask": None,
    "one field": {"ssn": last4},
    "a field and a path": {"ssn": last4, "user.mail": hidden},
    "a function of text": lambda text: text.replace("@example.org", "@…"),
}


def rows() -> str:
    """Some 10 MB of JSON; every record has both fields."""
    return json.dumps(
        [
            {
                "id": n,
                "ssn": f"{n % 1000:03d}-{n % 97:02d}-{n * 7919 % 10000:04d}",
                "user": {"mail": f"user{n}@example.org", "team": f"t{n % 7}"},
                "text": f"note {n} " + "lorem ipsum dolor " * 6,
            }
            for n in range(COUNT)
        ]
    )


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of some work."""
    before = time.process_time()
    work()
    return time.process_time() - before


def once(mask: Any, text: str) -> dict[str, float]:
    """One store, from the put to a warm query."""
    with tempfile.TemporaryDirectory() as folder:
        store = ResultStore(folder, mask=mask, spool="")
        session = store.session("s")
        ids: list[str] = []
        found = {"put": timed(lambda: ids.append(session.put(text, tool="t").id))}
        (id,) = ids
        # A worker of its own: nothing is kept of what was put.
        session = ResultStore(folder, mask=mask, spool="").session("s")
        found["first page"] = timed(lambda: session.read(id))
        found["warm page"] = timed(lambda: session.read(id, start=20_000))
        found["search"] = timed(lambda: session.search(id, "note 47999 "))
        found["query"] = timed(lambda: session.query(id, "id = 47999"))
        return found


def main() -> None:
    """Print the table."""
    text = rows()
    print(f"{len(text) / 1e6:.1f} MB of JSON, {COUNT:,} records; CPU ms")
    columns = ("put", "first page", "warm page", "search", "query")
    print(f"{'':22}" + "".join(f"{name:>12}" for name in columns))
    for name, mask in MASKS.items():
        runs = [once(mask, text) for _ in range(3)]
        medians = [statistics.median(run[column] for run in runs) * 1000 for column in columns]
        print(f"{name:22}" + "".join(f"{value:12,.1f}" for value in medians))


if __name__ == "__main__":
    main()
