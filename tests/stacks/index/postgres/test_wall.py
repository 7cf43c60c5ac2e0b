"""Row-level security: what a statement sees that forgets whose rows it wants."""

from __future__ import annotations

import psycopg
import pytest

from callslip.handle import Scope
from callslip.stacks import ops
from callslip.stacks.index.postgres import PostgresIndex
from callslip.testing.index import NOW, insert, make_row
from callslip.testing.index_files import make_write
from tests.servers.postgres import Postgres
from tests.stacks.index.postgres.conftest import Opens


def fill(index: PostgresIndex) -> None:
    for tenant in ("a", "b"):
        scope = Scope("s", "u", tenant)
        assert index.run(insert(make_row("1", scope=scope), "res_1")) is not None
        assert index.run(insert(make_row("2", scope=scope), "res_2")) is not None
        assert index.run(make_write("text", scope=scope)) is not None
        assert index.run(ops.Remove("deleted", NOW, tenant, "u", "s", "res_1")) == 1


def tables_of(index: PostgresIndex, postgres: Postgres) -> list[str]:
    address = index.server.address
    rows = postgres.sql(
        "SELECT c.table_name FROM information_schema.columns c JOIN information_schema.tables t"
        " USING (table_schema, table_name) WHERE c.column_name = 'tenant'"
        f" AND t.table_type = 'BASE TABLE' AND c.table_schema = '{address.schema}'",
        postgres.dsn_of(address.conninfo.rpartition("/")[2]),
    )
    return sorted(str(name) for (name,) in rows)


def test_no_statement_sees_another_tenants_rows_whatever_it_asks(
    opens: Opens, postgres: Postgres
) -> None:
    index = opens()
    fill(index)
    tables = tables_of(index, postgres)
    assert {"results", "sessions", "payloads", "tombstones", "files", "branches"} <= set(tables)
    for tenant in ("a", "b", "c"):
        for table in tables:
            rows = index.server.transact(
                lambda db, table=table: db.execute(f"SELECT DISTINCT tenant FROM {table}"),
                tenant=tenant.encode(),
                again=True,
            )
            assert {bytes(name) for (name,) in rows} <= {tenant.encode()}, table
    seen = index.server.transact(
        lambda db: db.execute("SELECT DISTINCT tenant FROM results"), tenant=None, again=True
    )
    assert len(seen) == 2


def test_no_statement_writes_into_another_tenant(opens: Opens) -> None:
    index = opens()
    fill(index)

    def touch(statement: str) -> int:
        return index.server.transact(
            lambda db: db.execute(statement).rowcount, tenant=b"a", again=True
        )

    assert touch("DELETE FROM results") == 1
    assert touch("UPDATE sessions SET closed = true") == 1
    assert index.run(ops.Count("b")).results == 1
    with pytest.raises(Exception, match="InsufficientPrivilege"):
        touch("INSERT INTO deltas (tenant, results) VALUES ('b', 5)")


def test_who_says_no_tenant_sees_nothing(opens: Opens, postgres: Postgres) -> None:
    index = opens()
    fill(index)
    address = index.server.address
    with psycopg.connect(address.conninfo) as plain:
        for table in tables_of(index, postgres):
            found = plain.execute(f"SELECT count(*) FROM {address.schema}.{table}".encode())
            assert found.fetchall() == [(0,)], table
