"""Rows of results, tombstones, files and payloads: sealed on their way in, opened on their way out.

What the index computes with stays as it is: sizes, times, versions, digests (which have a key). The
rest of a shape, the arguments, the status and the preview are sealed with the session's key, and with
them the payload's *lock*: what only who has the content, or such a row, can know. The payload's own
row is sealed with that: so sessions of one tenant share a payload, and a session whose key is
destroyed does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from callslip.handle import Scope, Shape
from callslip.stacks.fileops import File, View
from callslip.stacks.index.rows import shape_from_blob, shape_to_blob
from callslip.stacks.index.sealed.cipher import (
    Box,
    Fixed,
    Unopened,
    derived,
    from_token,
    mac,
    packed,
    to_bytes,
    to_text,
    to_token,
    unpacked,
)
from callslip.stacks.index.sealed.holders import SessionKey, Tenant
from callslip.stacks.ops import Payload, Result, Tombstone


class Gone(Unopened):
    """What was sealed with a key that the session has no more."""


_HEAD = b"head"
_ROW = b"row"
_FILE = b"file"


# --- payloads -------------------------------------------------------------------------------------


def seal_payload(payload: Payload, tenant: Tenant, owner: bytes) -> Payload:
    """A payload's row: its form for the tenant, its object's secret and its data for its lock; and
    for `verify` the lock itself, for the session that wrote it (`owned`)."""
    if not payload.lock:
        raise ValueError("a payload that is to be sealed must come with its lock")
    digest = payload.digest
    form = tenant.names.seal(to_bytes(payload.form), b"form")
    secret = b""
    if payload.key is not None:
        secret = _secrets(payload.lock).seal(payload.secret, b"secret" + digest)
    data = payload.data
    if data is not None:
        # Equal data sealed equally: the index compares what it is given with what it has.
        data = Fixed(payload.lock, "data").seal(data, b"data" + digest)
    told = to_token(packed(form, secret, owner))
    return replace(payload, form=told, data=data, lock=b"", secret=b"")


def owned(payload: Payload, writer: SessionKey) -> bytes:
    """The lock of a payload, for the session that writes it."""
    sealed = writer.box.seal(payload.lock, b"lock" + payload.digest)
    return packed(to_bytes(writer.name), sealed)


def owner_of(payload: Payload | None) -> bytes:
    """What `owned` gave for a payload that is stored; nothing where there is none."""
    try:
        return b"" if payload is None else _parts(payload)[2]
    except Unopened:
        return b""


def open_payload(payload: Payload, tenant: Tenant, lock: bytes) -> Payload:
    """A payload's row again; its data and its secret as far as the lock opens them. What was
    changed is as good as cut off: a reader then says that it is damaged."""
    sealed_form, secret, _ = _parts(payload)
    form, digest = to_text(tenant.names.open(sealed_form, b"form")), payload.digest
    data = payload.data
    if data is not None:
        data = _or_none(Fixed(lock, "data"), data, b"data" + digest) if lock else None
    if payload.key is None or not lock:
        secret = b""
    else:
        secret = _or_none(_secrets(lock), secret, b"secret" + digest)
    return Payload(digest, form, payload.packed, payload.trailer, payload.key, data, lock, secret)


def writer_of(payload: Payload) -> tuple[str, bytes] | None:
    """Whose key opens the lock of a payload's row, by name, and the sealed lock."""
    owner = unpacked(owner_of(payload))
    return (to_text(owner[0]), owner[1]) if owner else None


def _parts(payload: Payload) -> tuple[bytes, bytes, bytes]:
    parts = unpacked(from_token(payload.form))
    if len(parts) != 3:
        raise Unopened
    return parts[0], parts[1], parts[2]


def _secrets(lock: bytes) -> Box:
    return Box(derived(lock, "secret"))


def _or_none(under: Fixed | Box, sealed: bytes, about: bytes) -> bytes:
    try:
        return under.open(sealed, about)
    except Unopened:
        return b""


# --- results --------------------------------------------------------------------------------------


