"""Memory in PostgreSQL: facts that go, many at a time.

A namespace's facts go in steps, each short enough for the time that a transaction has.
"""

from __future__ import annotations

from collections.abc import Sequence

from callslip.stacks.index.memory_rows import parts_of
from callslip.stacks.index.postgres import holding, memory_spaces
from callslip.stacks.index.postgres.memories import Writing
from callslip.stacks.index.postgres.memory_spaces import RANGE, key_mark, within
from callslip.stacks.index.postgres.server import Server
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import to_blob
from callslip.stacks.memoryops import ForgetFacts, Namespace, SweepFacts

STEP = 500
"""Facts that one transaction deletes: 2.7 ms each on a machine with ten times too much to do."""


def forget(server: Server, op: ForgetFacts) -> int:
    """Do `memoryops.ForgetFacts`: one fact, or a namespace in as many transactions as it takes. One
    that is cut short is ended by the same call once more."""
    tenant = to_blob(op.namespace[0]) if op.namespace else None
    if op.id is not None or op.key is not None:
        return server.transact(lambda db: _forget_one(db, op), tenant=tenant, again=False)
    return forget_below(server, op.namespace)


def forget_below(server: Server, namespace: Namespace) -> int:
    """Delete every fact of a namespace and below; answer how many."""
    tenant = to_blob(namespace[0]) if namespace else None

    def some(db: Db) -> int:
        holding.refuse_memory(db, namespace)  # in each of them: a hold may come in between
        return drop_below(db, namespace, STEP)

    gone = 0
    while True:
        went = server.transact(some, tenant=tenant, again=True)
        gone += went
        if went < STEP:
            return gone


def _forget_one(db: Db, op: ForgetFacts) -> int:
    holding.refuse_memory(db, op.namespace)
    space = memory_spaces.lock(db, op.namespace)
    if space is None:
        return 0
    writing = Writing(db, space)
    if op.id is not None:
        found = writing.one("m.id = %s", (to_blob(op.id),))
    else:
        found = writing.one("m.key_mark = %s", (key_mark(op.key or ""),))
    if found is None:
        return 0
    writing.delete([found.n])
    writing.end()
    return 1


def drop_below(db: Db, namespace: Namespace, most: int | None = None) -> int:
    """Delete up to `most` facts of a namespace and below, all without; answer how many."""
    gone = 0
    ended: list[Writing] = []
    spaces = db.execute(
        f"SELECT s.parts FROM memory_spaces s WHERE {RANGE} ORDER BY s.n LIMIT %s",
        (*within(namespace), most),
    )
    for (parts,) in spaces:
        space = memory_spaces.lock(db, parts_of(parts))
        if space is None:
            continue  # it went with the last of its facts
        writing = Writing(db, space)
        while space.facts > 0 and (most is None or gone < most):
            step = STEP if most is None else most - gone
            rows = db.execute(
                "SELECT n FROM memories WHERE space = %s ORDER BY n LIMIT %s", (space.n, step)
            )
            if not rows:
                break
            gone += writing.delete([n for (n,) in rows])
        ended.append(writing)
        if most is not None and gone >= most:
            break
    _end(ended)
    return gone


def sweep(db: Db, op: SweepFacts) -> int:
    """Do `memoryops.SweepFacts`. A namespace that others write to just now is left to the next."""
    rows = db.execute(
        "SELECT m.n, s.parts FROM memories m JOIN memory_spaces s ON s.n = m.space"
        f" WHERE m.expires_at <= %s AND NOT {holding.KEEPS_FACTS} ORDER BY m.expires_at LIMIT %s",
        (op.now, op.limit),
    )
    spaces: dict[bytes, list[int]] = {}
    for n, parts in rows:
        spaces.setdefault(parts, []).append(n)
    gone = 0
    ended: list[Writing] = []
    for parts in sorted(spaces):
        space = memory_spaces.lock(db, parts_of(parts), wait=False)
        if space is None:
            continue
        # Its lock is held: one that was prolonged meanwhile is seen as it is.
        due = db.execute(
            "SELECT n FROM memories WHERE n = ANY(%s::bigint[]) AND expires_at <= %s",
            (spaces[parts], op.now),
        )
        if holding.keeps_facts(db, space.namespace):
            continue  # it was placed meanwhile
        writing = Writing(db, space)
        gone += writing.delete([n for (n,) in due])
        ended.append(writing)
    _end(ended)
    return gone


def _end(ended: Sequence[Writing]) -> None:
    # After all namespaces are locked, and in one order: so it cannot deadlock with writers.
    for writing in sorted(ended, key=lambda each: each.changes.owner):
        writing.end()
