from __future__ import annotations

import json
import stat
from pathlib import Path

from tests.cli.shell import here, shell


def test_a_key_file_is_made_given_rotated_and_its_session_shredded(tmp_path: Path) -> None:
    key = tmp_path / "key"
    made = here(tmp_path, "keys", "new", str(key))
    assert made.exit_code == 0 and made.stdout.startswith("k")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    told = json.loads(here(tmp_path, "--json", "keys", "new", str(tmp_path / "other")).stdout)
    assert told["key"].startswith("k") and told["file"] == str(tmp_path / "other")
    missing = here(tmp_path, "--keys", str(tmp_path / "none"), "put", "-", stdin=b"x")
    assert missing.exit_code == 2 and missing.stderr.startswith("callslip: --keys='/")
    again = here(tmp_path, "keys", "new", str(key))
    assert again.exit_code == 2 and "callslip keys add" in again.stderr
    nowhere = here(tmp_path, "keys", "new", str(tmp_path / "no" / "key"))
    assert nowhere.exit_code == 2 and "there is no folder" in nowhere.stderr
    sealed = ("--keys", str(key), "--tenant", "acme")
    put = here(tmp_path, "put", "-", *sealed, "--json", stdin=b"plain words\n" * 9_000)
    assert put.exit_code == 0, put.stderr
    id = json.loads(put.stdout)["id"]
    assert "plain words" in here(tmp_path, "read", id, *sealed).stdout
    files = [path for path in (tmp_path / ".callslip").rglob("*") if path.is_file()]
    assert not any(b"plain words" in path.read_bytes() for path in files)
    without = here(tmp_path, "read", id, "--tenant", "acme")
    assert without.exit_code == 2 and "CALLSLIP_KEYS" in without.stderr
    assert here(tmp_path, "keys", "add", str(key)).exit_code == 0
    assert here(tmp_path, "keys", "rotate", *sealed).stdout == "2 keys wrapped anew\n"
    assert "plain words" in here(tmp_path, "read", id, *sealed).stdout
    assert here(tmp_path, "keys", "shred", "--keys", str(key), "-y").exit_code == 2
    asked = here(tmp_path, "keys", "shred", *sealed, stdin=b"y\n")
    assert asked.exit_code == 2 and "add --yes" in asked.stderr, "an answer in a pipe is nobody's"
    shredded = here(tmp_path, "keys", "shred", *sealed, "--user", "", "--session", "cli", "-y")
    assert shredded.stdout == "1 result gone, and their keys\n"
    assert here(tmp_path, "read", id, *sealed).exit_code == 3
    assert here(tmp_path, "keys", "rotate").exit_code == 2


def test_a_warning_of_the_library_is_a_line_of_the_commands(tmp_path: Path) -> None:
    key = tmp_path / "key"
    assert here(tmp_path, "keys", "new", str(key)).exit_code == 0
    key.chmod(0o644)
    done = shell(tmp_path, "--keys", str(key), "put", "-q", "-", stdin=b"x")
    assert done.returncode == 0, done.stderr
    said = f"callslip: the key file {key} can be read by others: chmod 600 it\n"
    assert done.stderr.decode() == said


def test_a_store_without_keys_has_none_to_rotate_and_the_option_is_named(tmp_path: Path) -> None:
    assert here(tmp_path, "put", "-q", "-", stdin=b"x").exit_code == 0
    for words in (["keys", "rotate"], ["--tenant", "t", "keys", "shred", "-y"]):
        done = here(tmp_path, *words)
        assert done.exit_code == 2 and "callslip: --keys" in done.stderr
