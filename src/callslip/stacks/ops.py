"""The few operations that an index and a payload store must do, as plain values.

A policy ("flow") is a generator that yields these and gets their results; it does no I/O and knows
no colour. `callslip.stacks.drive` carries the operations to a backend, in a thread of the caller
or off an event loop. So every policy is written once, and a new backend implements `run(op)` for
the dozen operations below; `callslip.testing` ships the contract they must keep.

What may live here: operations, the rows they carry, nothing that acts.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast

from callslip.handle import Quota, Scope, Shape, Why

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Op(Generic[T_co]):
    """One operation; its type parameter is what running it returns."""

    __slots__ = ()


Flow = Generator["Op[Any]", Any, T]


def do(op: Op[T]) -> Flow[T]:
    """Yield one operation from inside a flow, typed: ``row = yield from do(Get(scope, id))``."""
    return cast("T", (yield op))


@dataclass(frozen=True, slots=True)
class Aside(Op[Any]):
    """An operation for the local spool instead of the store itself."""

    op: Op[Any]


class Runs(Protocol):
    """What a driver needs of a backend. It raises `StoreUnavailable` for whatever may pass."""

    def run(self, op: Op[T], /) -> T: ...


@dataclass(frozen=True, slots=True)
class Secret(Op[bytes]):
    """The secret that the digests, and so the ids, of a tenant are made with; b"" without keys."""

    tenant: str


# --- rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Payload:
    """Where a content's packed bytes are: in the index (`data`), or in the payload store (`key`)."""

    digest: bytes
    """32 bytes, keyed per tenant, over form and content."""
    form: str
    """How `load` rebuilds the value (`callslip.stacks.content`)."""
    packed: int
    """Bytes of the packed payload."""
    trailer: int
    """Offset of the packed payload's trailer: the directory is `packed[trailer:]`."""
    key: str | None = None
    data: bytes | None = None
    lock: bytes = field(default=b"", repr=False, compare=False)
    """32 bytes that only who has the content, or a row of it, can know: what seals it where keys are
    given (`callslip.stacks.index.sealed`). Never stored as it is."""
    secret: bytes = field(default=b"", repr=False, compare=False)
    """The key of a sealed object; empty where nothing is sealed. Never stored as it is."""


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the index: a handle and the payload that it leads to."""

    scope: Scope
    id: str
    call: bytes
    """16 bytes that identify the call (scope, tool, arguments or call id)."""
    tool: str
    args: str
    status: str
    shape: Shape
    preview: str
    created_at: float
    payload: Payload
    same_as: str = ""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of a result: enough to say what it was and which call would make it again."""

    id: str
    tool: str
    args: str
    shape: Shape
    why: Why
    gone_at: float


# --- index --------------------------------------------------------------------------------------


class IndexOp(Op[T_co]):
    """An operation on the index. Each is one transaction: done whole, or not at all."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FindPayload(IndexOp["Payload | None"]):
    """The tenant's payload of that digest, if one is stored. `data` may be left out. With `lock`, a
    sealed one is answered with its `secret`."""

    tenant: str
    digest: bytes
    lock: bytes = field(default=b"", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Inserted:
    """What `Insert` did.

    `result` is the row as it stands now: the given one, or the one that the same call and content
    made before (`created` False). Its `same_as` is "" where the session holds no row that shows
    this content in full. `adopted` says whether the index took the given payload; where it kept another one of
    the same digest, the caller deletes the object that it had uploaded.
    """

    result: Result
    created: bool
    adopted: bool


@dataclass(frozen=True, slots=True)
class Insert(IndexOp["Inserted | None"]):
    """Store a row, its payload and its session in one transaction.

    - Opens the session if it is new, or was closed; counts as activity.
    - The id: the shortest of `ids` that is free in this scope or already belongs to this very call
      and content (a tombstone of the same call and content is revived).
    - One payload per (tenant, digest), reference-counted. `result.payload` with neither `key` nor
      `data` means "the one I saw with FindPayload"; if it is gone meanwhile the answer is None, and
      nothing was written. Of a stored one with other `data` than the given, the given is kept.
    - `same_as` of the stored row is the id of the session's first live row with the same payload
      whose own `same_as` is "", and so was shown in full; "" if there is none: then this one is.
    - With a quota, the oldest other rows of the session (then of the tenant) become tombstones
      (`evicted`) until it holds, but for those on hold; their payloads are released to the garbage.
    - `expires_at`: the row itself runs out then, whatever is done in its session.
    - `subjects`: whom it is about, for `auditops.RemoveSubject`; added to those it has.
    """

    result: Result
    ids: Sequence[str]
    ttl: float | None
    quota: Quota
    now: float
    expires_at: float | None = None
    subjects: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Replace(IndexOp[bool]):
    """Let the tenant's payload of that digest be kept where `payload` says from now on, because
    what is kept is damaged: every row that has it is whole again. Its old key goes to the garbage
    list. False, and nothing written, if no such payload is stored, or its new key is garbage."""

    tenant: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class PayloadPlace(IndexOp["str | None"]):
    """Where the payload objects of this index are, as it was recorded; None if it was not. With
    `where`, that is recorded if nothing is: the first to ask so decides for all."""

    where: str | None = None


@dataclass(frozen=True, slots=True)
class Get(IndexOp["Result | Tombstone | None"]):
    """A row by scope and id, or its tombstone, or None. A session whose `ttl` has run out since
    its last activity is expired for a reader even before the sweep has been there. Counts as
    activity (written at most once a minute for each session, or a tenth of its ttl).

    Where the scope has no row of that id, one that was shared with it (`shareops`) and is live in
    its owner's session: with the owner's scope, and without `same_as`. Of a share that has ended
    nothing is left: then the answer is that of any id, a tombstone of the scope's own or None.

    `action` is what it is for, in the audit's words; "" for what is not told."""

    scope: Scope
    id: str
    now: float
    action: str = "read"


