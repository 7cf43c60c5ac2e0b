"""Plain files: what a result is, as a file that a shell tool can open; and never more than a copy."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from callslip import Quota, ResultStore, Session, SettingsError
from callslip.errors import HandleGone, StoreUnavailable, UnknownHandle
from callslip.handle import Scope, Shape
from callslip.stacks import upkeep
from callslip.stacks.breaker import Breaker
from callslip.stacks.ops import PutObject, do
from callslip.stacks.payloads import open_payloads
from callslip.stacks.savedops import NAME, AppendPlain, BeginPlain, id_in, saved_name
from callslip.testing.faults import FaultyBackend
from callslip.testing.payloads import PayloadsContract, key
from tests.servers.postgres import Postgres

TEXT = "".join(f"{n:06d} line of a log {n * 7919 % 1000003}\n" for n in range(30_000))


class TestPlain(PayloadsContract):
    """A folder with plain files is a payload store as any other."""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.place, self.opened = tmp_path, 0

    def open(self) -> Any:
        self.opened += 1
        return open_payloads((self.place / f"{self.opened}").as_uri() + "?plain")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


def opened(scratch: Path, **settings: Any) -> ResultStore:
    settings = {"spool": "", **settings}
    return ResultStore(scratch.parent / "index", payloads=f"{scratch.as_uri()}?plain", **settings)


@pytest.fixture
def session(scratch: Path) -> Session:
    return opened(scratch).session("Run 42: für Ana", user="ana", tenant="acme")


@pytest.mark.parametrize("ways", ["in the index's URL", "FILE://"])
def test_plain_files_are_the_same_however_they_are_asked_for(
    ways: str, scratch: Path, postgres: Postgres
) -> None:
    where = f"{scratch.as_uri()}?plain"
    if ways == "FILE://":
        url, payloads = str(scratch.parent / "index"), where.replace("file:", "FILE:")
    else:
        url, payloads = f"{postgres.new_database()}?payloads={where}", None
    store = ResultStore(url, payloads=payloads, spool="")
    handle = store.session("a").put(TEXT, tool="t")
    assert Path(handle.saved_to).read_text() == TEXT
    assert files(scratch)
    store.close()
    with pytest.raises(SettingsError, match="plain files hold the content as it is"):
        ResultStore(url, payloads=payloads, mask={"ssn": str})


def files(scratch: Path) -> list[str]:
    """The plain files, and whatever else is not the payloads' own."""
    found = (path for path in scratch.rglob("*") if not path.is_dir())
    return sorted(str(p.relative_to(scratch)) for p in found if ".callslip" not in p.parts)


def test_a_result_is_a_file_that_a_shell_tool_can_open(session: Session, scratch: Path) -> None:
    handle = session.put(TEXT, tool="Read Log!")
    assert handle.saved_to.startswith(f"{scratch}/run-42-f-r-ana-")
    assert handle.saved_to.endswith(f"/read-log-{handle.id}.txt")
    assert f'saved_to="{handle.saved_to}"' in str(handle)
    assert Path(handle.saved_to).read_text() == TEXT
    found = subprocess.run(
        ["grep", "-c", "line of a log", handle.saved_to], capture_output=True, check=True
    )
    assert found.stdout == b"30000\n"
    assert stat.S_IMODE(os.stat(handle.saved_to).st_mode) == 0o600


@pytest.mark.parametrize(
    ("value", "ending", "content"),
    [
        ("small", "txt", b"small"),
        ("", "txt", b""),
        ("two\r\nlines\0\ud800", "txt", b"two\r\nlines\0\xed\xa0\x80"),
        ([{"a": 1}, {"a": 2}], "json", None),
        ('{"a": 1}\n{"a": 2}\n', "jsonl", b'{"a": 1}\n{"a": 2}\n'),
        ("a,b\n1,2\n3,4\n5,6\n", "csv", b"a,b\n1,2\n3,4\n5,6\n"),
        ({"deep": {"list": [1, 2, 3]}}, "json", None),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "bin", b"\x89PNG\r\n\x1a\n" + bytes(100)),
    ],
)
def test_the_file_is_the_exact_content(
    session: Session, value: Any, ending: str, content: bytes | None
) -> None:
    handle = session.put(value, tool="t")
    assert handle.saved_to.endswith(f".{ending}")
    raw = Path(handle.saved_to).read_bytes()
    assert raw == session.open(handle.id).read()
    if content is None:
        assert json.loads(raw) == value
    else:
        assert raw == content
    assert session.load(handle.id) == value


