"""Memory: each operation sealed on its way in, and its answer opened; what the index inside cannot
judge of sealed facts is judged here, of opened ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from callslip.errors import PayloadDamaged
from callslip.stacks import memoryops
from callslip.stacks.index.memory_rows import namespaces_for
from callslip.stacks.index.memory_search import alike_to, halves_of, is_meant
from callslip.stacks.index.memory_vectors import kept
from callslip.stacks.index.sealed import facts
from callslip.stacks.index.sealed.cipher import Unopened
from callslip.stacks.index.sealed.holders import Tenant
from callslip.stacks.index.sealed.step import Names, Step
from callslip.stacks.memoryops import Fact, Namespace, Which
from callslip.stacks.ops import Runs
from callslip.stacks.ranking import in_order
from callslip.stacks.words import COMMON, Asked, forms, words_of

_Place = tuple[Tenant, Which, bool]
_BATCH = 500
_SPELT_FACTS = 1_000
"""The latest facts whose words a misspelt one is compared with."""

_MOST = 2**31
_FOUND_MOST = 8_192


class Recalling:
    """The steps of `callslip.stacks.memoryops`, and what takes more than one."""

    def __init__(self, names: Names, inner: Runs) -> None:
        self._names = names
        self._ring = names.ring
        self._inner = inner
        self.whole: dict[type, Callable[[Any], Any]] = {
            memoryops.ListFacts: self._list,
            memoryops.FindFacts: self._find,
            memoryops.Namespaces: self._namespaces,
            memoryops.NearFacts: self._near,
            memoryops.Vectorless: self._vectorless,
        }
        self.steps: dict[type, Callable[[Any], Step]] = {
            memoryops.Remember: self._remember,
            memoryops.Revise: self._revise,
            memoryops.GetFact: self._get,
            memoryops.PastOf: self._past,
            memoryops.ForgetFacts: self._forget,
            memoryops.RefreshFacts: self._refresh,
            memoryops.SweepFacts: Step,
            # The vector of a sentence of ours tells nothing of anybody's.
            memoryops.KnowModel: Step,
            memoryops.AddVectors: self._add_vectors,
            memoryops.DropVectors: self._drop_vectors,
        }

    # --- one fact -----------------------------------------------------------------------------------

    def _remember(self, op: memoryops.Remember) -> Step:
        tenant = self._ring.tenant(_first(op.namespace))
        namespace = facts.seal_namespace(op.namespace, tenant)
        sealed = replace(
            op,
            namespace=namespace,
            told=facts.seal_told(op.told, namespace, tenant),
            subjects=[tenant.names.token(each) for each in op.subjects],
        )
        return Step(sealed, lambda answer: _remembered(answer, op.namespace, tenant), tenant)

    def _revise(self, op: memoryops.Revise) -> Step:
        tenant = self._names.there(_first(op.namespace))
        namespace = facts.seal_namespace(op.namespace, tenant)
        sealed = replace(op, namespace=namespace, told=facts.seal_told(op.told, namespace, tenant))
        return Step(sealed, lambda answer: _remembered(answer, op.namespace, tenant))

    def _get(self, op: memoryops.GetFact) -> Step:
        tenant = self._names.there(_first(op.namespace))
        return Step(
            _named(op, tenant),
            lambda answer: None if answer is None else _fact(answer, op.namespace, tenant),
        )

    def _past(self, op: memoryops.PastOf) -> Step:
        tenant = self._names.there(_first(op.namespace))
        namespace = facts.seal_namespace(op.namespace, tenant)

        def opened(answer: Sequence[memoryops.Past]) -> list[memoryops.Past]:
            try:
                return [facts.open_past(past, namespace, tenant) for past in answer]
            except Unopened:
                raise _changed() from None

        return Step(replace(op, namespace=namespace), opened)

    def _forget(self, op: memoryops.ForgetFacts) -> Step:
        return Step(_named(op, self._names.there(_first(op.namespace))))

    def _refresh(self, op: memoryops.RefreshFacts) -> Step:
        sealed = [
            (facts.seal_namespace(namespace, self._names.there(_first(namespace))), id)
            for namespace, id in op.facts
        ]
        return Step(replace(op, facts=sealed))

    # --- vectors ------------------------------------------------------------------------------------

    def _add_vectors(self, op: memoryops.AddVectors) -> Step:
        sealed = []
        for namespace, id, version, vector in op.vectors:
            tenant = self._names.there(_first(namespace))
            box = tenant.vectors.seal(kept(vector), b"vector")
            sealed.append((facts.seal_namespace(namespace, tenant), id, version, box))
        return Step(replace(op, vectors=sealed))

    def _drop_vectors(self, op: memoryops.DropVectors) -> Step:
        tenant = self._names.there(_first(op.namespace))
        return Step(replace(op, namespace=facts.seal_namespace(op.namespace, tenant)))

    def _near(self, op: memoryops.NearFacts) -> Sequence[Fact]:
        found: list[Fact] = []
        for tenant, which, exact in self._places(op.which):
            limit = op.limit if exact else max(op.limit, _BATCH)
            inner = replace(op, which=which, limit=limit, opened=_opens(tenant))
            answer = [self._opened(fact, tenant) for fact in self._inner.run(inner)]
            found += [fact for fact in answer if exact or is_meant(op.which, fact)]
        return sorted(found, key=lambda fact: -(fact.score or 0.0))[: op.limit]

    def _vectorless(self, op: memoryops.Vectorless) -> Sequence[tuple[Namespace, str, int, str]]:
        found = []
        for tenant, which, _ in self._places(op.which):
            for namespace, id, version, text in self._inner.run(replace(op, which=which)):
                fact = Fact(id, namespace, text, version=version)
                opened = self._opened(fact, tenant)
                found.append((opened.namespace, id, version, opened.text))
        return found[: op.limit]

    # --- many ---------------------------------------------------------------------------------------

    def _list(self, op: memoryops.ListFacts) -> tuple[Sequence[Fact], int]:
        places = list(self._places(op.which))
        if len(places) == 1:
            tenant, which, exact = places[0]
            if exact:
                inner = memoryops.ListFacts(which, op.after, op.limit, op.now)
                found, total = self._inner.run(inner)
                return [self._opened(fact, tenant) for fact in found], total
        kept = [
            fact
            for tenant, which, _ in places
            for fact in self._all(which, tenant, op.now)
            if is_meant(op.which, fact)
        ]
        if len(places) > 1:
            kept.sort(key=lambda fact: -fact.updated_at)
        return kept[op.after : op.after + op.limit] if op.limit > 0 else [], len(kept)

    def _all(self, which: Which, tenant: Tenant, now: float) -> Iterator[Fact]:
        after = 0
        while True:
            found, _ = self._inner.run(memoryops.ListFacts(which, after, _BATCH, now))
            yield from (self._opened(fact, tenant) for fact in found)
            after += len(found)
            if len(found) < _BATCH:
                return

    def _find(self, op: memoryops.FindFacts) -> Sequence[Fact]:
        found: list[Fact] = []
        for place in self._places(op.which):
            meant = self._found(op, place, op.asked)
            respelt = self._respelt(op, place, meant)
            found += meant if respelt is None else self._found(op, place, respelt)
        return in_order(found, op.asked)[: op.limit]

    def _found(self, op: memoryops.FindFacts, place: _Place, asked: Asked) -> list[Fact]:
        tenant, which, exact = place
        blind = facts.seal_asked(asked, tenant)
        # More than asked for: which of those that answer equally well come first is told by what
        # they say.
        limit = 2 * op.limit + 10
        while True:
            answer = self._inner.run(memoryops.FindFacts(which, blind, limit, op.now))
            meant = [
                fact
                for fact in (self._opened(each, tenant) for each in answer)
                if exact or is_meant(op.which, fact)
            ]
            enough = len(meant) >= op.limit or len(answer) < limit
            if enough or limit >= _FOUND_MOST:
                return meant
            limit *= 4

    def _respelt(
        self, op: memoryops.FindFacts, place: _Place, found: Sequence[Fact]
    ) -> Asked | None:
        """The query with what stands for its words that no fact has; None where all are known.

        Blind words tell nothing of how they are spelt: the latest facts are opened for it."""
        seen = Vocabulary(found)
        asked = op.asked
        tenant, which, _ = place
        every = replace(which, kind=None, where={})
        missing = [
            word
            for word in asked.words
            if word not in COMMON and word not in seen.words and not self._has(op, place, word)
        ]
        if not missing:
            return None
        listed, _ = self._inner.run(memoryops.ListFacts(every, 0, _SPELT_FACTS, op.now))
        known = Vocabulary([self._opened(fact, tenant) for fact in listed])
        whole = halves_of(asked, known.words)
        shares = {
            other: share
            for word in missing
            if word not in known.words and word not in whole
            for other, share in alike_to(known, word)
            if other not in asked.words
        }
        if not shares:
            return None
        return facts.Blind(
            words=(*asked.words, *shares),
            joined=asked.joined,
            halves=asked.halves,
            text=asked.text,
            weights={**{word: asked.weight(word) for word in asked.words}, **shares},
        )

    def _has(self, op: memoryops.FindFacts, place: _Place, word: str) -> bool:
        """Whether any fact of a place has that word."""
        tenant, which, _ = place
        every = replace(which, kind=None, where={})
        alone = facts.seal_asked(Asked((word,), ()), tenant)
        return bool(self._inner.run(memoryops.FindFacts(every, alone, 1, op.now)))

    def _places(self, which: Which) -> Iterator[_Place]:
        """Where to look, by tenant, and whether all that is found there is meant."""
        if which.namespace or not which.deep:
            yield self._place(which, self._names.there(_first(which.namespace)))
            return
        yield self._place(replace(which, deep=False), self._names.there(""))
        for (token,) in self._inner.run(memoryops.Namespaces((), (), 1, _MOST, 0, 0.0)):
            tenant = self._names.of_token(token)
            if tenant is not None:
                yield self._place(replace(which, namespace=(tenant.name,)), tenant)

    def _place(self, which: Which, tenant: Tenant) -> _Place:
        where, exact = facts.seal_where(which.where, tenant)
        sealed = replace(
            which,
            namespace=facts.seal_namespace(which.namespace, tenant),
            kind=None if which.kind is None else facts.seal_kind(which.kind, tenant),
            where=where,
        )
        return tenant, sealed, exact

    def _opened(self, fact: Fact, tenant: Tenant) -> Fact:
        try:
            return _fact(fact, facts.open_namespace(fact.namespace, tenant), tenant)
        except Unopened:
            raise _changed() from None

    def _namespaces(self, op: memoryops.Namespaces) -> Sequence[Namespace]:
        every = memoryops.Namespaces((), (), None, _MOST, 0, op.now)
        return namespaces_for(op, self._open_namespaces(self._inner.run(every)))

    def _open_namespaces(self, every: Sequence[Namespace]) -> Iterator[Namespace]:
        for sealed in every:
            tenant = self._names.of_token(sealed[0]) if sealed else self._names.there("")
            if tenant is None:
                continue
            try:
                yield facts.open_namespace(sealed, tenant)
            except Unopened:
                raise _changed() from None


class Vocabulary:
    """The words of opened facts."""

    def __init__(self, found: Sequence[Fact]) -> None:
        told = (" ".join((fact.text, fact.key or "", fact.kind)) for fact in found)
        self.words = Counter(word for text in told for word in set(words_of(text)))

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        return {word: self.words[word] for word in words if word in self.words}

    def spelt_alike(self, word: str) -> Sequence[str]:
        asked = set(forms(word))
        return [other for other in self.words if asked.intersection(forms(other))]


def _opens(tenant: Tenant) -> Callable[[bytes], bytes]:
    def opened(sealed: bytes) -> bytes:
        try:
            return tenant.vectors.open(sealed, b"vector")
        except Unopened:
            return b""  # of no length that a vector has: it is passed by

    return opened


def _first(namespace: Namespace) -> str:
    return namespace[0] if namespace else ""


def _named(op: Any, tenant: Tenant) -> Any:
    key = None if op.key is None else facts.seal_key(op.key, tenant)
    return replace(op, namespace=facts.seal_namespace(op.namespace, tenant), key=key)


def _remembered(
    answer: memoryops.Remembered | None, namespace: Namespace, tenant: Tenant
) -> memoryops.Remembered | None:
    if answer is None:
        return None
    before = None if answer.before is None else _fact(answer.before, namespace, tenant)
    return replace(answer, fact=_fact(answer.fact, namespace, tenant), before=before)


def _fact(fact: Fact, namespace: Namespace, tenant: Tenant) -> Fact:
    try:
        return facts.open_fact(fact, namespace, tenant)
    except Unopened:
        raise _changed() from None


def _changed() -> PayloadDamaged:
    return PayloadDamaged("a fact does not open with its key: it was changed, or is damaged")
