"""A server that is slow, restarted, gone or another: bounded, retried, and what is said of it."""

from __future__ import annotations

import os
import pickle
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from callslip import ResultStore
from callslip.errors import CallslipError, SettingsError, StoreUnavailable
from callslip.handle import Quota, Scope
from callslip.settings import Settings, place_of, spool_of
from callslip.stacks import fileops, ops
from callslip.stacks.index import postgres as package
from callslip.stacks.index.postgres import PostgresIndex, pool, server
from callslip.testing.index import HOME, NOW, insert, make_row
from callslip.testing.index_files import make_write
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres
from tests.servers.proxy import FaultProxy
from tests.stacks.index.postgres.conftest import Opens


@pytest.fixture
def proxy(postgres: Postgres) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", postgres.port) as proxy:
        yield proxy


@pytest.fixture
def far(url: str, postgres: Postgres, proxy: FaultProxy) -> Iterator[PostgresIndex]:
    """An index behind the proxy, with a row in it."""
    index = PostgresIndex(url.replace(f":{postgres.port}/", f":{proxy.port}/"))
    assert index.run(insert(make_row(), "res_a")) is not None
    yield index
    index.close()


def test_each_operation_is_one_round_trip(far: PostgresIndex, proxy: FaultProxy) -> None:
    shared = make_row().payload.digest
    for op in (
        ops.Get(HOME, "res_a", NOW + 1),
        ops.Get(HOME, "res_x", NOW + 1),
        ops.Get(replace(HOME, user="bob"), "res_a", NOW + 1),
        ops.List(HOME, 0, 9, NOW + 1),
        ops.FindPayload("acme", shared),
        insert(make_row("b", key="k/b"), "res_b"),
        insert(make_row("a", call="2"), "res_c", quota=Quota(9, 9999, 9, 9999), ttl=100.0),
        make_write("text"),
        fileops.ReadFile(HOME, "todo.md", fileops.View(), NOW + 1),
        fileops.ListFiles(HOME, fileops.View(None, "run"), NOW + 1),
        ops.Count("acme"),
        ops.Sessions(9),
        ops.Remove("closed", NOW + 1, "acme", "ana", "s"),
    ):
        proxy.reset()
        far.run(op)
        assert (type(op), proxy.round_trips, proxy.connections) == (type(op), 1, 0)
    # Activity, noted once a minute, is one more.
    far.run(insert(make_row("d"), "res_d", now=NOW + 2))
    proxy.reset()
    far.run(ops.Get(HOME, "res_d", NOW + 100))
    assert proxy.round_trips == 2


def test_the_next_operation_works_after_the_server_was_restarted(
    opens: Opens, postgres: Postgres
) -> None:
    index = opens()
    run = [index.run(insert(make_row(str(n)), f"res_{n}")) for n in range(3)]
    assert all(run)
    for op in (ops.Get(HOME, "res_0", NOW), insert(make_row("x"), "res_x"), make_write("text")):
        postgres.restart()
        assert index.run(op) is not None
    postgres.restart()
    assert index.run(ops.Remove("closed", NOW, "acme", "ana", "s")) == 4


def test_an_insert_whose_answer_was_lost_is_made_once(
    far: PostgresIndex, proxy: FaultProxy
) -> None:
    row = make_row("b", key="k/b")
    proxy.cut(1, "down")  # the server has done it, and cannot say so
    uncut = threading.Timer(0.3, proxy.clear)
    real = package.inserting.insert

    def lost_once(db: object, op: ops.Insert) -> object:
        try:
            return real(db, op)  # type: ignore[arg-type]
        finally:
            proxy.clear()

    uncut.start()
    package.WRITES[ops.Insert] = lost_once
    try:
        inserted = far.run(insert(row, "res_b"))
    finally:
        package.WRITES[ops.Insert] = real
        uncut.cancel()
    assert inserted is not None
    assert (inserted.created, inserted.adopted) == (False, True)
    assert far.run(ops.Count()).results == 2


def test_a_write_of_which_nobody_knows_whether_it_was_done_is_not_done_again(
    far: PostgresIndex, proxy: FaultProxy
) -> None:
    proxy.cut(1, "down")
    with pytest.raises(StoreUnavailable) as caught:
        far.run(make_write("text"))
    assert caught.value.reason == "unreachable"
    proxy.clear()
    assert far.run(ops.Count()).files == 1


