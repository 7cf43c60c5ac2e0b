"""`session.share`: a result that another session of the tenant reads, for a time, and no more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from callslip import (
    Envelope,
    HandleGone,
    ResultStore,
    Session,
    SettingsError,
    Shared,
    UnknownHandle,
)
from tests.conftest import Clock

ROWS = [{"id": n, "name": f"person {n}", "team": f"t{n % 7}"} for n in range(4000)]


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> ResultStore:
    return ResultStore(tmp_path / "s", clock=clock)


@pytest.fixture
def ana(store: ResultStore) -> Session:
    return store.session("plan", user="ana", tenant="acme")


@pytest.fixture
def bob(store: ResultStore) -> Session:
    return store.session("check", user="bob", tenant="acme")


@pytest.fixture
def id(ana: Session) -> str:
    return ana.put(ROWS, tool="crm", args={"year": 2026}).id


def is_unknown(session: Session, id: str) -> bool:
    """Whether every way to it ends as for an invented id."""
    tools = {tool.name: tool for tool in session.tools()}
    for name, given in (("read_result", {}), ("search_result", {"pattern": "x"})):
        reply = tools[name].call(result_id=id, **given)
        if reply != tools[name].call(result_id="res_0123456789", **given):
            return False
    for verb in (session.read, session.load, session.open, session.handle):
        with pytest.raises(UnknownHandle):
            verb(id)
    return id not in str(session.list())


def test_a_shared_result_is_read_under_its_own_id_by_every_verb(
    ana: Session, bob: Session, id: str
) -> None:
    assert is_unknown(bob, id)
    share = ana.share(id, with_session="check", user="bob", seconds=60)
    assert share == Shared(share.name, id, "bob", "check", 1_000_000.0, 1_000_060.0)
    assert bob.read(id).text == ana.read(id).text
    assert bob.search(id, "person 3999").total == 1
    assert bob.query(id, "team = 't3'").total == ana.query(id, "team = 't3'").total > 0
    assert bob.get(id, 7).value == ROWS[6]
    own = bob.put([{"id": 7, "note": "check"}], tool="notes").id
    joined = bob.sql(f"select n.note, p.name from {own} n join {id} p on p.id = n.id")
    assert "person 7" in str(joined)
    assert bob.load(id) == ROWS
    assert bob.open(id).read() == ana.open(id).read()
    assert len(list(bob.records(id))) == 4000
    tools = {tool.name: tool for tool in bob.tools()}
    assert "person 0" in tools["read_result"].call(result_id=id)
    assert str(bob.handle(id)) == str(ana.handle(id))
    saved = bob.query(id, "team = 't3'", save_as="mine")
    assert not saved.shared


def test_it_is_listed_as_shared_behind_what_the_session_holds(
    ana: Session, bob: Session, id: str
) -> None:
    ana.share(id, user="bob")
    own = bob.put("own", tool="t").id
    listing = bob.list()
    assert [(handle.id, handle.shared) for handle in listing.handles] == [(own, False), (id, True)]
    assert listing.total == 2
    line = next(line for line in str(listing).splitlines() if id in line)
    assert "shared with this session" in line
    assert "shared" not in str(ana.list())
    assert bob.list(after=1).handles[0].id == id


def test_it_ends_by_its_time_by_revoke_and_with_the_result(
    ana: Session, bob: Session, id: str, clock: Clock
) -> None:
    ana.share(id, user="bob", seconds=60)
    clock.at += 59.0
    assert bob.read(id).total == 4000
    clock.at += 1.0
    assert is_unknown(bob, id)

    share = ana.share(id, user="bob")
    assert ana.revoke(share) == 1
    assert ana.revoke(share) == 0
    assert is_unknown(bob, id)

    for how in (lambda: ana.revoke(id), ana.revoke):
        ana.share(id, user="bob")
        ana.share(id, user="eve", with_session="x")
        assert how() == 2
        assert is_unknown(bob, id)

    ana.share(id, user="bob")
    ana.delete(id)
    assert is_unknown(bob, id), "unknown, and not gone: it was never bob's"
    with pytest.raises(HandleGone):
        ana.read(id)
    again = ana.put(ROWS, tool="crm", args={"year": 2026}).id
    assert again == id
    assert is_unknown(bob, id), "what is made again is not shared again"


def test_a_share_ends_by_whatever_it_was_made_by(store: ResultStore, tmp_path: Path) -> None:
    ana, bob = store.session("plan", user="ana"), store.session("check", user="bob")
    shown = ana.offload(ROWS, tool="crm")
    for given in (shown, shown.handle, shown.handle.id):
        share = ana.share(given, user="bob")
        assert bob.read(share.id).total == 4000
        assert ana.shares(given) == [share]
        assert ana.revoke(given) == 1
        assert is_unknown(bob, share.id)

    plain = f"{(tmp_path / 'plain').as_uri()}?plain"
    store = ResultStore(tmp_path / "p", payloads=plain)
    ana, bob = store.session("plan", user="ana"), store.session("check", user="bob")
    handle = ana.put(ROWS, tool="crm")
    path = next(str(each) for each in (tmp_path / "plain").rglob("*.json*"))
    share = ana.share(path, user="bob")
    assert ana.shares(path) == [share]
    assert ana.revoke(path) == 1
    assert is_unknown(bob, handle.id)


def test_an_envelope_without_a_handle_ends_no_other_share(ana: Session, id: str) -> None:
    ana.share(id, user="bob")
    for given in (Envelope('<result stored="false">'), "", "res_0123456789"):
        assert ana.revoke(given) == 0
        assert ana.shares(given) == []
    assert len(ana.shares()) == 1


def test_a_result_is_deleted_by_its_envelope_too(ana: Session) -> None:
    shown = ana.offload(ROWS, tool="crm")
    assert ana.delete(shown)
    with pytest.raises(HandleGone):
        ana.read(shown)


def test_what_expires_or_closes_with_its_owner_is_unknown_to_the_reader(
    tmp_path: Path, clock: Clock
) -> None:
    store = ResultStore(tmp_path / "ttl", clock=clock, ttl_seconds=100)
    ana = store.session("plan", user="ana", tenant="acme")
    bob = store.session("check", user="bob", tenant="acme")
    expiring = ana.put("text", tool="t").id
    ana.share(expiring, user="bob", seconds=10_000)
    clock.at += 101.0
    assert is_unknown(bob, expiring)
    closing = ana.put("text 2", tool="t").id
    ana.share(closing, user="bob")
    assert bob.load(closing) == "text 2"
    ana.close()
    assert is_unknown(bob, closing)


def test_the_reader_can_neither_delete_it_nor_share_it_on_nor_end_the_share(
    store: ResultStore, ana: Session, bob: Session, id: str
) -> None:
    share = ana.share(id, user="bob")
    assert bob.delete(id) is False
    with pytest.raises(SettingsError, match="only shared with this session"):
        bob.share(id, user="eve")
    assert bob.revoke(share) == bob.revoke(id) == bob.revoke() == 0
    assert bob.shares() == []
    bob.put("own", tool="t")
    assert bob.close() == 1
    store.delete(tenant="acme", user="bob")
    assert ana.load(id) == ROWS
    assert bob.load(id) == ROWS
    assert is_unknown(store.session("x", user="eve", tenant="acme"), id)


def test_a_share_is_for_a_session_or_for_all_of_a_user(
    store: ResultStore, ana: Session, id: str
) -> None:
    ana.share(id, with_session="other")
    assert store.session("other", user="ana", tenant="acme").read(id).total == 4000
    assert is_unknown(store.session("third", user="ana", tenant="acme"), id)
    assert is_unknown(store.session("other", user="bob", tenant="acme"), id)
    ana.share(id, user="bob")
    for name in ("a", "b"):
        assert store.session(name, user="bob", tenant="acme").read(id).total == 4000
    assert is_unknown(store.session("a", user="bob", tenant="rival"), id)
    assert is_unknown(store.session("a", user="bob"), id)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "with_session="),
        ({"user": "bob", "tenant": "rival"}, "payloads and keys are a tenant's own"),
        ({"user": "bob", "seconds": 0}, "seconds=0"),
        ({"user": "bob", "seconds": float("inf")}, "seconds=inf"),
        ({"user": "bob", "seconds": True}, "seconds=True"),
        ({"user": 3}, "user=3"),
        ({"user": "bob", "seconds": 10**400}, "seconds=1000"),
        ({"user": "bob", "seconds": float("nan")}, "seconds=nan"),
        ({"with_session": ""}, "with_session=''"),
        ({"with_session": "plan"}, "has it already"),
    ],
)
def test_what_cannot_be_meant_is_a_settings_error(
    ana: Session, id: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        ana.share(id, **given)
    assert ana.shares() == []


def test_only_what_is_there_can_be_shared(ana: Session, bob: Session, id: str) -> None:
    with pytest.raises(UnknownHandle):
        ana.share("res_0123456789", user="bob")
    with pytest.raises(UnknownHandle):
        bob.share(id, user="eve")
    ana.delete(id)
    with pytest.raises(HandleGone):
        ana.share(id, user="bob")
    with pytest.raises(SettingsError, match="revoke"):
        ana.revoke(7)  # type: ignore[arg-type]


def test_shares_are_told_and_sharing_again_sets_the_time_anew(
    ana: Session, id: str, clock: Clock
) -> None:
    first = ana.share(id, user="bob", seconds=60)
    second = ana.share(id, user="eve", with_session="x")
    assert ana.shares() == ana.shares(id) == [first, second]
    clock.at += 30
    longer = ana.share(id, user="bob", seconds=60)
    assert longer.name == first.name
    assert longer.until == first.until + 30
    clock.at += 59
    assert [share.user for share in ana.shares()] == ["bob", "eve"]
    for n in range(230):
        ana.share(id, user=f"user {n}")
    assert len(ana.shares()) == 232


def test_the_async_twins_do_the_same(ana: Session, bob: Session, id: str) -> None:
    async def walk() -> None:
        share = await ana.ashare(id, user="bob")
        assert await ana.ashares() == [share]
        assert (await bob.aread(id)).total == 4000
        assert [handle.shared for handle in (await bob.alist()).handles] == [True]
        assert await ana.arevoke(share.name) == 1
        assert is_unknown(bob, id)

    asyncio.run(walk())


def test_a_shared_result_can_be_an_argument_of_a_tool(ana: Session, bob: Session, id: str) -> None:
    def count(rows: list[Any]) -> int:
        return len(rows)

    tool: Any = bob.offloaded(count, resolve=["rows"])
    before = tool(id)
    ana.share(id, user="bob")
    assert tool(id) == 4000
    assert "no stored result" in before.lower()
