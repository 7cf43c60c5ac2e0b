"""What a person does with keys: makes them, gives the wrong ones, rotates and destroys them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from callslip import PayloadDamaged, ResultStore, SettingsError, StoreUnavailable, UnknownHandle
from callslip.patterns.memory import Memory
from callslip.stacks.index.sealed.master import add_key, id_of, new_key_file
from callslip.stacks.keyops import GetKey, Shred
from callslip.stacks.ops import Get, Insert, ReadObject
from callslip.stacks.payloads.sealed import HEADER, PIECE_BYTES, plain_size, sealed_size
from callslip.testing.faults import FaultyBackend

TEXT = "\n".join(f"line {n}: {n * 7919 % 10007}" for n in range(60_000))


@pytest.fixture
def key(tmp_path: Path) -> str:
    new_key_file(tmp_path / "key")
    return str(tmp_path / "key")


@pytest.fixture
def store(tmp_path: Path, key: str) -> ResultStore:
    return ResultStore(tmp_path / "store", keys=key, spool="")


def lines_of(file: str) -> list[str]:
    return [line for line in Path(file).read_text().splitlines() if not line.startswith("#")]


# --- the key that is given ------------------------------------------------------------------------


def test_a_key_file_is_for_its_owner_alone_and_never_written_over(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        new_key_file(tmp_path / "key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        new_key_file(tmp_path / "key")


def test_a_store_without_its_key_is_refused_and_told_which_is_wanted(
    tmp_path: Path, store: ResultStore, key: str
) -> None:
    session = store.session("s")
    id = session.put(TEXT).id
    new_key_file(tmp_path / "other")
    wanted = lines_of(key)[0].split()[-1]
    with pytest.raises(SettingsError, match=wanted) as told:
        ResultStore(tmp_path / "store", keys=tmp_path / "other").session("s").read(id)
    assert lines_of(key)[0].split()[0] not in str(told.value)
    with pytest.raises(SettingsError, match="sealed: give keys="):
        ResultStore(tmp_path / "store").session("s").read(id)
    with pytest.raises(SettingsError, match="callslip keys new"):
        ResultStore(tmp_path / "store", keys=tmp_path / "nowhere").session("s").read(id)
    read = ResultStore(tmp_path / "store", keys=tmp_path / "other").session("s").tools()[0]
    said = read.call(id=id)
    assert "\n" not in str(said) and str(tmp_path) not in str(said) and wanted not in str(said)


def test_a_wrong_key_fails_no_tool(tmp_path: Path, store: ResultStore) -> None:
    store.session("s").put(TEXT)
    new_key_file(tmp_path / "other")
    seen = ResultStore(tmp_path / "store", keys=tmp_path / "other", spool="").session("s")
    assert seen.offload(TEXT, tool="t").handle is None


def test_a_store_in_the_clear_takes_no_keys(tmp_path: Path, key: str) -> None:
    ResultStore(tmp_path / "store").session("s").put("in the clear")
    with pytest.raises(SettingsError, match="in the clear"):
        ResultStore(tmp_path / "store", keys=key).session("s").put("sealed")


def test_a_key_itself_is_not_taken_for_a_file_and_never_shown(key: str) -> None:
    itself = lines_of(key)[0].split()[0]
    with pytest.raises(SettingsError) as told:
        ResultStore(keys=itself)
    assert itself not in str(told.value)
    for odd in (b"bytes", 7, "", ["a"]):
        with pytest.raises(SettingsError, match="keys="):
            ResultStore(keys=odd)


def test_a_key_of_the_environment_opens_what_the_file_sealed(
    tmp_path: Path, store: ResultStore, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = store.session("s").put(TEXT).id
    with pytest.raises(SettingsError, match="not set"):
        ResultStore(tmp_path / "store", keys="env:CALLSLIP_TEST_KEY").session("s").load(id)
    monkeypatch.setenv("CALLSLIP_TEST_KEY", lines_of(key)[0].split()[0])
    again = ResultStore(tmp_path / "store", keys="env:CALLSLIP_TEST_KEY")
    assert again.session("s").load(id) == TEXT


def test_one_key_file_gives_the_same_handle_in_every_store(tmp_path: Path, key: str) -> None:
    ids = [
        ResultStore(tmp_path / name, keys=key).session("s").put(TEXT, args={"q": 1}).id
        for name in ("a", "b")
    ]
    clear = ResultStore(tmp_path / "c").session("s").put(TEXT, args={"q": 1}).id
    assert ids[0] == ids[1] != clear


# --- a KMS ----------------------------------------------------------------------------------------


class Kms:
    """Wraps with a key that it holds, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False

    def __call__(self, action: str, key: bytes) -> bytes:
        if self.away:
            raise TimeoutError("kms://secret-token@host timed out")
        self.asked.append(action)
        return bytes(byte ^ 0x5A for byte in key)


