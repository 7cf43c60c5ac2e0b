"""The operations on memory, beside those of `callslip.stacks.ops`: facts that outlive a session.

A fact stands in a namespace, a path of words of which the first is the tenant and the second, where
there is one, the user. An operation sees its namespace and, where it says so, what is below.

What may live here: operations, the rows they carry, nothing that acts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from callslip.stacks.ops import IndexOp
from callslip.stacks.words import Asked

Namespace = tuple[str, ...]
Outcome = Literal["new", "repeated", "superseded"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One remembered fact, as it stands."""

    id: str
    """`mem_…`, of its namespace; the same over all versions."""
    namespace: Namespace
    text: str
    key: str | None = None
    """What it is about, where its teller said so: one fact for each key."""
    kind: str = ""
    source: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1
    """How often it was told."""
    created_at: float = 0.0
    updated_at: float = 0.0
    """When it was last told, or changed. Seconds since the epoch, on the store's clock."""
    expires_at: float | None = None
    version: int = 1
    item: bool = False
    """True for an item of a LangGraph store: `metadata` is the whole of its value."""
    score: float | None = field(default=None, compare=False)
    """How well it answers a query, where it came by one; only to compare within one answer."""

    @property
    def value(self) -> dict[str, Any]:
        """The fact as one JSON object: what `where` looks at, and what a LangGraph store gives."""
        if self.item:
            return dict(self.metadata)
        named = {"text": self.text, "kind": self.kind, "source": self.source}
        return {**self.metadata, **{name: said for name, said in named.items() if said}}


@dataclass(frozen=True, slots=True)
class Past:
    """What a fact said before."""

    version: int
    text: str
    kind: str
    source: str
    metadata: Mapping[str, Any]
    since: float
    until: float
    why: Literal["updated", "superseded"]


@dataclass(frozen=True, slots=True)
class Told:
    """A fact to be remembered, with what an index needs to find it again."""

    text: str
    words: tuple[str, ...]
    """The words it is found by (`words.words_of`), repeated as in the text; empty: by none."""
    same: bytes
    """Equal for texts that say the same (`words.sameness`)."""
    key: str | None = None
    kind: str = ""
    source: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: float | None = None
    ttl: float | None = None
    """Seconds that a reader's `refresh` prolongs it by; None: it runs out when it said."""
    item: bool = False


@dataclass(frozen=True, slots=True)
class Remembered:
    """What `Remember` or `Revise` did: a fact is `new`; was `repeated`, then its count and date are
    raised; or `superseded` another one under its key, which is `before` now and in its history."""

    outcome: Outcome
    fact: Fact
    before: Fact | None = None
    evicted: int = 0
    """Facts that a quota let go for it."""


@dataclass(frozen=True, slots=True)
class Remember(IndexOp[Remembered]):
    """Remember a fact, in one transaction.

    - With a key, and a fact under it: if both say the same it is repeated, else superseded.
    - With a key, and none under it: a fact without a key that says the same gets the key; repeated.
    - Without a key: any fact that says the same is repeated. `merge` False: never.
    - A repeat raises `count` and `updated_at`, and takes kind, source and metadata where they are
      given; `text` stays. Of two lives the longer one holds, and one without an end is the longest.
      An item's value and life are always taken.
    - The id of a new fact is the shortest of `ids` that is free in the namespace.
    - An expired fact is no fact: what it said, and its history, go before anything is looked up.
    - `most_facts`, `most_bytes`: then the facts of this very namespace that were told or changed
      longest ago go, never this one.
    - `subjects`: whom it is about, for `auditops.RemoveSubject`; added to those it has.
    """

    namespace: Namespace
    told: Told
    ids: Sequence[str]
    now: float
    merge: bool = True
    most_facts: int | None = None
    most_bytes: int | None = None
    subjects: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Revise(IndexOp["Remembered | None"]):
    """Change a fact by id: what it said goes into its history (`updated`). None if there is none.

    `told` is the fact as it shall be; its key stays. One that says the same in every part is
    `repeated`, without a version of its own. `expect`, where given, is the version that the caller
    has seen: if it is another one by now, nothing is written and the answer's `before` is None.
    """

    namespace: Namespace
    id: str
    told: Told
    now: float
    expect: int | None = None