@dataclass(frozen=True, slots=True)
class List(IndexOp["tuple[Sequence[Result], int]"]):
    """Live rows of a session, oldest first, then those that are shared with it, as `Get` answers
    them: `limit` of them after skipping `after`, and how many there are in all. Payload `data` is
    left out. Counts as activity. `action` as in `Get`."""

    scope: Scope
    after: int
    limit: int
    now: float
    action: str = "listed"


@dataclass(frozen=True, slots=True)
class Remove(IndexOp[int]):
    """Remove results, and answer how many: of a tenant, of a user, of a session, or one by id.

    `why` `closed` or `deleted` with `tombstones` leaves tombstones; without, no trace remains of
    the rows nor of their sessions. Payloads that nothing refers to any more go to the garbage list.
    The scratch files of a session go with all of its results. Without tombstones, and for a whole
    tenant or user, what is remembered (`memoryops`) in the namespace of that name goes, too.
    A field left None means all of them; `id` needs `session`, `session` and `user` need `tenant`.
    """

    why: Why
    now: float
    tenant: str
    user: str | None = None
    session: str | None = None
    id: str | None = None
    tombstones: bool = True


@dataclass(frozen=True, slots=True)
class Sweep(IndexOp[bool]):
    """Turn up to `rows` results of expired sessions into tombstones, drop their files and tombstones
    older than `limits.TOMBSTONE_SECONDS`, and shares that have ended. True if there is more to do.
    Stops after `milliseconds`."""

    now: float
    rows: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Garbage(IndexOp["Sequence[str]"]):
    """Up to `limit` keys of payload objects that nothing refers to any more."""

    limit: int


@dataclass(frozen=True, slots=True)
class Forget(IndexOp[None]):
    """Strike keys off the garbage list: their objects are deleted, which the audit says at `now`."""

    keys: Sequence[str]
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class Payloads(IndexOp["Sequence[tuple[str, Payload, int]]"]):
    """(tenant, payload, references counted from the rows and files) of up to `limit` payloads,
    in an order of the index's own, after the given pair. For gc and verify."""

    after: tuple[str, bytes] | None
    limit: int


@dataclass(frozen=True, slots=True)
class KnownKeys(IndexOp["frozenset[str]"]):
    """Which of `keys` the index knows, as a payload or as garbage."""

    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class Repair(IndexOp["Sequence[str]"]):
    """Check the index itself: reference counts, dangling rows, the database's own check. Answers
    one sentence for each finding; mends the counts if `mend`."""

    mend: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """How much a tenant, a session, or the whole store holds. Sizes in bytes."""

    sessions: int
    results: int
    tombstones: int
    payloads: int
    content_bytes: int
    packed_bytes: int
    garbage: int
    files: int = 0
    """Versions of scratch files (`callslip.stacks.fileops`)."""
    file_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Count(IndexOp[Totals]):
    """Totals of the whole store, or of one tenant, or of one session."""

    tenant: str | None = None
    scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Sessions(IndexOp["Sequence[tuple[Scope, float, int]]"]):
    """(scope, last activity, live results) of up to `limit` sessions, latest activity first."""

    limit: int
    after: int = 0
    tenant: str | None = None


# --- payload store ------------------------------------------------------------------------------


class PayloadOp(Op[T_co]):
    """An operation on the payload store. Keys are `/`-separated, `[a-z0-9_./-]`, made by us, and
    end in `layout.KEY_SUFFIX`: what else lies in the folder or bucket is not ours, nor listed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PutObject(PayloadOp[int]):
    """Write one new object, durably, and answer its size: as the store reports it where that costs
    nothing, else as it was sent, and who needs to know reads its end. Half an object is never
    visible under its key; an existing key is an error (keys are random)."""

    key: str
    parts: Iterable[bytes]
    secret: bytes = field(default=b"", repr=False, compare=False)
    """32 random bytes of this object alone: what it is sealed with where keys are given."""


@dataclass(frozen=True, slots=True)
class ReadObject(PayloadOp[bytes]):
    """`length` bytes from `start`. A missing object or a short read raises `PayloadDamaged`."""

    key: str
    start: int
    length: int
    secret: bytes = field(default=b"", repr=False, compare=False)
    size: int = 0
    """Bytes of the whole object, as they were given; needed with a `secret`."""


def part_of(payload: Payload, start: int, length: int) -> ReadObject:
    """`length` bytes of a payload's object from `start`."""
    assert payload.key is not None
    return ReadObject(payload.key, start, length, payload.secret, payload.packed)


@dataclass(frozen=True, slots=True)
class DeleteObjects(PayloadOp[None]):
    """Delete objects; one that is not there is no error."""

    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class ListObjects(PayloadOp["Sequence[tuple[str, int, float]]"]):
    """(key, bytes, modified at) of up to `limit` objects, in key order, after the given key; of
    those whose keys stand in the folder `under` where one is given. Unfinished uploads count, under
    whatever name they have, so that gc can remove them."""

    after: str | None
    limit: int
    under: str = ""


@dataclass(frozen=True, slots=True)
class IsRemote(PayloadOp[bool]):
    """Whether a read goes over a network: then a stored object is not read whole to see that it is
    good."""
