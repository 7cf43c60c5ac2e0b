"""Inserting into PostgreSQL: a row in one round trip, a version of a file in a few."""

from __future__ import annotations

from typing import TypeVar

import psycopg

from callslip.errors import StoreUnavailable
from callslip.handle import Quota
from callslip.stacks import ops
from callslip.stacks.index.postgres.base_functions import GONE, KEPT, TAKEN
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import (
    blob_if_any,
    payload_from,
    result_from,
    scope_key,
    shape_to_blob,
    text_if_any,
    to_blob,
)

T = TypeVar("T")


def caps_of(quota: Quota) -> list[int | None] | None:
    """A quota as the database's functions take it; None for none."""
    caps = [quota.session_results, quota.session_bytes, quota.tenant_results, quota.tenant_bytes]
    return None if all(cap is None for cap in caps) else caps


def place_of(payload: ops.Payload) -> tuple[bytes, bytes, int, int, bytes | None, bytes | None]:
    """A payload's columns: digest, form, packed, trailer, key, data."""
    key = blob_if_any(payload.key)
    return (
        payload.digest, to_blob(payload.form), payload.packed, payload.trailer, key, payload.data,
    )  # fmt: skip


def insert(db: Db, op: ops.Insert) -> ops.Inserted | None:
    """Do `ops.Insert`."""
    result, given = op.result, op.result.payload
    values = (
        *scope_key(result.scope), op.ttl, op.now,
        [to_blob(id) for id in sorted(op.ids, key=len)],
        result.call, to_blob(result.tool), to_blob(result.args), to_blob(result.status),
        shape_to_blob(result.shape), to_blob(result.preview), result.shape.size, result.created_at,
        *place_of(given), caps_of(op.quota), op.expires_at, [to_blob(name) for name in op.subjects],
    )  # fmt: skip
    last = len(values) - 1
    kinds = {5: "::bytea[]", last - 2: "::bigint[]", last: "::bytea[]"}
    marks = ", ".join(f"%s{kinds.get(n, '')}" for n in range(len(values)))
    try:
        row = db.finish(f"SELECT * FROM insert_result({marks})", values)[0]
    except psycopg.Error as error:
        if error.sqlstate == GONE:
            db.rollback()
            return None
        if error.sqlstate == KEPT:
            raise StoreUnavailable(
                "what fills the quota is under a legal hold", reason="over quota"
            ) from None
        if error.sqlstate == TAKEN:
            raise StoreUnavailable(
                "every id offered for a result is taken in its session", reason="failed"
            ) from None
        raise
    created, adopted, *columns, data = row
    if data is None and columns[13] is None:
        data = given.data  # what was given is what is kept: it was not sent back
    return ops.Inserted(result_from(result.scope, columns, data), created, adopted)


def find(db: Db, op: ops.FindPayload) -> ops.Payload | None:
    """Do `ops.FindPayload`."""
    row = db.finish(
        "SELECT digest, form, packed, trailer, key FROM payloads WHERE tenant = %s AND digest = %s",
        (to_blob(op.tenant), op.digest),
    ).fetchone()
    return None if row is None else payload_from(row[0], row[1], row[2], row[3], row[4], None)


def replace(db: Db, op: ops.Replace) -> bool:
    """Do `ops.Replace`."""
    digest, form, packed, trailer, key, data = place_of(op.payload)
    moved = db.finish(
        "SELECT move_payload(n, %s, %s, %s, %s, %s) FROM payloads p WHERE tenant = %s"
        " AND digest = %s AND (%s OR %s)"
        " AND NOT EXISTS (SELECT 1 FROM garbage g WHERE g.key = %s)",
        (
            form, packed, trailer, key, data, to_blob(op.tenant), digest,
            key is not None, data is not None, key,
        ),
    )  # fmt: skip
    return bool(moved)


def place(db: Db, op: ops.PayloadPlace) -> str | None:
    """Do `ops.PayloadPlace`."""
    where = blob_if_any(op.where)
    (known,) = db.finish("SELECT payload_place(%s)", (where,))[0]
    return text_if_any(known)
