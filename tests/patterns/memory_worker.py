"""What the memory tests start in processes of their own: importable, so that `spawn` finds it."""

from __future__ import annotations

from callslip import ResultStore
from callslip.patterns.memory import Memory


def remember_and_recall(url: str, payloads: str | None, worker: int, count: int) -> list[str]:
    """Remember facts, every other one the same in all processes, and find each again; the ids of
    what could not be found."""
    memory = Memory(ResultStore(url, payloads=payloads, spool=""), ("acme", "ana"))
    lost = []
    for n in range(count):
        mine = n % 2 == 0
        text = f"worker w{worker}x{n} was here" if mine else f"everybody knows e{n}x"
        fact = memory.remember(text, key=None if n % 3 else f"k{worker}x{n}" if mine else None).fact
        memory.remember(f"state of worker w{worker} is {n}", key=f"state w{worker}")
        query = f"w{worker}x{n}" if mine else f"e{n}x"
        if fact.id not in [found.id for found in memory.recall(query)]:
            lost.append(fact.id)
    return lost
