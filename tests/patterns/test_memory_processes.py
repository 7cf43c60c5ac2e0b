from __future__ import annotations

import multiprocessing
from pathlib import Path

from callslip import ResultStore
from callslip.patterns.memory import Memory
from tests.patterns.memory_worker import remember_and_recall

PROCESSES = 8
COUNT = 16


def test_eight_processes_lose_nothing_and_keep_each_fact_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(PROCESSES) as pool:
        given = [(tmp_path / "store", worker, COUNT) for worker in range(PROCESSES)]
        lost = pool.starmap(remember_and_recall, given, chunksize=1)
    assert lost == [[]] * PROCESSES
    memory = Memory(ResultStore(tmp_path / "store"), ("acme", "ana"))
    page = memory.list(limit=10_000)
    texts = [fact.text for fact in page]
    assert len(texts) == len(set(texts)) == page.total
    assert page.total == PROCESSES * (COUNT // 2) + COUNT // 2 + PROCESSES
    shared = [fact for fact in page if fact.text.startswith("everybody")]
    assert {fact.count for fact in shared} == {PROCESSES}
    for worker in range(PROCESSES):
        state = memory.get(key=f"state w{worker}")
        assert state is not None
        assert (state.text[-2:], state.version) == (str(COUNT - 1), COUNT)