def test_a_kms_is_asked_once_for_a_tenant_and_not_for_each_read(tmp_path: Path) -> None:
    kms = Kms()
    store = ResultStore(tmp_path / "store", keys=kms)
    ids = [store.session(f"s{n}", tenant="acme").put(f"{n}" * 50_000).id for n in range(5)]
    assert kms.asked.count("wrap") == 2, "the store's own key, and the tenant's"
    asked = len(kms.asked)
    assert store.session("s3", tenant="acme").load(ids[3]) == "3" * 50_000
    assert len(kms.asked) == asked


def test_a_kms_that_is_away_makes_the_store_unavailable_and_tells_no_secret(tmp_path: Path) -> None:
    kms = Kms()
    kms.away = True
    session = ResultStore(tmp_path / "store", keys=kms, spool="").session("s")
    with pytest.raises(StoreUnavailable) as told:
        session.put(TEXT)
    assert "secret-token" not in str(told.value)
    assert session.offload(TEXT, tool="t").handle is None
    kms.away = False
    assert session.load(session.offload(TEXT, tool="t").handle.id) == TEXT


# --- rotation -------------------------------------------------------------------------------------


def test_keys_are_rotated_without_writing_a_payload_again(
    tmp_path: Path, store: ResultStore, key: str
) -> None:
    id = store.session("s", tenant="acme").put(TEXT).id
    payloads = {p: p.read_bytes() for p in (tmp_path / "store" / "payloads").rglob("*.cslip")}
    old = Path(key).read_text()
    new = add_key(key)
    assert len(lines_of(key)) == 2 and new in lines_of(key)[0]
    assert store.rotate_keys() == 2
    assert store.rotate_keys() == 0
    Path(key).write_text("\n".join(lines_of(key)[:1]))
    again = ResultStore(tmp_path / "store", keys=key)
    assert again.session("s", tenant="acme").load(id) == TEXT
    assert payloads == {p: p.read_bytes() for p in payloads}
    (tmp_path / "old").write_text(old)
    with pytest.raises(SettingsError, match=new):
        ResultStore(tmp_path / "store", keys=tmp_path / "old").session("s").put("x")


def test_a_worker_that_runs_finds_the_new_key_by_itself(
    tmp_path: Path, store: ResultStore, key: str
) -> None:
    running = ResultStore(tmp_path / "store", keys=key)
    id = running.session("s", tenant="acme").put(TEXT).id
    add_key(key)
    store.rotate_keys(sessions=True)
    running._backend.index.inner._opened.ring.clear()  # as after `limits.KEYS_CACHED_SECONDS`
    assert running.session("s", tenant="acme").load(id) == TEXT
    assert running.session("t", tenant="acme").load(
        running.session("t", tenant="acme").put(TEXT).id
    )


@pytest.mark.parametrize("written", ["", "# a head and nothing more\n", "AAAA\n", None])
def test_a_key_file_that_cannot_be_read_for_a_moment_stops_no_worker_that_has_its_keys(
    written: str | None, tmp_path: Path, key: str
) -> None:
    store = ResultStore(tmp_path / "store", keys=key, spool="")
    store.session("s", tenant="acme").put("first")
    whole = Path(key).read_text()
    if written is None:
        os.remove(key)
    else:
        Path(key).write_text(written)
    id = store.session("s", tenant="new").put("second").id
    with pytest.raises(SettingsError, match="key"):
        ResultStore(tmp_path / "store", keys=key, spool="").session("s", tenant="new").load(id)
    Path(key).write_text(whole)
    again = ResultStore(tmp_path / "store", keys=key, spool="")
    assert again.session("s", tenant="new").load(id) == "second"


