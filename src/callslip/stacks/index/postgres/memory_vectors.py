"""Memory in PostgreSQL: vectors of facts, one for each embedding that is in use.

They are bytes, compared here one by one, as in SQLite: no extension is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import mul

import psycopg

from callslip.limits import VECTORS_SCANNED
from callslip.stacks.index.memory_search import is_meant
from callslip.stacks.index.memory_vectors import SAME, floats, kept, most_like, opened, unit
from callslip.stacks.index.postgres.memory_find import rows_of
from callslip.stacks.index.postgres.memory_reads import meant
from callslip.stacks.index.postgres.memory_spaces import RANGE, place_of, where, within
from callslip.stacks.index.postgres.transaction import Db
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

_MODELS = 1877
"""Names the lock of the known embeddings among PostgreSQL's advisory locks."""


def know_model(db: Db, op: KnowModel) -> int:
    """Do `memoryops.KnowModel`."""
    probe = unit(op.probe)
    for at in range(2):
        for n, known in db.execute(
            "SELECT n, probe FROM memory_models WHERE dims = %s", (len(probe),)
        ):
            if sum(map(mul, floats(known), probe)) >= SAME:
                return int(n)
        if not at:  # once more, when nobody else can be adding the same one
            db.execute(f"SELECT pg_advisory_xact_lock({_MODELS}, hashtext(current_schema()))")
    ((n,),) = db.execute(
        "INSERT INTO memory_models (dims, probe) VALUES (%s, %s) RETURNING n",
        (len(probe), probe.tobytes()),
    )
    return int(n)


def nearest(db: Db, op: NearFacts) -> Sequence[Fact]:
    """Do `memoryops.NearFacts`."""
    place, values = place_of(op.which)
    spaces = [n for (n,) in db.execute(f"SELECT s.n FROM memory_spaces s WHERE {place}", values)]
    vectors = _vectors(db, spaces, op.model)
    found: list[Fact] = []
    ranked = most_like(opened(vectors, op), unit(op.vector))
    together = 2 * op.limit + 10
    for at in range(0, len(ranked), together):
        likeness = {n: each for each, n in ranked[at : at + together]}
        for row in rows_of(db, list(likeness)):
            if not row.gone(op.now) and is_meant(op.which, row.fact):
                found.append(replace(row.fact, score=likeness[row.n]))
                if len(found) == op.limit:
                    return found
    return found


def _vectors(db: Db, spaces: Sequence[int], model: int) -> list[tuple[int, bytes]]:
    # Many bytes: as they are, not written out in digits, which the simple protocol would.
    with psycopg.Cursor(db.connection) as cursor:
        cursor.execute(
            "SELECT fact, vector FROM memory_vectors WHERE space = ANY(%s::bigint[])"
            " AND model = %s ORDER BY fact DESC LIMIT %s",
            (spaces, model, VECTORS_SCANNED),
            binary=True,
        )
        return cursor.fetchall()


def vectorless(db: Db, op: Vectorless) -> Sequence[tuple[Namespace, str, int, str]]:
    """Do `memoryops.Vectorless`."""
    lacks = (
        " AND m.words <> '' AND NOT EXISTS"
        " (SELECT FROM memory_vectors v WHERE v.fact = m.n AND v.model = %s)"
    )
    found: list[tuple[Namespace, str, int, str]] = []
    for row in meant(db, op.which, op.now, lacks, (op.model,)):
        if len(found) >= op.limit:
            break
        fact = row.fact
        found.append((fact.namespace, fact.id, fact.version, fact.text))
    return found


def add_vectors(db: Db, op: AddVectors) -> int:
    """Do `memoryops.AddVectors`."""
    if not op.vectors:
        return 0
    # Two for one fact would be two rows for one: the last one counts.
    each = {(*where(name), to_blob(id), version): kept(v) for name, id, version, v in op.vectors}
    marks, paths, ids, versions = (list(column) for column in zip(*sorted(each), strict=True))
    answer = db.execute(
        "INSERT INTO memory_vectors (tenant, space, model, fact, vector)"
        " SELECT m.tenant, m.space, %s, m.n, g.vector FROM unnest(%s::bytea[], %s::bytea[],"
        " %s::bytea[], %s::bigint[], %s::bytea[]) AS g (mark, path, id, version, vector)"
        " JOIN memory_spaces s ON s.mark = g.mark AND s.path = g.path"
        " JOIN memories m ON m.space = s.n AND m.id = g.id AND m.version = g.version"
        " ON CONFLICT (space, model, fact) DO UPDATE SET vector = excluded.vector",
        (op.model, marks, paths, ids, versions, [each[key] for key in sorted(each)]),
    )
    return answer.rowcount


def drop_vectors(db: Db, op: DropVectors) -> int:
    """Do `memoryops.DropVectors`. The model itself stays, a row that others may be adding to."""
    return db.execute(
        "DELETE FROM memory_vectors v USING memory_spaces s WHERE s.n = v.space"
        f" AND {RANGE} AND v.model <> %s",
        (*within(op.namespace), op.keep),
    ).rowcount
