"""What docs/operating.md says of a database's backup and restore, done by its owner."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from callslip import ResultStore
from tests.servers.postgres import Postgres, programs

LARGE = "".join(f"{n * 7919 % 1000003:x} {n * 104729 % 999983:x}\n" for n in range(20_000))


def tool(name: str) -> str:
    found = programs()
    if found is None or not (found / name).exists():
        pytest.skip(f"no {name} beside the server's programs")
    return str(found / name)


def test_a_dump_by_the_owner_is_whole_and_comes_back(postgres: Postgres, tmp_path: Path) -> None:
    owner = postgres.new_role()
    dsn = postgres.new_database(owner)
    payloads = str(tmp_path / "payloads")
    ids = {}
    store = ResultStore(dsn, payloads=payloads, spool="", audit=True)
    for tenant in ("acme", "other"):
        session = store.session("a\0\ud800", user="ana", tenant=tenant)
        session.put("small", tool="t")
        ids[tenant] = session.put(f"{tenant} {LARGE}", tool="t").id
    told = len(list(store.audit(tenant="acme")))
    store.close()

    dump = [tool("pg_dump"), "--enable-row-security", "-n", "callslip", dsn]
    all_of_it = {**os.environ, "PGOPTIONS": "-c callslip.all=yes"}
    dumped = subprocess.run(dump, env=all_of_it, capture_output=True, check=True).stdout
    refused = subprocess.run([dump[0], *dump[2:]], env=all_of_it, capture_output=True, check=False)
    assert b"row-level security" in refused.stderr

    new = postgres.new_database(owner)
    load = [tool("psql"), "-q", "-v", "ON_ERROR_STOP=1", new]
    subprocess.run(load, input=dumped, env=all_of_it, capture_output=True, check=True)
    restored = ResultStore(new, payloads=payloads, spool="", audit=True)
    assert restored.verify().ok
    for tenant, id in ids.items():
        session = restored.session("a\0\ud800", user="ana", tenant=tenant)
        assert session.load(id) == f"{tenant} {LARGE}"
        assert len(session.list().handles) == 2
        session.put("one more", tool="t")
    assert len(list(restored.audit(tenant="acme"))) > told
    restored.close()