def test_a_key_file_that_is_exchanged_for_another_seals_nothing_new(
    tmp_path: Path, key: str
) -> None:
    store = ResultStore(tmp_path / "store", keys=key, spool="")
    store.session("s", tenant="acme").put("first")
    whole = Path(key).read_text()
    new_key_file(tmp_path / "other.key")
    Path(key).write_text((tmp_path / "other.key").read_text())
    with pytest.raises(SettingsError, match="not among the keys there"):
        store.session("s", tenant="new").put("second")
    Path(key).write_text(whole)
    id = store.session("s", tenant="new").put("second").id
    again = ResultStore(tmp_path / "store", keys=key, spool="")
    assert again.session("s", tenant="new").load(id) == "second"
    assert again.verify().ok


def test_the_keys_of_sessions_are_rotated_over_and_over(tmp_path: Path, store: ResultStore) -> None:
    ids = {}
    for turn in range(6):
        session = store.session(f"s{turn}", tenant="acme")
        ids[turn] = session.put(f"{turn} {TEXT}").id
        assert store.rotate_keys(sessions=True) >= turn + 2
    again = ResultStore(tmp_path / "store", keys=store.settings.keys)
    for turn, id in ids.items():
        assert again.session(f"s{turn}", tenant="acme").load(id) == f"{turn} {TEXT}"


# --- shredding ------------------------------------------------------------------------------------


def copied(tmp_path: Path) -> Path:
    """A backup of index and objects, without the file of wrapped keys, as it is said to be made."""
    backup = tmp_path / "backup"
    shutil.copytree(tmp_path / "store", backup, ignore=shutil.ignore_patterns("*-keys"))
    return backup


def test_a_shredded_session_cannot_be_read_from_a_backup_with_the_master_key(
    tmp_path: Path, store: ResultStore, key: str
) -> None:
    gone = store.session("gone", user="ana", tenant="acme")
    kept = store.session("kept", user="ana", tenant="acme")
    id, small = gone.put(TEXT + "gone").id, gone.put("small and gone").id
    shared, mine = gone.put(TEXT).id, kept.put(TEXT).id
    store.close()
    backup = copied(tmp_path)
    assert store.shred(session="gone", user="ana", tenant="acme") == 3
    store.close()
    # Everything is put back as it was, with the keys that are left.
    shutil.copy(tmp_path / "store" / "index.db-keys", backup)
    again = ResultStore(backup, keys=key)
    for lost in (id, small, shared):
        with pytest.raises(UnknownHandle):
            again.session("gone", user="ana", tenant="acme").read(lost)
    assert again.session("gone", user="ana", tenant="acme").list().total == 0
    assert again.session("kept", user="ana", tenant="acme").load(mine) == TEXT
    with pytest.raises(UnknownHandle):
        store.session("gone", user="ana", tenant="acme").read(id)
    assert store.session("kept", user="ana", tenant="acme").load(mine) == TEXT
    assert store.verify().ok


def test_a_shredded_tenant_takes_everything_with_it_and_no_other(
    tmp_path: Path, store: ResultStore, key: str
) -> None:
    for tenant in ("acme", "umbrella"):
        store.session("s", tenant=tenant).put(TEXT)
        Memory(store, (tenant, "ana")).remember("Ana wants tables")
    store.close()
    backup = copied(tmp_path)
    store.shred(tenant="acme")
    shutil.copy(tmp_path / "store" / "index.db-keys", backup)
    again = ResultStore(backup, keys=key)
    assert again.session("s", tenant="acme").list().total == 0
    assert again.session("s", tenant="umbrella").list().total == 1
    assert not Memory(again, ("acme", "ana")).recall("tables").facts
    assert Memory(again, ("umbrella", "ana")).recall("tables").facts
    names = store.session("s", tenant="acme")
    assert names.load(names.put(TEXT).id) == TEXT, "the name can be used again"


