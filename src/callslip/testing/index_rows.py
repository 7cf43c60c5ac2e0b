"""Rows to insert in the contract of an index, and what its parts share."""

from __future__ import annotations

import hashlib

from callslip.handle import Quota, Scope, Shape
from callslip.stacks import ops

HOME = Scope("s", "ana", "acme")
NOW = 1_000_000.0
ODD = "\0 \ud800 \ud83d\ude00 é ' \" % _ \n"
"""NUL, a lone surrogate, two that look like a pair, and what SQL is picky about."""


def make_row(
    content: str = "a",
    *,
    call: str = "call",
    scope: Scope = HOME,
    size: int = 100,
    key: str | None = None,
    data: bytes | None = b"packed",
) -> ops.Result:
    """A row to insert: equal `content` and tenant is the same payload, equal `call` the same call."""
    digest = hashlib.sha256(f"{scope.tenant!r} {content!r}".encode()).digest()
    return ops.Result(
        scope=scope,
        id="",
        call=hashlib.sha256(call.encode("utf-8", "surrogatepass")).digest()[:16],
        tool="search",
        args='{"q": 1}',
        status="",
        shape=Shape(size=size, chars=size, lines=3),
        preview="preview",
        created_at=NOW,
        payload=ops.Payload(digest, "str", 60, 40, key, None if key else data, digest),
    )


def insert(
    row: ops.Result,
    *ids: str,
    ttl: float | None = None,
    quota: Quota | None = None,
    now: float = NOW,
) -> ops.Insert:
    """The operation that inserts a row."""
    return ops.Insert(row, ids, ttl, quota or Quota(), now)


def run(index: ops.Runs, op: ops.Insert) -> ops.Inserted:
    """Insert, where it must be possible."""
    inserted = index.run(op)
    assert inserted is not None
    return inserted


def put(index: ops.Runs, op: ops.Insert) -> ops.Result:
    """Insert, and answer the row."""
    return run(index, op).result
