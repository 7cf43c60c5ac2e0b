"""Flows that put one content into the stacks: the payload first, then the row that shows it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Protocol

from callslip import limits
from callslip.errors import PayloadDamaged, StoreUnavailable
from callslip.handle import Quota, Scope, Shape, Source
from callslip.stacks import content
from callslip.stacks.beside import Beside
from callslip.stacks.hiding import Mask, View
from callslip.stacks.keeping import mend, stands
from callslip.stacks.layout import KEY_SUFFIX
from callslip.stacks.looking import Look
from callslip.stacks.ops import (
    DeleteObjects,
    Flow,
    Insert,
    Inserted,
    Payload,
    PutObject,
    Result,
    Secret,
    do,
    part_of,
)
from callslip.stacks.payload import Directory, Packer
from callslip.stacks.recognise import LOOKED_INTO_BYTES
from callslip.stacks.records import HEAD_BYTES
from callslip.window.preview.sample import Sample, Sampler

ID_LENGTHS = (10, 13, 16, 24, 40)
"""Hex digits of an id: the shortest that is free in its scope, so ids stay easy to copy."""


@dataclass(frozen=True, slots=True)
class Call:
    """Which call made a result. `named` is False where neither arguments nor a call id were given:
    then a repeat cannot be told from a replay, and is taken for a repeat."""

    tool: str
    args: str
    key: bytes
    named: bool
    status: str = ""
    subjects: tuple[str, ...] = ()
    """Whom the result is about."""


def call_of(
    tool: str,
    args: object = None,
    call_id: str | None = None,
    status: str = "",
    shown_as: Callable[[str], str] | None = None,
) -> Call:
    """The identity of a call: its tool, and its call id or else its arguments.

    `shown_as` is what becomes of the arguments' JSON before it is cut: a cut must not part what a
    redaction would have known.
    """
    exact = b"" if args is None else content.canonical(args).body
    identity = exact if call_id is None else call_id.encode("utf-8", "surrogatepass")
    kind = b"args" if call_id is None else b"id"
    told = exact if shown_as is None else b""
    if shown_as is not None and exact:
        text = shown_as(exact.decode("utf-8", "surrogatepass"))
        told = text.encode("utf-8", "surrogatepass")
    shown = told[: limits.ARGS_CHARS * 4].decode("utf-8", "replace").replace("\n", "")
    if len(shown) > limits.ARGS_CHARS:
        shown = shown[: limits.ARGS_CHARS - 1] + "…"
    key = _hash(tool.encode("utf-8", "surrogatepass"), kind, identity)[:16]
    return Call(tool, shown, key, args is not None or call_id is not None, status)


def _hash(*parts: bytes) -> bytes:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.digest()


def tenant_key(tenant: str) -> bytes:
    """The key of a tenant's content digests: equal content of two tenants has unequal digests."""
    return _hash(b"callslip digest", tenant.encode("utf-8", "surrogatepass"))


def digest_key(tenant: str) -> Flow[bytes]:
    """The key that a tenant's digests, and so ids, are made with: a secret one where keys are given."""
    secret = yield from do(Secret(tenant))
    return _hash(secret, tenant_key(tenant)) if secret else tenant_key(tenant)


def subject_cause(tenant: str, subject: str) -> Flow[str]:
    """What the audit calls a delete by subject: always the same for one name, and not the name."""
    key = yield from digest_key(tenant)
    name = subject.encode("utf-8", "surrogatepass")
    return f"subject:{_hash(b'callslip subject', key, name)[:12].hex()}"


def ids_for(scope: Scope, call: Call, digest: bytes) -> Sequence[str]:
    """The ids a result may get, shortest first: a function of scope, call and content alone."""
    names = (scope.tenant, scope.user, scope.session)
    whole = _hash(*(n.encode("utf-8", "surrogatepass") for n in names), call.key, digest).hex()
    return [f"res_{whole[:length]}" for length in ID_LENGTHS]


class Blocks(Protocol):
    """A content as it comes: canonical bytes, and what is known of it once they are through."""

    @property
    def form(self) -> str: ...
    @property
    def source(self) -> Source: ...
    @property
    def twin(self) -> bytes | None: ...
    def __iter__(self) -> Iterator[bytes]: ...


