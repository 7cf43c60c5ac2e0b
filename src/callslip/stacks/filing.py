"""The flow that writes one version of a scratch file: the payload first, then the version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from callslip import limits
from callslip.errors import StoreUnavailable
from callslip.handle import Quota, Scope
from callslip.stacks.fileops import View, WriteFile, Wrote
from callslip.stacks.keeping import mend, stands
from callslip.stacks.ops import DeleteObjects, Flow, do
from callslip.stacks.writing import Packing, upload


def write_file(
    packing: Packing,
    scope: Scope,
    path: str,
    view: View,
    *,
    expect: int | None,
    call: bytes,
    ttl: float | None,
    quota: Quota,
    now: float,
    subjects: Sequence[str] = (),
) -> Flow[Wrote]:
    """Write a version, as `fileops.WriteFile` says; a text that is stored is not stored again."""
    parts = list(packing.frames)
    payload, shape = packing.payload, packing.shape
    op = WriteFile(scope, path, shape, payload, view, expect, call, ttl, quota, now, subjects)
    if sum(map(len, parts)) <= limits.INLINE_BYTES:
        wrote = yield from do(replace(op, payload=replace(payload, data=b"".join(parts))))
    else:
        wrote = None
        stood = yield from stands(scope.tenant, payload, parts)
        if stood:
            wrote = yield from do(op)
        if wrote is None:
            key = yield from upload(packing, scope, parts)
            if stood is not None:
                yield from mend(scope.tenant, replace(payload, key=key))
            try:
                wrote = yield from do(replace(op, payload=replace(payload, key=key)))
            except StoreUnavailable as error:
                if error.reason == "over quota":  # a sure refusal: nothing refers to the object
                    yield from do(DeleteObjects([key]))
                raise
            if wrote is not None and not wrote.adopted:
                yield from do(DeleteObjects([key]))
    if wrote is None:
        raise StoreUnavailable("the index refused a payload that it was given", reason="failed")
    return wrote