@pytest.mark.parametrize("way", ["refuse", "hang", "lock"])
def test_nothing_is_waited_for_longer_than_the_bound(
    far: PostgresIndex, proxy: FaultProxy, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "INDEX_SECONDS", 0.5)
    if way == "lock":
        other = psycopg.connect(far.server.address.conninfo)
        other.execute(f"LOCK TABLE {far.server.address.schema}.sessions")  # type: ignore[arg-type]
    else:
        getattr(proxy, way)()
    with pytest.raises(StoreUnavailable) as caught:
        far.run(ops.Get(HOME, "res_a", NOW))
    reasons = {"refuse": "unreachable", "hang": "timed out", "lock": "locked"}
    assert caught.value.reason in (reasons[way], "timed out")
    if way == "lock":
        other.close()
    proxy.clear()
    assert isinstance(far.run(ops.Get(HOME, "res_a", NOW)), ops.Result)


def test_a_sweep_leaves_what_others_work_on(opens: Opens, postgres: Postgres) -> None:
    index = opens()
    for n in range(3):
        scope = replace(HOME, session=f"s{n}")
        assert index.run(insert(make_row(scope=scope), "res_a", ttl=10.0)) is not None
    address = index.server.address
    with psycopg.connect(postgres.dsn_of(address.conninfo.rpartition("/")[2])) as other:
        other.execute(
            f"SELECT 1 FROM {address.schema}.sessions WHERE name = 's1' FOR UPDATE".encode()
        )
        assert index.run(ops.Sweep(NOW + 20, 200, 1000.0)) is True
        assert index.run(ops.Count()).results == 1
    assert index.run(ops.Sweep(NOW + 20, 200, 1000.0)) is False
    assert index.run(ops.Count()).results == 0


def test_what_refuses_a_worker_is_said(postgres: Postgres, tmp_path: Path) -> None:
    role = postgres.new_role(password="hunter2")
    owned = postgres.new_database(postgres.new_role())
    database = owned.rpartition("/")[2]
    assert ResultStore(owned, payloads=tmp_path).migrate().found == 0
    right = postgres.dsn_of(database, role, "hunter2")
    denied = "permission denied"
    crowded = postgres.new_role()
    postgres.sql(f"ALTER ROLE {crowded} CONNECTION LIMIT 0")
    reader = postgres.new_role()
    postgres.sql(f"ALTER ROLE {reader} SET default_transaction_read_only = on")
    for statement in (
        f"GRANT USAGE ON SCHEMA callslip TO {reader}",
        f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA callslip TO {reader}",
    ):
        postgres.sql(statement, postgres.dsn_of(database))
    full = "it has no connection left: max_connections, or a role's or database's limit"
    reads = "it only reads: a standby, or default_transaction_read_only"
    for url, reason, words in (
        (postgres.dsn_of(database, crowded), "unreachable", full),
        (postgres.dsn_of(database, reader), denied, reads),
        (postgres.dsn_of(database, role, "hunter3"), denied, "it refuses user or password"),
        (postgres.dsn_of(database, "nobody_here"), denied, "it refuses user or password"),
        (right.replace(database, "nowhere"), "failed", "there is no such database"),
        (right.replace(f":{postgres.port}", ":1"), "unreachable", "nothing listens there"),
        (f"{right}?sslmode=require", "unreachable", "TLS does not work with it"),
        (right, denied, "its role may not use that schema: docs/postgres.md, Rights"),
    ):
        with pytest.raises(StoreUnavailable) as caught:
            ResultStore(url, payloads=tmp_path, spool="").session("s").put("text")
        assert caught.value.reason == reason
        assert str(caught.value).endswith(f"): {words}")


def test_a_worker_that_gets_no_more_connections_goes_on_with_those_it_has(
    postgres: Postgres, tmp_path: Path
) -> None:
    role = postgres.new_role()
    store = ResultStore(postgres.new_database(role), payloads=tmp_path, spool="")
    store.session("s").put("first")
    postgres.sql(f"ALTER ROLE {role} CONNECTION LIMIT 1")
    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(lambda n: store.session(f"s{n}").put(f"text {n}"), range(40)))
    assert len(told) == 40 and store.stats().results == 41
    store.close()