def test_a_stream_goes_by_block_by_block(session: Session) -> None:
    def blocks() -> Iterator[bytes]:
        for n in range(200):
            yield TEXT[n * 1000 : n * 1000 + 1000].encode()

    handle = session.put(blocks(), tool="t")
    assert Path(handle.saved_to).read_text() == TEXT[:200_000]


def test_the_same_content_twice_is_one_payload_and_a_file_for_each(
    session: Session, scratch: Path
) -> None:
    first, second = session.put(TEXT, tool="one"), session.put(TEXT, tool="two")
    assert first.saved_to != second.saved_to
    assert f'saved_to="{second.saved_to}"' in str(second)
    assert session.store.stats().payloads == 1
    assert len(list((scratch / ".callslip").rglob("*.cslip"))) == 1
    for handle in (first, second):
        assert Path(handle.saved_to).read_text() == TEXT
    assert session.put(TEXT, tool="one").saved_to == first.saved_to
    session.delete(first.id)
    assert files(scratch) == [str(Path(second.saved_to).relative_to(scratch))]
    session.delete(second.id)
    assert [p for p in scratch.rglob("*") if p.is_file()] == []


def test_the_json_style_names_the_file_and_is_one_object(scratch: Path) -> None:
    session = opened(scratch, style="json").session("s")
    for value in (TEXT, [{"id": n, "name": f"n{n}"} for n in range(5000)]):
        handle = session.put(value, tool="t")
        assert json.loads(str(handle))["saved_to"] == handle.saved_to
        again = session.put(value, tool="again")
        assert json.loads(str(again))["saved_to"] == again.saved_to


def test_tools_take_the_path_of_this_sessions_files_and_no_other(
    session: Session, scratch: Path
) -> None:
    handle = session.put(TEXT, tool="t")
    rows = session.put([{"id": n, "name": f"n{n}"} for n in range(5000)], tool="t")
    tools = {tool.name: tool for tool in session.tools("files")}
    assert "line of a log" in tools["read_slice"].call(path=handle.saved_to, offset=5)
    assert "1 match" in tools["grep_file"].call(path=handle.saved_to, pattern="^029999", limit=0)
    assert "n77" in tools["query_file"].call(path=f'"{rows.saved_to}"', where="id = 77")
    assert "n78" in tools["get_by_id"].call(path=rows.saved_to, id="78")
    assert session.load(handle.saved_to) == TEXT

    unknown = tools["read_slice"].call(path="res_0123456789")
    other = session.store.session("other", user="ana", tenant="acme")
    foreign = other.put("foreign", tool="t").saved_to
    secret = scratch / "secret.txt"
    secret.write_text("SECRET")
    folder, _, name = handle.saved_to.rpartition("/")
    for path in (
        foreign,
        str(secret),
        "/etc/passwd",
        f"{scratch}/../scratch{handle.saved_to.removeprefix(str(scratch))}",
        f"{folder}/../../{name}",
        f"/elsewhere/{name}",
        f"{folder}//{name}",
        f"{folder}/x{name}",
        handle.saved_to.replace(".txt", ".csv"),
    ):
        said = tools["read_slice"].call(path=path)
        assert said == unknown, path
        with pytest.raises(UnknownHandle):
            session.load(path)
    session.delete(handle.id)
    with pytest.raises(HandleGone):
        session.read(handle.saved_to)


