"""How well a recall finds the fact that answers a query: one table, against peers.

    .venv-bench/bin/python -m bench.memory_retrieval

2,000 facts and 200 queries (`bench.memory_facts`). The vectors of all contestants are the same:
wordllama's, 256 dimensions, whose model ships in its wheel. "plain FTS5" is an FTS5 table with
SQLite's own tokenizer, the query's words joined by OR, in the order of its bm25().
"""

from __future__ import annotations

import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.memory_facts import Query, labelled
from callslip import ResultStore
from callslip.patterns import remembering
from callslip.patterns.embedding import Embedding
from callslip.patterns.memory import Memory
from callslip.stacks.memoryops import NearFacts, Which
from callslip.stacks.ops import do

K = 10
Ask = Callable[[str], Sequence[str]]


def callslip(folder: Path, facts: Sequence[str], embed: str | None) -> Memory:
    memory = Memory(ResultStore(folder), ("acme", "bench"), embed=embed)
    told = Memory(memory.store, memory.namespace)
    for fact in facts:
        told.remember(fact)
    if embed:
        memory.rebuild()
    return memory


def by_vector(memory: Memory) -> Ask:
    shelf = memory._shelf

    def ask(query: str) -> list[str]:
        assert shelf.embedding is not None
        model = memory.store.run_flow(remembering.known(shelf))
        op = NearFacts(
            Which(memory.namespace), model, shelf.embedding.query(query), K, memory.store.now()
        )
        return [fact.text for fact in memory.store.run_flow(do(op))]

    return ask


def plain_fts5(facts: Sequence[str], tokenize: str) -> Ask:
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE VIRTUAL TABLE f USING fts5 (text, tokenize = '{tokenize}')")
    db.executemany("INSERT INTO f (text) VALUES (?)", [(fact,) for fact in facts])

    def ask(query: str) -> list[str]:
        words = re.findall(r"\w+", query)
        match = " OR ".join(f'"{word}"' for word in words)
        rows = db.execute("SELECT text FROM f WHERE f MATCH ? ORDER BY rank LIMIT ?", (match, K))
        return [text for (text,) in rows]

    return ask


def langgraph(facts: Sequence[str], embedding: Embedding) -> Ask:
    from langgraph.store.sqlite import SqliteStore

    # Its vectors are a loadable extension, which many builds of Python's own module do not take.
    driver: Any = sqlite3
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        driver = import_module("pysqlite3")
    db = driver.connect(":memory:", check_same_thread=False, isolation_level=None)
    index: Any = {"dims": 256, "embed": embedding.documents, "fields": ["text"]}
    store = SqliteStore(db, index=index)
    store.setup()
    for n, fact in enumerate(facts):
        store.put(("bench",), str(n), {"text": fact})
    return lambda query: [
        item.value["text"] for item in store.search(("bench",), query=query, limit=K)
    ]


def ranks(ask: Ask, facts: Sequence[str], queries: Sequence[Query]) -> tuple[list[int], float]:
    """The place of the right fact in each answer, 0 for none; and the median milliseconds."""
    ask(queries[0].text)
    places, times = [], []
    for query in queries:
        started = time.perf_counter()
        found = list(ask(query.text))
        times.append(time.perf_counter() - started)
        right = facts[query.answer]
        places.append(found.index(right) + 1 if right in found else 0)
    return places, statistics.median(times) * 1e3


def main() -> int:
    facts, queries = labelled()
    groups = list(dict.fromkeys(query.group for query in queries))
    print(f"{len(facts):,} facts, {len(queries)} queries", file=sys.stderr)
    embedding = Embedding("wordllama")
    folder = Path(tempfile.mkdtemp(prefix="callslip-retrieval-"))
    memory = callslip(folder, facts, "wordllama")
    words = Memory(memory.store, memory.namespace)
    contestants: dict[str, Ask] = {
        "callslip, words": lambda q: [fact.text for fact in words.recall(q, k=K)],
        "callslip, vectors": by_vector(memory),
        "callslip, both": lambda q: [fact.text for fact in memory.recall(q, k=K)],
        "LangGraph SqliteStore": langgraph(facts, embedding),
        "plain FTS5": plain_fts5(facts, "unicode61"),
        "plain FTS5, porter": plain_fts5(facts, "porter unicode61"),
        "plain FTS5, trigram": plain_fts5(facts, "trigram"),
    }
    print(f"| recall@5 / MRR@{K} | all | {' | '.join(groups)} | ms |")
    print(f"|---|---|{'---|' * len(groups)}---|")
    for name, ask in contestants.items():
        places, took = ranks(ask, facts, queries)
        cells = []
        for group in (None, *groups):
            some = [p for p, q in zip(places, queries, strict=True) if group in (None, q.group)]
            recall = sum(0 < place <= 5 for place in some) / len(some)
            mrr = sum(1 / place for place in some if place) / len(some)
            cells.append(f"{recall:.2f} / {mrr:.2f}")
        print(f"| {name} | {' | '.join(cells)} | {took:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
