"""Memory in SQLite: what `ops.Repair` looks at, in one pass whatever the number of facts."""

from __future__ import annotations

import sqlite3
from collections import Counter

from callslip.stacks.index.memory_rows import parts_of
from callslip.stacks.memoryops import Namespace


def repair(db: sqlite3.Connection, mend: bool) -> list[str]:
    """Check the counts of namespaces, and where a write is allowed the index of words; one sentence
    for each finding."""
    counted = {
        space: (facts, size)
        for space, facts, size in db.execute(
            "SELECT space, count(*), sum(size) FROM memories GROUP BY space"
        )
    }
    below: Counter[Namespace] = Counter()
    rows = db.execute("SELECT n, parts, facts, bytes, below FROM memory_spaces").fetchall()
    for n, parts, *_ in rows:
        names = parts_of(parts)
        for depth in range(len(names) + 1):
            below[names[:depth]] += counted.get(n, (0, 0))[0]
    wrong = 0
    for n, parts, *kept in rows:
        right = [*counted.get(n, (0, 0)), below[parts_of(parts)]]
        if kept != right:
            wrong += 1
            if mend:
                db.execute(
                    "UPDATE memory_spaces SET facts = ?, bytes = ?, below = ? WHERE n = ?",
                    (*right, n),
                )
    found = [f"The number of facts of a namespace is wrong in {wrong} of them."] if wrong else []
    if mend:
        try:
            db.execute("INSERT INTO memory_found (memory_found) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            found.append(f"The index of memory's words is damaged: {error}.")
    return found
