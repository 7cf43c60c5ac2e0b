"""Memory in SQLite: vectors of facts, one for each embedding that is in use."""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections.abc import Sequence
from dataclasses import replace
from heapq import nlargest
from operator import mul

from callslip.limits import VECTORS_SCANNED
from callslip.stacks.index.memory_find import load_row
from callslip.stacks.index.memory_reads import meant
from callslip.stacks.index.memory_rows import below, find_space, path_of
from callslip.stacks.index.memory_search import is_meant
from callslip.stacks.index.rows import to_blob
from callslip.stacks.memoryops import (
    AddVectors,
    DropVectors,
    Fact,
    KnowModel,
    Namespace,
    NearFacts,
    Vectorless,
)

SAME = 0.999
"""How like two vectors of one text are if one embedding made both: hardware rounds differently."""

_LOOKED_THROUGH = 1_000


def know_model(db: sqlite3.Connection, op: KnowModel) -> int:
    """Do `memoryops.KnowModel`."""
    probe = unit(op.probe)
    rows = db.execute("SELECT n, probe FROM memory_models WHERE dims = ?", (len(probe),))
    for n, known in rows.fetchall():
        if sum(map(mul, floats(known), probe)) >= SAME:
            return int(n)
    (n,) = db.execute(
        "INSERT INTO memory_models (dims, probe) VALUES (?, ?) RETURNING n",
        (len(probe), probe.tobytes()),
    ).fetchone()
    return int(n)


def nearest(db: sqlite3.Connection, op: NearFacts) -> Sequence[Fact]:
    """Do `memoryops.NearFacts`."""
    if op.which.deep:
        where = "space IN (SELECT n FROM memory_spaces WHERE path >= ? AND path < ?)"
        values: tuple[object, ...] = below(op.which.namespace)
    else:
        where = "space = (SELECT n FROM memory_spaces WHERE path = ?)"
        values = (path_of(op.which.namespace),)
    rows = db.execute(
        f"SELECT fact, vector FROM memory_vectors WHERE {where} AND model = ?"
        " ORDER BY fact DESC LIMIT ?",
        (*values, op.model, VECTORS_SCANNED),
    ).fetchall()
    found: list[Fact] = []
    names: dict[int, Namespace] = {}
    for likeness, n in most_like(opened(rows, op), unit(op.vector)):
        row = load_row(db, n, names)
        if not row.gone(op.now) and is_meant(op.which, row.fact):
            found.append(replace(row.fact, score=likeness))
            if len(found) == op.limit:
                break
    return found


def opened(rows: Sequence[tuple[int, bytes]], op: NearFacts) -> Sequence[tuple[int, bytes]]:
    """Vectors as floats, where they were added as bytes."""
    return rows if op.opened is None else [(n, op.opened(vector)) for n, vector in rows]


def kept(vector: Sequence[float] | bytes) -> bytes:
    """A vector as it is stored."""
    return vector if isinstance(vector, bytes) else unit(vector).tobytes()


def most_like(rows: Sequence[tuple[int, bytes]], wanted: array[float]) -> list[tuple[float, int]]:
    size = len(wanted) * wanted.itemsize
    rows = [row for row in rows if len(row[1]) == size]
    try:
        import numpy
    except ImportError:
        # Slower by a factor of a hundred, and right: some 2,000 facts take 50 ms.
        likeness = [(sum(map(mul, floats(vector), wanted)), n) for n, vector in rows]
        return nlargest(_LOOKED_THROUGH, likeness)
    if not rows:
        return []
    matrix = numpy.frombuffer(b"".join(vector for _, vector in rows), dtype=numpy.float32)
    all_likeness = matrix.reshape(len(rows), -1) @ numpy.frombuffer(wanted, dtype=numpy.float32)
    best = numpy.argsort(-all_likeness, kind="stable")[:_LOOKED_THROUGH]
    return [(float(all_likeness[at]), rows[at][0]) for at in best]


def vectorless(db: sqlite3.Connection, op: Vectorless) -> Sequence[tuple[Namespace, str, int, str]]:
    """Do `memoryops.Vectorless`."""
    found: list[tuple[Namespace, str, int, str]] = []
    for row in meant(db, op.which, op.now):
        (lacks,) = db.execute(
            "SELECT EXISTS (SELECT 1 FROM memory_words WHERE fact = ?1) AND NOT EXISTS"
            " (SELECT 1 FROM memory_vectors WHERE fact = ?1 AND model = ?2)",
            (row.n, op.model),
        ).fetchone()
        if lacks:
            fact = row.fact
            found.append((fact.namespace, fact.id, fact.version, fact.text))
            if len(found) >= op.limit:
                break
    return found


def add_vectors(db: sqlite3.Connection, op: AddVectors) -> int:
    """Do `memoryops.AddVectors`."""
    added = 0
    for namespace, id, version, vector in op.vectors:
        space = find_space(db, namespace)
        row = (
            space
            and db.execute(
                "SELECT n FROM memories WHERE space = ? AND id = ? AND version = ?",
                (space.n, to_blob(id), version),
            ).fetchone()
        )
        if not row or not space:
            continue
        db.execute(
            "INSERT OR REPLACE INTO memory_vectors (space, model, fact, vector)"
            " VALUES (?, ?, ?, ?)",
            (space.n, op.model, row[0], kept(vector)),
        )
        added += 1
    return added


def drop_vectors(db: sqlite3.Connection, op: DropVectors) -> int:
    """Do `memoryops.DropVectors`."""
    gone = db.execute(
        "DELETE FROM memory_vectors WHERE model <> ? AND space IN"
        " (SELECT n FROM memory_spaces WHERE path >= ? AND path < ?)",
        (op.keep, *below(op.namespace)),
    ).rowcount
    db.execute(
        "DELETE FROM memory_models WHERE n <> ? AND NOT EXISTS"
        " (SELECT 1 FROM memory_vectors v WHERE v.model = memory_models.n)",
        (op.keep,),
    )
    return gone


def unit(vector: Sequence[float]) -> array[float]:
    length = math.sqrt(sum(each * each for each in vector)) or 1.0
    return array("f", (each / length for each in vector))


def floats(blob: bytes) -> array[float]:
    found = array("f")
    found.frombytes(blob)
    return found
