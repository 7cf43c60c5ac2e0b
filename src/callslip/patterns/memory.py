"""`Memory`: durable facts that cost a window nothing until they are looked up.

::

    memory = Memory(store, ("acme", "ana"))
    memory.remember("Ana wants conflicts side by side", key="conflict view", kind="preference")
    print(memory.recall("how to show conflicts?"))     # a week later, in another process
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from callslip import limits
from callslip.errors import SettingsError
from callslip.governing import subjects_of
from callslip.patterns import remembering
from callslip.patterns.credentials import refuse_credentials
from callslip.patterns.embedding import Embedding
from callslip.patterns.remembering import Expires, Said, Screen, Shelf
from callslip.stacks.memoryops import (
    Fact,
    ForgetFacts,
    GetFact,
    ListFacts,
    Past,
    PastOf,
    Remembered,
    Which,
)
from callslip.stacks.ops import Flow, do
from callslip.window.remembered import Note, empty, facts

if TYPE_CHECKING:
    from callslip.patterns.memory_tools import MemoryTool

__all__ = ["Fact", "Facts", "Memory", "Past", "Remembered"]

T = TypeVar("T")
_UNCHANGED: Any = object()


class Keeps(Protocol):
    """What `Memory` needs of a store: a `ResultStore`, or `callslip.adapters.langgraph_backend`."""

    def run_flow(self, flow: Flow[T]) -> T: ...

    def arun_flow(self, flow: Flow[T]) -> Awaitable[T]: ...

    def now(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Facts:
    """One reply of `recall` or `list`. `str(facts)` is what a model sees: at most
    `limits.RECALL_CHARS` characters, each fact with its id, age and source, framed as data."""

    facts: tuple[Fact, ...]
    total: int
    """How many facts the namespace holds; of `list`, how many are meant."""
    next: dict[str, int] | None
    """The keyword arguments of `list` that continue, or None."""
    rendered: str = field(repr=False)

    def __str__(self) -> str:
        return self.rendered

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts)

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def text(self) -> str:
        """The texts alone, one a line."""
        return "\n".join(fact.text for fact in self.facts)


class Memory:
    """The facts of one namespace, over all sessions. Cheap to make; for many threads and tasks.

    namespace   whose facts: a path of words, the tenant first ("" or "-" where there is none), then
                the user, then what you like.
                Nothing of another namespace is ever seen. `ResultStore.delete(tenant=, user=)`
                deletes what is remembered in and below the namespace of that name, too
    embed       also find by meaning: a function of a list of texts that gives a vector for each, an
                object with `embed_documents`, or ``"wordllama"``. Without, words decide
    screen      a function of text, applied to all that is remembered: it gives the text to keep,
                changed or not, or None, or raises `ValueError`, to refuse it. The default refuses
                obvious credentials; it comes after the store's `redact=`
    most_facts, most_bytes   a quota of the namespace: beyond it the facts that were told or changed
                longest ago go
    subject     whom what is remembered here is about, where a `remember` does not say otherwise

    Raises `SettingsError`; every verb raises `StoreUnavailable` while the store is away.
    """

    def __init__(
        self,
        store: Keeps,
        namespace: Sequence[str] | str,
        *,
        embed: Any = None,
        screen: Screen | None = refuse_credentials,
        most_facts: int | None = None,
        most_bytes: int | None = None,
        subject: str | Sequence[str] | None = None,
    ) -> None:
        self.store = store
        self.subjects = subjects_of(subject)
        self.namespace = (namespace,) if isinstance(namespace, str) else tuple(namespace)
        _check(self.namespace, most_facts, most_bytes)
        if self.namespace[0] == "-" and len(self.namespace) > 1 and hasattr(store, "settings"):
            # What a hold or a deletion of a user without a tenant is of.
            self.namespace = ("", *self.namespace[1:])
        redact = getattr(getattr(store, "settings", None), "redact", None)
        self._shelf = Shelf(
            self.namespace,
            store.now,
            tuple(each for each in (redact, screen) if each is not None),
            most_facts,
            most_bytes,
            None if embed is None else Embedding(embed),
        )

    def __repr__(self) -> str:
        return f"Memory({self.namespace!r})"

    # --- in ---------------------------------------------------------------------------------------

    def remember(
        self,
        text: str,
        key: str | None = None,
        kind: str | None = None,
        source: str | None = None,
        expires: Expires = None,
        metadata: Mapping[str, Any] | None = None,
        subject: str | Sequence[str] | None = None,
    ) -> Remembered:
        """Remember a fact: a sentence or a few, at most `limits.FACT_CHARS` characters.

        With a `key` (what it is about) there is one fact for each: one that says something else
        supersedes it, and the old one stays in its `history`. What says the same again, but for
        case, blanks, punctuation and articles, is merged: its count and date are raised.
        `expires`: seconds, a `timedelta`, or a `datetime`. `metadata`: what JSON can hold. `subject`:
        whom it is about, for `store.delete(subject=…)`; the memory's by default.

        Raises `FactRefused` for what `screen` refuses.
        """
        about = self.subjects if subject is None else subjects_of(subject)
        said = Said(text, key, kind or "", source or "", metadata, expires, about)
        return self.store.run_flow(remembering.remember(self._shelf, said))

    async def aremember(
        self,
        text: str,
        key: str | None = None,
        kind: str | None = None,
        source: str | None = None,
        expires: Expires = None,
        metadata: Mapping[str, Any] | None = None,
        subject: str | Sequence[str] | None = None,
    ) -> Remembered:
        """`remember`, off the event loop."""
        about = self.subjects if subject is None else subjects_of(subject)
        said = Said(text, key, kind or "", source or "", metadata, expires, about)
        return await self.store.arun_flow(remembering.remember(self._shelf, said))

    def update(
        self,
        id: str,
        text: str = _UNCHANGED,
        *,
        kind: str = _UNCHANGED,
        source: str = _UNCHANGED,
        expires: Expires = _UNCHANGED,
        metadata: Mapping[str, Any] = _UNCHANGED,
    ) -> Remembered:
        """Change what is given of a fact; what it said goes into its `history`. Its id and key stay.

        Raises `UnknownFact`, and what `remember` raises.
        """
        changes = _given(text=text, kind=kind, source=source, expires=expires, metadata=metadata)
        return self.store.run_flow(remembering.update(self._shelf, id, changes))

    async def aupdate(
        self,
        id: str,
        text: str = _UNCHANGED,
        *,
        kind: str = _UNCHANGED,
        source: str = _UNCHANGED,
        expires: Expires = _UNCHANGED,
        metadata: Mapping[str, Any] = _UNCHANGED,
    ) -> Remembered:
        """`update`, off the event loop."""
        changes = _given(text=text, kind=kind, source=source, expires=expires, metadata=metadata)
        return await self.store.arun_flow(remembering.update(self._shelf, id, changes))

    def forget(self, id: str | None = None, *, key: str | None = None) -> bool:
        """Delete a fact for good, by id or key, its history too. False if there is none."""
        return self.store.run_flow(self._forget(id, key)) > 0

    async def aforget(self, id: str | None = None, *, key: str | None = None) -> bool:
        """`forget`, off the event loop."""
        return await self.store.arun_flow(self._forget(id, key)) > 0

    def _forget(self, id: str | None, key: str | None) -> Flow[int]:
        if (id is None) == (key is None):
            raise SettingsError("forget: give an id or a key; clear() forgets all")
        return do(ForgetFacts(self.namespace, id=id, key=key))

    def clear(self) -> int:
        """Delete every fact of this namespace, and of those below; answer how many."""
        return self.store.run_flow(do(ForgetFacts(self.namespace)))

    async def aclear(self) -> int:
        """`clear`, off the event loop."""
        return await self.store.arun_flow(do(ForgetFacts(self.namespace)))

    # --- out --------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        k: int = limits.RECALL_DEFAULT,
        kind: str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Facts:
        """The facts that answer a query best, `k` of them at the most. Any text is a query.

        By words: identifiers whole and in parts, Chinese and Japanese, misspelt words; with `embed`
        by meaning, too. Of equally good ones a kind that the query names comes first, then the last
        told. `where` holds for `metadata`: ``{"project": "mdm", "year": {"$gte": 2026}}``, with
        `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in` and `$exists`.
        """
        return self.store.run_flow(self._recall(query, k, kind, where))

    async def arecall(
        self,
        query: str,
        k: int = limits.RECALL_DEFAULT,
        kind: str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Facts:
        """`recall`, off the event loop."""
        return await self.store.arun_flow(self._recall(query, k, kind, where))

    def _recall(
        self, query: str, k: int, kind: str | None, where: Mapping[str, Any] | None
    ) -> Flow[Facts]:
        which = Which(self.namespace, kind=kind, where=remembering.checked(where))
        most = max(min(k, limits.RECALL_CAP), 1)
        found, total = yield from remembering.recall(self._shelf, query, most, which)
        if found:
            shown = facts(_notes(found), self.store.now(), of=total, about=query)
        else:
            shown = empty(query, total, kind or "")
        return Facts(tuple(found), total, None, shown)

    def get(self, id: str | None = None, *, key: str | None = None) -> Fact | None:
        """A fact by id or key; None if there is none."""
        return self.store.run_flow(do(self._one(id, key)))

    async def aget(self, id: str | None = None, *, key: str | None = None) -> Fact | None:
        """`get`, off the event loop."""
        return await self.store.arun_flow(do(self._one(id, key)))

    def _one(self, id: str | None, key: str | None) -> GetFact:
        if (id is None) == (key is None):
            raise SettingsError("get: give an id or a key")
        return GetFact(self.namespace, self.store.now(), id=id, key=key)

    def history(self, id: str) -> Sequence[Past]:
        """What a fact said before, newest first; the last `limits.FACT_VERSIONS`."""
        return self.store.run_flow(do(PastOf(self.namespace, id, self.store.now())))

    async def ahistory(self, id: str) -> Sequence[Past]:
        """`history`, off the event loop."""
        return await self.store.arun_flow(do(PastOf(self.namespace, id, self.store.now())))

    def list(
        self,
        kind: str | None = None,
        where: Mapping[str, Any] | None = None,
        after: int = 0,
        limit: int = limits.LIST_ITEMS,
    ) -> Facts:
        """A page of all facts, the last told first: to review and prune."""
        return self.store.run_flow(self._list(kind, where, after, limit))

    async def alist(
        self,
        kind: str | None = None,
        where: Mapping[str, Any] | None = None,
        after: int = 0,
        limit: int = limits.LIST_ITEMS,
    ) -> Facts:
        """`list`, off the event loop."""
        return await self.store.arun_flow(self._list(kind, where, after, limit))

    def _list(
        self, kind: str | None, where: Mapping[str, Any] | None, after: int, limit: int
    ) -> Flow[Facts]:
        which = Which(self.namespace, kind=kind, where=remembering.checked(where))
        after, limit, now = max(after, 0), max(limit, 0), self.store.now()
        found, total = yield from do(ListFacts(which, after, limit, now))
        end = after + len(found)
        following = {"after": end} if found and end < total else None
        if found:
            shown = facts(_notes(found), now, of=total)
        else:
            shown = "Nothing is remembered." if not total else f"There are {total:,} facts."
        return Facts(tuple(found), total, following, shown)

    # --- with a model, and with vectors -----------------------------------------------------------

    def tools(self, source: str = "") -> Sequence[MemoryTool]:
        """`remember`, `recall` and `forget` for a model. `source` is noted with what it remembers:
        the conversation's name, for one."""
        from callslip.patterns.memory_tools import tools_for

        return tools_for(self, source)

    def rebuild(self) -> int:
        """Embed every fact that has no vector of this `embed`, and drop those of others; how many.

        Not needed after a change of `embed`: `recall` does some each time, and finds the others by
        their words meanwhile.
        """
        return self.store.run_flow(remembering.rebuild(self._shelf))

    async def arebuild(self) -> int:
        """`rebuild`, off the event loop."""
        return await self.store.arun_flow(remembering.rebuild(self._shelf))


def _notes(found: Sequence[Fact]) -> list[Note]:
    return [Note(f.id, f.text, f.updated_at, f.key or "", f.kind, f.source, f.count) for f in found]


def _given(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if value is not _UNCHANGED}


def _check(namespace: tuple[str, ...], most_facts: int | None, most_bytes: int | None) -> None:
    texts = all(isinstance(word, str) for word in namespace)
    sound = texts and all(namespace[1:]) and any(namespace)
    if not sound or any(len(word) > limits.FACT_NAME_CHARS for word in namespace):
        raise SettingsError(
            f'namespace={namespace!r}: give words, the tenant first: ("acme", "ana")'
        )
    for name, most in (("most_facts", most_facts), ("most_bytes", most_bytes)):
        if most is not None and most < 1:
            raise SettingsError(f"{name}={most!r}: give a number from 1, or None")
