"""Facts of memory, sealed field by field with their tenant's key.

What is equal stays equal (AES-SIV): a key, a kind or a field can be looked up, and a fact that is told
twice is known. Words are blind: a keyed hash of each. The rest, comparisons of numbers and of text,
is done with opened facts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from callslip.stacks.index.sealed.cipher import Unopened, packed, to_bytes, to_token
from callslip.stacks.index.sealed.holders import Tenant
from callslip.stacks.memoryops import Fact, Namespace, Past, Told
from callslip.stacks.words import Asked

_WHOLE = "="
"""Beside the sealed fields of an item what stands for all of them; no token is called so."""

_BUILT_IN = frozenset({"text", "kind", "source"})


@dataclass(frozen=True, slots=True)
class Blind(Asked):
    """A query whose words are hashes, with what each of them counts."""

    weights: Mapping[str, float] = field(default_factory=dict)

    def weight(self, word: str) -> float:
        return self.weights.get(word, 1.0)


def seal_namespace(namespace: Namespace, tenant: Tenant) -> Namespace:
    """A namespace in tokens: its first word is the tenant's."""
    return (tenant.token, *map(tenant.names.token, namespace[1:])) if namespace else ()


def open_namespace(namespace: Namespace, tenant: Tenant) -> Namespace:
    """A namespace again. Raises `Unopened`."""
    return (tenant.name, *map(tenant.names.text, namespace[1:])) if namespace else ()


def seal_told(told: Told, namespace: Namespace, tenant: Tenant) -> Told:
    """What is told, as it is stored in a namespace, which is in tokens. Text and source, and the
    value of an item as a whole, are bound to it; what is looked up in several is not."""
    metadata = _seal_fields(told.metadata, tenant)
    if told.item:
        metadata[_WHOLE] = _whole(metadata, namespace, tenant)
    return replace(
        told,
        text=tenant.facts.token(told.text, _in(b"text", namespace)),
        words=tuple(map(tenant.word, told.words)),
        same=tenant.same(told.same),
        key=None if told.key is None else seal_key(told.key, tenant),
        kind=seal_kind(told.kind, tenant),
        source=tenant.facts.token(told.source, _in(b"source", namespace)),
        metadata=metadata,
    )


def seal_key(key: str, tenant: Tenant) -> str:
    """What a fact is about."""
    return tenant.facts.token(key, b"key")


def seal_kind(kind: str, tenant: Tenant) -> str:
    """The kind of a fact."""
    return tenant.facts.token(kind, b"kind")


def open_fact(fact: Fact, namespace: Namespace, tenant: Tenant) -> Fact:
    """A fact again. Raises `Unopened`."""
    facts, place = tenant.facts, seal_namespace(namespace, tenant)
    whole = fact.item or _WHOLE in fact.metadata
    if whole and fact.metadata.get(_WHOLE) != _whole(fact.metadata, place, tenant):
        raise Unopened
    return replace(
        fact,
        namespace=namespace,
        text=facts.text(fact.text, _in(b"text", place)),
        key=None if fact.key is None else facts.text(fact.key, b"key"),
        kind=facts.text(fact.kind, b"kind"),
        source=facts.text(fact.source, _in(b"source", place)),
        metadata=_open_fields(fact.metadata, tenant),
    )


def open_past(past: Past, place: Namespace, tenant: Tenant) -> Past:
    """What a fact said before, in a namespace in tokens. Raises `Unopened`."""
    facts = tenant.facts
    return replace(
        past,
        text=facts.text(past.text, _in(b"text", place)),
        kind=facts.text(past.kind, b"kind"),
        source=facts.text(past.source, _in(b"source", place)),
        metadata=_open_fields(past.metadata, tenant),
    )


def seal_asked(asked: Asked, tenant: Tenant) -> Blind:
    """A query as words that are hashes."""
    weights = {tenant.word(word): asked.weight(word) for word in (*asked.words, *asked.joined)}
    return Blind(
        words=tuple(map(tenant.word, asked.words)),
        joined=tuple(map(tenant.word, asked.joined)),
        halves=tuple((tenant.word(one), tenant.word(two)) for one, two in asked.halves),
        weights=weights,
    )


def seal_where(where: Mapping[str, Any], tenant: Tenant) -> tuple[dict[str, Any], bool]:
    """The conditions that hold for sealed fields as they do for clear ones, and whether that is all
    of them: only texts, true, false and null are equal exactly where they are sealed equally."""
    sealed = {
        _name(name, tenant): _value(name, wanted, tenant)
        for name, wanted in where.items()
        if (wanted is None or isinstance(wanted, str | bool))
        and name not in _BUILT_IN
        and "." not in name
    }
    return sealed, len(sealed) == len(where)


def _seal_fields(fields: Mapping[str, Any], tenant: Tenant) -> dict[str, str]:
    return {_name(name, tenant): _value(name, value, tenant) for name, value in fields.items()}


def _open_fields(fields: Mapping[str, Any], tenant: Tenant) -> dict[str, Any]:
    opened = {}
    for token, sealed in fields.items():
        if token == _WHOLE:
            continue
        name = tenant.facts.text(token, b"name")
        opened[name] = json.loads(tenant.facts.text(sealed, _about(name)))
    return opened


def _name(name: str, tenant: Tenant) -> str:
    return tenant.facts.token(name, b"name")


def _value(name: str, value: Any, tenant: Tenant) -> str:
    # Sorted, so that equal objects are sealed equally.
    told = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return tenant.facts.token(told, _about(name))


def _in(part: bytes, namespace: Namespace) -> bytes:
    return part + packed(*map(to_bytes, namespace))


def _whole(fields: Mapping[str, str], namespace: Namespace, tenant: Tenant) -> str:
    told = (f"{name} {fields[name]}" for name in sorted(fields) if name != _WHOLE)
    return to_token(tenant.same(packed(*map(to_bytes, (*namespace, "", *told)))))


def _about(name: str) -> bytes:
    return b"value " + name.encode("utf-8", "surrogatepass")