@pytest.mark.parametrize("style", ["text", "json"])
def test_the_path_counts_where_an_envelope_must_be_smaller(scratch: Path, style: str) -> None:
    session = opened(scratch, threshold_chars=10, preview_lines=1, style=style).session("s")
    kept = []
    for count in range(10, 900, 23):
        value = "".join(f"{n} of some lines\n" for n in range(count // 10)) + "x" * (count % 10)
        shown = session.offload(value, tool=f"t{count}")
        kept.append(shown is value)
        assert shown is value or len(str(shown)) < len(value)
    assert any(kept)
    assert not all(kept)


def test_a_path_is_taken_for_a_handle_by_a_parameter_that_takes_values(scratch: Path) -> None:
    session = opened(scratch, style="json").session("s")
    handle = session.put(TEXT, tool="t")
    seen: list[str] = []

    def weigh(report: str, source: str) -> str:
        seen.extend((report, source))
        return "done"

    weighed = session.offloaded(weigh, resolve=["report"])
    for given in (handle.saved_to, str(handle), handle.id):
        seen.clear()
        assert weighed(report=given, source=handle.saved_to) == "done"
        assert seen == [TEXT, handle.saved_to], "who asks for no value may want to open the file"
    other = session.store.session("other")
    assert "No stored result" in other.offloaded(weigh, resolve=["report"])(handle.saved_to, "")


def test_two_that_change_one_payloads_names_lose_none(scratch: Path) -> None:
    stores = [opened(scratch) for _ in range(4)]

    def work(number: int) -> None:
        session = stores[number].session(f"s{number}")
        for turn in range(12):
            handle = session.put(TEXT, tool=f"t{turn}")
            assert Path(handle.saved_to).stat().st_size == len(TEXT)
            if turn % 2:
                session.delete(handle.id)

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(work, number) for number in range(4)]:
            each.result()
    assert len(files(scratch)) == 24
    for number, store in enumerate(stores):
        store.session(f"s{number}").close()
    assert files(scratch) == []


def test_a_file_that_was_changed_or_removed_changes_no_result(session: Session) -> None:
    handle = session.put(TEXT, tool="t")
    Path(handle.saved_to).write_text("edited by somebody")
    assert session.load(handle.id) == TEXT
    assert session.read(handle.saved_to, start=2).text.startswith("000001 line")
    assert session.store.verify().ok
    session.put(TEXT, tool="t")
    assert Path(handle.saved_to).read_text() == TEXT, "the same call makes it anew"
    Path(handle.saved_to).unlink()
    assert session.load(handle.id) == TEXT
    session.close()


@pytest.mark.parametrize("how", ["close", "delete", "sweep", "evict", "subject", "tenant"])
def test_files_go_with_their_results(scratch: Path, how: str) -> None:
    now = [1e9]
    quota = Quota(session_results=1) if how == "evict" else None
    store = opened(scratch, ttl_seconds=100, clock=lambda: now[0], quota=quota)
    session = store.session("s", tenant="acme")
    ids = [session.put(TEXT, tool="t").id, session.put("small", tool="t", subject="p").id]
    if how == "close":
        session.close()
    elif how == "delete":
        assert [session.delete(id) for id in ids] == [True, True]
    elif how == "sweep":
        now[0] += 1000
        store.sweep()
    elif how == "subject":
        session.delete(ids[0])
        store.delete(subject="p", tenant="acme")
    elif how == "tenant":
        store.delete(tenant="acme")
    store.gc()
    assert len(files(scratch)) == (1 if how == "evict" else 0)


def test_gc_removes_what_ran_out_while_another_session_has_the_same_content(scratch: Path) -> None:
    now = [1e9]
    store = opened(scratch, ttl_seconds=100, clock=lambda: now[0])
    first = store.session("a").put(TEXT, tool="t")
    now[0] += 90
    second = store.session("b").put(TEXT, tool="t")
    now[0] += 50
    store.gc()
    assert not Path(first.saved_to).exists()
    assert Path(second.saved_to).read_text() == TEXT


def test_a_damaged_payload_that_is_replaced_keeps_the_files(
    session: Session, scratch: Path
) -> None:
    first = session.put(TEXT, tool="one")
    (packed,) = (scratch / ".callslip").rglob("*.cslip")
    packed.write_bytes(packed.read_bytes()[:-50])
    second = session.put(TEXT, tool="two")
    session.store.gc(0)
    for handle in (first, second):
        assert Path(handle.saved_to).read_text() == TEXT
    session.close()
    assert files(scratch) == []


def test_what_was_spooled_gets_its_file_when_it_is_delivered(scratch: Path, tmp_path: Path) -> None:
    store = opened(scratch, spool=str(tmp_path / "spool"))
    session = store.session("s")
    real = store._backend.payloads
    store._backend.payloads = FaultyBackend(real, only=PutObject, times=None)
    for value in ("small one", TEXT):
        assert 'stored="false"' in session.offload(value, tool="t") or value == "small one"
    store._backend.payloads = real
    store.gc()
    handles = session.list().handles
    assert [Path(handle.saved_to).read_text() for handle in handles] == [TEXT]


def test_what_cannot_be_written_gets_no_handle(session: Session, scratch: Path) -> None:
    store = session.store
    real = store._backend.payloads
    store._backend.payloads = FaultyBackend(real, only=AppendPlain, times=None)
    with pytest.raises(StoreUnavailable):
        session.put(TEXT, tool="t")
    assert session.offload(TEXT, tool="t").handle is None
    store._backend.payloads = real
    handle = session.put(TEXT, tool="t")
    assert Path(handle.saved_to).read_text() == TEXT
    session.close()
    assert files(scratch) == []


# --- names, links and what they could lead to -----------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    ["../../etc", "/abs", "a/b\\c", "..", ".", "", "x" * 5000, "ü\0\ud800", "CON", "a\nb", "~"],
)
def test_no_name_leads_out_of_the_folder(scratch: Path, odd: str) -> None:
    store = opened(scratch)
    session = store.session(odd or "s", user=odd, tenant=odd)
    handle = session.put("text", tool=odd or "t")
    path = Path(handle.saved_to)
    assert path.parent.parent == scratch
    assert len(path.name) < 100
    assert path.read_text() == "text"
    assert re.fullmatch(r"[a-z0-9._/-]+", handle.saved_to.removeprefix(str(scratch)))


