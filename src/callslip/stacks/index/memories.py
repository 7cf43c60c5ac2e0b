"""Memory in SQLite: facts written, changed and forgotten."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from callslip.errors import StoreUnavailable
from callslip.limits import FACT_VERSIONS
from callslip.stacks.index import holding, memory_words, subjects, wiping
from callslip.stacks.index.memory_rows import (
    Row,
    Space,
    below,
    count,
    delete,
    find_space,
    load,
    make_space,
    one,
    parts_of,
    path_of,
    settle,
    to_json,
)
from callslip.stacks.index.memory_rules import alike, loses, merged, refiled, size_of, unchanged
from callslip.stacks.index.rows import blob_if_any, to_blob
from callslip.stacks.memoryops import (
    Fact,
    ForgetFacts,
    Namespace,
    RefreshFacts,
    Remember,
    Remembered,
    Revise,
    SweepFacts,
    Told,
)
from callslip.stacks.words import filter_words

# --- writes ---------------------------------------------------------------------------------------


def remember(db: sqlite3.Connection, op: Remember) -> Remembered:
    """Do `memoryops.Remember`."""
    space = make_space(db, op.namespace)
    held = holding.of_memory(db, op.namespace) is not None
    told = op.told
    found = None
    if told.key is not None:
        found = _living(db, op, space, "key", to_blob(told.key), held)
    if found is None and op.merge:
        found = _living(db, op, space, "same", told.same, held)
        if found is not None and told.key is not None and found.fact.key is not None:
            found = None  # what stands under another key is about something else
    if found is None:
        fact, outcome, before = _new(db, op, space), "new", None
    elif alike(found, told):
        fact, outcome, before = _repeated(db, found, told, space, op.now, held), "repeated", None
    else:
        _keep_past(db, found, "superseded", op.now, held)
        told = replace(told, kind=told.kind or found.fact.kind)
        fact, outcome, before = (
            _changed(db, found, told, space, op.now, 1),
            "superseded",
            found.fact,
        )
    evicted = _enforce(db, op, space, fact.id, held)
    subjects.add_to_fact(db, space.n, fact.id, (*op.namespace, "")[0], op.subjects)
    return Remembered(outcome, fact, before, evicted)  # type: ignore[arg-type]


def _living(
    db: sqlite3.Connection, op: Remember, space: Space, column: str, value: bytes, held: bool
) -> Row | None:
    """A fact that has not run out; those that have go at once, so that they are not in the way.
    Under a legal hold none goes: what has run out is told anew."""
    while (found := one(db, op.namespace, space.n, column, value)) is not None:
        if held or not found.gone(op.now):
            return found
        delete(db, space, found.n, found.size)
    return None


def _new(db: sqlite3.Connection, op: Remember, space: Space) -> Fact:
    for id in op.ids:
        if one(db, op.namespace, space.n, "id", to_blob(id)) is None:
            break
    else:
        raise StoreUnavailable("every id offered for a fact is taken", reason="failed")
    told = op.told
    (n,) = db.execute(
        "INSERT INTO memories (space, id, key, same, text, kind, source, metadata, item, count,"
        " created_at, updated_at, expires_at, ttl, version, size)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, 1, ?) RETURNING n",
        (
            space.n,
            to_blob(id),
            blob_if_any(told.key),
            told.same,
            to_blob(told.text),
            to_blob(told.kind),
            to_blob(told.source),
            to_json(told.metadata),
            told.item,
            op.now,
            op.now,
            told.expires_at,
            told.ttl,
            size_of(told),
        ),
    ).fetchone()
    count(db, space, 1, size_of(told))
    _found_by(db, n, told, space)
    return load(db, op.namespace, n)


def _repeated(
    db: sqlite3.Connection, found: Row, told: Told, space: Space, now: float, held: bool
) -> Fact:
    fact, kept = found.fact, merged(found, told)
    if held and loses(found, kept):
        _keep_past(db, found, "updated", now, held)
        return _changed(db, found, kept, space, now, fact.count + 1)
    if refiled(found, kept):
        memory_words.drop(db, found.n, space.n, space.above)
        _found_by(db, found.n, kept, space)
    _write(db, found, kept, space, now, fact.count + 1, fact.version)
    return load(db, fact.namespace, found.n)


def _changed(
    db: sqlite3.Connection, found: Row, told: Told, space: Space, now: float, times: int
) -> Fact:
    memory_words.drop(db, found.n, space.n, space.above)
    _write(db, found, told, space, now, times, found.fact.version + 1)
    _found_by(db, found.n, told, space)
    db.execute("DELETE FROM memory_vectors WHERE fact = ?", (found.n,))
    return load(db, found.fact.namespace, found.n)


def _write(
    db: sqlite3.Connection,
    found: Row,
    told: Told,
    space: Space,
    now: float,
    times: int,
    version: int,
) -> None:
    db.execute(
        "UPDATE memories SET key = ?, same = ?, text = ?, kind = ?, source = ?, metadata = ?,"
        " item = ?, count = ?, updated_at = max(updated_at, ?), expires_at = ?, ttl = ?,"
        " version = ?, size = ? WHERE n = ?",
        (
            blob_if_any(told.key),
            told.same,
            to_blob(told.text),
            to_blob(told.kind),
            to_blob(told.source),
            to_json(told.metadata),
            told.item,
            times,
            now,
            told.expires_at,
            told.ttl,
            version,
            size_of(told),
            found.n,
        ),
    )
    count(db, space, 0, size_of(told) - found.size)


def _keep_past(db: sqlite3.Connection, found: Row, why: str, now: float, held: bool) -> None:
    fact = found.fact
    db.execute(
        "INSERT INTO memory_past (fact, version, text, kind, source, metadata, since, until, why)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            found.n,
            fact.version,
            to_blob(fact.text),
            to_blob(fact.kind),
            to_blob(fact.source),
            to_json(fact.metadata),
            fact.updated_at,
            now,
            why,
        ),
    )
    if not held:
        db.execute(
            "DELETE FROM memory_past WHERE fact = ? AND version <= ?",
            (found.n, fact.version - FACT_VERSIONS),
        )


def _found_by(db: sqlite3.Connection, n: int, told: Told, space: Space) -> None:
    filters = filter_words(told.kind, told.metadata)
    memory_words.add(db, n, space.n, space.above, told.words, filters)


def _enforce(db: sqlite3.Connection, op: Remember, space: Space, kept: str, held_by: bool) -> int:
    most_facts = 2**62 if op.most_facts is None else op.most_facts
    most_bytes = 2**62 if op.most_bytes is None else op.most_bytes
    gone = 0
    while True:
        facts, held = db.execute(
            "SELECT facts, bytes FROM memory_spaces WHERE n = ?", (space.n,)
        ).fetchone()
        if facts <= most_facts and held <= most_bytes:
            return gone
        if held_by:
            raise StoreUnavailable(
                "what fills the quota is under a legal hold", reason="over quota"
            )
        oldest = db.execute(
            "SELECT n, size FROM memories WHERE space = ? AND id <> ?"
            " ORDER BY coalesce(expires_at > ?, 1), updated_at, n LIMIT 1",
            (space.n, to_blob(kept), op.now),
        ).fetchone()
        if oldest is None:
            return gone
        delete(db, space, *oldest)
        gone += 1


def revise(db: sqlite3.Connection, op: Revise) -> Remembered | None:
    """Do `memoryops.Revise`."""
    space = find_space(db, op.namespace)
    if space is None:
        return None
    found = one(db, op.namespace, space.n, "id", to_blob(op.id))
    if found is None or found.gone(op.now):
        return None
    fact, told = found.fact, replace(op.told, key=found.fact.key)
    if op.expect is not None and op.expect != fact.version:
        return Remembered("superseded", fact)
    if unchanged(found, told):
        return Remembered("repeated", fact)
    held = holding.of_memory(db, op.namespace) is not None
    _keep_past(db, found, "updated", op.now, held)
    return Remembered(
        "superseded", _changed(db, found, told, space, op.now, fact.count), before=fact
    )


def forget(db: sqlite3.Connection, op: ForgetFacts) -> int:
    """Do `memoryops.ForgetFacts`."""
    holding.refuse_memory(db, op.namespace)
    if op.id is None and op.key is None:
        return drop_below(db, op.namespace)
    space = find_space(db, op.namespace)
    if space is None:
        return 0
    column, value = ("id", op.id) if op.id is not None else ("key", op.key)
    found = one(db, op.namespace, space.n, column, to_blob(value or ""))
    if found is None:
        return 0
    delete(db, space, found.n, found.size)
    settle(db, space)
    return 1


def drop_below(db: sqlite3.Connection, namespace: Namespace) -> int:
    """Delete every fact of a namespace and below; answer how many."""
    spaces = db.execute(
        "SELECT parts FROM memory_spaces WHERE path >= ? AND path < ?", below(namespace)
    ).fetchall()
    gone = 0
    for (parts,) in spaces:
        space = find_space(db, parts_of(parts))
        if space is None:
            continue  # it went with the last of its facts
        for n, size in db.execute(
            "SELECT n, size FROM memories WHERE space = ?", (space.n,)
        ).fetchall():
            delete(db, space, n, size)
            gone += 1
        settle(db, space)
    if gone:
        wiping.merge_words(db)
    return gone


def sweep(db: sqlite3.Connection, op: SweepFacts) -> int:
    """Do `memoryops.SweepFacts`."""
    rows = db.execute(
        "SELECT m.n, m.size, s.parts FROM memories m JOIN memory_spaces s ON s.n = m.space"
        f" WHERE m.expires_at <= ? AND NOT {holding.KEEPS_FACTS} ORDER BY m.expires_at LIMIT ?",
        (op.now, op.limit),
    ).fetchall()
    for n, size, parts in rows:
        space = find_space(db, parts_of(parts))
        assert space is not None
        delete(db, space, n, size)
        settle(db, space)
    return len(rows)


def refresh(db: sqlite3.Connection, op: RefreshFacts) -> None:
    """Do `memoryops.RefreshFacts`."""
    db.executemany(
        "UPDATE memories SET expires_at = ?1 + ttl WHERE ttl IS NOT NULL AND expires_at > ?1"
        " AND id = ?2 AND space = (SELECT n FROM memory_spaces WHERE path = ?3)",
        [(op.now, to_blob(id), path_of(namespace)) for namespace, id in op.facts],
    )
