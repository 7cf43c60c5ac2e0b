"""Flows that keep a plain file for each result: written after its row, gone with it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from callslip.errors import PayloadDamaged, StoreUnavailable
from callslip.stacks.auditops import Holders
from callslip.stacks.ops import Flow, Payloads, Result, do
from callslip.stacks.reader import Caches, open_reader
from callslip.stacks.savedops import AppendPlain, BeginPlain, DropPlain, EndPlain, saved_name

__all__ = ["drop", "name_of", "save", "tidy"]

_BATCH = 200
_HOLDERS = 10_000
"""Results of one payload beyond which its plain files are left as they are."""


def name_of(row: Result) -> str:
    """What the plain file of a row is called."""
    return saved_name(row.scope, row.id, row.tool, row.shape)


def save(row: Result, caches: Caches) -> Flow[None]:
    """Write the plain file of a row, unless it is there.

    Read back from the payload, block by block: so it is what a reader would get, and never held
    whole. It is a copy: whatever becomes of it, readers read the payload. Where the result was
    deleted since, none stays.
    """
    key = row.payload.key
    if key is None:
        return
    name = name_of(row)
    try:
        yield from _written(key, name, row, caches)
    except PayloadDamaged as error:
        yield from do(DropPlain(key, name))
        if not error.missing:
            raise


def _written(key: str, name: str, row: Result, caches: Caches) -> Flow[None]:
    reader = yield from open_reader(row.payload, caches)
    part = secrets.token_hex(8)
    if (yield from do(BeginPlain(key, name, reader.directory.size))):
        return
    yield from do(AppendPlain(key, name, part, b""))
    for flow in reader.blocks():
        yield from do(AppendPlain(key, name, part, (yield from flow)))
    yield from do(EndPlain(key, name, part))


def drop(rows: Sequence[Result]) -> Flow[None]:
    """Remove the plain files of rows that are gone, though others have the same payload.

    The rows are gone whether that works or not: what is left, `tidy` removes.
    """
    for row in rows:
        if row.payload.key is None:
            continue
        try:
            yield from do(DropPlain(row.payload.key, name_of(row)))
        except StoreUnavailable:
            return


def tidy() -> Flow[None]:
    """Remove the plain files of results that went while others have the same payload."""
    after: tuple[str, bytes] | None = None
    while listed := (yield from do(Payloads(after, _BATCH))):
        for tenant, payload, _ in listed:
            after = (tenant, payload.digest)
            if payload.key is None:
                continue
            held = yield from do(Holders(tenant, payload.digest, _HOLDERS))
            if len(held) < _HOLDERS:
                ids = frozenset(id for _, id, _ in held)
                yield from do(DropPlain(payload.key, kept=ids))
