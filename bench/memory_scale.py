"""How long a recall takes in a namespace of 10,000 facts and in one of 1,000,000.

    .venv/bin/python -m bench.memory_scale --facts 10000 1000000 --folder DIR
    .venv/bin/python -m bench.memory_scale --facts 10000 100000 --url postgresql://…

The facts are sentences of 8 to 16 words out of 60,000, some far more common than others (as words
are), each with an identifier; one in ten repeats words of an earlier one. A query is three to five
words of one fact; a third name its identifier, and one in ten words is misspelt. Writing is done
in transactions of 2,000 facts (`Remember` itself is one each); the figure for one `remember` is
taken apart, at the end. The first pass is of other queries than the one that is measured: it brings the
pages of the index from the disk. A database that is there from an earlier run is used again.
With `--url` the facts are in that PostgreSQL database, in a schema of their own for each number, and
written one by one: a row that one transaction changes thousands of times gets slow. They are then
analysed and vacuumed, as autovacuum does after a while; and the statements of one recall and of one
remember are counted: each is a round trip.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from callslip import ResultStore
from callslip.patterns.memory import Memory
from callslip.stacks.index import memories
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.stacks.memoryops import Remember, Told
from callslip.stacks.words import sameness, words_of

SEED = 7
WORDS = 60_000
NAMESPACE = ("acme", "ana")
KINDS = ("preference", "system", "policy", "contact", "")
NOW = 1_790_000_000.0


def vocabulary() -> tuple[list[str], list[float]]:
    rng = random.Random(SEED)
    onsets, vowels = [*"bcdfghklmnprstvw", "st", "tr", "pl", "gr"], "aeiou"
    words: dict[str, None] = {}
    while len(words) < WORDS:
        parts = [rng.choice(onsets) + rng.choice(vowels) for _ in range(rng.randint(2, 4))]
        words.setdefault("".join(parts) + rng.choice(("", "n", "r", "s", "t")))
    weights = list(itertools.accumulate(1 / (rank + 5) for rank in range(WORDS)))
    return list(words), weights


def facts(count: int) -> Iterator[str]:
    rng = random.Random(SEED + 1)
    words, weights = vocabulary()
    for n in range(count):
        chosen = rng.choices(words, cum_weights=weights, k=rng.randint(8, 16))
        chosen.insert(rng.randrange(len(chosen)), f"{rng.choice(('SRC', 'TKT', 'REQ'))}-{n:07d}")
        yield " ".join(chosen)


def build(path: Path, count: int) -> float:
    index = SqliteIndex(path)
    started = time.perf_counter()
    batch: list[Remember] = []
    with index._pool.borrow() as db:
        db.execute("PRAGMA cache_size = -400000")
        for n, text in enumerate(facts(count)):
            batch.append(op_of(n, text))
            if len(batch) == 2_000:
                write(db, batch)
        write(db, batch)
    index.close()
    return time.perf_counter() - started


def write(db, batch: list[Remember]) -> None:  # type: ignore[no-untyped-def]
    db.execute("BEGIN IMMEDIATE")
    for op in batch:
        memories.remember(db, op)
    db.execute("COMMIT")
    batch.clear()


def build_postgres(url: str, count: int) -> float | None:
    """Seconds that it took to fill the schema of a URL; None if it was there."""
    from callslip.stacks.index.postgres import PostgresIndex
    from callslip.stacks.memoryops import ListFacts, Which

    index = PostgresIndex(url)
    if index.run(ListFacts(Which(NAMESPACE), 0, 0, NOW))[1]:
        index.close()
        return None
    started = time.perf_counter()

    for n, text in enumerate(facts(count)):
        index.run(op_of(n, text))
    took = time.perf_counter() - started
    with index.server.pool.borrow(time.monotonic() + 3600) as connection:
        for table in ("memories", "memory_found", "memory_terms", "memory_forms", "memory_spaces"):
            connection.execute(f"VACUUM ANALYZE {index.server.address.schema}.{table}")
    index.close()
    return took


def op_of(n: int, text: str) -> Remember:
    told = Told(
        text,
        tuple(words_of(text)),
        sameness(text),
        kind=KINDS[n % len(KINDS)],
        metadata={"n": n % 9},
    )
    name = sameness(text).hex()
    return Remember(NAMESPACE, told, [f"mem_{name[:k]}" for k in (8, 16)], NOW + n)


def statements(url: str, count: int) -> tuple[float, float]:
    """How many statements one recall and one remember send: each is one round trip."""
    from callslip.stacks.index.postgres.transaction import Db

    sent: list[str] = []
    send, commit = Db._send, Db.commit

    def counted(self, sql, values, *, last):  # type: ignore[no-untyped-def]
        sent.append(sql)
        return send(self, sql, values, last=last)

    def committed(self) -> None:  # type: ignore[no-untyped-def]
        if self.open and not self.done:
            sent.append("COMMIT")
        commit(self)

    memory = Memory(store_of(url), NAMESPACE)
    asked = queries(count, 40)
    memory.recall("warm")
    Db._send, Db.commit = counted, committed  # type: ignore[method-assign]
    try:
        for query, _ in asked:
            memory.recall(query, k=5)
        recalls = len(sent) / len(asked)
        sent.clear()
        made = [memory.remember(f"one fact more about {query}").fact.id for query, _ in asked]
        remembers = len(sent) / len(asked)
    finally:
        Db._send, Db.commit = send, commit  # type: ignore[method-assign]
    for id in made:
        memory.forget(id)
    return recalls, remembers


def store_of(place: Path | str) -> ResultStore:
    if isinstance(place, Path):
        return ResultStore(place.parent, clock=lambda: NOW + 2e6)
    return ResultStore(place, payloads="memory://", clock=lambda: NOW + 2e6, spool="")


def queries(count: int, wanted: int) -> list[tuple[str, str]]:
    rng = random.Random(SEED + 2)
    chosen = set(rng.sample(range(count), wanted))
    asked = []
    for n, text in enumerate(facts(count)):
        if n in chosen:
            words = text.split()
            some = rng.sample([word for word in words if "-" not in word], rng.randint(3, 5))
            if rng.random() < 0.33:
                some.append(next(word for word in words if "-" in word))
            if rng.random() < 0.1:
                word = some[0]
                at = rng.randrange(1, len(word) - 1)
                some[0] = word[:at] + word[at + 1 :]
            asked.append(("what about " + " ".join(some), text))
    return asked


def measure(place: Path | str, count: int, wanted: int) -> dict[str, float]:
    memory = Memory(store_of(place), NAMESPACE)
    asked = queries(count, 2 * wanted)
    random.Random(SEED + 3).shuffle(asked)
    cold, _, _ = times(memory, asked[:wanted])
    warm, busy, found = times(memory, asked[wanted:])
    by_kind = []
    for n, (query, _) in enumerate(asked[wanted:]):
        started = time.perf_counter()
        memory.recall(query, k=5, kind=KINDS[n % 4], where={"n": n % 9})
        by_kind.append(time.perf_counter() - started)
    writes, made = [], []
    for n in range(50):
        started = time.perf_counter()
        made.append(memory.remember(f"one more fact about {asked[n][0]}").fact.id)
        writes.append(time.perf_counter() - started)
    for id in made:
        memory.forget(id)
    ranked = sorted(warm)
    return {
        "first": cold[0] * 1e3,
        "first pass": statistics.median(cold) * 1e3,
        "median": statistics.median(warm) * 1e3,
        "processor": statistics.median(busy) * 1e3,
        "p95": ranked[int(len(ranked) * 0.95)] * 1e3,
        "worst": ranked[-1] * 1e3,
        "filtered": statistics.median(by_kind) * 1e3,
        "remember": statistics.median(writes) * 1e3,
        "found": found / wanted,
    }


def times(memory: Memory, asked: list[tuple[str, str]]) -> tuple[list[float], list[float], int]:
    """Seconds for each, on the clock and of the processor, and how many found the fact that the
    query was made of."""
    took: list[float] = []
    busy: list[float] = []
    found = 0
    for query, text in asked:
        started, worked = time.perf_counter(), time.thread_time()
        answer = memory.recall(query, k=5)
        took.append(time.perf_counter() - started)
        busy.append(time.thread_time() - worked)
        found += any(fact.text == text for fact in answer.facts)
    return took, busy, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--facts", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--url", help="a PostgreSQL database, instead of a folder")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="callslip-memory-"))
    print(
        "| facts | first ms | first pass, median | median | its processor time | p95 | worst"
        " | kind and field | remember |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for count in given.facts:
        place: Path | str = folder / str(count) / "index.db"
        if given.url:
            joint = "&" if "?" in given.url else "?"
            place = f"{given.url}{joint}schema=facts_{count}"
            took = build_postgres(place, count)
        else:
            took = None if place.exists() else build(place, count)
        if took is not None:
            print(f"built {count:,} in {took:.0f} s", file=sys.stderr)
        got = measure(place, count, given.queries)
        figures = [f"{got[name]:.1f}" for name in list(got)[:-1]]
        print(f"| {count:,} | {' | '.join(figures)} |", flush=True)
        print(f"found {got['found']:.0%}", file=sys.stderr)
        if isinstance(place, Path):
            print(f"{os.path.getsize(place) / 1e6:,.0f} MB", file=sys.stderr)
        else:
            recall, remember = statements(place, count)
            print(f"{recall:.1f} statements a recall, {remember:.1f} a remember", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
