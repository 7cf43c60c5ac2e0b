"""The shipped payload stores keep the contract, and a folder keeps more than that."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from callslip import ResultStore
from callslip.errors import PayloadDamaged, SettingsError, StoreUnavailable
from callslip.stacks.ops import DeleteObjects, Get, ListObjects, PutObject, ReadObject
from callslip.stacks.payloads import Payloads, folder, open_payloads
from callslip.testing.payloads import PayloadsContract, key
from tests.machine import forked


class TestFolder(PayloadsContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.place = tmp_path
        self.opened = 0

    def open(self) -> Payloads:
        self.opened += 1
        return open_payloads(self.place / f"{self.opened}" / "payloads")


class TestFolderWithoutLinks(TestFolder):
    """As on a file system that has no hard links."""

    @pytest.fixture(autouse=True)
    def _no_links(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.ENOTSUP, "no links here")

        monkeypatch.setattr(os, "link", refuse)


class TestMemory(PayloadsContract):
    def open(self) -> Payloads:
        return open_payloads("memory://")


# --- where --------------------------------------------------------------------------------------


def test_a_path_and_a_file_url_are_the_same_folder(tmp_path: Path) -> None:
    place = tmp_path / "with space"
    open_payloads(place.as_uri()).run(PutObject(key("a"), [b"1"]))
    assert open_payloads(str(place)).run(ReadObject(key("a"), 0, 1)) == b"1"
    assert open_payloads(place).run(ReadObject(key("a"), 0, 1)) == b"1"


def test_what_is_no_payload_store_is_refused_by_name() -> None:
    for wrong in (
        "ftp://host/x",
        "postgresql://x",
        "",
        "file://host/x",
        "file:///x?plan",
        "file:///?plain",
    ):
        with pytest.raises(SettingsError):
            open_payloads(wrong)
    with pytest.raises(SettingsError):
        open_payloads("s3://").run(ReadObject(key("a"), 0, 1))


@pytest.mark.parametrize(
    "wrong",
    ["s3:/bucket/p", "s3:bucket", "S3//bucket", "gs:/b", "az//c", "file:/tmp/x", "s4://b", "s3://"],
)
def test_a_mistyped_place_is_refused_where_the_store_is_made_and_is_no_folder(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="write .*://…|give .*://"):
        ResultStore("store", payloads=wrong)
    with pytest.raises(SettingsError):
        ResultStore(f"postgresql://h/db?payloads={wrong}")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "wrong", ["postgresql:/h/db", "postgresql//h/db", "postgres:h", "sqlite:/x", "https:/h"]
)
def test_a_mistyped_index_is_refused_and_is_no_folder(wrong: str) -> None:
    with pytest.raises(SettingsError, match="write .*://…, or for a folder of such a name ./…"):
        ResultStore(wrong)
    ResultStore(f"./{wrong}")


def test_opening_and_reading_make_nothing(tmp_path: Path) -> None:
    store = open_payloads(tmp_path / "none" / "yet")
    assert list(store.run(ListObjects(None, 10))) == []
    store.run(DeleteObjects([key("a")]))
    with pytest.raises(PayloadDamaged):
        store.run(ReadObject(key("a"), 0, 1))
    assert list(tmp_path.iterdir()) == []


def test_a_url_with_a_secret_is_not_shown() -> None:
    store = open_payloads("az://container/x?sig=SECRET")
    assert "SECRET" not in repr(store)


def test_only_payload_operations_are_run() -> None:
    with pytest.raises(TypeError, match="Get"):
        open_payloads("memory://").run(Get(None, "res_a", 0.0))  # type: ignore[arg-type]


# --- a folder's rights, durability and leftovers ------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o277, 0o777])
def test_rights_are_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        open_payloads(tmp_path / "payloads").run(PutObject("t/s/a.cslip", [b"secret"]))
    finally:
        os.umask(before)
    for name, want in [
        ("payloads", 0o700),
        ("payloads/t", 0o700),
        ("payloads/t/s", 0o700),
        ("payloads/t/s/a.cslip", 0o600),
    ]:
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == want, name


def test_rights_are_private_while_it_is_written(tmp_path: Path) -> None:
    seen: list[int] = []

    def parts() -> Iterator[bytes]:
        yield b"x"
        seen.extend(stat.S_IMODE(f.stat().st_mode) for f in tmp_path.rglob("*.part"))

    before = os.umask(0)
    try:
        open_payloads(tmp_path).run(PutObject(key("a"), parts()))
    finally:
        os.umask(before)
    assert seen == [0o600]


def test_a_folder_that_was_there_keeps_its_rights(tmp_path: Path) -> None:
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(0o750)
    open_payloads(place).run(PutObject(key("a"), [b"1"]))
    assert stat.S_IMODE(place.stat().st_mode) == 0o750


def test_a_file_is_synced_before_it_is_shown_and_its_folders_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    fsync, link = os.fsync, os.link

    def spy_fsync(descriptor: int) -> None:
        log.append(f"sync {os.path.relpath(os.readlink(f'/proc/self/fd/{descriptor}'), tmp_path)}")
        fsync(descriptor)

    def spy_link(source: str, target: str) -> None:
        log.append(f"link {os.path.relpath(target, tmp_path)}")
        link(source, target)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "link", spy_link)
    open_payloads(tmp_path / "p").run(PutObject("t/a.cslip", [b"1"]))
    assert log[:2] == ["sync .", "sync p"], "the new folders' own entries"
    assert log[2].startswith("sync p/t/a.cslip.")
    assert log[3:] == ["link p/t/a.cslip", "sync p/t"]


def test_a_killed_upload_is_listed_and_can_be_deleted(tmp_path: Path) -> None:
    script = (
        "import os, signal\n"
        "from callslip.stacks.payloads import open_payloads\n"
        "from callslip.stacks.ops import PutObject\n"
        "def parts():\n"
        "    yield b'x' * 1000\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"open_payloads({str(tmp_path)!r}).run(PutObject('t/a.cslip', parts()))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False)
    assert ended.returncode == -signal.SIGKILL
    store = open_payloads(tmp_path)
    with pytest.raises(PayloadDamaged):
        store.run(ReadObject("t/a.cslip", 0, 1))
    ((name, size, _),) = store.run(ListObjects(None, 10))
    assert name.startswith("t/a.cslip.")
    assert size == 1000
    store.run(DeleteObjects([name]))
    assert list(store.run(ListObjects(None, 10))) == []
    assert list(tmp_path.iterdir()) == [], "empty folders go too"
    assert store.run(PutObject("t/a.cslip", [b"again"])) == 5


def test_a_strangers_file_is_never_listed(tmp_path: Path) -> None:
    for name in ("notes.txt", "README.md", "a.cslip.part", ".hidden.cslip", "UPPER.cslip"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "folder.cslip").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    store = open_payloads(tmp_path)
    store.run(PutObject(key("a"), [b"1"]))
    assert [entry[0] for entry in store.run(ListObjects(None, 10))] == [key("a")]


def test_folders_come_and_go_under_many_threads(tmp_path: Path) -> None:
    store = open_payloads(tmp_path)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(40):
                name = f"t/s/{number}-{turn}.cslip"
                store.run(PutObject(name, [b"1"]))
                store.run(DeleteObjects([name]))
        except BaseException as error:  # noqa: BLE001  (asserted on below)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "disk full"),
        (errno.EDQUOT, "disk full"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "permission denied"),
        (errno.ESTALE, "unreachable"),
        (errno.ETIMEDOUT, "timed out"),
        (errno.EIO, "failed"),
    ],
)
@pytest.mark.parametrize("where", ["open", "write", "fsync", "link"])
def test_a_refusal_is_named_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str, where: str
) -> None:
    store = open_payloads(tmp_path)
    store.run(PutObject("t/there.cslip", [b"1"]))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(folder.os, where, refuse)
        with pytest.raises(StoreUnavailable) as caught:
            store.run(PutObject("t/a.cslip", [b"data"]))
    assert caught.value.reason == reason
    assert [entry[0] for entry in store.run(ListObjects(None, 10))] == ["t/there.cslip"]


def test_a_file_in_a_folders_place_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("not a folder")
    store = open_payloads(tmp_path)
    with pytest.raises(StoreUnavailable):
        store.run(PutObject("t/a.cslip", [b"1"]))
    with pytest.raises(PayloadDamaged):
        store.run(ReadObject("t/a.cslip", 0, 1))
    store.run(DeleteObjects(["t/a.cslip"]))


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    # A real refusal of the system, by a limit on the size of files.
    script = (
        "import resource, signal\n"
        "from callslip.errors import StoreUnavailable\n"
        "from callslip.stacks.payloads import open_payloads\n"
        "from callslip.stacks.ops import ListObjects, PutObject\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        f"store = open_payloads({str(tmp_path)!r})\n"
        "try:\n"
        "    store.run(PutObject('a.cslip', [b'x' * 60_000] * 3))\n"
        "except StoreUnavailable as error:\n"
        "    print(error.reason, len(store.run(ListObjects(None, 9))))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert ended.stdout == "disk full 0\n"


# --- forks and streams --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_uses_the_folder(tmp_path: Path) -> None:
    store = open_payloads(tmp_path)
    store.run(PutObject(key("a"), [b"parent"]))

    def child() -> None:
        assert store.run(ReadObject(key("a"), 0, 6)) == b"parent"
        store.run(PutObject(key("b"), [b"child"]))

    assert forked(child) == 0
    assert store.run(ReadObject(key("b"), 0, 5)) == b"child"


def test_streaming_holds_a_few_blocks_only(tmp_path: Path) -> None:
    script = (
        "import resource, sys\n"
        "from callslip.stacks.payload import Packer\n"
        "from callslip.stacks.payloads import open_payloads\n"
        "from callslip.stacks.ops import PutObject\n"
        "line = b'2026-11-30 INFO a line of some log, number %08d\\n'\n"
        "def blocks(packer, count):\n"
        "    for n in range(count):\n"
        "        yield packer.add(b''.join(line % i for i in range(n * 999, n * 999 + 20_000)))\n"
        "    yield packer.finish()\n"
        "def put(name, count):\n"
        "    store.run(PutObject(name, blocks(Packer('str', b'k', 'str'), count)))\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"store = open_payloads({str(tmp_path)!r})\n"
        "base = put('small.cslip', 10)\n"
        "print(put('large.cslip', 80) - base)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert int(ended.stdout) < 8 * 1024, "KiB more for eight times the content"
