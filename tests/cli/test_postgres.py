from __future__ import annotations

from pathlib import Path

from tests.cli.shell import shell
from tests.servers.postgres import Postgres


def test_one_string_is_a_store_and_its_password_is_never_printed(
    postgres: Postgres, tmp_path: Path
) -> None:
    role = postgres.new_role(password="hunter2")
    database = postgres.new_database(role).rpartition("/")[2]
    url = f"{postgres.dsn_of(database, role, 'hunter2')}?payloads={tmp_path / 'payloads'}"
    text = b"".join(b"line %d\n" % n for n in range(50_000))
    put = shell(tmp_path, "put", "--store", url, stdin=text)
    assert put.returncode == 0, put.stderr
    id = put.stdout.partition(b'id="')[2].partition(b'"')[0].decode()
    read = shell(tmp_path, "read", id, "--start", "777", "--limit", "1", "--store", url)
    assert b"line 776" in read.stdout
    missing = shell(tmp_path, "read", "res_0123456789", "--store", url)
    assert missing.returncode != 0
    said = [each.stdout + each.stderr for each in (put, read, missing)]
    assert f"@127.0.0.1:{postgres.port}".encode() in said[0]
    assert b"hunter2" not in b"".join(said)
