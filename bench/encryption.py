"""What encryption at rest costs: the same operations on a store in the clear and on a sealed one.

python -m bench.encryption [--megabytes 10] [--rounds 15]

Both are measured in turns, so that what else the machine does falls on both. Medians.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from callslip import ResultStore
from callslip.patterns.memory import Memory
from callslip.stacks.index.sealed.master import new_key_file

WORDS = [
    "the",
    "quick",
    "store",
    "keeps",
    "results",
    "outside",
    "of",
    "a",
    "window",
    "and",
    "gives",
    "each",
    "an",
    "address",
]


def text(size: int, seed: int) -> str:
    """Lines as of a log: most of it is alike, none is equal to another."""
    draw = random.Random(seed)
    lines = []
    while size > 0:
        line = f"2026-01-{draw.randrange(1, 29):02} worker-{draw.randrange(64)} "
        line += " ".join(draw.choices(WORDS, k=9)) + f" id={draw.getrandbits(40):x}\n"
        lines.append(line)
        size -= len(line)
    return "".join(lines)


class Store:
    """One of the two, with a 10 MB text, as many rows, and small results in it."""

    def __init__(self, folder: Path, size: int, keys: str | None) -> None:
        self.store = ResultStore(folder, keys=keys, spool="")
        self.session = self.store.session("s", user="ana", tenant="acme")
        self.size = size
        self.seed = 0
        self.text = self.session.put(text(size, -1), tool="log").id
        rows = [
            {"id": n, "city": WORDS[n % 14], "size": n * 7919 % 10007} for n in range(size // 45)
        ]
        self.rows = self.session.put(rows, tool="rows").id
        for n in range(300):
            self.session.put(f"small {n}", tool="small")
        self.memory = Memory(self.store, ("acme", "ana"))
        for n in range(300):
            self.memory.remember(f"fact {n}: {WORDS[n % 14]} {WORDS[n % 11]} {n}")
        self.lines = self.session.read(self.text, limit=1).total

    def fresh(self) -> str:
        self.seed += 1
        return text(self.size, self.seed)

    def cold(self) -> None:
        self.store.forget_all()


def operations(rng: random.Random) -> dict[str, Callable[[Store], Callable[[], Any]]]:
    """By name: what prepares an operation, and is not measured, and answers it."""

    def put(at: Store) -> Callable[[], Any]:
        value = at.fresh()
        return lambda: at.session.put(value, tool="log")

    def stream(at: Store) -> Callable[[], Any]:
        lines = at.fresh().splitlines(keepends=True)
        return lambda: at.session.put(iter(lines), tool="log")

    def small(at: Store) -> Callable[[], Any]:
        at.seed += 1
        value = f"small and new {at.seed}"
        return lambda: at.session.put(value, tool="small")

    def page(at: Store, cold: bool = False) -> Callable[[], Any]:
        line = rng.randrange(1, at.lines)
        at.session.read(at.text, 1)
        if cold:
            at.cold()
        return lambda: at.session.read(at.text, line)

    def search(at: Store, pattern: str = "id=ff00") -> Callable[[], Any]:
        at.cold()
        return lambda: at.session.search(at.text, pattern)

    def query(at: Store) -> Callable[[], Any]:
        at.cold()
        return lambda: at.session.query(at.rows, where="size > 10000", order_by="-size")

    return {
        "put 10 MB": put,
        "put 10 MB, a stream": stream,
        "put 20 bytes": small,
        "page, directory warm": page,
        "page, cold": lambda at: page(at, cold=True),
        "search 10 MB, cold": search,
        "search 10 MB, no hit": lambda at: search(at, "nowhere in it"),
        "query 10 MB, cold": query,
        "load 10 MB": lambda at: (at.cold(), lambda: at.session.load(at.text))[1],
        "list 40": lambda at: lambda: at.session.list(limit=40),
        "remember": lambda at: lambda: at.memory.remember(f"new {rng.getrandbits(60)} things"),
        "recall": lambda at: lambda: at.memory.recall("quick window address"),
        "recall, a word unknown": lambda at: lambda: at.memory.recall("quik window address"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="callslip-bench-") as folder:
        place = Path(folder)
        new_key_file(place / "key")
        size = given.megabytes * 1024 * 1024
        stores = {
            "clear": Store(place / "clear", size, None),
            "sealed": Store(place / "sealed", size, str(place / "key")),
        }
        print(f"| {given.megabytes} MB | clear ms | sealed ms | ratio |\n|---|---|---|---|")
        for name, prepare in operations(random.Random(1)).items():
            times: dict[str, list[float]] = {"clear": [], "sealed": []}
            for turn in range(given.rounds):
                order = list(stores.items())
                for kind, at in order if turn % 2 else reversed(order):
                    run = prepare(at)
                    start = perf_counter()
                    run()
                    times[kind].append(perf_counter() - start)
            clear, sealed = median(times["clear"]) * 1000, median(times["sealed"]) * 1000
            print(f"| {name} | {clear:.2f} | {sealed:.2f} | {sealed / clear:.2f} |", flush=True)


if __name__ == "__main__":
    main()
