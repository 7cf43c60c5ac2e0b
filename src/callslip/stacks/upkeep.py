"""Flows that keep the stacks tidy: closing, deleting, sweeping, gc, verify, the spool's delivery."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from callslip import limits
from callslip.errors import CallslipError, PayloadDamaged, StoreUnavailable
from callslip.handle import Quota, Scope
from callslip.stacks.auditops import HeldBy, Holders, SubjectsOf
from callslip.stacks.fetching import blocks_of
from callslip.stacks.flows import aside
from callslip.stacks.keeping import mend, verified
from callslip.stacks.layout import KEY_SUFFIX, NO_SECRET, UNOPENED
from callslip.stacks.memoryops import SweepFacts
from callslip.stacks.ops import (
    DeleteObjects,
    FindPayload,
    Flow,
    Forget,
    Garbage,
    Get,
    Insert,
    KnownKeys,
    List,
    ListObjects,
    Payload,
    Payloads,
    PutObject,
    Remove,
    Repair,
    Result,
    Runs,
    Sessions,
    Sweep,
    Tombstone,
    do,
)
from callslip.stacks.packing import digests
from callslip.stacks.reader import Caches, open_reader
from callslip.stacks.saving import save
from callslip.stacks.writing import Call, digest_key, end_of, ids_for, let_go, new_key

_BATCH = 200
_LISTED = 1000
"""Objects of one listing: what an object store answers in one request."""
_KEPT = 10
"""Objects that a store keeps, of those that it is asked to delete one by one, before it is left."""
_NAMED = 3
"""Results that a finding of `verify` names."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a gc did: objects deleted because nothing refers to them any more, unfinished or
    unknown objects (orphans) deleted, results delivered from the spool, counts mended."""

    released: int = 0
    orphans: int = 0
    delivered: int = 0
    mended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Findings:
    """What a verify found. `problems` is empty when every payload reads back as it was written.

    `orphans` are objects that nothing refers to: no loss, and `gc` removes them.
    """

    payloads: int
    content_bytes: int
    problems: tuple[str, ...]
    orphans: int

    @property
    def ok(self) -> bool:
        """True if nothing is damaged, missing or miscounted."""
        return not self.problems


def tidy(now: float) -> Flow[None]:
    """A bounded share of the sweep, and of the deletion of what it released."""
    yield from do(Sweep(now, limits.SWEEP_ROWS, limits.SWEEP_MILLISECONDS))
    yield from drain(now, limit=limits.SWEEP_ROWS, singly=False)


def drain(now: float, limit: int | None = None, *, singly: bool = True) -> Flow[int]:
    """Delete the objects of released payloads, up to `limit`; answer how many.

    An object is struck off the list only after it is deleted: a crash between repeats the deletion.
    One that the store keeps, as it is locked, is raised once all others are gone; `singly` allows the
    request for each that this takes.
    """
    done = 0
    while limit is None or done < limit:
        keys = yield from do(Garbage(_BATCH if limit is None else min(_BATCH, limit - done)))
        if not keys:
            break
        try:
            yield from do(DeleteObjects(keys))
        except StoreUnavailable as error:
            if not singly or len(keys) == 1 or error.reason not in ("failed", "permission denied"):
                raise
            keys = yield from _one_by_one(keys)
            if not keys:
                raise
        yield from do(Forget(keys, now))
        done += len(keys)
    return done


def _one_by_one(keys: Sequence[str]) -> Flow[list[str]]:
    """Delete objects of which the store refuses some; answer those that went."""
    gone: list[str] = []
    kept = 0
    for key in keys:
        try:
            yield from do(DeleteObjects([key]))
        except StoreUnavailable:
            kept += 1
            if kept > _KEPT + len(gone):  # all of them, as it seems
                break
        else:
            gone.append(key)
    return gone


def remove(op: Remove) -> Flow[int]:
    """Remove rows and then the objects that only they referred to; answer how many rows.

    Once the rows are gone the removal holds: objects that cannot be deleted now are on the garbage
    list, and the next sweep deletes them. Who deletes a session's results does not wait for
    the garbage of all others.
    """
    removed = 0
    if op.user is None and op.session is None and not op.tombstones:
        # A whole tenant goes session by session: one transaction would keep others waiting. Where a
        # hold reaches into it, none of them goes, and the last operation says so.
        held = yield from do(HeldBy(op.tenant))
        while not held:
            # Those that are written to meanwhile are left to the last: new ones come as fast.
            found = yield from do(Sessions(_BATCH, tenant=op.tenant))
            before = [scope for scope, active_at, _ in found if active_at <= op.now]
            if not before:
                break
            for scope in before:
                part = replace(op, user=scope.user, session=scope.session)
                removed += yield from do(part)
    removed += yield from do(op)
    try:
        yield from drain(op.now, None if op.session is None else removed + _BATCH)
    except StoreUnavailable:
        return removed
    return removed


def sweep(now: float) -> Flow[int]:
    """The whole sweep, in bounded steps; answer how many objects that freed."""
    more = True
    while more:
        more = yield from do(Sweep(now, limits.SWEEP_ROWS, 1000))
    while (yield from do(SweepFacts(now, limits.SWEEP_ROWS))):
        pass
    return (yield from drain(now))


def gc(now: float, grace: float) -> Flow[Cleaned]:
    """Sweep, delete what was released, remove orphans older than `grace` seconds, mend counts."""
    released = yield from sweep(now)
    # How old an object is only the payload store's own clock can tell: by one that is hours ahead,
    # what another worker has just put and not yet filed would be an old orphan.
    wall = yield from _stamp()
    unknown = yield from _orphans()
    old = [key for key, changed in unknown if wall - changed >= grace]
    for start in range(0, len(old), _BATCH):
        yield from do(DeleteObjects(old[start : start + _BATCH]))
    mended = yield from do(Repair(mend=True))
    return Cleaned(released=released, orphans=len(old), mended=tuple(mended))


def _stamp() -> Flow[float]:
    """The time by the payload store's clock: what it says of an object that was put just now."""
    before = f"clock/{secrets.token_hex(16)}"
    key = before + KEY_SUFFIX
    yield from do(PutObject(key, [b"callslip gc"], NO_SECRET))
    try:
        # Keys are in order: what stands behind the one just before ours is ours.
        listed = yield from do(ListObjects(before, 1))
    finally:
        yield from do(DeleteObjects([key]))
    if not listed or listed[0][0] != key:
        raise StoreUnavailable("an object was not there after its put", reason="failed")
    return listed[0][2]


