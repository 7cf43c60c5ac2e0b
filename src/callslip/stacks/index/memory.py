"""Which function of SQLite's does which operation on memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from callslip.stacks import memoryops
from callslip.stacks.index import memories, memory_find, memory_reads, memory_vectors

Does = Callable[[sqlite3.Connection, Any], Any]

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
    memoryops.ForgetFacts: memories.forget,
    memoryops.RefreshFacts: memories.refresh,
    memoryops.SweepFacts: memories.sweep,
    memoryops.KnowModel: memory_vectors.know_model,
    memoryops.AddVectors: memory_vectors.add_vectors,
    memoryops.DropVectors: memory_vectors.drop_vectors,
}
