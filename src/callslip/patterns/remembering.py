"""The flows of memory: a fact in, facts out. Each is written once; `Memory` drives them."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from callslip import limits
from callslip.errors import FactRefused, SettingsError, UnknownFact
from callslip.patterns.embedding import Embedding
from callslip.stacks.memoryops import (
    AddVectors,
    DropVectors,
    Fact,
    FindFacts,
    GetFact,
    KnowModel,
    ListFacts,
    Namespace,
    NearFacts,
    Remember,
    Remembered,
    Revise,
    SweepFacts,
    Told,
    Vectorless,
    Which,
)
from callslip.stacks.ops import Flow, Secret, do
from callslip.stacks.ranking import MEANING, OPERATORS, fused
from callslip.stacks.words import asked, sameness, words_of

logger = logging.getLogger("callslip")

Screen = Callable[[str], str | None]
Expires = float | int | timedelta | datetime | None

_FUSED_FROM = 50
_LONGEST = 100_000_000_000
"""Seconds: 3,000 years, so that every expiry is a date."""


@dataclass(slots=True)
class Shelf:
    """What the flows of one `Memory` need, and what they found out about its embedding."""

    namespace: Namespace
    now: Callable[[], float]
    screens: tuple[Screen, ...]
    most_facts: int | None
    most_bytes: int | None
    embedding: Embedding | None
    model: int = 0
    """The number of the embedding; 0 before it is known."""
    complete: bool = False
    """Whether no fact was without a vector when that was last looked at."""
    deep: bool = False
    """Whether the namespaces below belong to it, too."""
    swept_at: float | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What a caller gives for a fact."""

    text: str
    key: str | None = None
    kind: str = ""
    source: str = ""
    metadata: Mapping[str, Any] | None = None
    expires: Expires = None
    subjects: tuple[str, ...] = ()


# --- in -------------------------------------------------------------------------------------------


def remember(shelf: Shelf, said: Said) -> Flow[Remembered]:
    """Remember a fact; raises `FactRefused`, `SettingsError`."""
    told = _told(shelf, said)
    secret = yield from do(Secret(shelf.namespace[0]))
    did = yield from do(
        Remember(
            shelf.namespace,
            told,
            ids_of(shelf.namespace, told.key, told.same, secret),
            shelf.now(),
            most_facts=shelf.most_facts,
            most_bytes=shelf.most_bytes,
            subjects=said.subjects,
        )
    )
    yield from kept_near(shelf, did)
    yield from sweep(shelf)
    return did


def sweep(shelf: Shelf) -> Flow[None]:
    """Delete a few facts that have run out, by the way and now and then."""
    now = shelf.now()
    if shelf.swept_at is None or not 0 <= now - shelf.swept_at < limits.SWEEP_EVERY_SECONDS:
        shelf.swept_at = now
        yield from do(SweepFacts(now, limits.SWEEP_ROWS))


def update(shelf: Shelf, id: str, changes: Mapping[str, Any]) -> Flow[Remembered]:
    """Change what is given; raises `UnknownFact` besides. A change that another one came before is
    made on top of that."""
    while True:
        fact = yield from do(GetFact(shelf.namespace, shelf.now(), id=id))
        if fact is None:
            raise UnknownFact(id)
        said = replace(Said(fact.text, fact.key, fact.kind, fact.source, fact.metadata), **changes)
        told = _told(shelf, said)
        if "expires" not in changes:
            told = replace(told, expires_at=fact.expires_at)
        op = Revise(shelf.namespace, id, told, shelf.now(), expect=fact.version)
        did = yield from do(op)
        if did is None:
            raise UnknownFact(id)
        if did.outcome == "repeated" or did.before is not None:
            yield from kept_near(shelf, did)
            return did


