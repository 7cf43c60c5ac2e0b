"""Memory in PostgreSQL: namespaces, and their facts one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from callslip.stacks.index.memory_rows import (
    COLUMNS,
    Row,
    below,
    parts_of,
    path_of,
    row_of,
)
from callslip.stacks.index.postgres.memory_words import mark
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import to_blob
from callslip.stacks.memoryops import Namespace, Which

START = 256
"""Bytes of a path by which namespaces are ordered in the index; `memory_schema` has it too."""

RANGE = "(s.start >= %s AND s.start <= %s AND s.path >= %s AND s.path < %s)"
"""That a namespace is one or below one: `within` gives the values."""


@dataclass(slots=True)
class Space:
    """A namespace that this transaction has locked, and what it holds."""

    namespace: Namespace
    n: int
    facts: int
    bytes: int


def within(namespace: Namespace) -> tuple[bytes, bytes, bytes, bytes]:
    """The values of `RANGE`."""
    first, behind = below(namespace)
    return first[:START], behind[:START], first, behind


def where(namespace: Namespace) -> tuple[bytes, bytes]:
    """The values of `mark = %s AND path = %s`."""
    return mark(namespace), path_of(namespace)


def place_of(which: Which) -> tuple[str, tuple[bytes, ...]]:
    """Of which namespaces `s` facts are meant, as a condition and its values."""
    if which.deep:
        return RANGE, within(which.namespace)
    return "s.mark = %s AND s.path = %s", where(which.namespace)


def lock(db: Db, namespace: Namespace, *, wait: bool = True) -> Space | None:
    """Take the turn in a namespace, if it is there: its writers wait until this transaction ends.
    None, too, where others have it and `wait` is False."""
    skip = "" if wait else " SKIP LOCKED"
    row = db.execute(
        f"SELECT n, facts, bytes FROM memory_spaces WHERE mark = %s AND path = %s FOR UPDATE{skip}",
        where(namespace),
    ).fetchone()
    return None if row is None else Space(namespace, *row)


def make(db: Db, namespace: Namespace) -> Space:
    """`lock`, and the namespace is made if it is new."""
    space = lock(db, namespace)
    if space is not None:
        return space
    tenant = to_blob(namespace[0]) if namespace else b""
    (row,) = db.execute(
        "INSERT INTO memory_spaces AS s (tenant, mark, path, parts) VALUES (%s, %s, %s, %s)"
        # Somebody may have made it meanwhile: this waits for him, and locks it.
        " ON CONFLICT (mark) DO UPDATE SET facts = s.facts RETURNING n, facts, bytes",
        (tenant, *where(namespace), to_blob(json.dumps(namespace, ensure_ascii=False))),
    )
    return Space(namespace, *row)


def count(db: Db, space: Space, facts: int, size: int, words: int) -> None:
    """Count what came or went."""
    if not (facts or size or words):
        return
    db.execute(
        "UPDATE memory_spaces SET facts = facts + %s, bytes = bytes + %s, words = words + %s"
        " WHERE n = %s",
        (facts, size, words, space.n),
    )
    space.facts += facts
    space.bytes += size


def settle(db: Db, space: Space) -> None:
    """Drop a namespace of which nothing is left."""
    if space.facts <= 0:
        db.execute("DELETE FROM memory_spaces WHERE n = %s AND facts <= 0", (space.n,))


def key_mark(key: str) -> bytes:
    """A hash that stands for a key, whatever its length."""
    return blake2b(to_blob(key), digest_size=16, person=b"key").digest()


def one(
    db: Db, namespace: Namespace, *, id: str | None = None, key: str | None = None
) -> Row | None:
    """A fact of a namespace by id or key, run out or not: the only statement of a transaction."""
    by, value = ("m.id", to_blob(id)) if id is not None else ("m.key_mark", key_mark(key or ""))
    row = db.finish(
        f"SELECT {COLUMNS} FROM memories m JOIN memory_spaces s ON s.n = m.space"
        f" WHERE s.mark = %s AND s.path = %s AND {by} = %s",
        (*where(namespace), value),
    ).fetchone()
    return None if row is None else row_of(namespace, row)


def rows(db: Db, conditions: str, values: Sequence[Any], end: str = "") -> list[Row]:
    """Facts `m` of namespaces `s` under those conditions."""
    answer = db.execute(
        f"SELECT {COLUMNS}, s.parts FROM memories m JOIN memory_spaces s ON s.n = m.space"
        f" WHERE {conditions} {end}",
        values,
    )
    names: dict[bytes, Namespace] = {}
    found = []
    for columns in answer:
        parts = columns[-1]
        if parts not in names:
            names[parts] = parts_of(parts)
        found.append(row_of(names[parts], columns))
    return found
