from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import here, shell
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


@pytest.mark.parametrize("as_option", [False, True])
def test_what_is_said_of_a_store_is_said_without_its_password(
    postgres: Postgres, tmp_path: Path, as_option: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    role = postgres.new_role(password="hunter2")
    database = postgres.new_database(role).rpartition("/")[2]
    url = f"{postgres.dsn_of(database, role, '' if as_option else 'hunter2')}?payloads=p"
    url += "&password=hunter2" if as_option else ""
    for words in (
        ("put", "-"),
        ("ls",),
        ("stats",),
        ("stats", "--json"),
        ("doctor",),
        ("doctor", "--json"),
        ("migrate", "--check", "--json"),
        ("backup", "copy"),
        ("gc", "--json"),
        ("verify", "--json"),
    ):
        ran = here(tmp_path, *words, "--store", url, stdin=b"hello")
        assert ran.exit_code == (2 if words[0] == "backup" else 0), ran.stderr
        assert "hunter2" not in ran.stdout + ran.stderr, words