def _told(shelf: Shelf, said: Said) -> Told:
    if not isinstance(said.text, str) or not said.text.strip():
        raise SettingsError("text: give the fact as a sentence")
    text = _screened(shelf, said.text)
    named = {}
    for name in ("key", "kind", "source"):
        value = getattr(said, name)
        if value is not None and not isinstance(value, str):
            raise SettingsError(f"{name}={value!r}: give a string")
        if value and len(value) > limits.FACT_NAME_CHARS:
            raise SettingsError(f"{name}: at most {limits.FACT_NAME_CHARS} characters")
        named[name] = _screened(shelf, value) if value else value
    metadata = plain(shelf, said.metadata)
    if len(text) > limits.FACT_CHARS:
        raise SettingsError(
            f"text: {len(text):,} characters; a fact has {limits.FACT_CHARS:,} at the most, and "
            "what is longer is a result: session.put(…)"
        )
    words = [*words_of(text), *words_of(named["key"] or ""), *words_of(named["kind"] or "")]
    return Told(
        text,
        tuple(words),
        sameness(text),
        named["key"] or None,
        named["kind"] or "",
        named["source"] or "",
        metadata,
        expires_at(said.expires, shelf.now()),
    )


def _screened(shelf: Shelf, text: str) -> str:
    for screen in shelf.screens:
        try:
            kept = screen(text)
        except FactRefused:
            raise
        except ValueError as error:
            raise FactRefused(str(error)) from None
        if kept is None:
            raise FactRefused("something that must not be remembered")
        text = str(kept)
    return text


def plain(
    shelf: Shelf, metadata: Mapping[str, Any] | None, most: int = limits.FACT_METADATA_CHARS
) -> dict[str, Any]:
    """An object as JSON holds it, each of its texts screened."""
    if not metadata:
        return {}
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"metadata: give what JSON can hold ({error})") from None
    if len(text) > most:
        raise SettingsError(f"metadata: at most {most:,} characters of JSON")

    def screened(value: Any) -> Any:
        if isinstance(value, str):
            return _screened(shelf, value)
        if isinstance(value, list):
            return [screened(each) for each in value]
        if isinstance(value, dict):
            # With its name: "password" means nothing, and neither does what it is, alone.
            for name, each in value.items():
                if (
                    isinstance(each, str)
                    and _screened(shelf, f"{name}: {each}") != f"{name}: {each}"
                ):
                    value = {**value, name: _screened(shelf, each)}
            return {_screened(shelf, name): screened(each) for name, each in value.items()}
        return value

    found: dict[str, Any] = screened(json.loads(text))
    return found


def ids_of(namespace: Namespace, key: str | None, same: bytes, secret: bytes = b"") -> list[str]:
    """The ids of a fact, the shortest first: of its key, or of what it says. So the same fact told
    again in the same place has the same id, whoever tells it. `secret` is the tenant's, where what
    is stored is sealed: from an id nobody then learns what it is of."""
    about = ["key", key] if key is not None else ["text", same.hex()]
    line = json.dumps([namespace, about]).encode()
    name = hashlib.blake2b(line, digest_size=20, key=secret[:64]).hexdigest()
    return [f"mem_{name[:chars]}" for chars in (8, 12, 20, 40)]


def expires_at(expires: Expires, now: float) -> float | None:
    """When a fact runs out: in so many seconds, after a `timedelta`, or at a `datetime`."""
    if expires is None:
        return None
    if isinstance(expires, datetime):
        return expires.timestamp()
    if isinstance(expires, timedelta):
        expires = expires.total_seconds()
    if isinstance(expires, bool) or not isinstance(expires, int | float):
        raise SettingsError(f"expires={expires!r}: give seconds, a timedelta or a datetime")
    # No number is on either side of a comparison with nan. Later than any date is no time to run out.
    if not 0 < expires <= _LONGEST:
        raise SettingsError(
            f"expires={expires!r}: give more than 0 seconds, and at most {_LONGEST:,}; without "
            "expires a fact stays"
        )
    return now + expires


# --- out ------------------------------------------------------------------------------------------