def test_nothing_of_a_destroyed_key_is_left_in_the_file_of_keys(
    tmp_path: Path, store: ResultStore
) -> None:
    store.session("a", tenant="acme").put(TEXT)
    store.session("b", tenant="acme").put(TEXT)
    ring = store._backend.index.inner._opened
    rows = {row.name: row.wrapped for row in ring.ring._rows("s:")}
    store.shred(tenant="acme", session="a")
    left = {row.name for row in ring.ring._rows("s:")}
    (gone,) = rows.keys() - left
    file = (tmp_path / "store" / "index.db-keys").read_bytes()
    assert rows[gone] not in file and gone.encode() not in file
    assert all(rows[name] in file for name in left)
    assert not list((tmp_path / "store").glob("index.db-keys-*"))


def test_a_put_while_its_session_is_shredded_is_refused_and_not_lost_in_silence(
    store: ResultStore,
) -> None:
    store.session("s", tenant="acme").put(TEXT)
    sealed = store._backend.index.inner._opened
    inner = sealed.inner

    class Shreds:
        def run(self, op: object) -> object:
            answer = inner.run(op)
            if isinstance(op, Insert):
                other = ResultStore(store.settings.url, keys=store.settings.keys)
                other.shred(tenant="acme", session="s")
                other.close()
            return answer

    sealed.inner = Shreds()
    # The row that was just written went with its session: that is what is told.
    with pytest.raises(StoreUnavailable, match="keys destroyed"):
        store.session("s", tenant="acme").put("another " * 9_000)
    sealed.inner = inner
    session = store.session("s", tenant="acme")
    assert session.load(session.put("another " * 9_000).id) == "another " * 9_000


def test_what_is_on_hold_is_not_shredded(store: ResultStore) -> None:
    from callslip.errors import LegalHold

    session = store.session("s", tenant="acme")
    id = session.put(TEXT).id
    store.hold(tenant="acme", session="s", user="", reason="case 7")
    for reach in ({"tenant": "acme", "session": "s"}, {"tenant": "acme"}):
        with pytest.raises(LegalHold, match="case 7"):
            store.shred(**reach)
    assert session.load(id) == TEXT


