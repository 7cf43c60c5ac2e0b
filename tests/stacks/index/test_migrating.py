"""An index that an older callslip left is brought to today's tables with all that is in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from callslip.stacks import auditops, ops
from callslip.stacks.index import schema
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index import HOME, NOW

BEFORE = {1: "the first", 4: "scratch files and memory"}


@pytest.mark.parametrize("version", BEFORE)
def test_an_older_index_is_held_told_and_deleted_from_like_a_new_one(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "index.db"
    old = sqlite3.connect(path)
    for statements in schema.MIGRATIONS[:version]:
        for statement in statements:
            old.execute(statement)
    old.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    old.execute(f"PRAGMA user_version = {version}")
    old.execute("INSERT INTO tenants (name) VALUES (?)", (b"acme",))
    old.execute(
        "INSERT INTO sessions (tenant, name, user, active_at, ttl, expires_at)"
        " VALUES (1, ?, ?, ?, 10, ?)",
        (b"s", b"ana", NOW, NOW + 10),
    )
    old.execute(
        "INSERT INTO payloads (tenant, digest, form, packed, trailer, key)"
        " VALUES (1, ?, ?, 60, 40, ?)",
        (b"d" * 32, b"str", b"k/1"),
    )
    old.execute(
        "INSERT INTO results (tenant, session, seq, id, call, payload, size, created_at, same_as,"
        " tool, status, args, shape, preview)"
        " VALUES (1, 1, 1, ?, ?, 1, 100, ?, x'', ?, x'', x'', ?, x'')",
        (b"res_a", b"c" * 16, NOW, b"search", b"{}"),
    )
    old.commit()
    old.close()
    index = SqliteIndex(path)
    found = index.run(ops.Get(HOME, "res_a", NOW))
    assert isinstance(found, ops.Result)
    assert (found.tool, found.payload.key) == ("search", "k/1")
    index.run(auditops.PlaceHold("acme", None, None, "case 7", "", NOW))
    assert index.run(ops.Sweep(NOW + 100, 9, 1000.0)) is False
    index.run(auditops.Release("acme", None, None))
    assert index.run(ops.Sweep(NOW + 100, 9, 1000.0)) is False
    assert list(index.run(ops.Garbage(9))) == ["k/1"]
    assert index.run(ops.Repair(mend=False)) == []
    index.close()
