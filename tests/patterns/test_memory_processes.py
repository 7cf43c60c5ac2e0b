from __future__ import annotations

import multiprocessing
from pathlib import Path

from callslip import ResultStore
from callslip.patterns.memory import Memory
from tests.patterns.memory_worker import remember_and_recall

COUNT = 16


def test_eight_processes_lose_nothing_and_keep_each_fact_once(tmp_path: Path) -> None:
    kept_once(str(tmp_path / "store"), 8)


def kept_once(url: str, processes: int, payloads: str | None = None) -> None:
    """The law, for the store at a URL."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        given = [(url, payloads, worker, COUNT) for worker in range(processes)]
        lost = pool.starmap(remember_and_recall, given, chunksize=1)
    assert lost == [[]] * processes
    memory = Memory(ResultStore(url, payloads=payloads, spool=""), ("acme", "ana"))
    page = memory.list(limit=10_000)
    texts = [fact.text for fact in page]
    assert len(texts) == len(set(texts)) == page.total
    assert page.total == processes * (COUNT // 2) + COUNT // 2 + processes
    shared = [fact for fact in page if fact.text.startswith("everybody")]
    assert {fact.count for fact in shared} == {processes}
    for worker in range(processes):
        state = memory.get(key=f"state w{worker}")
        assert state is not None
        assert (state.text[-2:], state.version) == (str(COUNT - 1), COUNT)