def test_no_message_shows_a_password_a_statement_or_a_value(
    postgres: Postgres, tmp_path: Path
) -> None:
    role = postgres.new_role(password="hunter2")
    database = postgres.new_database(role).rpartition("/")[2]
    right = postgres.dsn_of(database, role, "hunter2")
    seen = []
    for url in (
        postgres.dsn_of(database, role, "hunter3"),
        right.replace(f":{postgres.port}", ":1"),
        right.replace(database, "nowhere"),
        f"{right}?schema=Bad;",
        f"{right}?connections=hunter2",
        right.replace("postgresql://", "postgresql+asyncpg://"),
    ):
        try:
            store = ResultStore(url, payloads=tmp_path, spool="")
            seen += [repr(store), repr(store.settings), repr(place_of(store.settings))]
            PostgresIndex(url).run(ops.Count())
        except CallslipError:
            seen.append(traceback.format_exc(chain=True))
    index = PostgresIndex(right)
    try:
        index.server.transact(
            lambda db: db.execute("SELECT 'hunter2'::int"), tenant=None, again=True
        )
    except StoreUnavailable:
        seen.append(traceback.format_exc(chain=True).partition("callslip.errors")[2])
    assert len(seen) == 19 - 3
    assert not [text for text in seen if "hunter" in text.replace("connections='hunter2'", "")]
    assert pickle.loads(pickle.dumps(store)).settings.url == store.settings.url


def test_another_password_is_the_same_store_with_the_same_spool() -> None:
    def spool(url: str) -> Path | None:
        return spool_of(Settings(url=url, payloads="s3://bucket/p"))

    base = spool("postgresql://ana:one@db/app")
    assert base == spool("postgresql://ana:two@db/app") == spool("postgres://ana@db/app")
    assert (
        len({base, spool("postgresql://ana@db/other"), spool("postgresql://ana@db/app?schema=b")})
        == 3
    )
    assert "one" not in str(base)


def test_an_index_on_a_server_has_no_folder_for_its_payloads() -> None:
    with pytest.raises(
        SettingsError, match=r"payloads=None: .* give payloads='s3://bucket/prefix'"
    ):
        ResultStore("postgresql://ana:secret@db/app")


def test_a_schema_of_a_newer_callslip_is_refused(opens: Opens, postgres: Postgres) -> None:
    index = opens()
    index.run(ops.Count())
    address = index.server.address
    postgres.sql(f"UPDATE {address.schema}.schema_version SET version = 99", address.conninfo)
    with pytest.raises(SettingsError, match="written by a newer callslip"):
        PostgresIndex(f"{address.conninfo}?schema={address.schema}").run(ops.Count())


def test_a_role_without_rights_is_told_which(postgres: Postgres) -> None:
    database = postgres.new_database().rpartition("/")[2]
    role = postgres.new_role()
    index = PostgresIndex(postgres.dsn_of(database, role))
    with pytest.raises(SettingsError, match="GRANT CREATE ON DATABASE"):
        index.run(ops.Count())
    # What the page about PostgreSQL says to grant is enough.
    owner = PostgresIndex(postgres.dsn_of(database))
    owner.run(ops.Count())
    for grant in (
        f"GRANT USAGE ON SCHEMA callslip TO {role}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA callslip TO {role}",
    ):
        postgres.sql(grant, postgres.dsn_of(database))
    assert index.run(insert(make_row(), "res_a")) is not None
    assert index.run(ops.Remove("deleted", NOW, "acme", tombstones=False)) == 1
    assert index.run(ops.Sweep(NOW, 200, 20.0)) is False
    owner.close()
    index.close()


def test_a_schema_that_was_dropped_is_made_anew(opens: Opens, postgres: Postgres) -> None:
    index = opens()
    assert index.run(insert(make_row(), "res_a")) is not None
    address = index.server.address
    postgres.sql(f"DROP SCHEMA {address.schema} CASCADE", address.conninfo)
    assert index.run(ops.Count()).results == 0


def test_two_deployments_share_a_database_and_nothing_else(opens: Opens) -> None:
    one, two = opens(), opens()
    assert one.run(insert(make_row(), "res_a")) is not None
    assert two.run(ops.Get(HOME, "res_a", NOW)) is None
    assert two.run(ops.Count()).results == 0


def test_a_pooler_in_transaction_mode_makes_no_difference(pgbouncer: PgBouncer) -> None:
    database = pgbouncer.new_database()
    indexes = [PostgresIndex(f"{database}?schema=s{n}") for n in range(2)]
    for n in range(30):
        for index in indexes:
            assert index.run(insert(make_row(str(n)), f"res_{n}")) is not None
    for index in indexes:
        assert index.run(ops.Count()).results == 30
        assert index.run(ops.Repair(mend=False)) == []
        index.close()


def test_counts_that_are_wrong_are_found_and_mended(opens: Opens, postgres: Postgres) -> None:
    index = opens()
    assert index.run(insert(make_row(), "res_a")) is not None
    where = index.server.address
    for wrong in (
        "UPDATE {0}.payloads SET refs = 7",
        "UPDATE {0}.sessions SET results = 7, dead_bytes = 1",
        "INSERT INTO {0}.deltas (tenant, content_bytes) VALUES ('acme', 5)",
        "INSERT INTO {0}.tallies (tenant, sessions) VALUES ('nobody', 1)",
    ):
        postgres.sql(wrong.format(where.schema), postgres.dsn_of(where.conninfo.rpartition("/")[2]))
        assert index.run(ops.Repair(mend=False)) != []
        assert index.run(ops.Repair(mend=True)) != []
        assert index.run(ops.Repair(mend=False)) == []


