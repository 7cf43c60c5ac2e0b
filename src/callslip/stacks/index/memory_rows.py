"""Rows of memory in SQLite: namespaces, facts, and how they go."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from callslip.stacks.index import memory_words
from callslip.stacks.index.rows import text_if_any, to_blob, to_text
from callslip.stacks.memoryops import Fact, Namespace, Namespaces, Past

COLUMNS = (
    "m.id, m.text, m.key, m.kind, m.source, m.metadata, m.count, m.created_at, m.updated_at,"
    " m.expires_at, m.version, m.item, m.n, m.space, m.same, m.ttl, m.size"
)
LIVE = "(m.expires_at IS NULL OR m.expires_at > ?)"


@dataclass(frozen=True, slots=True)
class Row:
    """A fact with what the index keeps beside it."""

    fact: Fact
    n: int
    space: int
    same: bytes
    ttl: float | None
    size: int

    def gone(self, now: float) -> bool:
        """Whether it has run out, swept or not."""
        return self.fact.expires_at is not None and self.fact.expires_at <= now


@dataclass(frozen=True, slots=True)
class Space:
    """A namespace: its number, and those of the namespaces it is below, the outermost first."""

    n: int
    above: tuple[int, ...]


def to_json(value: Mapping[str, Any]) -> bytes:
    """An object as one line of JSON."""
    return to_blob(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def row_of(namespace: Namespace, columns: Sequence[Any]) -> Row:
    """The row of `COLUMNS`."""
    fact = Fact(
        id=to_text(columns[0]),
        namespace=namespace,
        text=to_text(columns[1]),
        key=text_if_any(columns[2]),
        kind=to_text(columns[3]),
        source=to_text(columns[4]),
        metadata=_object(columns[5]),
        count=columns[6],
        created_at=columns[7],
        updated_at=columns[8],
        expires_at=columns[9],
        version=columns[10],
        item=bool(columns[11]),
    )
    return Row(fact, columns[12], columns[13], columns[14], columns[15], columns[16])


def past_of(columns: Sequence[Any]) -> Past:
    """What a fact said before, of its columns in the order of the fields."""
    version, text, kind, source, metadata, since, until, why = columns
    told = (to_text(text), to_text(kind), to_text(source), _object(metadata))
    return Past(version, *told, since, until, why)


def _object(blob: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(to_text(blob))
    return value


# --- namespaces -----------------------------------------------------------------------------------


def path_of(namespace: Namespace) -> bytes:
    """A namespace as bytes: those below it, and no others, begin with the same ones."""
    # NUL ends a word, and is doubled with a mark inside of one.
    return b"".join(to_blob(word).replace(b"\0", b"\0\xff") + b"\0\x01" for word in namespace)


def below(namespace: Namespace) -> tuple[bytes, bytes]:
    """The first path of a namespace and what is below, and the first behind them."""
    path = path_of(namespace)
    return path, path + b"\xff"


def find_space(db: sqlite3.Connection, namespace: Namespace) -> Space | None:
    """A namespace that is there; None where nothing is remembered in it or below."""
    found = []
    for depth in range(len(namespace) + 1):
        row = db.execute(
            "SELECT n FROM memory_spaces WHERE path = ?", (path_of(namespace[:depth]),)
        ).fetchone()
        if row is None:
            return None
        found.append(row[0])
    return Space(found[-1], tuple(found[:-1]))


def make_space(db: sqlite3.Connection, namespace: Namespace) -> Space:
    """A namespace, made with those above it if it is new."""
    for depth in range(len(namespace) + 1):
        parts = namespace[:depth]
        tenant, owner = (*map(to_blob, parts[:2]), None, None)[:2]
        db.execute(
            "INSERT OR IGNORE INTO memory_spaces (path, parts, tenant, owner) VALUES (?, ?, ?, ?)",
            (path_of(parts), to_blob(json.dumps(parts, ensure_ascii=False)), tenant, owner),
        )
    space = find_space(db, namespace)
    assert space is not None
    return space


def parts_of(blob: bytes) -> Namespace:
    """The words of a namespace."""
    return tuple(json.loads(to_text(blob)))


def namespaces_for(op: Namespaces, every: Iterable[Namespace]) -> list[Namespace]:
    """Of all namespaces that hold facts those that `memoryops.Namespaces` asks for."""
    found = {parts[: op.depth] for parts in every if _fits(parts, op)}
    return sorted(found)[op.after : op.after + op.limit]


def _fits(parts: Namespace, op: Namespaces) -> bool:
    if len(parts) < max(len(op.prefix), len(op.suffix)):
        return False
    ending = parts[len(parts) - len(op.suffix) :]
    words = *zip(op.prefix, parts, strict=False), *zip(op.suffix, ending, strict=True)
    return all(wanted in ("*", word) for wanted, word in words)


def names_of(db: sqlite3.Connection, spaces: Iterable[int]) -> dict[int, Namespace]:
    """The namespaces of those numbers."""
    found = {}
    for n in set(spaces):
        (parts,) = db.execute("SELECT parts FROM memory_spaces WHERE n = ?", (n,)).fetchone()
        found[n] = parts_of(parts)
    return found


def settle(db: sqlite3.Connection, space: Space) -> None:
    """Drop a namespace, and those above it, of which nothing is left."""
    for n in (space.n, *reversed(space.above)):
        db.execute("DELETE FROM memory_spaces WHERE n = ? AND below = 0", (n,))


# --- facts ----------------------------------------------------------------------------------------


def one(
    db: sqlite3.Connection, namespace: Namespace, space: int, where: str, value: object
) -> Row | None:
    """A fact of a namespace by one column, run out or not."""
    columns = db.execute(
        f"SELECT {COLUMNS} FROM memories m WHERE m.space = ? AND m.{where} = ?"
        " ORDER BY m.n LIMIT 1",
        (space, value),
    ).fetchone()
    return None if columns is None else row_of(namespace, columns)


def load(db: sqlite3.Connection, namespace: Namespace, n: int) -> Fact:
    """A fact by its number."""
    columns = db.execute(f"SELECT {COLUMNS} FROM memories m WHERE m.n = ?", (n,)).fetchone()
    return row_of(namespace, columns).fact


def count(db: sqlite3.Connection, space: Space, facts: int, size: int) -> None:
    """Count facts that came or went."""
    db.execute(
        "UPDATE memory_spaces SET facts = facts + ?, bytes = bytes + ? WHERE n = ?",
        (facts, size, space.n),
    )
    if facts:
        db.executemany(
            "UPDATE memory_spaces SET below = below + ? WHERE n = ?",
            [(facts, n) for n in (space.n, *space.above)],
        )


def delete(db: sqlite3.Connection, space: Space, n: int, size: int) -> None:
    """Delete one fact with its words, history and vectors."""
    memory_words.drop(db, n, space.n, space.above)
    db.execute("DELETE FROM memories WHERE n = ?", (n,))
    count(db, space, -1, -size)