def recall(shelf: Shelf, query: str, k: int, which: Which) -> Flow[tuple[list[Fact], int]]:
    """The facts that answer a query best, and how many there are in all."""
    if not isinstance(query, str):
        raise SettingsError(f"query={query!r}: give a string")
    words = asked(query)
    now = shelf.now()
    wanted = max(k, _FUSED_FROM) if shelf.embedding else k
    found = list((yield from do(FindFacts(which, words, wanted, now))))
    if shelf.embedding is not None and query.strip():
        near = yield from _near(shelf, query, which, wanted)
        if near:
            both = fused([(1.0, found), (MEANING, near)], lambda fact: (fact.namespace, fact.id))
            found = [replace(fact, score=points) for fact, points in both]
    _, total = yield from do(ListFacts(Which(which.namespace, which.deep), 0, 0, now))
    return found[:k], total


def _near(shelf: Shelf, query: str, which: Which, limit: int) -> Flow[list[Fact]]:
    """The facts that are near by their vectors; none where the embedding fails: words stand in."""
    assert shelf.embedding is not None
    try:
        yield from known(shelf)
        if not shelf.complete:
            yield from embed_some(shelf, limits.VECTORS_BY_THE_WAY)
        vector = shelf.embedding.query(query)
    except SettingsError:
        raise
    except Exception:
        logger.exception("embed= failed; recalled by words alone")
        return []
    return list((yield from do(NearFacts(which, shelf.model, vector, limit, shelf.now()))))


def checked(where: Mapping[str, Any] | None) -> dict[str, Any]:
    """Conditions on fields. Raises `SettingsError` for an operator that is not known."""
    for name, wanted in (where or {}).items():
        if isinstance(wanted, Mapping):
            odd = [each for each in wanted if str(each).startswith("$") and each not in OPERATORS]
            if odd or (
                any(str(each).startswith("$") for each in wanted)
                and any(each not in OPERATORS for each in wanted)
            ):
                raise SettingsError(
                    f"where={{{name!r}: …}}: the operators are {', '.join(sorted(OPERATORS))}"
                )
    return dict(where or {})


# --- vectors --------------------------------------------------------------------------------------


def known(shelf: Shelf) -> Flow[int]:
    """The number of this embedding, as the index knows it; found out once."""
    if not shelf.model:
        assert shelf.embedding is not None
        (probe,) = shelf.embedding.documents([limits.PROBE_TEXT])
        shelf.model = yield from do(KnowModel(probe))
    return shelf.model


def embed_some(shelf: Shelf, limit: int) -> Flow[int]:
    """Embed up to `limit` facts that have no vector of this embedding; answer how many."""
    assert shelf.embedding is not None
    model = yield from known(shelf)
    lacking = yield from do(
        Vectorless(Which(shelf.namespace, shelf.deep), model, limit, shelf.now())
    )
    shelf.complete = len(lacking) < limit
    if not lacking:
        return 0
    vectors = shelf.embedding.documents([text for *_, text in lacking])
    rows = [
        (namespace, id, version, vector)
        for (namespace, id, version, _), vector in zip(lacking, vectors, strict=True)
    ]
    yield from do(AddVectors(model, rows))
    return len(rows)


def rebuild(shelf: Shelf) -> Flow[int]:
    """Embed all that has no vector of this embedding, and drop those of others."""
    if shelf.embedding is None:
        raise SettingsError("rebuild: this memory has no embed=")
    model = yield from known(shelf)
    made = 0
    while True:
        some = yield from embed_some(shelf, limits.VECTORS_BY_THE_WAY)
        made += some
        if shelf.complete:
            break
    yield from do(DropVectors(shelf.namespace, keep=model))
    return made


def kept_near(shelf: Shelf, did: Remembered) -> Flow[None]:
    """Give what was just told its vector. A fact is remembered even where its embedding fails."""
    if shelf.embedding is None:
        return
    try:
        model = yield from known(shelf)
        if did.outcome != "repeated":
            fact = did.fact
            (vector,) = shelf.embedding.documents([fact.text])
            row = (fact.namespace, fact.id, fact.version, vector)
            yield from do(AddVectors(model, [row]))
    except SettingsError:
        raise
    except Exception:
        logger.exception("embed= failed; the fact is remembered, and found by its words")
        shelf.complete = False