def test_names_that_no_index_entry_has_room_for_are_refused_and_long_ones_are_not(
    opens: Opens,
) -> None:
    index = opens()
    scope = Scope("\ud800" * 400, "b" * 700, os.urandom(350).hex())
    assert index.run(insert(make_row(scope=scope), "res_a")) is not None
    assert isinstance(index.run(ops.Get(scope, "res_a", NOW)), ops.Result)
    with pytest.raises(SettingsError, match="give shorter ones"):
        index.run(insert(make_row(scope=replace(scope, user="b" * 800)), "res_a"))


def test_a_page_a_search_and_a_query_ask_the_index_once(
    url: str, postgres: Postgres, proxy: FaultProxy, tmp_path: Path
) -> None:
    far = url.replace(f":{postgres.port}/", f":{proxy.port}/")
    store = ResultStore(far, payloads=tmp_path)
    session = store.session("s", user="ana", tenant="acme")
    rows = [{"id": n, "name": f"row {n}", "text": "x" * 100} for n in range(5_000)]
    id = session.put(rows, tool="t").id
    session.read(id)
    trips = {}
    for name, act in (
        ("read", lambda: session.read(id, start=900)),
        ("search", lambda: session.search(id, "row 77")),
        ("query", lambda: session.query(id, where="id = 7")),
        ("get", lambda: session.get(id, 8)),
        ("list", session.list),
        ("put", lambda: session.put("small", tool="t")),
        ("put again", lambda: session.put("small", tool="t")),
        ("put large", lambda: session.put("large\n" + os.urandom(200_000).hex(), tool="t")),
    ):
        proxy.reset()
        act()
        trips[name] = proxy.round_trips
    # A large one: is it there, where do payloads go, is it there by now, and the row.
    assert trips == {**dict.fromkeys(trips, 1), "put large": 3}
    store.close()


@pytest.mark.parametrize("password", ["pa#ss", "pa?ss", "pa[ss", "pa℀ss", "p:a+ss'\\"])
def test_a_password_may_have_whatever_libpq_takes(
    postgres: Postgres, password: str, tmp_path: Path
) -> None:
    role = postgres.new_role(password=password)
    dsn = postgres.new_database(owner=role)
    url = dsn.replace(f"{role}@", f"{role}:{password}@")
    store = ResultStore(url, payloads=str(tmp_path), spool="")
    assert store.session("a").put("x", tool="t").id
    store.close()


@pytest.mark.parametrize(
    "url", ["postgresql://u:s%cret@h/d", "postgresql://u:s%20cret@h/d?sslmod=1"]
)
def test_what_libpq_does_not_read_is_a_setting_that_is_wrong(url: str) -> None:
    with pytest.raises(SettingsError, match="libpq does not read it") as raised:
        PostgresIndex(url)
    assert "cret" not in "".join(traceback.format_exception(raised.value))


def test_a_list_of_hosts_that_hang_is_through_within_the_bound(
    url: str, postgres: Postgres, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "INDEX_SECONDS", 6.0)  # three hosts with two seconds each
    waits: list[int] = []
    connect = pool.Connection.connect

    def recorded(*args: Any, connect_timeout: int, **given: Any) -> Any:
        waits.append(connect_timeout)
        return connect(*args, connect_timeout=connect_timeout, **given)

    monkeypatch.setattr(pool.Connection, "connect", recorded)
    proxy.hang()
    hosts = ",".join([f"127.0.0.1:{proxy.port}"] * 3)
    index = PostgresIndex(url.replace(f"127.0.0.1:{postgres.port}", hosts))
    with pytest.raises(StoreUnavailable) as raised:
        index.run(ops.Count())
    assert raised.value.reason == "timed out"
    assert sum(waits) * 3 <= server.INDEX_SECONDS  # psycopg waits that long for each
    proxy.clear()
    proxy.drop()
    index.run(ops.Count())
    index.close()


def test_a_scope_that_has_no_room_is_refused_before_a_spool_takes_what_never_arrives(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.dsn_of("nowhere")  # the index need not be asked
    store = ResultStore(url, payloads=str(tmp_path), spool=str(tmp_path / "spool"))
    store.session("ü" * 1_300)
    with pytest.raises(SettingsError, match="2,602 bytes together"):
        store.session("ü" * 1_300, user="u", tenant="t")