def test_names_are_told_apart_by_scope_and_id() -> None:
    shape = Shape()
    names = {
        saved_name(Scope(session, user, tenant), "res_0123456789", "t", shape)
        for session in ("a", "A", "a!")
        for user in ("", "u")
        for tenant in ("", "t")
    }
    assert len(names) == 12
    for name in names:
        assert NAME.fullmatch(name)
        assert id_in(f"/x/{name}") == "res_0123456789"


def test_a_link_in_the_way_is_not_followed(session: Session, scratch: Path, tmp_path: Path) -> None:
    handle = session.put(TEXT, tool="t")
    outside = tmp_path / "outside"
    outside.mkdir()
    victim = outside / "victim.txt"
    victim.write_text("untouched")
    # In the place of the file.
    path = Path(handle.saved_to)
    path.unlink()
    path.symlink_to(victim)
    session.put(TEXT, tool="t")
    assert victim.read_text() == "untouched"
    assert path.read_text() == TEXT
    assert not path.is_symlink()
    # In the place of the session's folder.
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(outside)
    with pytest.raises(StoreUnavailable):
        session.put("more", tool="t")
    assert sorted(os.listdir(outside)) == ["victim.txt"]
    session.close()
    assert victim.read_text() == "untouched"
    # In the place of the payloads.
    (scratch / ".callslip").rename(tmp_path / "moved")
    (scratch / ".callslip").symlink_to(outside)
    with pytest.raises(StoreUnavailable):
        session.put(TEXT + "!", tool="t")
    assert sorted(os.listdir(outside)) == ["victim.txt"]


