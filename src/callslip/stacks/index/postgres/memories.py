"""Memory in PostgreSQL: facts written, changed and forgotten.

Writers of one namespace take turns (`memory_spaces.lock`), writers of different ones do not meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from callslip.errors import StoreUnavailable
from callslip.limits import FACT_VERSIONS
from callslip.stacks.index.memory_rows import COLUMNS, Row, row_of, to_json
from callslip.stacks.index.memory_rules import alike, loses, merged, refiled, size_of, unchanged
from callslip.stacks.index.postgres import holding, memory_spaces
from callslip.stacks.index.postgres.memory_spaces import Space, key_mark
from callslip.stacks.index.postgres.memory_words import Changes
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import blob_if_any, to_blob
from callslip.stacks.memoryops import (
    Fact,
    RefreshFacts,
    Remember,
    Remembered,
    Revise,
    Told,
)
from callslip.stacks.words import filter_words

_RETURNING = COLUMNS.replace("m.", "")


class Writing:
    """One namespace's facts, in the transaction that has its turn."""

    def __init__(self, db: Db, space: Space) -> None:
        self.db = db
        self.space = space
        self.changes = Changes(space.namespace, space.n)
        self.tenant = to_blob(space.namespace[0]) if space.namespace else b""
        self.held = False
        """Whether a legal hold keeps what is there."""

    # --- found ---

    def living(self, now: float, condition: str, values: Sequence[Any]) -> Row | None:
        """The first fact so; those that have run out go at once, so they are not in the way. Under
        a legal hold none goes: what has run out is told anew."""
        while (found := self.one(condition, values)) is not None:
            if self.held or not found.gone(now):
                return found
            self.delete([found.n])
        return None

    def one(self, condition: str, values: Sequence[Any]) -> Row | None:
        row = self.db.execute(
            f"SELECT {COLUMNS} FROM memories m WHERE m.space = %s AND {condition}"
            " ORDER BY m.n LIMIT 1",
            (self.space.n, *values),
        ).fetchone()
        return None if row is None else row_of(self.space.namespace, row)

    # --- written ---

    def new(self, told: Told, ids: Sequence[str], now: float) -> Fact:
        """A new fact, with its words and counts: one statement, so one round trip."""
        columns = _columns(told)
        names = "tenant, space, count, created_at, updated_at, version"
        values = (self.tenant, self.space.n, 1, now, now, 1, *columns.values())
        found, given = self.changes.adding(_found_by(told))
        row = self.db.execute(
            "WITH chosen AS (SELECT g.id FROM unnest(%s::bytea[]) WITH ORDINALITY AS g (id, at)"
            " WHERE NOT EXISTS (SELECT FROM memories m WHERE m.space = %s AND m.id = g.id)"
            " ORDER BY g.at LIMIT 1),"
            f" fact AS (INSERT INTO memories (id, {names}, {', '.join(columns)})"
            f" SELECT id, {', '.join(['%s'] * len(values))} FROM chosen RETURNING *),"
            " counted AS (UPDATE memory_spaces s SET facts = s.facts + 1,"
            " bytes = s.bytes + fact.size, words = s.words + %s FROM fact WHERE s.n = fact.space),"
            f" {found} SELECT {COLUMNS}, (SELECT array_agg(word) FROM terms WHERE facts = 1)"
            " FROM fact m",
            (
                [to_blob(id) for id in ids],
                self.space.n,
                *values,
                len(told.words),
                *given,
            ),
        ).fetchone()
        if row is None:
            raise StoreUnavailable("every id offered for a fact is taken", reason="failed")
        self.changes.added(row[-1] or ())
        made = row_of(self.space.namespace, row)
        self.space.facts += 1
        self.space.bytes += made.size
        return made.fact

    def write(self, found: Row, told: Told, now: float, times: int, *, words: bool) -> Fact:
        """A fact as it is from here on; with `words` found by other ones than before, and with a
        version of its own where its text is another one."""
        columns = _columns(told)
        if not words:
            del columns["words"], columns["filters"]
        before = len(self._forget_words(found)) if words else 0
        (row,) = self.db.execute(
            f"UPDATE memories SET {', '.join(f'{name} = %s' for name in columns)}, count = %s,"
            f" updated_at = greatest(updated_at, %s) WHERE n = %s RETURNING {_RETURNING}",
            (*columns.values(), times, now, found.n),
        )
        made = row_of(self.space.namespace, row)
        longer = 0
        if words:
            self.changes.add(self.db, found.n, _found_by(told))
            longer = len(told.words) - before
        memory_spaces.count(self.db, self.space, 0, made.size - found.size, longer)
        return made.fact

    def changed(self, found: Row, told: Told, why: str, now: float, times: int) -> Fact:
        """Another text: what it said goes into the history, and its vectors go."""
        fact = found.fact
        self.db.execute(
            "WITH past AS (INSERT INTO memory_past (tenant, fact, version, text, kind, source,"
            " metadata, since, until, why) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)),"
            " older AS (DELETE FROM memory_past WHERE fact = %s AND version <= %s),"
            " likeness AS (DELETE FROM memory_vectors WHERE fact = %s)"
            " UPDATE memories SET version = version + 1 WHERE n = %s",
            (
                self.tenant,
                found.n,
                fact.version,
                to_blob(fact.text),
                to_blob(fact.kind),
                to_blob(fact.source),
                to_json(fact.metadata),
                fact.updated_at,
                now,
                why,
                found.n,
                0 if self.held else fact.version - FACT_VERSIONS,
                found.n,
                found.n,
            ),
        )
        return self.write(found, told, now, times, words=True)

    def _forget_words(self, found: Row) -> list[str]:
        (row,) = self.db.execute("SELECT words, filters FROM memories WHERE n = %s", (found.n,))
        words = _parted(row[0])
        self.changes.drop(self.db, [(found.n, words)])
        return words[: len(words) - row[1]]

    # --- gone ---

    def delete(self, facts: Sequence[int]) -> int:
        """Delete facts with their words, history and vectors; answer how many there were."""
        rows = self.db.execute(
            "DELETE FROM memories WHERE n = ANY(%s::bigint[]) AND space = %s"
            " RETURNING n, words, filters, size",
            (list(facts), self.space.n),
        )
        parted = [(n, _parted(words)) for n, words, _, _ in rows]
        self.changes.drop(self.db, parted)
        told = sum(len(words) - row[2] for (_, words), row in zip(parted, rows, strict=True))
        memory_spaces.count(self.db, self.space, -len(rows), -sum(row[3] for row in rows), -told)
        return len(rows)

    def end(self) -> None:
        """The last thing: a namespace that is empty goes, and spellings of no word."""
        memory_spaces.settle(self.db, self.space)
        self.changes.spell(self.db)


