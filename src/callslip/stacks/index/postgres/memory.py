"""Which function of PostgreSQL's does which operation on memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callslip.stacks import memoryops
from callslip.stacks.index.postgres import (
    memories,
    memory_find,
    memory_forgetting,
    memory_reads,
    memory_upkeep,
    memory_vectors,
)
from callslip.stacks.index.postgres.server import Server
from callslip.stacks.index.postgres.transaction import Db

Does = Callable[[Db, Any], Any]

READS: dict[type, Does] = {
    memoryops.GetFact: memory_reads.get,
    memoryops.PastOf: memory_reads.past,
    memoryops.ListFacts: memory_reads.list_facts,
    memoryops.Namespaces: memory_reads.namespaces,
    memoryops.FindFacts: memory_find.find,
    memoryops.NearFacts: memory_vectors.nearest,
    memoryops.Vectorless: memory_vectors.vectorless,
}
WRITES: dict[type, Does] = {
    memoryops.Remember: memories.remember,
    memoryops.Revise: memories.revise,
    memoryops.RefreshFacts: memories.refresh,
    memoryops.SweepFacts: memory_forgetting.sweep,
    memoryops.KnowModel: memory_vectors.know_model,
    memoryops.AddVectors: memory_vectors.add_vectors,
    memoryops.DropVectors: memory_vectors.drop_vectors,
}
LONG: dict[type, Callable[[Server, Any], Any]] = {memoryops.ForgetFacts: memory_forgetting.forget}
"""What takes as many transactions as it needs."""

drop_below = memory_forgetting.drop_below
forget_below = memory_forgetting.forget_below
repair = memory_upkeep.repair