def test_keys_of_sessions_that_are_long_over_go_with_gc(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.session("over", tenant="acme").put(TEXT)
    store.session("open", tenant="acme").put(TEXT)
    store.session("over", tenant="acme").close()
    ring = store._backend.index.inner._opened.ring
    store.gc()
    assert len(list(ring._rows("s:"))) == 2, "its tombstones can still be read"
    store.delete(tenant="acme", session="over", user="")
    assert len(list(ring._rows("s:"))) == 1


# --- what is changed on disk ----------------------------------------------------------------------


def test_a_sealed_object_that_is_cut_swapped_or_changed_is_damaged(
    tmp_path: Path, store: ResultStore
) -> None:
    session = store.session("s")
    noise = os.urandom(600_000).hex()
    one, two = session.put(noise).id, session.put(noise[::-1]).id
    files = sorted((tmp_path / "store" / "payloads").rglob("*.cslip"))
    raw = [file.read_bytes() for file in files]
    piece, head = PIECE_BYTES + 16, len(HEADER)
    parts = [raw[0][head + n * piece : head + (n + 1) * piece] for n in range(3)]
    changed = {
        "a bit": raw[0][:5000] + bytes([raw[0][5000] ^ 1]) + raw[0][5001:],
        "cut at a piece": raw[0][: head + 5 * piece],
        "two pieces swapped": raw[0][:head] + parts[1] + parts[0] + raw[0][head + 2 * piece :],
        "a piece of another": raw[0][:head] + raw[1][head : head + piece] + raw[0][head + piece :],
        "another object": raw[1],
    }
    for what, data in changed.items():
        files[0].write_bytes(data)
        again = ResultStore(tmp_path / "store", keys=store.settings.keys)
        damaged = 0
        for id in (one, two):
            try:
                assert again.session("s").load(id) in (noise, noise[::-1])
            except PayloadDamaged:
                damaged += 1
        assert damaged == 1, what
        assert not again.verify().ok, what
        files[0].write_bytes(raw[0])


def test_parts_of_rows_that_are_exchanged_in_the_index_do_not_open(
    tmp_path: Path, store: ResultStore
) -> None:
    session = store.session("s")
    ids = [session.put(f"small {n}", tool="t", args={"n": n}).id for n in range(2)]
    for column in ("shape", "preview", "payload"):
        store.close()
        index = sqlite3.connect(tmp_path / "store" / "index.db")
        before = index.execute(f"SELECT n, {column} FROM results ORDER BY n").fetchall()
        (one, first), (two, second) = before
        for n, value in ((one, second), (two, first)):
            index.execute(f"UPDATE results SET {column} = ? WHERE n = ?", (value, n))
        index.commit()
        for id in ids:
            with pytest.raises(PayloadDamaged):
                store.session("s").load(id)
        for n, value in before:
            index.execute(f"UPDATE results SET {column} = ? WHERE n = ?", (value, n))
        index.commit()
        index.close()
    assert [session.load(id) for id in ids] == ["small 0", "small 1"]


def test_sizes_of_sealed_objects_are_told_as_they_were_given() -> None:
    for size in (0, 1, 15, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES, 10**9):
        assert plain_size(sealed_size(size)) == size


def test_what_the_spool_took_is_delivered_sealed_and_under_its_handle(
    tmp_path: Path, key: str
) -> None:
    for keys in (key, Kms()):
        place = tmp_path / type(keys).__name__
        store = ResultStore(place, keys=keys, spool=place / "spool")
        session = store.session("s", tenant="acme")
        session.put("first")
        whole = store._backend.index
        store._backend.index = FaultyBackend(whole, only=Insert, times=None)
        assert session.offload(TEXT, tool="t", call_id="c").handle is None
        store._backend.index = whole
        assert store.gc().delivered == 1
        handles = session.list()
        assert handles.total == 2
        assert session.offload(TEXT, tool="t", call_id="c").handle.id == handles.handles[1].id
        assert session.load(handles.handles[1].id) == TEXT


def test_the_ids_of_keys_say_nothing_of_them() -> None:
    assert id_of(b"\0" * 32) == id_of(b"\0" * 32) != id_of(b"\1" * 32)
    assert len(id_of(b"\0" * 32)) == 11


def test_a_page_asks_the_index_once_and_the_objects_once_while_its_keys_are_known(
    store: ResultStore,
) -> None:
    session = store.session("s", tenant="acme")
    id = session.put(os.urandom(400_000).hex()).id
    session.read(id)
    sealed, objects = store._backend.index.inner._opened, store._backend.payloads
    counted = FaultyBackend(sealed.inner, only=Shred)
    read = FaultyBackend(objects, only=Shred)
    sealed.inner = sealed.ring._index = counted
    store._backend.payloads = read
    session.read(id, column=300_000)
    assert [type(op) for op in counted.seen] == [Get]
    assert [type(op) for op in read.seen] == [ReadObject]
    sealed.ring.clear()
    session.read(id, column=500_000)
    assert [type(op) for op in counted.seen[1:]] == [GetKey, Get, GetKey], "tenant, and session"


def test_the_audit_tells_of_a_shredded_tenant_to_who_names_it(tmp_path: Path, key: str) -> None:
    store = ResultStore(tmp_path / "store", keys=key, spool="", audit=True)
    store.acting("ops:li").session("s", user="ana", tenant="acme").put(TEXT, tool="read_chart")
    store.acting("ops:li").shred(tenant="acme")
    entries = store.audit(tenant="acme")
    assert {entry.action for entry in entries} >= {"stored", "deleted", "erased", "shredded"}
    assert {entry.tenant for entry in entries} == {"acme"}
    assert {entry.actor for entry in entries if entry.action == "shredded"} == {"ops:li"}
    assert not any("ana" in entry.user or entry.tool == "read_chart" for entry in entries)
    assert store.proof(tenant="acme").complete