def remember(db: Db, op: Remember) -> Remembered:
    """Do `memoryops.Remember`."""
    writing = Writing(db, memory_spaces.make(db, op.namespace))
    writing.held = holding.of_memory(db, op.namespace) is not None
    told, found = op.told, None
    if told.key is not None:
        found = writing.living(op.now, "m.key_mark = %s", (key_mark(told.key),))
    if found is None and op.merge:
        found = writing.living(op.now, "m.same = %s", (told.same,))
        if found is not None and told.key is not None and found.fact.key is not None:
            found = None  # what stands under another key is about something else
    if found is None:
        did = Remembered("new", writing.new(told, op.ids, op.now))
    elif alike(found, told):
        kept = merged(found, told)
        times = found.fact.count + 1
        again = refiled(found, kept)
        if writing.held and loses(found, kept):
            fact = writing.changed(found, kept, "updated", op.now, times)
        else:
            fact = writing.write(found, kept, op.now, times, words=again)
        did = Remembered("repeated", fact)
    else:
        told = replace(told, kind=told.kind or found.fact.kind)
        fact = writing.changed(found, told, "superseded", op.now, 1)
        did = Remembered("superseded", fact, found.fact)
    evicted = _enforce(writing, op, did.fact.id)
    if op.subjects:
        db.execute(
            "INSERT INTO memory_subjects (tenant, name, fact) SELECT %s, x, m.n"
            " FROM unnest(%s::bytea[]) x, memories m WHERE m.space = %s AND m.id = %s"
            " ON CONFLICT DO NOTHING",
            (
                writing.tenant,
                [to_blob(name) for name in op.subjects],
                writing.space.n,
                to_blob(did.fact.id),
            ),
        )
    writing.end()
    return replace(did, evicted=evicted)


