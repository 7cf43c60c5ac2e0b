"""Flows that see to it that a payload which is said to be stored can be read back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from callslip.errors import PayloadDamaged
from callslip.stacks.ops import FindPayload, Flow, IsRemote, Payload, Replace, do, part_of
from callslip.stacks.payload import Directory
from callslip.stacks.reader import Caches, open_reader
from callslip.stacks.savedops import MovePlain

COMPARED_BYTES = 8 * 1024 * 1024
"""A stored payload up to this size is read whole before another handle leads to it: some ms."""


def stands(tenant: str, good: Payload, parts: Sequence[bytes]) -> Flow[bool | None]:
    """Whether the tenant has that payload as an object of its payload store, whole; None if the
    index knows no such payload at all.

    `parts` are the packed bytes of `good`. Up to `COMPARED_BYTES` all of it is read and compared;
    of more, and over a network, only the trailer, which tells a missing, a cut and a foreign object.
    """
    stored = yield from do(FindPayload(tenant, good.digest, good.lock))
    if stored is None or stored.key is None:
        return None if stored is None else False
    packed = b"".join(parts)
    return (yield from _is_whole(stored, packed[good.trailer :], packed))


def mend(tenant: str, good: Payload) -> Flow[None]:
    """Put an object that was just written in the place of a stored one that is damaged.

    Where the index has no such payload, or has it whole, nothing is done: `Insert` decides then.
    """
    stored = yield from do(FindPayload(tenant, good.digest, good.lock))
    if stored is None or stored.key == good.key or good.key is None:
        return
    trailer = yield from do(part_of(good, good.trailer, good.packed - good.trailer))
    if stored.key is not None and (yield from _is_whole(stored, trailer)):
        return
    replaced = yield from do(Replace(tenant, good))
    if replaced and stored.key is not None:
        yield from do(MovePlain(stored.key, good.key))


def _is_whole(stored: Payload, trailer: bytes, packed: bytes = b"") -> Flow[bool]:
    """Whether the object of a payload is the content whose trailer is given.

    Equal content may be packed to other bytes by another version of the compressor: what differs
    is judged by its own checksums, and by that of the content.
    """
    assert stored.key is not None
    try:
        if stored.packed > COMPARED_BYTES or (yield from do(IsRemote())):
            found = yield from do(part_of(stored, stored.trailer, stored.packed - stored.trailer))
            same = found == trailer
            return same or Directory.parse(found).sha256 == Directory.parse(trailer).sha256
        found = yield from do(part_of(stored, 0, stored.packed))
        if found == packed:
            return True
        directory = yield from verified(replace(stored, key=None, data=found))
        return directory.sha256 == Directory.parse(trailer).sha256
    except PayloadDamaged:
        return False


def verified(payload: Payload) -> Flow[Directory]:
    """Read a whole payload against all of its checksums; its directory.

    Raises PayloadDamaged.
    """
    reader = yield from open_reader(payload, Caches())
    whole = hashlib.sha256()
    directory = reader.directory
    for block in reader.blocks():
        whole.update((yield from block))
    yield from reader.twin()
    if whole.digest() != directory.sha256:
        raise PayloadDamaged("its chunks are whole, but not the content that was stored")
    return directory