def _orphans() -> Flow[list[tuple[str, float]]]:
    """(key, modified at) of the objects that the index does not know."""
    found: list[tuple[str, float]] = []
    after: str | None = None
    while True:
        listed = yield from do(ListObjects(after, _LISTED))
        if not listed:
            return found
        keys = [key for key, _, _ in listed]
        known = yield from do(KnownKeys(keys))
        found.extend((key, changed) for key, _, changed in listed if key not in known)
        after = keys[-1]


def verify(progress: Callable[[int], object] | None = None) -> Flow[Findings]:
    """Read every payload back and compare it with its checksums; check the index and the objects.

    `progress` is called with the bytes of content read so far. Damage is collected, not raised.
    """
    problems = list((yield from do(Repair(mend=False))))
    after: tuple[str, bytes] | None = None
    count = size = 0
    while True:
        listed = yield from do(Payloads(after, _BATCH))
        if not listed:
            break
        for tenant, payload, references in listed:
            after = (tenant, payload.digest)
            count += 1
            if payload.form == UNOPENED:
                continue
            try:
                size += (yield from verified(payload)).size
            except PayloadDamaged as error:
                there = yield from do(FindPayload(tenant, payload.digest, payload.lock))
                if there is None or there.key != payload.key:
                    continue  # deleted, or mended, since it was listed
                whose = yield from _whose(tenant, payload, references)
                problems.append(f"payload {payload.digest.hex()[:12]} ({whose}): {error}")
            if progress is not None:
                progress(size)
    unknown = yield from _orphans()
    return Findings(count, size, tuple(problems), len(unknown))


def _whose(tenant: str, payload: Payload, references: int) -> Flow[str]:
    """Which results lead to a payload, for a person."""
    found = yield from do(Holders(tenant, payload.digest, _NAMED))
    names = [f"{id} of {tool} in session {scope.session}" for scope, id, tool in found]
    more = references - len(names)
    return ", ".join(names + ([f"{more} more results or files"] if more else []))


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a delivered result is kept, and within which quota."""

    ttl_of: Callable[[str], float | None]
    """Of a tenant's sessions."""
    runs_out: Callable[[str, float], float | None]
    """When a result of a tool that is stored then runs out by itself."""
    quota: Quota
    plain: bool = False
    """Whether each result has an object of its own, and a plain file."""