def test_a_list_of_names_that_was_tampered_with_removes_nothing_else(
    session: Session, scratch: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("untouched")
    session.put(TEXT, tool="t")
    (names,) = (scratch / ".callslip").rglob("*.names")
    with names.open("a") as listed:
        listed.write("../victim.txt\n/etc/passwd\n\xff\n")
    session.close()
    assert victim.read_text() == "untouched"
    assert files(scratch) == []


def test_a_strange_name_is_refused(scratch: Path) -> None:
    store = open_payloads(f"{scratch.as_uri()}?plain")
    for bad in ("../x-res_0123456789.txt", "a/b", "s-0123456789ab/../x-res_0123456789.txt", ""):
        with pytest.raises(ValueError, match="plain file"):
            store.run(BeginPlain(key("a"), bad, 1))


# --- settings --------------------------------------------------------------------------------------


def test_plain_files_and_secrets_exclude_each_other(scratch: Path) -> None:
    for secret in ({"keys": "env:KEY"}, {"mask": {"ssn": str}}):
        with pytest.raises(SettingsError, match="plain"):
            opened(scratch, **secret)
        with pytest.raises(SettingsError, match="plain"):
            ResultStore(**secret).bind("x", payloads=f"{scratch.as_uri()}?plain")


def test_the_payloads_of_plain_files_are_an_ordinary_store(scratch: Path) -> None:
    handle = opened(scratch).session("s").put(TEXT, tool="t")
    store = ResultStore(scratch.parent / "index", payloads=scratch / ".callslip")
    assert store.session("s").load(handle.id) == TEXT
    assert store.session("s").handle(handle.id).saved_to == ""
    with pytest.raises(SettingsError, match=re.escape(str(scratch / ".callslip"))):
        ResultStore(scratch.parent / "index", payloads=scratch).session("s").load(handle.id)


def test_an_orphan_goes_with_its_files(session: Session, scratch: Path) -> None:
    store = session.store
    store.run_flow(do(PutObject("x/y.cslip", [b"left behind"])))
    name = saved_name(session.scope, "res_0123456789", "t", Shape())
    store.run_flow(do(BeginPlain("x/y.cslip", name, 3)))
    store.run_flow(do(AppendPlain("x/y.cslip", name, "0" * 16, b"")))  # killed in the middle
    assert len(files(scratch)) == 1
    assert store.run_flow(upkeep.gc(store.now(), 0)).orphans == 1
    assert files(scratch) == []


@pytest.mark.parametrize("step", range(1, 8))
def test_what_is_deleted_while_its_plain_file_is_written_leaves_none(
    scratch: Path, step: int
) -> None:
    """Another worker closes the session before the so many-eth step of it."""
    store = opened(scratch)
    inner, steps = store._backend.payloads, []

    class Meanwhile:
        def run(self, op: Any, /) -> Any:
            if steps or isinstance(op, BeginPlain):
                steps.append(op)
                if len(steps) == step:
                    opened(scratch).session("a").close()
            return inner.run(op)

    store._backend.payloads = Breaker(Meanwhile())
    handle = store.session("a").put(TEXT * 2, tool="t")
    assert len(steps) >= step
    assert list(scratch.rglob("*.names")) == files(scratch) == []
    with pytest.raises(HandleGone):
        store.session("a").load(handle.id)


def test_gc_ends_a_deletion_that_was_cut_between_payload_and_plain_file(scratch: Path) -> None:
    store = opened(scratch)
    store.session("a").put(TEXT, tool="t")
    left = [(file, file.read_bytes()) for file in scratch.rglob("*.[nt]*") if file.is_file()]
    assert len(left) == 2  # the plain file, and the list that names it
    store.session("a").close()
    for file, content in left:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    assert store.verify().orphans == 1
    assert store.gc().orphans == 0  # a deletion may be under way
    assert store.gc(grace_seconds=0).orphans == 1
    assert [str(path.relative_to(scratch)) for path in scratch.rglob("*")] == [".callslip"]
