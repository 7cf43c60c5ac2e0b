from __future__ import annotations

import json
import os
import stat
from datetime import date
from pathlib import Path

import pytest

from callslip import ResultStore
from callslip.session import Session
from tests.cli.shell import here, shell, start

EVERY_BYTE = bytes(range(256)) * 4000 + b"\r\n\xff"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return ResultStore(tmp_path / ".callslip").session("cli")


def test_what_went_in_through_a_pipe_comes_out_byte_for_byte(tmp_path: Path) -> None:
    stored = shell(tmp_path, "put", "-q", "-", stdin=EVERY_BYTE)
    assert stored.returncode == 0 and stored.stderr == b""
    done = shell(tmp_path, "export", stored.stdout.decode().strip())
    assert done.stdout == EVERY_BYTE and done.stderr == b""


def test_export_to_a_file_is_exact_and_replaces_it_whole(tmp_path: Path, session: Session) -> None:
    id = session.put(EVERY_BYTE).id
    target = tmp_path / "copy"
    target.write_text("before")
    target.chmod(0o640)
    done = here(tmp_path, "export", id, "-o", str(target), "--json")
    assert json.loads(done.stdout)["size"] == len(EVERY_BYTE)
    assert target.read_bytes() == EVERY_BYTE
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir() if "part" in path.name) == []


def test_a_file_that_cannot_be_written_is_a_line_and_leaves_the_old_one(
    tmp_path: Path, session: Session
) -> None:
    id = session.put("x" * 100).id
    done = here(tmp_path, "export", id, "-o", str(tmp_path / "no" / "such" / "folder"))
    assert done.exit_code == 2 and done.stderr.startswith("callslip: ")
    if os.path.exists("/dev/full"):
        full = here(tmp_path, "export", id, "-o", "/dev/full")
        assert full.exit_code == 2 and "No space left" in full.stderr


def test_a_python_object_is_exported_as_its_view_and_said_so(
    tmp_path: Path, session: Session
) -> None:
    id = session.put({"day": date(2025, 1, 2), "tags": {"a"}}).id
    done = here(tmp_path, "export", id)
    assert json.loads(done.stdout)["day"] == "2025-01-02"
    assert "JSON view" in done.stderr and "session.load" in done.stderr
    refused = here(tmp_path, "export", id, "--exact")
    assert refused.exit_code == 2 and refused.stdout == ""
    plain = here(tmp_path, "export", session.put({"a": 1}).id, "--exact")
    assert plain.exit_code == 0 and json.loads(plain.stdout) == {"a": 1} and plain.stderr == ""


def test_a_reader_that_leaves_gets_no_complaint(tmp_path: Path, session: Session) -> None:
    id = session.put("a line of the text\n" * 300_000).id
    process = start(tmp_path, "export", id)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.read(7) == b"a line "
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) == 141
    process.stderr.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_behind_stdout_is_one_line(tmp_path: Path, session: Session) -> None:
    id = session.put("text\n" * 10_000).id
    with open("/dev/full", "wb") as full:
        done = shell(tmp_path, "read", id, stdout=full)
    assert done.returncode == 2
    assert done.stderr == b"callslip: stdout: No space left on device\n"