def deliver(
    spool: Runs, now: float, terms: Terms, *, seconds: float = float("inf")
) -> Flow[tuple[list[Result], bool]]:
    """Move what the spool holds into the store, oldest first; answer the rows that arrived, and
    whether there is more: none is begun after `seconds`.

    A row leaves the spool only after the store has it. Stops where the store is away again; what
    it refuses for good stays, and the others go on.
    """
    until = time.monotonic() + seconds
    arrived: list[Result] = []
    for scope in reversed((yield from _spooled_in())):
        stays = 0
        gone: set[str] = set()
        while True:
            rows, _ = yield from aside(do(List(scope, stays, _BATCH, now)))
            if not rows:
                break
            for listed in rows:
                if time.monotonic() > until:
                    return arrived, True
                row = yield from aside(do(Get(scope, listed.id, now)))
                if row is None or isinstance(row, Tombstone):
                    stays += listed.id in gone  # if not, another worker was quicker, and it goes
                    gone.add(listed.id)
                    continue
                try:
                    arrived.append((yield from _delivered(spool, row, now, terms)))
                except CallslipError as error:
                    if _may_pass(error):
                        raise
                    if (yield from aside(do(Get(scope, row.id, now)))) is None:
                        gone.add(row.id)  # another worker was quicker, while this one read it
                        continue
                    # It stays, where a person can look at it, and holds up no other.
                    _logger.warning("a result of %s stays in the spool: %s", row.tool, error)
                    stays += 1
                    continue
                yield from aside(remove(_one(scope, row.id, now)))
    return arrived, False


def _spooled_in() -> Flow[list[Scope]]:
    """The sessions of which the spool holds something, latest first."""
    found: list[Scope] = []
    while listed := (yield from aside(do(Sessions(_LISTED, after=len(found))))):
        found.extend(scope for scope, _, _ in listed)
    return found


def _may_pass(error: CallslipError) -> bool:
    """Whether the store is away; else it works, and refuses this one result."""
    return isinstance(error, StoreUnavailable) and error.reason != "over quota"


def _one(scope: Scope, id: str, now: float) -> Remove:
    return Remove(
        why="deleted",
        now=now,
        tenant=scope.tenant,
        user=scope.user,
        session=scope.session,
        id=id,
        tombstones=False,
    )


def _delivered(spool: Runs, row: Result, now: float, terms: Terms) -> Flow[Result]:
    # Damaged bytes stay where they are: the same content, stored again, would be led to them.
    yield from aside(verified(row.payload))
    subjects = yield from aside(do(SubjectsOf(row.scope, row.id)))
    ids: Sequence[str] = [row.id]
    key = yield from digest_key(row.scope.tenant)
    if key != (yield from aside(digest_key(row.scope.tenant))):
        row, ids = yield from _rekeyed(row, key)
    payload = row.payload
    if payload.key is not None or terms.plain:
        inline, payload = payload.data, replace(payload, data=None)
        pieces = blocks_of(spool, payload) if inline is None else iter([inline])
        # A key of its own for each try: what one before it has put, and could not file, stands
        # under another and is an orphan.
        key_of_try = new_key(row.scope, key)
        payload = replace(payload, key=key_of_try)
        row = replace(row, payload=payload)
        size = yield from do(PutObject(key_of_try, pieces, payload.secret))
        if size != payload.packed or (yield from end_of(payload)) is None:
            yield from do(DeleteObjects([key_of_try]))
            raise StoreUnavailable(f"a delivery of {payload.packed} bytes was cut", reason="failed")
        yield from mend(row.scope.tenant, payload)
    # From here on: what waits does not run out, and the clock of a worker that had not reached the
    # index may have been any.
    row = replace(row, created_at=min(row.created_at, now))
    ttl, runs_out = terms.ttl_of(row.scope.tenant), terms.runs_out(row.tool, now)
    try:
        inserted = yield from do(Insert(row, ids, ttl, terms.quota, now, runs_out, subjects))
    except CallslipError as error:
        if payload.key is not None and not _may_pass(error):  # nothing refers to the object
            yield from let_go(payload.key)
        raise
    if inserted is None:
        raise StoreUnavailable("the index refused a payload that it was given", reason="failed")
    if payload.key is not None and not inserted.adopted:
        yield from let_go(payload.key)
    if terms.plain:
        yield from save(inserted.result, Caches())
    return inserted.result


def _rekeyed(row: Result, key: bytes) -> Flow[tuple[Result, Sequence[str]]]:
    """A row of the spool with the digest that its content has in the store, and the ids it may get:
    each of the two has a secret of its own, and a replay must find what was delivered."""
    payload = row.payload
    reader = yield from aside(open_reader(payload, Caches()))
    twin = yield from aside(reader.twin())
    of = reader.directory
    digest, lock = digests(key, payload.form, of.source, of.size, of.sha256, twin)
    call = Call(row.tool, row.args, row.call, named=True, status=row.status)
    payload = replace(payload, digest=digest, lock=lock)
    return replace(row, payload=payload), ids_for(row.scope, call, digest)