class Packing:
    """One pass over a content: packed for the store, sampled for the preview, its records found.

    `payload`, `shape` and `sample` hold once `frames` is through.
    """

    def __init__(self, blocks: Blocks, key: bytes, top: str = "", mask: Mask | None = None) -> None:
        self._blocks = blocks
        self._mask = mask
        self.seen = Shape()
        """What a model sees of it is like: `shape`, unless fields are masked."""
        self.view: View | None = None
        """What a model sees of it, where that is what a read would make anew."""
        self.key = key
        """What its digest is made with."""
        self._top = top
        self.error: BaseException | None = None
        """What the content's own iterator raised: the caller's error, not the store's."""
        self.secret = secrets.token_bytes(32)
        """What an object of this content is sealed with, where keys are given."""
        self.payload = Payload(b"", "", 0, 0)
        self.shape = Shape()
        self.sample = Sampler("str").finish()
        self.spent = False
        """True after `again` has said no."""
        self._had: list[bytes] | None = []
        self._size = 0
        self._rest: Iterator[bytes] = self._frames()
        self.frames = self._kept()
        """The packed payload, in pieces of any length. Once only, but for `again`."""

    def again(self) -> bool:
        """Start `frames` over, for another store; False where too much of it has gone by.

        Up to `KEPT_BYTES` of what was packed is kept for this: a stream cannot be asked twice.
        """
        if self._had is None or self.error is not None:
            self.spent = True
            return False
        had, self._had, self._size = self._had, [], 0
        self._rest = chain(had, self._rest)
        self.frames = self._kept()
        return True

    def rest(self) -> tuple[Sample, int]:
        """Run to the end of the content without storing it: its sample, and its characters.

        For a stream that could not be stored: what was missed is still seen and counted.
        """
        for _ in self._rest:
            pass
        return self.sample, self.shape.chars

    def _kept(self) -> Iterator[bytes]:
        for part in self._rest:
            self._size += len(part)
            if self._had is not None and self._size <= limits.KEPT_BYTES:
                self._had.append(part)
            else:
                self._had = None
            yield part

    def _frames(self) -> Iterator[bytes]:
        blocks = self._own(iter(self._blocks))
        head = b""
        whole: bytes | None = getattr(self._blocks, "whole", None)
        for block in blocks:
            head += block
            if len(head) >= HEAD_BYTES:
                break
        else:
            whole = head
        source = self._blocks.source
        look = Look(head, source, self._blocks.form, whole, self._top)
        packer = Packer(source, self.key, self._blocks.form, by_record=look.by_record)
        sampler = Sampler(source)
        view, same = None, False
        if self._mask is not None:
            # As a read makes it, and so for the first of them: not of a stream, nor by a field.
            same = whole is not None and len(whole) <= LOOKED_INTO_BYTES and not self._top
            view = View(self._mask, source, self._blocks.form, whole, self._top, keep=same)
        with Beside() as beside:
            for block in chain((head,) if head else (), blocks):
                beside.do(partial(sampler.add, block))
                if view is not None:
                    beside.do(partial(view.add, block))
                if frames := packer.add(block, look.add(block, beside)):
                    yield frames
            if spans := look.finish(beside):
                packer.add(b"", spans)
            beside.wait()
        last = packer.finish(self._blocks.twin, self._blocks.form)
        self._note(packer, sampler, look)
        if view is not None and self.shape.kind != "media":
            view.finish()
            if view.changed:
                self.seen, self.sample = view.said_of(self.shape), view.sample
            self.view = view if same else None
        yield last

    def _own(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from blocks
        except BaseException as error:
            self.error = error
            raise

    def _note(self, packer: Packer, sampler: Sampler, look: Look) -> None:
        self.payload = Payload(
            digest=packer.digest,
            form=self._blocks.form,
            packed=packer.packed,
            trailer=packer.trailer,
            lock=packer.lock,
            secret=self.secret,
        )
        self.shape = look.shape(
            Shape(
                size=packer.size,
                chars=packer.chars,
                lines=packer.lines,
                marked=packer.marked,
                by_record=packer.by_record,
            )
        )
        self.seen = self.shape
        self.sample = look.sample(sampler.finish())


def write(
    packing: Packing,
    scope: Scope,
    call: Call,
    *,
    whole: bool,
    preview: Callable[[Packing], str],
    wanted: Callable[[Result], bool],
    ttl: float | None,
    quota: Quota,
    now: float,
    expires_at: float | None = None,
    inline: int = limits.INLINE_BYTES,
) -> Flow[Inserted | None]:
    """Store one content and its row; None if `wanted` says that the row is not worth it.

    What packs into `inline` bytes stands in the index, in the row's transaction. `whole` says that
    the content is in memory and can be packed before anything is written: then an equal payload
    that is already stored, and is whole, is not written again. A stream is written as it comes. A
    stored one that is missing or damaged is replaced.
    The row is inserted, and so a handle exists, only after the payload was written and its end
    read back.
    """
    frames = packing.frames
    parts: list[bytes] = []
    size = 0
    for part in frames:
        parts.append(part)
        size += len(part)
        if size > inline and not whole:
            break
    streams = size > inline and not whole
    key = ""
    try:
        if streams:
            key = yield from upload(packing, scope, chain(parts, frames))
            parts = []
        result = Result(
            scope=scope,
            id="",
            call=call.key,
            tool=call.tool,
            args=call.args,
            status=call.status,
            shape=packing.seen,
            preview=preview(packing),
            created_at=now,
            payload=packing.payload,
        )
        ids = ids_for(scope, call, packing.payload.digest)
        result = replace(result, id=ids[0])
        if not wanted(result):
            if key:
                yield from let_go(key)
            return None
        op = Insert(result, ids, ttl, quota, now, expires_at, call.subjects)
        inserted, known = None, streams
        if not streams and size > inline:
            stood = yield from stands(scope.tenant, packing.payload, parts)
            # What another writes meanwhile it has read back, as we do: nothing of it is to mend.
            known = stood is not None
            if stood:
                inserted = yield from do(op)
            if inserted is None:
                key = yield from upload(packing, scope, parts)
        if inserted is None:
            if key and known:
                yield from mend(scope.tenant, replace(packing.payload, key=key))
            where = (
                replace(packing.payload, key=key)
                if key
                else replace(packing.payload, data=b"".join(parts))
            )
            inserted = yield from do(replace(op, result=replace(result, payload=where)))
        if inserted is None:
            raise StoreUnavailable("the index refused a payload that it was given", reason="failed")
        if key and not inserted.adopted:
            yield from let_go(key)
        return inserted
    except StoreUnavailable as error:
        if packing.error is not None:
            raise packing.error from error
        if key and error.reason == "over quota":  # a sure refusal: nothing refers to the object
            yield from let_go(key)
        raise


def let_go(key: str) -> Flow[None]:
    """Delete an object that nothing refers to. What was done is done: one that cannot be deleted now
    is an orphan, which `gc` removes."""
    with suppress(StoreUnavailable):
        yield from do(DeleteObjects([key]))


def new_key(scope: Scope, digests: bytes) -> str:
    """A new object's key: tenant, session, random. Names are hashed, so that nothing of them is a
    part of a path; equal content of a tenant stands once, in the session that was first. Where the
    key of digests is a secret one, so are the hashes: nobody can try names."""
    secret = () if digests == tenant_key(scope.tenant) else (digests,)
    names = [name.encode("utf-8", "surrogatepass") for name in (scope.tenant, scope.user)]
    tenant = _hash(*secret, names[0]).hex()[:16]
    session = _hash(*secret, *names, scope.session.encode("utf-8", "surrogatepass")).hex()[:16]
    return f"{tenant}/{session}/{secrets.token_hex(16)}{KEY_SUFFIX}"


def upload(packing: Packing, scope: Scope, parts: Iterable[bytes]) -> Flow[str]:
    """Write the packed payload under a new key, and read its end back.

    Keys are random, never built from content: an object is then referenced by one payload row at
    the most, so a release can never delete what another put has just adopted.
    """
    key = new_key(scope, packing.key)
    size = yield from do(PutObject(key, parts, packing.secret))
    payload = replace(packing.payload, key=key)
    if size != payload.packed or (yield from end_of(payload)) != packing.shape.size:
        yield from do(DeleteObjects([key]))
        raise StoreUnavailable(
            f"a payload of {payload.packed} bytes did not read back as it was written",
            reason="failed",
        )
    return key


def end_of(payload: Payload) -> Flow[int | None]:
    """Read the end of an object that was just put: the size of its content; None if it is not
    what was put. What is there at its last byte was written up to it."""
    try:
        trailer = yield from do(part_of(payload, payload.trailer, payload.packed - payload.trailer))
        return Directory.parse(trailer).size
    except PayloadDamaged:
        return None
