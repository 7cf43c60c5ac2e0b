"""What telling a fact again makes of it, whatever index keeps it. Pure."""

from __future__ import annotations

import math
from dataclasses import replace

from callslip.stacks.index.memory_rows import Row, to_json
from callslip.stacks.index.rows import to_blob
from callslip.stacks.memoryops import Told


def alike(found: Row, told: Told) -> bool:
    """Whether what is told says the same as the fact that was found."""
    if told.item or found.fact.item:
        fact = found.fact
        parts = (fact.item, fact.text, fact.kind, dict(fact.metadata))
        return parts == (told.item, told.text, told.kind, dict(told.metadata))
    return found.same == told.same


def merged(found: Row, told: Told) -> Told:
    """The fact as it is after a repeat, as `Remember` says."""
    fact = found.fact
    if not told.item:
        lives = [(told.expires_at, told.ttl), (fact.expires_at, found.ttl)]
        expires_at, ttl = max(lives, key=lambda life: math.inf if life[0] is None else life[0])
        told = replace(
            told,
            text=fact.text,
            kind=told.kind or fact.kind,
            source=told.source or fact.source,
            metadata={**fact.metadata, **told.metadata},
            expires_at=expires_at,
            ttl=ttl,
        )
    return replace(told, key=fact.key if told.key is None else told.key)


def refiled(found: Row, kept: Told) -> bool:
    """Whether a repeated fact is found by another kind or by other fields than before."""
    fact = found.fact
    return (kept.kind, dict(kept.metadata)) != (fact.kind, dict(fact.metadata))


def loses(found: Row, kept: Told) -> bool:
    """Whether a repeated fact is not all that it said any more: under a legal hold that must stay,
    so it goes into the history."""
    fact = found.fact
    parts = (fact.text, fact.kind, fact.source, dict(fact.metadata))
    return parts != (kept.text, kept.kind, kept.source, dict(kept.metadata))


def unchanged(found: Row, told: Told) -> bool:
    """Whether a revised fact says the same in every part."""
    fact = found.fact
    parts = (fact.text, fact.kind, fact.source, dict(fact.metadata), fact.expires_at, found.ttl)
    return parts == (
        told.text,
        told.kind,
        told.source,
        dict(told.metadata),
        told.expires_at,
        told.ttl,
    )


def size_of(told: Told) -> int:
    """The bytes of a fact that a quota counts."""
    return len(to_blob(told.text)) + len(to_json(told.metadata))