@dataclass(frozen=True, slots=True)
class GetFact(IndexOp["Fact | None"]):
    """A fact by id, or by key."""

    namespace: Namespace
    now: float
    id: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class RefreshFacts(IndexOp[None]):
    """Prolong those facts by their `ttl`, if they have one and have not run out."""

    facts: Sequence[tuple[Namespace, str]]
    """By namespace and id."""
    now: float


@dataclass(frozen=True, slots=True)
class PastOf(IndexOp["Sequence[Past]"]):
    """What a fact said before, newest first; the last `limits.FACT_VERSIONS` are kept."""

    namespace: Namespace
    id: str
    now: float


@dataclass(frozen=True, slots=True)
class ForgetFacts(IndexOp[int]):
    """Delete facts for good, history and vectors with them: one by id or key, or else all of a
    namespace and of what is below. Answers how many."""

    namespace: Namespace
    id: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Which:
    """Which facts of a namespace are meant; `deep`: also those of the namespaces below.

    `where` maps a field of `Fact.value` to what it must equal, or to operators: `$eq`, `$ne`, `$gt`,
    `$gte`, `$lt`, `$lte`, `$in`, `$exists` (`stacks.ranking.holds`).
    """

    namespace: Namespace
    deep: bool = False
    kind: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListFacts(IndexOp["tuple[Sequence[Fact], int]"]):
    """Facts, the last told or changed first, `limit` of them after skipping `after`, and how many
    there are in all."""

    which: Which
    after: int
    limit: int
    now: float


@dataclass(frozen=True, slots=True)
class FindFacts(IndexOp["Sequence[Fact]"]):
    """The facts that share words with a query, best first, with their scores (BM25 over the words;
    `stacks.ranking` breaks ties). A word that no fact has stands for those a slip away.

    How much is looked at is bounded: the cost of a rare word grows with its facts up to a bound, of
    common ones the facts that have several of them, then the latest, are looked at."""

    which: Which
    asked: Asked
    limit: int
    now: float


@dataclass(frozen=True, slots=True)
class NearFacts(IndexOp["Sequence[Fact]"]):
    """The facts whose vectors are nearest to one (cosine), best first, with their scores.

    At most `limits.VECTORS_SCANNED` of the latest facts are looked at. `opened` gives the floats of a
    vector that was added as bytes."""

    which: Which
    model: int
    vector: Sequence[float]
    limit: int
    now: float
    opened: Callable[[bytes], bytes] | None = None


@dataclass(frozen=True, slots=True)
class KnowModel(IndexOp[int]):
    """The number of the embedding that makes this vector of `limits.PROBE_TEXT`; a new number for
    one that is not known, or is not the same any more."""

    probe: Sequence[float]


@dataclass(frozen=True, slots=True)
class Vectorless(IndexOp["Sequence[tuple[Namespace, str, int, str]]"]):
    """(namespace, id, version, text) of up to `limit` facts without a vector of that model, the
    last told first. Facts without words have none, and are left out."""

    which: Which
    model: int
    limit: int
    now: float


@dataclass(frozen=True, slots=True)
class AddVectors(IndexOp[int]):
    """Vectors by (namespace, id, version), normalised here, or bytes that are kept as they are; of a fact that is of another version
    by now it is left out. Answers how many were added."""

    model: int
    vectors: Sequence[tuple[Namespace, str, int, Sequence[float] | bytes]]


@dataclass(frozen=True, slots=True)
class DropVectors(IndexOp[int]):
    """Delete the vectors of a namespace, and below, of all models but one."""

    namespace: Namespace
    keep: int


@dataclass(frozen=True, slots=True)
class Namespaces(IndexOp["Sequence[Namespace]"]):
    """The namespaces that hold facts, in order: under `prefix`, ending in `suffix` (`*` in either
    stands for any one word), each cut at `depth` words, `limit` of them after skipping `after`."""

    prefix: Namespace
    suffix: Namespace
    depth: int | None
    limit: int
    after: int
    now: float


@dataclass(frozen=True, slots=True)
class SweepFacts(IndexOp[int]):
    """Delete up to `limit` facts that have run out; answer how many."""

    now: float
    limit: int