def revise(db: Db, op: Revise) -> Remembered | None:
    """Do `memoryops.Revise`."""
    space = memory_spaces.lock(db, op.namespace)
    if space is None:
        return None
    writing = Writing(db, space)
    found = writing.one("m.id = %s", (to_blob(op.id),))
    if found is None or found.gone(op.now):
        return None
    fact, told = found.fact, replace(op.told, key=found.fact.key)
    if op.expect is not None and op.expect != fact.version:
        return Remembered("superseded", fact)
    if unchanged(found, told):
        return Remembered("repeated", fact)
    writing.held = holding.of_memory(db, op.namespace) is not None
    now_says = writing.changed(found, told, "updated", op.now, fact.count)
    writing.end()
    return Remembered("superseded", now_says, before=fact)


def refresh(db: Db, op: RefreshFacts) -> None:
    """Do `memoryops.RefreshFacts`."""
    pairs = sorted((*memory_spaces.where(namespace), to_blob(id)) for namespace, id in op.facts)
    if not pairs:
        return
    marks, paths, ids = (list(each) for each in zip(*pairs, strict=True))
    db.finish(
        "UPDATE memories m SET expires_at = %s + m.ttl"
        " FROM memory_spaces s, unnest(%s::bytea[], %s::bytea[], %s::bytea[]) AS g (mark, path, id)"
        " WHERE s.mark = g.mark AND s.path = g.path AND m.space = s.n AND m.id = g.id"
        " AND m.ttl IS NOT NULL AND m.expires_at > %s",
        (op.now, marks, paths, ids, op.now),
    )


def _enforce(writing: Writing, op: Remember, kept: str) -> int:
    most_facts = 2**62 if op.most_facts is None else op.most_facts
    most_bytes = 2**62 if op.most_bytes is None else op.most_bytes
    space = writing.space
    gone = 0
    while space.facts > most_facts or space.bytes > most_bytes:
        if writing.held:
            raise StoreUnavailable(
                "what fills the quota is under a legal hold", reason="over quota"
            )
        rows = writing.db.execute(
            "SELECT n, size FROM memories WHERE space = %s AND id <> %s"
            " ORDER BY coalesce(expires_at > %s, true), updated_at, n LIMIT %s",
            (space.n, to_blob(kept), op.now, max(50, space.facts - most_facts)),
        )
        facts, size = space.facts, space.bytes
        chosen: list[int] = []
        for n, of_it in rows:
            if facts <= most_facts and size <= most_bytes:
                break
            chosen.append(n)
            facts, size = facts - 1, size - of_it
        if not chosen:
            break
        gone += writing.delete(chosen)
    return gone


def _columns(told: Told) -> dict[str, Any]:
    """What is told as the columns of a fact."""
    filters = filter_words(told.kind, told.metadata) if told.words else []
    return {
        "key": blob_if_any(told.key),
        "key_mark": None if told.key is None else key_mark(told.key),
        "same": told.same,
        "text": to_blob(told.text),
        "kind": to_blob(told.kind),
        "source": to_blob(told.source),
        "metadata": to_json(told.metadata),
        "item": told.item,
        "expires_at": told.expires_at,
        "ttl": told.ttl,
        "size": size_of(told),
        "filters": len(filters),
        "words": to_blob(" ".join([*told.words, *filters])),
    }


def _found_by(told: Told) -> list[str]:
    return [*told.words, *filter_words(told.kind, told.metadata)] if told.words else []


def _parted(words: bytes) -> list[str]:
    return words.decode().split(" ") if words else []
