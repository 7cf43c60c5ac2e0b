"""LangGraph: what is remembered, as a `BaseStore`, for `create_agent(store=…)` and graphs.

::

    facts = FactStore(ResultStore(), root=("acme",))
    facts.put(("ana", "preferences"), "format", {"text": "Ana likes tables"})
    facts.search(("ana",), query="how to present it?")

It is the same memory as `Memory(store, ("acme", "ana", "preferences"))`. See docs/memory.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise ImportError(
        "callslip.adapters.langgraph_store needs: pip install 'callslip[langchain]'"
    ) from error

from callslip.adapters.langchain_scope import subject_here
from callslip.patterns.credentials import refuse_credentials
from callslip.patterns.embedding import Embedding
from callslip.patterns.items import Items
from callslip.patterns.memory import Keeps
from callslip.patterns.remembering import Screen, Shelf, checked
from callslip.stacks.memoryops import Fact, Told
from callslip.stacks.ops import Flow

__all__ = ["FactStore"]


class FactStore(BaseStore):
    """A `BaseStore` over a `ResultStore`: durable, searched by words without any model.

    root     what comes before every namespace: the tenant, so that nobody looks beyond it
    embed    also search by meaning: as for `Memory`
    fields   what of a value is searched, as LangGraph's `index["fields"]`: by default all its texts
    ttl      LangGraph's `TTLConfig`; minutes. An item that ran out is gone for a reader at once
    screen   what may be put, as for `Memory`; raises `FactRefused`

    What is put in a run with a `subject_id` is about whom that run is.

    As in LangGraph's own stores, a batch reads what was there before its writes; refused, it writes
    nothing. Without a query the last written come first; with one, only what answers it.
    """

    supports_ttl = True

    def __init__(
        self,
        store: Keeps,
        *,
        root: Sequence[str] = (),
        embed: Any = None,
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
        screen: Screen | None = refuse_credentials,
    ) -> None:
        self.store = store
        self.ttl_config = ttl
        redact = getattr(getattr(store, "settings", None), "redact", None)
        screens = tuple(each for each in (redact, screen) if each is not None)
        embedding = None if embed is None else Embedding(embed)
        shelf = Shelf(tuple(root), store.now, screens, None, None, embedding, deep=True)
        at = lambda value, path: list(get_text_at_path(value, tokenize_path(path)))
        self._items = Items(shelf, fields, at)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations, and answer each in its place."""
        return self.store.run_flow(self._batch(list(ops), subject_here()))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, off the event loop."""
        return await self.store.arun_flow(self._batch(list(ops), subject_here()))

    def _batch(self, asked: list[Op], about: Sequence[str]) -> Flow[list[Result]]:
        results: list[Result] = [None] * len(asked)
        # All is checked first: a batch that raises has done nothing.
        writes: dict[tuple[tuple[str, ...], str], Told | None] = {}
        for op in asked:
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                writes[op.namespace, str(op.key)] = self._told(op)
            elif isinstance(op, SearchOp):
                checked(op.filter)
        for at, op in enumerate(asked):
            if not isinstance(op, PutOp):
                results[at] = yield from self._read(op)
        for (namespace, key), told in writes.items():
            if told is None:
                yield from self._items.delete(namespace, key)
            else:
                yield from self._items.put(namespace, key, told, about)
        return results

    def _told(self, op: PutOp) -> Told | None:
        if op.value is None:
            return None
        ttl = None if op.ttl is None else op.ttl * 60
        return self._items.told(str(op.key), op.value, op.index, ttl)

    def _read(self, op: GetOp | SearchOp | ListNamespacesOp) -> Flow[Result]:
        if isinstance(op, GetOp):
            fact = yield from self._items.get(op.namespace, str(op.key), op.refresh_ttl)
            return None if fact is None else Item(**self._parts(fact))
        if isinstance(op, SearchOp):
            facts = yield from self._items.search(
                op.namespace_prefix, op.query, op.filter, op.offset, op.limit, op.refresh_ttl
            )
            return [SearchItem(**self._parts(fact), score=fact.score) for fact in facts]
        under = yield from self._items.namespaces()
        meant = [n for n in under if all(_matches(n, c) for c in op.match_conditions or ())]
        return sorted({names[: op.max_depth] for names in meant})[op.offset : op.offset + op.limit]

    def _parts(self, fact: Fact) -> dict[str, Any]:
        return {
            "namespace": fact.namespace[len(self._items.shelf.namespace) :],
            "key": fact.id if fact.key is None else fact.key,
            "value": fact.value,
            "created_at": datetime.fromtimestamp(fact.created_at, UTC),
            "updated_at": datetime.fromtimestamp(fact.updated_at, UTC),
        }


def _matches(names: tuple[str, ...], condition: MatchCondition) -> bool:
    path, size = condition.path, len(condition.path)
    if size > len(names):
        return False
    part = names[:size] if condition.match_type == "prefix" else names[len(names) - size :]
    return all(wanted in ("*", word) for wanted, word in zip(path, part, strict=True))
