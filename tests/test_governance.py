"""What a person who answers for the data types, and what they see."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import sqlite3
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callslip import Handle, Quota, ResultStore, Scope, SettingsError
from callslip.errors import HandleGone, LegalHold, StoreUnavailable, UnknownHandle
from callslip.patterns.memory import Memory
from callslip.patterns.scratchpad import Scratchpad
from callslip.settings import Retention
from callslip.stacks import auditops, ops
from callslip.stacks.payloads.folder import FolderPayloads
from tests.conftest import Clock

ROWS = [
    {"name": f"customer {n}", "n": n, "mark": hashlib.sha256(b"%d" % n).hexdigest()}
    for n in range(3000)
]
"""Some 300 KB that do not compress well: its payload is an object of its own."""


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> ResultStore:
    return ResultStore(tmp_path / "store", spool="", audit=True, clock=clock)


def did(store: ResultStore, **which: Any) -> list[tuple[str, str, str]]:
    return [(e.action, e.outcome, e.id) for e in store.audit(limit=999, **which)]


# --- the audit ------------------------------------------------------------------------------------


def test_the_audit_says_who_did_what_with_which_result(store: ResultStore, clock: Clock) -> None:
    session = store.session("run", user="ana", tenant="acme")
    rows = session.put(ROWS, tool="search")
    session.read(rows.id)
    session.search(rows.id, "customer 7")
    session.query(rows.id, "n > 5")
    session.get(rows.id, 3)
    clock.at += 5
    store.acting("support:li").session("run", user="ana", tenant="acme").load(rows.id)
    session.list()
    for id in ("res_0000000000", rows.id):
        with pytest.raises(UnknownHandle):
            store.session("run", user="eve", tenant="acme").read(id)
    session.delete(rows.id)
    with pytest.raises(HandleGone):
        session.read(rows.id)
    assert did(store, user="ana") == [
        ("stored", "done", rows.id), ("read", "done", rows.id), ("search", "done", rows.id),
        ("query", "done", rows.id), ("get", "done", rows.id), ("load", "done", rows.id),
        ("listed", "done", ""), ("deleted", "done", rows.id), ("erased", "done", rows.id),
        ("read", "gone", rows.id),
    ]  # fmt: skip
    assert did(store, user="eve") == [
        ("read", "unknown", "res_0000000000"), ("read", "unknown", rows.id)
    ]  # fmt: skip
    (load,) = store.audit(action="load")
    assert (load.actor, load.user, load.at, load.tool) == ("support:li", "ana", clock.at, "search")
    assert did(store, until=clock.at, tenant="acme")[-1][0] == "get"
    assert did(store, id=rows.id, action="search") == [("search", "done", rows.id)]


def test_a_share_is_told_with_whom_it_is_shared_and_its_reads_are_the_receivers(
    store: ResultStore, clock: Clock
) -> None:
    session = store.session("run", user="ana")
    id = session.put("x" * 100, tool="t").id
    share = session.share(id, with_session="chat", user="bob", seconds=60)
    store.session("chat", user="bob").read(id)
    session.revoke(share)
    shared, read, revoked = store.audit(limit=9)[1:]
    assert (shared.action, shared.actor, shared.id) == ("shared", "ana", id)
    assert shared.detail == f"{share.name} with session chat of user bob until {clock.at + 60:.0f}"
    assert (read.action, read.actor, read.session, read.detail) == ("read", "bob", "chat", "shared")
    assert (revoked.action, revoked.actor, revoked.count) == ("revoked", "ana", 1)


def test_the_audit_holds_no_content(store: ResultStore) -> None:
    session = store.session("run", subject="patient-17")
    secret = "zimtschnecke"
    id = session.put(f"{secret}\n" * 4000, tool="t", args={"q": secret}, status=secret).id
    session.search(id, secret)
    Scratchpad(session).write_file(f"{secret}.md", secret)
    Memory(store, ("acme", "ana")).remember(f"likes {secret}", key=secret)
    Memory(store, ("acme", "ana")).recall(secret)
    store.delete(subject="patient-17")
    told = io.StringIO()
    count = store.export_audit(told)
    lines = told.getvalue().splitlines()
    assert len(lines) == count == len(store.audit(limit=999))
    assert secret not in told.getvalue()
    assert "patient-17" not in told.getvalue()
    assert json.loads(lines[0])["action"] == "stored"


def test_every_verb_of_it_has_an_async_twin(store: ResultStore) -> None:
    async def work() -> None:
        session = store.session("run", subject="p")
        await session.aput("some text", tool="t")
        assert [entry.action for entry in await store.aaudit()] == ["stored"]
        assert await store.aexport_audit(io.StringIO()) == 1
        await store.ahold(reason="case 7")
        with pytest.raises(LegalHold):
            await store.adelete(subject="p")
        assert len(await store.aholds()) == 1
        assert await store.arelease() == 1
        assert await store.adelete(subject="p") == 1
        assert (await store.aproof(subject="p")).complete

    asyncio.run(work())


def test_a_page_with_the_audit_on_is_still_one_request(tmp_path: Path) -> None:
    counts = {}
    for audit in (False, True):
        store = ResultStore(tmp_path / str(audit), spool="", audit=audit)
        session = store.session("run")
        id = session.put("line\n" * 2000).id
        session.read(id)
        asked: list[str] = []
        inner = store._backend.index

        class Counting:
            def run(self, op: Any, /, asked: list[str] = asked, inner: Any = inner) -> Any:
                asked.append(type(op).__name__)
                return inner.run(op)

        store._backend.index = Counting()
        session.read(id, 50)
        counts[audit] = asked
    assert counts == {False: ["Get"], True: ["Audited"]}


def test_the_audit_cannot_be_changed_nor_shortened(store: ResultStore, tmp_path: Path) -> None:
    store.session("run").put("x", tool="t")
    store.close()
    db = sqlite3.connect(tmp_path / "store" / "index.db")
    for statement in ("DELETE FROM audit", "UPDATE audit SET actor = x'00'"):
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            db.execute(statement)
    db.close()


def test_an_entry_cannot_be_put_in_anothers_place(store: ResultStore, tmp_path: Path) -> None:
    store.session("run").put("text")
    before = store.audit()
    db = sqlite3.connect(tmp_path / "store" / "index.db")
    with pytest.raises(sqlite3.DatabaseError, match="append-only"):
        db.execute("INSERT OR REPLACE INTO audit (n, at, action) VALUES (1, 0, 'read')")
    db.close()
    assert store.audit() == before


def test_a_handle_that_is_shown_again_is_told(store: ResultStore) -> None:
    session = store.session("run", user="ana")
    id = session.put(ROWS).id
    assert "customer 0" in str(session.handle(id))
    assert did(store)[-1] == ("listed", "done", id)


def test_a_copy_of_all_of_it_is_told(store: ResultStore, tmp_path: Path) -> None:
    store.session("run").put(ROWS)
    store.acting("ops:li").backup(tmp_path / "copy")
    last = store.audit()[-1]
    assert (last.action, last.actor) == ("copied", "ops:li")
    assert ResultStore(tmp_path / "copy", spool="").audit()[-1] == last


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "\ud800"}, {"action": "a\0"}, {"since": float("nan")}, {"until": "today"},
        {"since": -(10**400)}, {"after": "x"}, {"limit": 1.5}, {"tenant": 5}, {"id": b"res_"},
    ],
)  # fmt: skip
def test_what_cannot_be_asked_of_the_audit_is_said(
    store: ResultStore, wrong: dict[str, Any]
) -> None:
    (name,) = wrong
    with pytest.raises(SettingsError, match=f"{name}="):
        store.audit(**wrong)
    assert store.audit(after=2**80, limit=2**80) == []


@pytest.mark.parametrize("wrong", [{"tenant": 7}, {"user": 7}, {"session": b"s"}, {"subject": 7}])
def test_what_cannot_be_deleted_is_said(store: ResultStore, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    for verb in (store.delete, store.proof):
        with pytest.raises(SettingsError, match=f"{name}="):
            verb(**wrong)  # type: ignore[operator]


def test_a_read_that_cannot_be_told_of_is_not_done(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from callslip.stacks.index import auditing

    session = store.session("run")
    id = session.put("x" * 100).id

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(auditing, "write", full)
    with pytest.raises(StoreUnavailable):
        session.read(id)


def test_a_look_up_that_is_denied_is_told_and_costs_what_an_unknown_one_does(
    tmp_path: Path,
) -> None:
    denied: set[str] = set()
    store = ResultStore(
        tmp_path / "store",
        spool="",
        audit=True,
        authorize=lambda scope, handle, action: handle is None or handle.id not in denied,
    )
    session = store.session("run", user="ana")
    id = session.put("x" * 100).id
    session.read(id)
    denied.add(id)
    asked: list[list[str]] = []
    inner = store._backend.index

    class Counting:
        def run(self, op: Any, /) -> Any:
            asked[-1].append(type(op).__name__)
            return inner.run(op)

    store._backend.index = Counting()
    said = []
    for each in (id, "res_0000000000"):
        asked.append([])
        with pytest.raises(UnknownHandle) as error:
            session.read(each)
        said.append(str(error.value).replace(each, "ID"))
    assert said[0] == said[1]
    assert asked[0] == asked[1] == ["Get", "Record"]
    assert did(store, action="read") == [
        ("read", "done", id), ("read", "denied", id), ("read", "unknown", "res_0000000000")
    ]  # fmt: skip


@pytest.mark.parametrize("guarded", [False, True])
def test_each_deletion_share_and_list_is_told_once_by_one_name(
    tmp_path: Path, guarded: bool
) -> None:
    denied: set[str] = set()

    def authorize(scope: Scope, handle: Handle | None, action: str) -> bool:
        return handle is None or handle.tool != "secret" or action not in denied

    hook: Any = {"authorize": authorize} if guarded else {}
    store = ResultStore(tmp_path, spool="", audit=True, **hook)
    ana, ben = store.session("run", user="ana"), store.session("run", user="ben")
    gone, kept = (ana.put(str(n), tool=tool).id for n, tool in enumerate(("t", "secret")))
    for id in (kept, "res_0000000000"):
        with suppress(UnknownHandle):
            ana.share(id, user="ben")
        ana.delete(gone if id == kept else id)
    assert ana.list(limit=1).total == 1
    with pytest.raises(SettingsError):
        ben.share(kept, user="eve")
    assert not ben.delete(kept)
    told = [("stored", "done", 1), ("stored", "done", 1), ("shared", "done", 1),
            ("deleted", "done", 1), ("erased", "done", 1), ("shared", "unknown", 0),
            ("deleted", "unknown", 0), ("listed", "done", 1), ("shared", "denied", 0),
            ("deleted", "unknown", 0)]  # fmt: skip
    assert [(e.action, e.outcome, e.count) for e in store.audit()] == told
    if guarded:
        denied |= {"share", "delete", "list"}
        with pytest.raises(UnknownHandle):
            ana.share(kept, user="eve")
        assert not ana.delete(kept)
        assert not ana.list().handles
        assert [(e.action, e.outcome, e.count, e.id) for e in store.audit(after=len(told))] == [
            ("shared", "denied", 0, kept), ("deleted", "denied", 0, kept), ("listed", "done", 0, "")
        ]  # fmt: skip


def test_a_path_that_leads_to_nothing_here_is_told_as_unknown(tmp_path: Path) -> None:
    plain = f"{(tmp_path / 'plain').as_uri()}?plain"
    store = ResultStore(tmp_path / "s", payloads=plain, spool="", audit=True)
    ana, ben = store.session("run", user="ana"), store.session("run", user="ben")
    held = ana.put("line\n" * 3000, tool="notes")
    ana.share(held.id, user="ben")
    before = store.audit()[-1].n
    assert ana.read(held.saved_to).total == 3000
    for session, path in ((ben, held.saved_to), (ana, held.saved_to.replace("notes", "other"))):
        with pytest.raises(UnknownHandle):
            session.read(path)
    assert [(e.user, e.action, e.outcome, e.id) for e in store.audit(after=before)] == [
        ("ana", "read", "done", held.id), ("ben", "read", "unknown", held.id),
        ("ana", "read", "unknown", held.id),
    ]  # fmt: skip


def test_what_may_not_be_stored_is_told(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, spool="", audit=True, authorize=lambda *asked: False)
    with pytest.raises(StoreUnavailable):
        store.session("run", user="ana").put("x", tool="t")
    assert "not stored" in str(store.session("run").offload("x\n" * 9000, tool="u")).lower()
    said = [(e.action, e.outcome, e.tool, e.actor) for e in store.audit()]
    assert said == [("stored", "denied", "t", "ana"), ("stored", "denied", "u", "")]


# --- retention ------------------------------------------------------------------------------------


def test_results_of_a_tool_go_so_long_after_they_were_stored(tmp_path: Path, clock: Clock) -> None:
    retention = Retention(tools={"search": 60.0}, tenants={"acme": 600.0, "vault": None})
    store = ResultStore(
        tmp_path, spool="", clock=clock, ttl_seconds=100.0, retention=retention, audit=True
    )
    acme = store.session("run", tenant="acme")
    search, other = acme.put("a", tool="search").id, acme.put("b", tool="other").id
    vault, plain = store.session("run", tenant="vault"), store.session("run")
    kept, short = vault.put("c").id, plain.put("d").id
    clock.at += 50
    acme.read(search)
    clock.at += 11
    with pytest.raises(HandleGone, match="expired"):
        acme.read(search)
    assert [handle.id for handle in acme.list().handles] == [other]
    clock.at += 300
    assert acme.read(other).text == "b"
    with pytest.raises(HandleGone):
        plain.read(short)
    clock.at += 10**8
    assert vault.read(kept).text == "c"
    store.sweep()
    expired = [entry.id for entry in store.audit(action="expired", limit=99)]
    assert sorted(expired) == sorted([search, other, short])
    assert store.stats().results == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": {"search": 0}},
        {"tools": {"search": None}},
        {"tools": {"search": True}},
        {"tools": {"search": 10**400}},
        {"tenants": {"acme": -1}},
        {"tenants": {"acme": float("nan")}},
        {"tenants": {7: 1.0}},
        {"tenants": ["acme"]},
    ],
)
def test_a_retention_that_cannot_be_meant_is_an_error_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        Retention(**wrong)
    with pytest.raises(SettingsError):
        ResultStore(retention={"tools": {}})  # type: ignore[arg-type]
    with pytest.raises(SettingsError):
        ResultStore(audit="yes")  # type: ignore[arg-type]


# --- legal holds ----------------------------------------------------------------------------------


def test_what_is_held_stays_whatever_is_tried(tmp_path: Path, clock: Clock) -> None:
    quota = Quota(tenant_results=3)
    store = ResultStore(tmp_path, spool="", clock=clock, ttl_seconds=60.0, quota=quota, audit=True)
    session = store.session("run", user="ana", tenant="acme")
    pad = Scratchpad(session)
    pad.write_file("todo.md", "one")
    id = session.put("evidence", tool="mail").id
    facts = Memory(store, ("acme", "ana"))
    facts.remember("likes tea", expires=30)
    store.acting("legal").hold(tenant="acme", user="ana", reason="case 7")
    clock.at += 10**6
    tries = [
        lambda: session.delete(id), session.close, lambda: store.delete(tenant="acme"),
        lambda: store.delete(tenant="acme", user="ana", session="run"), facts.clear,
        lambda: facts.forget("mem_0"),
    ]  # fmt: skip
    for attempt in tries:
        with pytest.raises(LegalHold, match=r"case 7.*store\.release\(tenant='acme', user='ana'\)"):
            attempt()
    store.gc()
    for n in range(4):
        store.session("other", tenant="acme").put(f"pushes {n}")
    with pytest.raises(StoreUnavailable) as full:
        for n in range(4):
            session.put(f"more {n}")
    assert full.value.reason == "over quota"
    assert session.load(id) == "evidence"
    assert pad.text("todo.md") == "one"
    held = [entry for entry in store.audit(limit=999) if entry.outcome == "held"]
    assert len(held) == len(tries)
    assert store.verify().ok
    assert store.release(tenant="acme", user="ana") == 1
    assert store.holds() == []
    clock.at += 61
    with pytest.raises(HandleGone):
        session.load(id)
    store.gc()
    assert store.stats(tenant="acme").results == 0
    assert facts.list().total == 0
    said = [(e.action, e.actor, e.detail) for e in store.audit(limit=999) if "hold:" in e.id]
    assert said == [("held", "legal", "case 7"), ("released", "", "case 7")]


def test_a_model_is_told_in_a_sentence_that_something_is_kept(store: ResultStore) -> None:
    store.hold(reason="secret reason")
    with pytest.raises(LegalHold) as error:
        store.session("run").close()
    assert "secret" not in (error.value.for_model or "")


# --- delete by subject ----------------------------------------------------------------------------


def test_all_that_is_about_a_subject_goes_and_the_audit_proves_it(store: ResultStore) -> None:
    one = store.session("run", user="ana", tenant="acme", subject="patient-17")
    two = store.session("chat", user="bob", tenant="acme")
    whole = one.put(ROWS, tool="records")
    named = two.put("of two", tool="t", subject=["patient-17", "patient-18"])
    derived = one.query(whole.id, "n < 9", save_as="few")
    other = two.put("of one", tool="t", subject="patient-18")
    Scratchpad(one).write_file("notes.md", "patient-17 sleeps badly")
    facts = Memory(store, ("acme", "ana"))
    facts.remember("patient-17 likes tea", subject="patient-17")
    facts.remember("the ward has a garden")
    foreign = store.session("run", tenant="t").put("x", subject="patient-17")
    assert store.acting("dpo").delete(tenant="acme", subject="patient-17") == 5
    for session, id in ((one, whole.id), (one, derived.id), (two, named.id)):
        with pytest.raises(UnknownHandle):
            session.read(id)
    assert two.load(other.id) == "of one"
    assert store.session("run", tenant="t").load(foreign.id) == "x"
    assert [fact.text for fact in facts.list().facts] == ["the ward has a garden"]
    assert Scratchpad(one).list_files().total == 0
    proof = store.proof(tenant="acme", subject="patient-17")
    assert proof.complete
    ids = {entry.id for entry in proof.deleted}
    assert {whole.id, derived.id, named.id, "file:1"} < ids
    assert {entry.actor for entry in proof.deleted} == {"dpo"}
    assert {entry.id for entry in proof.erased} == {id for id in ids if id[:4] != "mem_"}
    assert not store.proof(tenant="acme", subject="patient-18").complete
    assert store.verify().ok
    assert store.stats(tenant="acme").garbage == 0


def test_a_file_that_is_edited_stays_about_whom_it_was_about(store: ResultStore) -> None:
    first = Scratchpad(store.session("run", subject="patient-17"))
    first.write_file("notes.md", "17 sleeps badly\n18 is new")
    then = Scratchpad(store.session("run", subject="patient-18"))
    then.edit_file("notes.md", "is new", "eats well")
    then.edit_file("notes.md", "17 sleeps badly\n", "")
    then.write_file("beds.md", "two are free")
    assert store.delete(subject="patient-17") == 3
    assert [note.path for note in then.list_files().files] == ["beds.md"]
    assert store.proof(subject="patient-17").complete


def test_a_deletion_is_pending_until_the_objects_are_gone(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.session("run", subject="p")
    id = session.put(ROWS).id
    run = FolderPayloads.run

    def away(self: Any, op: Any, /) -> Any:
        if isinstance(op, ops.DeleteObjects):
            raise StoreUnavailable("away", reason="unreachable")
        return run(self, op)

    with monkeypatch.context() as patched:
        patched.setattr(FolderPayloads, "run", away)
        assert store.acting("dpo").delete(subject="p") == 1
        proof = store.proof(subject="p")
        assert not proof.complete
        assert [entry.id for entry in proof.pending] == [id]
    store.gc()
    proof = store.proof(subject="p")
    assert proof.complete
    assert [(entry.actor, entry.id) for entry in proof.erased] == [("dpo", id)]


def test_what_had_gone_before_proves_nothing_of_what_goes_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quota = Quota(session_results=1)
    store = ResultStore(tmp_path / "store", spool="", audit=True, quota=quota)
    session = store.session("run", user="ana", tenant="acme")
    id = session.put(ROWS).id
    session.put("another")
    store.gc()  # the first was evicted, and is erased
    assert session.put(ROWS).id == id

    def away(self: Any, op: Any, /, run: Any = FolderPayloads.run) -> Any:
        if isinstance(op, ops.DeleteObjects):
            raise StoreUnavailable("away", reason="unreachable")
        return run(self, op)

    with monkeypatch.context() as patched:
        patched.setattr(FolderPayloads, "run", away)
        store.delete(tenant="acme", user="ana")
        proof = store.proof(tenant="acme", user="ana")
        assert (proof.complete, [entry.id for entry in proof.pending]) == (False, [id])
    store.gc()
    assert store.proof(tenant="acme", user="ana").complete


def test_a_version_whose_text_a_quota_took_is_proven_to_be_gone(tmp_path: Path) -> None:
    quota = Quota(session_bytes=3000)
    store = ResultStore(tmp_path / "store", spool="", audit=True, quota=quota)
    pad = Scratchpad(store.session("run", subject="p"))
    for n in range(5):
        pad.write_file("plan.md", str(n) * 900)
    assert store.delete(subject="p") == 5
    proof = store.proof(subject="p")
    assert proof.complete
    assert len(proof.deleted) == 5


def test_what_had_run_out_is_proven_to_be_gone(tmp_path: Path, clock: Clock) -> None:
    retention = Retention(tools={"lab": 10})
    store = ResultStore(tmp_path, spool="", audit=True, clock=clock, retention=retention)
    id = store.session("run", subject="p").put(ROWS, tool="lab").id
    clock.at += 11
    store.delete(subject="p")
    proof = store.proof(subject="p")
    assert (proof.complete, {entry.id for entry in proof.erased}) == (True, {id})


@pytest.mark.parametrize("tenant", ["", "-"])
def test_facts_of_a_user_without_a_tenant_are_held_and_go_with_the_user(
    store: ResultStore, tenant: str
) -> None:
    facts = Memory(store, (tenant, "ana"))  # "-": what LangChain's runs say without a tenant_id
    for n in range(2):
        facts.remember(f"patient {n} likes tea", subject=f"p{n}")
    store.hold(user="ana", reason="case 7")
    for act in (facts.clear, lambda: store.delete(subject="p0"), lambda: store.delete(user="ana")):
        with pytest.raises(LegalHold):
            act()
    store.release(user="ana")
    assert store.delete(subject="p0") == 1
    assert store.proof(subject="p0").complete
    assert [fact.text for fact in facts.list()] == ["patient 1 likes tea"]
    store.delete(user="ana")
    assert facts.list().total == 0


def test_no_plain_file_is_left_of_a_subject(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    store = ResultStore(tmp_path / "store", payloads=f"file://{folder}?plain", spool="", audit=True)
    gone = store.session("ward", subject="p").put(ROWS)
    kept = store.session("other").put(ROWS)

    def files() -> set[str]:
        return {each.name for each in folder.rglob("*res_*")}

    assert len(files()) == 2
    store.delete(subject="p")
    assert [name for name in files() if gone.id in name] == []
    assert [kept.id in name for name in files()] == [True]


def test_content_that_another_result_has_too_is_said_to_be_kept(store: ResultStore) -> None:
    one, two = store.session("1"), store.session("2")
    one.put(ROWS, subject="p")
    kept = two.put(ROWS).id
    store.delete(subject="p")
    proof = store.proof(subject="p")
    assert proof.complete
    assert [entry.outcome for entry in proof.erased] == ["kept"]
    assert two.load(kept) == ROWS


@pytest.mark.parametrize("wrong", ["", 7, ["p", ""], [None], "x" * 201])
def test_a_subject_that_is_no_name_is_refused(store: ResultStore, wrong: Any) -> None:
    with pytest.raises(SettingsError, match="subject="):
        store.session("run", subject=wrong)
    with pytest.raises(SettingsError):
        store.session("run").put("x", subject=wrong)


def test_a_subject_goes_with_a_tenant_alone(store: ResultStore) -> None:
    with pytest.raises(SettingsError, match="tenant alone"):
        store.delete(user="ana", subject="p")


def test_the_spool_carries_subjects_and_retention_along(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "store"
    store = ResultStore(
        folder,
        spool=tmp_path / "spool",
        clock=clock,
        audit=True,
        retention=Retention(tools={"search": 60.0}),
    )
    session = store.session("run", subject="p")
    folder.write_text("in the way")
    text = session.offload("line\n" * 9000, tool="search")
    assert "not stored" in str(text).lower()
    folder.unlink()
    store.gc()
    (handle,) = session.list().handles
    scope = session.scope
    assert store.run_flow(ops.do(auditops.SubjectsOf(scope, handle.id))) == ("p",)
    clock.at += 61
    with pytest.raises(HandleGone):
        session.read(handle.id)
    store.sweep()
    assert store.delete(subject="p") == 0, "only its tombstone is left, and goes as well"
    assert store.run_flow(ops.do(ops.Get(scope, handle.id, clock.at))) is None


# --- verify ---------------------------------------------------------------------------------------


def test_a_finding_names_the_results_that_it_is_about(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, spool="")
    handle = store.session("run-42").put(ROWS, tool="search")
    (payload,) = (file for file in (tmp_path / "payloads").rglob("*") if file.is_file())
    payload.write_bytes(payload.read_bytes()[:-9])
    (problem,) = store.verify().problems
    assert f"{handle.id} of search in session run-42" in problem


def test_acting_shares_connections_and_memory_and_can_be_pickled(store: ResultStore) -> None:
    import pickle

    other = store.acting("li")
    assert other._backend is store._backend
    assert other.caches is store.caches
    assert other.tables is store.tables
    plain = ResultStore("somewhere", audit=True).acting("li")
    assert pickle.loads(pickle.dumps(plain)).settings.actor == "li"
    assert replace(plain.settings, actor="") == ResultStore("somewhere", audit=True).settings
    with pytest.raises(SettingsError):
        store.acting(7)  # type: ignore[arg-type]


def test_the_deletion_of_a_tenant_ends_though_its_workers_go_on(
    store: ResultStore, clock: Clock
) -> None:
    for n in range(5):
        store.session(f"s{n}", tenant="acme").put(f"before {n}")
    index, count = store._backend.index, 0

    class Busy:
        def run(self, op: Any, /) -> Any:
            nonlocal count
            answer = index.run(op)
            inner = getattr(op, "op", op)
            if isinstance(inner, ops.Remove) and inner.session is not None:
                count += 1
                assert count < 50, "it goes on for ever"
                clock.at += 1
                other = ResultStore(store.settings.url, spool="", clock=clock)
                other.session(inner.session, tenant="acme").put(f"meanwhile {count}")
                other.close()
            return answer

    store._backend.index = Busy()
    assert store.delete(tenant="acme") >= 5
    assert store.stats(tenant="acme").results == 0


def test_odd_arguments_of_the_audit_are_answered_or_refused(store: ResultStore) -> None:
    store.session("run").put("x")
    assert store.audit(since=10**30) == store.audit(until=-(10**30)) == []
    assert len(store.audit(since=-(10**30), until=10**30)) == 1
    for wrong in ({"after": True}, {"limit": True}, {"since": 10**400}):
        with pytest.raises(SettingsError, match="give"):
            store.audit(**wrong)
