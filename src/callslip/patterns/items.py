"""Memory as a store of items: a JSON object under a key in a namespace. Flows, without a framework.

An item is a fact whose metadata is the whole of its value, and whose text is what of the value is to
be searched. A fact that was told is an item, too: its key is its key, or else its id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from callslip.limits import FACT_CHARS, FACT_NAME_CHARS
from callslip.patterns import remembering
from callslip.patterns.remembering import Shelf
from callslip.stacks.memoryops import (
    Fact,
    ForgetFacts,
    GetFact,
    ListFacts,
    Namespace,
    Namespaces,
    RefreshFacts,
    Remember,
    Told,
    Which,
)
from callslip.stacks.ops import Flow, Secret, do
from callslip.stacks.words import sameness, words_of

__all__ = ["Items", "texts_in"]

TextAt = Callable[[Any, str], list[str]]
_VALUE_CHARS = 1_000_000


class Items:
    """The flows of one store of items. Every namespace given is below the shelf's."""

    def __init__(self, shelf: Shelf, fields: Sequence[str], text_at: TextAt) -> None:
        self.shelf = shelf
        self._fields = list(fields)
        self._text_at = text_at

    def find(self, namespace: Namespace, key: str) -> Flow[Fact | None]:
        """The item under a key."""
        where, now = (*self.shelf.namespace, *namespace), self.shelf.now()
        fact = yield from do(GetFact(where, now, key=key))
        # What was remembered without a key goes by its id. Asked of ids alone: the audit tells those.
        if fact is None and key.startswith("mem_"):
            fact = yield from do(GetFact(where, now, id=key))
        return fact

    def get(self, namespace: Namespace, key: str, refresh: bool) -> Flow[Fact | None]:
        """The item under a key; `refresh` prolongs its life."""
        fact = yield from self.find(namespace, key)
        if fact is not None and refresh:
            yield from self._refresh([fact])
        return fact

    def search(
        self,
        prefix: Namespace,
        query: str | None,
        where: Mapping[str, Any] | None,
        offset: int,
        limit: int,
        refresh: bool,
    ) -> Flow[Sequence[Fact]]:
        """Items of a namespace and below: those that answer a query best first, or else all, the
        last written first."""
        space = (*self.shelf.namespace, *prefix)
        which = Which(space, deep=True, where=remembering.checked(where))
        found: Sequence[Fact]
        if query:
            best, _ = yield from remembering.recall(self.shelf, query, offset + limit, which)
            found = best[offset:]
        else:
            found, _ = yield from do(ListFacts(which, offset, limit, self.shelf.now()))
        if refresh:
            yield from self._refresh(found)
        return found

    def _refresh(self, facts: Sequence[Fact]) -> Flow[None]:
        names = [(fact.namespace, fact.id) for fact in facts if fact.expires_at is not None]
        if names:
            yield from do(RefreshFacts(names, self.shelf.now()))

    def told(
        self,
        key: str,
        value: Mapping[str, Any],
        fields: Sequence[str] | bool | None,
        ttl: float | None,
    ) -> Told:
        """An item as `put` takes it; raises for what may not be put, and writes nothing. `fields`
        says what of it is searched: None as the store does, False nothing. `ttl` is in seconds,
        and counts from each read."""
        shelf = self.shelf
        told = self._told(remembering.plain(shelf, value, _VALUE_CHARS), key, fields)
        if ttl is not None:
            told = replace(told, expires_at=shelf.now() + ttl, ttl=ttl)
        return told

    def put(
        self, namespace: Namespace, key: str, told: Told, subjects: Sequence[str] = ()
    ) -> Flow[None]:
        """Put an item, in place of what is under its key; `subjects` are whom it is about."""
        shelf, space = self.shelf, (*self.shelf.namespace, *namespace)
        before = yield from self.find(namespace, key)
        if before is not None and before.key is None:
            yield from do(ForgetFacts(space, id=before.id))
        secret = yield from do(Secret(space[0] if space else ""))
        ids = remembering.ids_of(space, told.key, told.same, secret)
        did = yield from do(Remember(space, told, ids, shelf.now(), merge=False, subjects=subjects))
        if told.words:
            yield from remembering.kept_near(shelf, did)
        yield from remembering.sweep(shelf)

    def delete(self, namespace: Namespace, key: str) -> Flow[None]:
        """Delete the item under a key, if there is one."""
        fact = yield from self.find(namespace, key)
        if fact is not None:
            yield from do(ForgetFacts(fact.namespace, id=fact.id))

    def namespaces(self) -> Flow[list[Namespace]]:
        """Every namespace that holds items."""
        root = self.shelf.namespace
        found = yield from do(Namespaces(root, (), None, 2**31, 0, self.shelf.now()))
        return [names[len(root) :] for names in found if len(names) > len(root)]

    def _told(self, value: dict[str, Any], key: str, fields: Sequence[str] | bool | None) -> Told:
        paths = self._fields if fields is None else fields if isinstance(fields, list) else []
        texts = [
            text
            for path in paths
            for text in (texts_in(value) if path == "$" else self._text_at(value, path))
        ]
        text = "\n".join(texts)[:FACT_CHARS]
        kind = value.get("kind")
        named = kind if isinstance(kind, str) and len(kind) <= FACT_NAME_CHARS else ""
        own = value.get("text")  # a value that has a text says itself what it is to be shown as
        shown = own if isinstance(own, str) and own else text or json.dumps(value)
        same = sameness(json.dumps(value, sort_keys=True))
        words = tuple(words_of(text))
        return Told(shown[:FACT_CHARS], words, same, key, named, metadata=value, item=True)


def texts_in(value: Any) -> list[str]:
    """Every text and number in a JSON value, in order."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts_in(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts_in(each)]
    return [str(value)] if isinstance(value, str | int | float) else []
