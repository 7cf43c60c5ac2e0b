"""Several processes with one store's keys: what one wraps anew or destroys, others know for a while.

Two stores in one process stand for two processes: each has a ring of keys of its own.
"""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from callslip import (
    LegalHold,
    PayloadDamaged,
    ResultStore,
    SettingsError,
    StoreUnavailable,
    UnknownHandle,
)
from callslip.handle import Scope
from callslip.patterns.memory import Memory
from callslip.patterns.scratchpad import Scratchpad
from callslip.stacks.index.sealed.master import new_key_file
from callslip.stacks.index.sealed.ring import Ring
from callslip.stacks.keyops import AddKey, DropKeys, KeyRow, ListKeys, SwapKey
from callslip.stacks.memoryops import GetFact, Remember, Told
from tests.servers.postgres import Postgres


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    new_key_file(tmp_path / "key")
    return {"url": str(tmp_path / "store"), "keys": str(tmp_path / "key"), "spool": ""}


def test_two_that_rotate_the_keys_of_sessions_at_once_lose_none(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = ResultStore(**place), ResultStore(**place)
    ids = {n: one.session(f"s{n}", tenant="acme").put(f"content {n}").id for n in range(5)}
    rows, turns = Ring._rows, [two]

    def meanwhile(ring: Ring, prefix: str) -> Iterator[KeyRow]:
        yield from rows(ring, prefix)
        if prefix.startswith("s:") and turns:
            turns.pop().rotate_keys(sessions=True)

    monkeypatch.setattr(Ring, "_rows", meanwhile)
    one.rotate_keys(sessions=True)
    monkeypatch.setattr(Ring, "_rows", rows)
    again = ResultStore(**place)
    for n, id in ids.items():
        assert again.session(f"s{n}", tenant="acme").load(id) == f"content {n}"


def test_what_is_written_under_a_key_that_was_replaced_many_times_is_read(
    place: dict[str, str],
) -> None:
    worker, other = ResultStore(**place), ResultStore(**place)
    worker.session("s", tenant="acme").put("first")
    for _ in range(5):
        other.rotate_keys(sessions=True)
    id = worker.session("new", tenant="acme").put("acknowledged").id
    assert ResultStore(**place).session("new", tenant="acme").load(id) == "acknowledged"


def test_a_key_that_was_replaced_long_ago_goes(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultStore(**place)
    id = store.session("s", tenant="acme").put("kept").id
    ring = store._backend.index.inner._opened.ring
    for _ in range(3):
        store.rotate_keys(sessions=True)
    assert len(ring.tenant("acme").keys) == 4
    monkeypatch.setattr("callslip.stacks.index.sealed.ring._REPLACED_SECONDS", 0.0)
    store.rotate_keys(sessions=True)
    assert len(ring.tenant("acme").keys) == 1
    assert ResultStore(**place).session("s", tenant="acme").load(id) == "kept"


def test_what_a_worker_stores_after_its_tenant_was_shredded_elsewhere_is_not_lost(
    place: dict[str, str],
) -> None:
    worker, other = ResultStore(**place), ResultStore(**place)
    worker.session("s", tenant="acme").put("before")
    assert other.shred(tenant="acme") == 1
    id = worker.session("new", tenant="acme").put("acknowledged").id
    assert ResultStore(**place).session("new", tenant="acme").load(id) == "acknowledged"
    assert worker.session("new", tenant="acme").load(id) == "acknowledged"


def test_a_fact_that_is_told_after_its_tenant_was_shredded_is_kept(
    place: dict[str, str],
) -> None:
    worker, other = ResultStore(**place), ResultStore(**place)
    mine = Memory(worker, ("acme", "ana"))
    mine.remember("Ana likes tables")
    other.shred(tenant="acme")
    mine.remember("Ana likes maps")
    seen = Memory(ResultStore(**place), ("acme", "ana"))
    assert [fact.text for fact in seen.recall("Ana likes").facts] == ["Ana likes maps"]
    assert seen.list().total == 1, "nothing is left of what was told with the keys of before"


def test_a_hold_that_is_placed_after_its_tenant_was_shredded_holds(place: dict[str, str]) -> None:
    from callslip.errors import LegalHold

    worker, other = ResultStore(**place), ResultStore(**place)
    worker.session("s", user="ana", tenant="acme").put("before")
    other.shred(tenant="acme")
    worker.hold(tenant="acme", user="ana", reason="case 7")
    other.session("s", user="ana", tenant="acme").put("after")
    with pytest.raises(LegalHold, match="case 7"):
        other.shred(tenant="acme", user="ana")


def test_a_file_that_is_written_while_its_session_is_destroyed_hides_no_other(
    place: dict[str, str],
) -> None:
    worker, other = ResultStore(**place), ResultStore(**place)
    pad = Scratchpad(worker.session("s", tenant="acme"))
    pad.write_file("before.md", "before")
    other.shred(tenant="acme", user="", session="s")
    pad.write_file("kept.md", "kept")
    listed = str(pad.list_files())
    assert "kept.md" in listed and "before.md" not in listed
    assert "kept" in str(pad.read_file("kept.md"))


@pytest.mark.parametrize("whole", [True, False], ids=["tenant", "session"])
def test_what_is_stored_after_a_deletion_is_seen_by_a_worker_who_knew_the_keys_of_before(
    place: dict[str, str], whole: bool
) -> None:
    worker, other, third = (ResultStore(**place, audit=True) for _ in range(3))
    mine, new = (each.session("s", user="ana", tenant="acme") for each in (worker, third))
    mine.put("before")
    Scratchpad(mine).write_file("before.md", "before")
    reach = {} if whole else {"user": "ana", "session": "s"}
    other.delete(tenant="acme", **reach)
    new.put("after")
    assert mine.list().total == 1
    other.delete(tenant="acme", **reach)
    id, text = new.put("x" * 90_000).id, "x" * 90_000
    Scratchpad(new).write_file("after.md", "after")
    assert mine.load(id) == text
    assert mine.put(text).id == id
    assert "after.md" in str(Scratchpad(mine).list_files())
    assert "after" in str(Scratchpad(mine).read_file("after.md"))
    assert worker.verify().ok


def test_a_deletion_reaches_what_was_stored_since_the_keys_it_knows_were_destroyed(
    place: dict[str, str],
) -> None:
    worker, other, third = (ResultStore(**place) for _ in range(3))
    for reach in ({"user": "ana"}, {"user": "ana", "session": "s"}, {"subject": "patient-17"}):
        worker.session("s", user="ana", tenant="acme").put("before")
        other.shred(tenant="acme")
        session = third.session("s", user="ana", tenant="acme", subject="patient-17")
        id = session.put("after").id
        assert worker.delete(tenant="acme", **reach) == 1, reach
        with pytest.raises(UnknownHandle):
            session.load(id)
    third.hold(tenant="acme", user="ana")
    worker.session("s", tenant="acme").put("before")
    third.release(tenant="acme", user="ana")
    other.shred(tenant="acme")
    third.hold(tenant="acme", user="ana")
    assert worker.release(tenant="acme", user="ana") == 1


def test_a_session_that_is_new_where_an_old_key_is_known_is_read_by_all(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, other = ResultStore(**place), ResultStore(**place)
    worker.session("a", tenant="acme").put("before")
    # As long ago as one whose clock is hours behind says it was.
    monkeypatch.setattr("callslip.stacks.index.sealed.ring._REPLACED_SECONDS", -1.0)
    other.rotate_keys(sessions=True)
    other.rotate_keys(sessions=True)
    kept = worker.session("b", tenant="acme").put("after").id
    for store in (worker, other, ResultStore(**place)):
        assert store.session("b", tenant="acme").load(kept) == "after"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_key_is_added_under_one_that_is_there_and_goes_with_it(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    where = str(tmp_path / "store")
    if kind == "postgres":
        where = request.getfixturevalue("postgres").new_database()
    index = ResultStore(where, payloads=tmp_path / "payloads", spool="")._backend.index
    top, low, other = KeyRow("t:a", b"1", 1.0), KeyRow("s:a:x", b"2", 2.0), KeyRow("s:b:x", b"3", 3)
    assert index.run(AddKey(low, top)) is None
    assert index.run(AddKey(top)) == top
    assert index.run(AddKey(low, KeyRow("t:a", b"1", 1.5))) is None, "another's of that name"
    assert index.run(AddKey(low, top)) == low
    assert index.run(AddKey(KeyRow("s:a:x", b"4", 4.0), top)) == low
    assert index.run(SwapKey("t:a", b"1", b"5"))
    assert index.run(AddKey(KeyRow("s:a:y", b"6", 6.0), top)) is None, "it holds another by now"
    index.run(AddKey(other))
    assert index.run(DropKeys([("t:a", 1.5)], "s:a:")) == 0
    assert index.run(DropKeys([("s:a:x", 4.0)])) == 0
    assert index.run(DropKeys([("t:a", 1.0)], "s:a:")) == 2
    assert index.run(ListKeys("", "", 9)) == [other]


@pytest.mark.parametrize("whole", [True, False], ids=["tenant", "session"])
def test_what_is_stored_while_its_keys_are_destroyed_goes_with_the_rest_and_stands_in_nobodys_way(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    worker = ResultStore(**place, audit=True)
    session = worker.session("s", tenant="acme")
    session.put("before")
    name = "destroy_tenant" if whole else "destroy"
    destroy, late = getattr(Ring, name), []

    def slow(ring: Ring, key: Any) -> Any:
        if not late:
            late.append(session.put("late").id)
        return destroy(ring, key)

    monkeypatch.setattr(Ring, name, slow)
    other = ResultStore(**place, audit=True)
    other.delete(tenant="acme", **({} if whole else {"user": "", "session": "s"}))
    for store in (worker, other, ResultStore(**place, audit=True)):
        session = store.session("s", tenant="acme")
        assert session.list().total == 0
        session.put("late")
        assert session.list().total == 1
        session.delete(late[0])
        told = [entry.action for entry in other.audit(id=late[0])]
        assert told.count("stored") == told.count("deleted") == told.count("erased")
    assert other.verify().ok


def test_a_hold_that_is_placed_while_the_keys_of_its_tenant_are_destroyed_holds(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, other = ResultStore(**place), ResultStore(**place)
    worker.session("s", user="ana", tenant="acme").put("before")
    destroy, placed = Ring.destroy_tenant, []

    def slow(ring: Ring, tenant: Any) -> Any:
        if not placed:
            placed.append(worker.hold(tenant="acme", user="ana", reason="case 7"))
        return destroy(ring, tenant)

    monkeypatch.setattr(Ring, "destroy_tenant", slow)
    other.shred(tenant="acme")
    other.session("s", user="ana", tenant="acme").put("after")
    with pytest.raises(LegalHold, match="case 7"):
        other.delete(tenant="acme", user="ana")
    assert [hold.user for hold in ResultStore(**place).holds()] == ["ana"]


def test_what_was_put_and_undone_has_its_end_in_the_audit(place: dict[str, str]) -> None:
    worker, other = (ResultStore(**place, audit=True) for _ in range(2))
    session = worker.session("s", tenant="acme")
    session.put("before")
    other.delete(tenant="acme", user="", session="s")
    id = session.put("after").id
    told = [(entry.action, entry.outcome) for entry in worker.audit(id=id)]
    assert told == [("stored", "done"), ("deleted", "done"), ("erased", "done"), ("stored", "done")]
    assert session.load(id) == "after"


def test_a_row_that_a_destroyed_key_sealed_stands_in_nobodys_way(place: dict[str, str]) -> None:
    worker, other = (ResultStore(**place, audit=True) for _ in range(2))
    session = worker.session("s", tenant="acme")
    session.put("before")
    sealed = worker._backend.index.inner._opened
    other.delete(tenant="acme", user="", session="s")

    def killed(*given: Any) -> None:
        raise KeyboardInterrupt  # after the row is there, and before anybody has looked at its key

    sealed._after, after = killed, sealed._after
    with pytest.raises(KeyboardInterrupt):
        session.put("after")
    sealed._after = after
    new = other.session("s", tenant="acme")
    new.put("another")
    assert new.list().total == 1
    id = new.put("after").id
    assert (new.load(id), new.list().total) == ("after", 2)
    assert other.verify().ok


def test_no_name_of_a_tenant_is_that_of_the_runs_of_teams(place: dict[str, str]) -> None:
    store = ResultStore(**place)
    store.session("s", tenant="\0runs").put("x")
    ring = store._backend.index.inner._opened.ring
    runs = ring.runs()
    assert ring.tenant("\0runs").token != runs.token
    store.shred(tenant="\0runs")
    store.shred(tenant="")
    assert ring.stands(runs)
    file = Path(place["url"]) / "index.db-keys"
    with sqlite3.connect(file) as keys:
        names = {name for (name,) in keys.execute("SELECT name FROM keys")}
    keys.close()
    assert names == {"root", f"t:{runs.token}"}


# --- what is changed on disk by who has no key ----------------------------------------------------


def exchanged(place: dict[str, str], table: str, column: str) -> None:
    """Exchange a column of the two rows that a table has."""
    index = sqlite3.connect(Path(place["url"]) / "index.db")
    with index:
        triggers = index.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            index.execute(f"DROP TRIGGER {name}")
        (one, first), (two, second) = index.execute(f"SELECT n, {column} FROM {table}").fetchall()
        index.execute(f"UPDATE {table} SET {column} = x'00' WHERE n = ?", (one,))
        index.execute(f"UPDATE {table} SET {column} = ? WHERE n = ?", (first, two))
        index.execute(f"UPDATE {table} SET {column} = ? WHERE n = ?", (second, one))
    index.close()


@pytest.mark.parametrize("column", ["id", "tool"])
def test_no_result_is_read_under_the_id_or_the_tool_of_another(
    place: dict[str, str], column: str
) -> None:
    store = ResultStore(**place)
    session = store.session("s", tenant="acme")
    ids = [session.put(f"content of {tool}", tool=tool).id for tool in ("one", "two")]
    store.close()
    exchanged(place, "results", column)
    for id in ids:
        with pytest.raises(PayloadDamaged):
            session.load(id)


@pytest.mark.parametrize("column", ["text", "source", "space"])
def test_no_fact_is_told_to_whom_it_was_not_told(place: dict[str, str], column: str) -> None:
    store = ResultStore(**place)
    for user in ("ana", "bob"):
        Memory(store, ("acme", user)).remember(f"likes {user}", source=f"from {user}")
    store.close()
    exchanged(place, "memories", column)
    for user in ("ana", "bob"):
        with pytest.raises(PayloadDamaged):
            Memory(store, ("acme", user)).list()


def test_no_value_of_an_item_is_taken_for_another_ones(place: dict[str, str]) -> None:
    store = ResultStore(**place)
    told = {
        user: Told("", (), user.encode(), key="k", metadata={"likes": user}, item=True)
        for user in ("ana", "bob")
    }
    index = store._backend.index
    for user, each in told.items():
        index.run(Remember(("acme", user), each, [f"mem_{user}"], 1.0))
        found = index.run(GetFact(("acme", user), 1.0, key="k"))
        assert found is not None and found.value == {"likes": user}
    store.close()
    exchanged(place, "memories", "metadata")
    for user in told:
        with pytest.raises(PayloadDamaged):
            index.run(GetFact(("acme", user), 1.0, key="k"))


def test_gc_destroys_no_key_that_is_used_while_it_looks(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = ResultStore(**place)
    session = worker.session("s", tenant="acme")
    session.put("old")
    worker.delete(tenant="acme", user="", session="s")
    ring = worker._backend.index.inner._opened.ring
    tenant = ring.tenant("acme")
    scope = ring.scope(Scope("s", "", "acme"), tenant)
    ring.make_session(scope, tenant)
    destroy, ids = Ring.destroy, []

    def late(other: Ring, rows: list[str]) -> int:
        if not ids:
            ids.append(session.put("acknowledged").id)
        return destroy(other, rows)

    monkeypatch.setattr("callslip.stacks.index.sealed.wrapper.KEYS_IDLE_SECONDS", -1.0)
    monkeypatch.setattr(Ring, "destroy", late)
    ResultStore(**place).gc()
    assert ids
    assert ResultStore(**place).session("s", tenant="acme").load(ids[0]) == "acknowledged"
    assert session.load(session.put("more").id) == "more"


# --- an index that goes under its workers ---------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
def emptied(
    request: pytest.FixtureRequest, place: dict[str, str], tmp_path: Path
) -> Callable[[], None]:
    """What takes an index away under its workers: its file, or its schema."""
    if request.param == "sqlite":
        return lambda: shutil.rmtree(place["url"])
    postgres: Postgres = request.getfixturevalue("postgres")
    place |= {"url": (url := postgres.new_database()), "payloads": str(tmp_path / "payloads")}
    return lambda: postgres.sql("DROP SCHEMA callslip CASCADE", url) and None


TEXT = "".join(f"{n * 7919 % 1000003:x}\n" for n in range(20_000))


@pytest.mark.parametrize("audit", [False, True], ids=["", "audited"])
def test_what_is_stored_after_an_index_was_emptied_can_be_read_by_others(
    audit: bool, place: dict[str, str], emptied: Callable[[], None]
) -> None:
    worker = ResultStore(**place, audit=audit)
    session = worker.session("s", tenant="acme")
    session.put("before")
    emptied()
    ids = {text: session.put(text).id for text in ("after", TEXT)}
    ids["elsewhere"] = worker.session("s", tenant="other").put("elsewhere").id
    other = ResultStore(**place)
    for text, id in ids.items():
        tenant = "other" if text == "elsewhere" else "acme"
        assert other.session("s", tenant=tenant).load(id) == text


def test_a_worker_takes_the_keys_of_who_sealed_an_emptied_index_first(
    place: dict[str, str], emptied: Callable[[], None]
) -> None:
    worker = ResultStore(**place)
    session, new = worker.session("s", tenant="acme"), worker.session("s", tenant="new")
    session.put("before")
    emptied()
    first = ResultStore(**place).session("s", tenant="acme").put("first").id
    ids = []
    for n in range(3):
        with suppress(StoreUnavailable):
            ids.append((session, session.put(f"after {n}").id))
        ids.append((new, new.put(f"after {n}").id))
    assert len(ids) >= 5
    other = ResultStore(**place)
    for of, id in ids:
        assert other.session("s", tenant=of.scope.tenant).load(id).startswith("after")
    assert session.load(first) == "first"


def test_a_worker_without_keys_writes_nothing_into_an_index_that_was_made_anew_with_them(
    place: dict[str, str], emptied: Callable[[], None]
) -> None:
    clear = ResultStore(**{**place, "keys": None})
    clear.session("s").put("before")
    emptied()
    ResultStore(**place).session("s").put("sealed")
    with pytest.raises(SettingsError, match="sealed"):
        clear.session("s").put("in the clear")


def test_a_worker_whose_keys_were_removed_acknowledges_nothing_that_they_would_open(
    place: dict[str, str], postgres: Postgres, tmp_path: Path
) -> None:
    place |= {"url": (url := postgres.new_database()), "payloads": str(tmp_path / "payloads")}
    worker = ResultStore(**place)
    worker.session("s", tenant="acme").put("before")
    postgres.sql("DELETE FROM callslip.wrapped_keys", url)
    for tenant in ("acme", "new", "acme"):
        with pytest.raises((StoreUnavailable, SettingsError)):
            worker.session("s", tenant=tenant).put("after")


class Failing:
    """A KMS that answers, and what it answers is wrong for a while."""

    wrong = False

    def wrap(self, key: bytes) -> bytes:
        return secrets.token_bytes(32) if self.wrong else key[::-1]

    def unwrap(self, wrapped: bytes) -> bytes:
        return secrets.token_bytes(32) if self.wrong else wrapped[::-1]


def test_a_kms_that_answers_wrongly_for_a_while_ruins_no_store(tmp_path: Path) -> None:
    kms = Failing()
    given = {"url": str(tmp_path / "store"), "keys": kms, "spool": ""}
    session = ResultStore(**given).session("s", tenant="acme")
    for make in (lambda: session, lambda: ResultStore(**given).session("s", tenant="later")):
        kms.wrong = True
        with pytest.raises(SettingsError):
            make().put("refused")
        kms.wrong = False
        assert make().load(make().put("kept").id) == "kept"
    kms.wrong = True
    store = ResultStore(**given)
    with pytest.raises(SettingsError):
        store.rotate_keys()
    kms.wrong = False
    assert store.rotate_keys() == 3
    assert store.session("s", tenant="acme").list().total == 1
