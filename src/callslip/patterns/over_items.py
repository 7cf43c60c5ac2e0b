"""Memory over a store of items that somebody has already: the operations, done by its few methods.

A fact is one item, under the fact's id, with its count, dates and past. What others put there is a
fact, too. Such a store has no transactions: of two that tell the same in the same moment one may be
counted less; and no full text: up to `LOOKED_AT` items are read and ranked for a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

from callslip.errors import SettingsError
from callslip.limits import FACT_CHARS, FACT_VERSIONS
from callslip.patterns.items import texts_in
from callslip.patterns.remembering import ids_of
from callslip.stacks import memoryops as ops
from callslip.stacks.memoryops import Fact, Namespace, Past, Remembered, Told, Which
from callslip.stacks.ops import Secret
from callslip.stacks.ranking import MEANING, fused, holds, ranked
from callslip.stacks.words import sameness

__all__ = ["LOOKED_AT", "Holds", "OverItems"]

LOOKED_AT = 2_000
_PAGE = 200
_MARK = "callslip_fact"


class Holds(Protocol):
    """What is needed of the store; an item has `namespace`, `key`, `value` and two dates."""

    def get(self, namespace: Namespace, key: str, /) -> Any: ...

    def put(self, namespace: Namespace, key: str, value: dict[str, Any], /) -> None: ...

    def delete(self, namespace: Namespace, key: str, /) -> None: ...

    def search(self, namespace: Namespace, /, *, query: str | None = ..., limit: int = ..., offset: int = ...) -> Any: ...  # fmt: skip


class OverItems:
    """Does the operations on memory with a store of items. `semantic`: its search by a query is by
    meaning, and is fused with the ranking by words."""

    def __init__(self, items: Holds, *, semantic: bool = False) -> None:
        self._items = items
        self._semantic = semantic

    def run(self, op: Any, /) -> Any:
        """Do one operation. Raises `SettingsError` for what such a store cannot do."""
        known: dict[type, Callable[[Any], Any]] = {
            ops.Remember: self._remember,
            ops.Revise: self._revise,
            ops.GetFact: lambda op: self._get(op.namespace, op.now, op.id, op.key),
            ops.PastOf: self._past_of,
            ops.ForgetFacts: self._forget,
            ops.ListFacts: self._list,
            ops.FindFacts: self._find,
            Secret: lambda op: b"",
            ops.SweepFacts: lambda op: 0,  # what has run out goes when it is met
        }
        does = known.get(type(op))
        if does is None:
            raise SettingsError(
                "a memory over another store takes no embed=: give that store an index of its own"
            )
        return does(op)

    # --- in ---------------------------------------------------------------------------------------

    def _remember(self, op: ops.Remember) -> Remembered:
        if op.most_facts is not None or op.most_bytes is not None:
            raise SettingsError("a memory over another store takes no quota")
        if op.subjects:
            raise SettingsError(
                "a memory over another store takes no subject=: it could not find it"
            )
        told, space = op.told, op.namespace
        same = self._get_same(space, op.now, told)
        if told.key is None:
            if same is not None:
                return self._repeated(same, told, op.now)
        else:
            found = self._get(space, op.now, None, told.key)
            if found is not None and sameness(found.text) == told.same:
                return self._repeated(found, told, op.now)
            if found is not None:
                kept = replace(told, kind=told.kind or found.kind)
                return self._changed(found, kept, op.now, "superseded", 1)
        for id in op.ids:
            if self._items.get(space, id) is None or self._get(space, op.now, id, None) is None:
                break
        fact = _as_told(Fact(id, space, told.text, created_at=op.now), told, op.now)
        if same is not None and told.key is not None:
            # It was told without the key before: that one gets it, under the id of the key.
            self._items.delete(space, same.id)
            ends = _longer(same.expires_at, told.expires_at)
            count = same.count + 1
            fact = replace(fact, count=count, created_at=same.created_at, expires_at=ends)
        self._put(fact, ())
        return Remembered("new" if same is None else "repeated", fact)

    def _revise(self, op: ops.Revise) -> Remembered | None:
        found = self._get(op.namespace, op.now, op.id, None)
        if found is None:
            return None
        if op.expect is not None and op.expect != found.version:
            return Remembered("superseded", found)
        told = replace(op.told, key=found.key)
        if _as_told(found, told, found.updated_at) == found:
            return Remembered("repeated", found)
        return self._changed(found, told, op.now, "updated", found.count)

    def _repeated(self, found: Fact, told: Told, now: float) -> Remembered:
        fact = replace(
            found,
            count=found.count + 1,
            updated_at=now,
            kind=told.kind or found.kind,
            source=told.source or found.source,
            metadata={**found.metadata, **told.metadata},
            expires_at=_longer(found.expires_at, told.expires_at),
        )
        self._put(fact, self._past(fact))
        return Remembered("repeated", fact)

    def _changed(self, found: Fact, told: Told, now: float, why: Any, times: int) -> Remembered:
        before = Past(
            found.version, found.text, found.kind, found.source, found.metadata,
            found.updated_at, now, why,
        )  # fmt: skip
        fact = replace(_as_told(found, told, now), version=found.version + 1, count=times)
        self._put(fact, [*self._past(fact), asdict(before)][-FACT_VERSIONS:])
        return Remembered("superseded", fact, found)

    def _put(self, fact: Fact, past: Sequence[Any]) -> None:
        kept = asdict(replace(fact, score=None))
        named = {name: kept[name] for name in kept if name not in ("id", "namespace", "score")}
        self._items.put(fact.namespace, fact.id, {_MARK: 1, **named, "past": list(past)})

    def _past(self, fact: Fact) -> list[Any]:
        item = self._items.get(fact.namespace, fact.id)
        return [] if item is None else list(item.value.get("past", ()))

    def _forget(self, op: ops.ForgetFacts) -> int:
        if op.id is None and op.key is None:
            gone = 0
            while some := [*self._all(Which(op.namespace, deep=True), None)]:
                for fact in some:
                    self._items.delete(fact.namespace, fact.id)
                gone += len(some)
            return gone
        found = self._get(op.namespace, None, op.id, op.key)
        if found is None:
            return 0
        self._items.delete(found.namespace, found.id)
        return 1

    # --- out --------------------------------------------------------------------------------------

    def _get(
        self, space: Namespace, now: float | None, id: str | None, key: str | None
    ) -> Fact | None:
        """A fact by id or key; `now` None: one that ran out, too."""
        for each in (id,) if id is not None else ids_of(space, key, b""):
            item = self._items.get(space, each)
            fact = None if item is None else _fact(item)
            if fact is not None and (id is not None or fact.key == key):
                return None if _gone(fact, now) else fact
        return None

    def _get_same(self, space: Namespace, now: float, told: Told) -> Fact | None:
        for each in ids_of(space, None, told.same):
            fact = self._get(space, now, each, None)
            if fact is not None and sameness(fact.text) == told.same:
                return fact
        return None

    def _past_of(self, op: ops.PastOf) -> list[Past]:
        fact = self._get(op.namespace, op.now, op.id, None)
        return [] if fact is None else [Past(**each) for each in reversed(self._past(fact))]

    def _all(self, which: Which, now: float | None) -> Iterator[Fact]:
        for start in range(0, LOOKED_AT, _PAGE):
            page = self._items.search(which.namespace, limit=_PAGE, offset=start)
            yield from self._meant(which, page, now)
            if len(page) < _PAGE:
                return

    def _meant(self, which: Which, items: Sequence[Any], now: float | None) -> Iterator[Fact]:
        for item in items:
            fact = _fact(item)
            here = which.deep or fact.namespace == which.namespace
            kind = which.kind is None or fact.kind == which.kind
            if here and kind and not _gone(fact, now) and holds(which.where, fact.value):
                yield fact

    def _list(self, op: ops.ListFacts) -> tuple[list[Fact], int]:
        found = sorted(self._all(op.which, op.now), key=lambda fact: -fact.updated_at)
        return found[op.after : op.after + op.limit], len(found)

    def _find(self, op: ops.FindFacts) -> list[Fact]:
        lists = [(1.0, ranked(list(self._all(op.which, op.now)), op.asked, op.limit))]
        if self._semantic:
            hits = self._items.search(op.which.namespace, query=op.asked.text, limit=_PAGE)
            lists.append((MEANING, list(self._meant(op.which, hits, op.now))))
        both = fused(lists, lambda fact: (fact.namespace, fact.id))
        return [replace(fact, score=points) for fact, points in both][: op.limit]


def _as_told(fact: Fact, told: Told, now: float) -> Fact:
    return replace(
        fact,
        text=told.text,
        key=told.key,
        kind=told.kind,
        source=told.source,
        metadata=dict(told.metadata),
        expires_at=told.expires_at,
        updated_at=now,
    )


def _fact(item: Any) -> Fact:
    value, space = item.value, tuple(item.namespace)
    if value.get(_MARK) != 1:
        text = "\n".join(texts_in(value))[:FACT_CHARS]
        dates = item.created_at.timestamp(), item.updated_at.timestamp()
        return Fact(
            item.key,
            space,
            text,
            metadata=value,
            item=True,
            created_at=dates[0],
            updated_at=dates[1],
        )
    named = {name: each for name, each in value.items() if name not in (_MARK, "past")}
    return Fact(id=item.key, namespace=space, **named)


def _longer(one: float | None, other: float | None) -> float | None:
    """The later end of two lives; one without an end is the latest."""
    return None if one is None or other is None else max(one, other)


def _gone(fact: Fact, now: float | None) -> bool:
    return now is not None and fact.expires_at is not None and fact.expires_at <= now