def seal_result(
    result: Result, ids: Sequence[str], scope: Scope, tenant: Tenant, key: SessionKey
) -> Result:
    """A result's row; `scope` is its scope in tokens, `ids` are those that it may get."""
    payload = result.payload
    if not payload.lock:
        raise ValueError("a payload that is to be sealed must come with its lock")
    head = packed(to_bytes(result.args), shape_to_blob(result.shape))
    tool = tenant.names.token(result.tool)
    head = key.id + key.box.seal(head, _HEAD + tool.encode())
    # The head stays when the row goes, so it is by itself; the row says which head is its own.
    row = packed(
        to_bytes(result.preview),
        to_bytes(result.status),
        result.call,
        payload.lock,
        head[-16:],
        *map(to_bytes, _beginnings(ids)),
    )
    return replace(
        result,
        scope=scope,
        call=tenant.call(result.call),
        tool=tool,
        args="",
        status="",
        shape=_cover(result.shape, head),
        preview=to_token(key.box.seal(row, _ROW + payload.digest)),
        payload=seal_payload(payload, tenant, owned(payload, key)),
    )


def open_result(row: Result, scope: Scope, tenant: Tenant, key: SessionKey) -> Result:
    """A result's row again, in the scope whose names are given. Raises `Unopened`, and `Gone` for one
    of a key that was destroyed."""
    args, shape = _head(row.shape, row.tool, key)
    about = _ROW + row.payload.digest
    parts = unpacked(key.box.open(from_token(row.preview), about))
    preview, status, call, lock, own, *ids = parts
    if from_token(row.shape.mime)[-16:] != own:
        raise Unopened
    if not any(to_bytes(row.id).startswith(id) for id in ids):
        raise Unopened  # it is another's row that stands under this id
    return replace(
        row,
        scope=scope,
        call=call,
        tool=tenant.names.text(row.tool),
        args=args,
        status=to_text(status),
        shape=shape,
        preview=to_text(preview),
        payload=open_payload(row.payload, tenant, lock),
    )


def open_tombstone(row: Tombstone, tenant: Tenant, key: SessionKey) -> Tombstone:
    """A tombstone again. Raises `Unopened` and `Gone`."""
    args, shape = _head(row.shape, row.tool, key)
    return replace(row, tool=tenant.names.text(row.tool), args=args, shape=shape)


def _cover(shape: Shape, sealed: bytes) -> Shape:
    # Of a shape the index itself needs the size, for its totals and quotas.
    return Shape(size=shape.size, mime=to_token(sealed))


def _beginnings(ids: Sequence[str]) -> list[str]:
    """What the ids that a row may get begin with: mostly one, the shortest of them."""
    return [id for id in ids if not any(o != id and id.startswith(o) for o in ids)]


def _head(shape: Shape, tool: str, key: SessionKey) -> tuple[str, Shape]:
    about, sealed = _HEAD + tool.encode(), from_token(shape.mime)
    own = sealed[:8] == key.id
    try:
        # Rows of before say nothing of their key.
        args, inner = unpacked(key.box.open(sealed[8:] if own else sealed, about))
    except Unopened:
        if own:
            raise
        raise Gone from None
    return to_text(args), shape_from_blob(inner)


# --- files ----------------------------------------------------------------------------------------


def seal_view(view: View, key: SessionKey) -> View:
    """Which state of the files is meant: names of runs and turns as what is equal where they are."""
    line, step = (
        to_token(mac(key.views, to_bytes(name))[:16]) if name else ""
        for name in (view.line, view.step)
    )
    return View(view.version, line, step)


def seal_file(shape: Shape, lock: bytes, key: SessionKey, path: str) -> Shape:
    """The shape of a version of the file at `path` (a token), with the lock of its payload."""
    sealed = key.box.seal(packed(shape_to_blob(shape), lock), _FILE + path.encode())
    return _cover(shape, key.id + sealed)


def open_file(file: File, tenant: Tenant, key: SessionKey) -> File:
    """A version of a file again. Raises `Unopened`, and `Gone` for one of a key that was destroyed."""
    about, sealed = _FILE + file.path.encode(), from_token(file.shape.mime)
    if sealed[:8] != key.id:
        raise Gone
    shape, lock = unpacked(key.box.open(sealed[8:], about))
    payload = None if file.payload is None else open_payload(file.payload, tenant, lock)
    path = key.paths.text(file.path)
    return replace(file, path=path, shape=shape_from_blob(shape), payload=payload)
