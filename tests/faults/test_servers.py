"""The servers and the proxy do what the tests that lean on them need."""

from __future__ import annotations

import http.client
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import psycopg
import pytest

from tests.servers.http import Requests
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres
from tests.servers.process import answers, wait_for
from tests.servers.proxy import FaultProxy
from tests.servers.s3 import Moto

ROOT = Path(__file__).parents[2]


def test_what_postgresql_acknowledged_survives_its_killing(postgres: Postgres) -> None:
    dsn = postgres.new_database()
    postgres.sql("CREATE TABLE kept (n int)", dsn)
    postgres.sql("INSERT INTO kept VALUES (7)", dsn)
    postgres.kill()
    with pytest.raises(psycopg.OperationalError):
        postgres.sql("SELECT 1", dsn)
    postgres.start()
    assert postgres.sql("SELECT n FROM kept", dsn) == [(7,)]


def test_a_role_with_a_password_has_to_say_it(postgres: Postgres) -> None:
    role = postgres.new_role(password="it's me")
    assert postgres.sql("SELECT 1", postgres.dsn_of("postgres", role, "it's me")) == [(1,)]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        postgres.sql("SELECT 1", postgres.dsn_of("postgres", role, "somebody"))


@pytest.mark.parametrize("kind", ["s3", "azure", pytest.param("ceph", marks=pytest.mark.ceph)])
def test_an_object_store_is_reached_through_the_environment(
    kind: str, request: pytest.FixtureRequest
) -> None:
    import obstore
    from obstore.store import from_url

    server = request.getfixturevalue(kind)
    store = from_url(server.url("some/prefix"))
    obstore.put(store, "a", b"1", mode="create")
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.put(store, "a", b"2", mode="create")
    assert [entry["path"] for page in obstore.list(store) for entry in page] == ["a"]


def test_a_pooler_in_transaction_mode_is_at_hand(pgbouncer: PgBouncer) -> None:
    dsn = pgbouncer.new_database()
    seen = set()
    for _ in range(2):
        with psycopg.connect(dsn, autocommit=True) as one, psycopg.connect(dsn) as other:
            other.execute("SELECT 1")  # its transaction holds one of the server's connections
            for _ in range(3):
                seen |= set(one.execute("SELECT pg_backend_pid()").fetchall())
    assert len(seen) > 1, "one client was always given the same connection"


def get(port: int, path: str, data: bytes | None = None) -> bytes:
    method = "GET" if data is None else "PUT"
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", data=data, method=method)
    request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/x")
    request.add_header("Content-Type", "application/octet-stream")
    with urllib.request.urlopen(request, timeout=10) as reply:
        body: bytes = reply.read()
        return body


def test_the_proxy_refuses_and_comes_back_on_its_port(postgres: Postgres) -> None:
    with FaultProxy("127.0.0.1", postgres.port) as proxy:
        dsn = postgres.dsn_of("postgres", port=proxy.port)
        with psycopg.connect(dsn) as connection:
            connection.execute("SELECT 1")
            proxy.refuse()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError, match="refused"):
            postgres.sql("SELECT 1", dsn)
        proxy.clear()
        assert postgres.sql("SELECT 1", dsn) == [(1,)]


def test_the_proxy_counts_the_round_trips_of_a_connection(postgres: Postgres) -> None:
    with FaultProxy("127.0.0.1", postgres.port) as proxy:
        dsn = postgres.dsn_of("postgres", port=proxy.port)
        with psycopg.connect(dsn, autocommit=True) as connection:
            proxy.reset()
            for _ in range(5):
                connection.execute("SELECT repeat('x', 200000)")
            assert proxy.round_trips == 5


def test_the_proxy_hangs_until_it_is_cleared(postgres: Postgres) -> None:
    with FaultProxy("127.0.0.1", postgres.port) as proxy:
        proxy.hang()
        dsn = postgres.dsn_of("postgres", port=proxy.port)
        with pytest.raises(psycopg.errors.ConnectionTimeout):
            psycopg.connect(dsn, connect_timeout=2)
        proxy.clear()
        assert postgres.sql("SELECT 1", dsn) == [(1,)]


def test_the_proxy_counts_and_refuses_requests(s3: Moto) -> None:
    with FaultProxy("127.0.0.1", s3.port, http=True) as proxy:
        get(proxy.port, f"{s3.bucket}/a", b"GET / HTTP/1.1\r\n\r\n" * 10_000)
        proxy.slow_down(1)
        with pytest.raises(urllib.error.HTTPError, match="503"):
            get(proxy.port, f"{s3.bucket}/b", b"x" * 300_000)
        assert get(proxy.port, f"{s3.bucket}/a") == b"GET / HTTP/1.1\r\n\r\n" * 10_000
        assert proxy.requests == {"PUT": 2, "GET": 1}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(proxy.port, f"{s3.bucket}/b")


def test_the_proxy_cuts_and_corrupts_bodies(s3: Moto) -> None:
    with FaultProxy("127.0.0.1", s3.port, http=True) as proxy:
        whole = b"x" * 300_000
        get(proxy.port, f"{s3.bucket}/a", whole)
        proxy.corrupt()
        spoiled = get(proxy.port, f"{s3.bucket}/a")
        assert len(spoiled) == len(whole) and spoiled != whole
        proxy.clear()
        proxy.cut(100_000, "down")
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            get(proxy.port, f"{s3.bucket}/a")
        proxy.clear()
        proxy.cut(100_000, "up")
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            get(proxy.port, f"{s3.bucket}/cut", whole)
        proxy.clear()
        assert get(proxy.port, f"{s3.bucket}/a") == whole


def test_the_parts_of_a_chunked_request_are_told_apart() -> None:
    stream = (
        b"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4;x=1\r\nab\r\n\r\n3\r\nGET\r\n0\r\n\r\n"
        b"GET /b HTTP/1.1\r\n\r\nPUT /c HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyzHEAD /d HTTP/1.1\r\n\r\n"
    )
    for step in (1, 2, 3, 7, 1000):
        requests = Requests()
        parts = [
            part
            for at in range(0, len(stream), step)
            for part in requests.feed(stream[at : at + step])
        ]
        assert b"".join(raw for _, raw, _ in parts) == stream
        assert [line for line, _, _ in parts if line] == ["PUT /a", "GET /b", "PUT /c", "HEAD /d"]
        assert sum(ends for _, _, ends in parts) == 4


def test_servers_end_with_a_test_process_that_is_killed() -> None:
    code = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.servers.s3 import Moto\n"
        "server = Moto()\n"
        "print(server.port, server.folder, flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    port, folder = process.stdout.readline().split()
    assert answers(int(port))
    process.kill()
    process.wait()
    wait_for(lambda: not answers(int(port)) and not Path(folder).exists(), "the server's end")
