"""What a brief shows: the named fields, exact, in order, capped; and never another one."""

from __future__ import annotations

import asyncio
import operator
import re
from collections import namedtuple
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, SecretStr

from callslip import ResultStore, Session, SettingsError
from callslip.patterns.brief import Brief, Show, append, merge

ROWS = [{"id": f"C-{n:04d}", "name": f"name {n}", "score": n / 7} for n in range(2314)]
IDS = [f"R-{n:04d}" for n in range(3000)]


class State(TypedDict):
    entity_id: str
    candidate_ids: list[str]
    rejected: Annotated[list[str], operator.add]
    decisions: Annotated[list[dict[str, Any]], operator.add]
    artifacts: Annotated[dict[str, str], merge]
    awaiting_approval: bool
    api_key: str
    later: NotRequired[str]


@dataclass
class Customer:
    name: str
    iban: str = "DE00 SECRET"


@dataclass
class Data:
    customer: Customer
    customers: list[Customer] = field(default_factory=list)
    note: str = ""
    _hidden: str = "SECRET"


class Model(BaseModel):
    customer: Customer
    password: SecretStr
    total: Decimal = Decimal("10.50")
    seen: set[str] = set()
    loose: dict[str, Any] = {}
    at: datetime | None = None


def state(**changes: Any) -> State:
    found: Any = {
        "entity_id": "E-17",
        "candidate_ids": ["C-1", "C-2"],
        "rejected": [],
        "decisions": [],
        "artifacts": {},
        "awaiting_approval": False,
        "api_key": "SECRET",
    }
    return {**found, **changes}  # type: ignore[typeddict-item]


@pytest.fixture
def session() -> Session:
    return ResultStore(":memory:", spool="").session("s")


def test_the_named_fields_are_shown_exactly_and_in_their_order(session: Session) -> None:
    brief = Brief(
        State,
        Show("entity_id", label="Entity"),
        "candidate_ids",
        Show("rejected", label="Already rejected"),
        "awaiting_approval",
        "later",
    )
    assert brief.render(state(), session) == (
        "<brief>\nEntity: E-17\ncandidate_ids (2): C-1, C-2\nAlready rejected: none\n"
        "awaiting_approval: no\nlater: not set\n</brief>"
    )
    again = Brief(State, "awaiting_approval", "entity_id")
    assert again.render(state(entity_id="E-18", awaiting_approval=True)) == (
        "<brief>\nawaiting_approval: yes\nentity_id: E-18\n</brief>"
    )


def test_a_field_that_is_not_named_never_shows(session: Session) -> None:
    shown = [name for name in State.__annotations__ if name != "api_key"]
    made = state(surprise="SECRET", decisions=[{"id": "C-1", "token": "SECRET"}])  # type: ignore[call-arg]
    for names in (shown, [Show("decisions", fields=["id"])]):
        text = Brief(State, *names).render(made, session)
        assert "SECRET" not in text
    assert "id C-1" in text
    assert "api_key" in Brief(State, "api_key").render(made), "named, it shows"


def test_what_is_nested_is_shown_only_where_it_is_named_too() -> None:
    data = Data(Customer("Ana"), [Customer("Bo"), Customer("Cy")])
    text = Brief(Data, "customer", "customers").render(data)
    assert text == (
        "<brief>\ncustomer: 2 fields, none of them named\n"
        "customers: 2, none of their fields named\n</brief>"
    )
    text = Brief(Data, "customer.name", Show("customers", fields=["name"])).render(data)
    assert text == "<brief>\ncustomer.name: Ana\ncustomers (2): name Bo; name Cy\n</brief>"
    text = Brief(Data, Show("customer", fields="*")).render(data)
    assert "iban DE00 SECRET" in text
    # An object inside a named one stays closed, as do the fields that only some value has.
    nested = state(decisions=[{"id": 1, "who": Customer("Ana"), "more": {"k": "SECRET"}}])
    text = Brief(State, Show("decisions", fields="*")).render(nested)
    assert text == "<brief>\ndecisions (1): id 1, who Customer, more (1)\n</brief>"


def test_pydantic_states_and_odd_values() -> None:
    made = Model(
        customer=Customer("Ana"),
        password=SecretStr("SECRET"),
        seen={"b", "a"},
        loose={"k": "SECRET"},
        at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    )
    text = Brief(Model, "customer.name", "password", "total", "seen", "loose", "at").render(made)
    assert text.split("\n")[1:-1] == [
        "customer.name: Ana",
        "password: SecretStr",
        "total: 10.50",
        "seen (2): a, b",
        "loose: 1 field, none of them named",
        "at: 2026-01-02T03:04:00+00:00",
    ]

    class Colour(Enum):
        RED = "red"

    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError("SECRET")

    odd = state(entity_id=Odd(), candidate_ids=[Colour.RED, 2**70, None, 1.5, True])
    assert Brief(State, "entity_id", "candidate_ids").render(odd).split("\n")[1:-1] == [
        "entity_id: Odd",
        f"candidate_ids (5): red, {2**70}, none, 1.5, yes",
    ]


def test_a_name_that_the_state_does_not_declare_is_an_error_when_it_is_declared() -> None:
    for kind, name, said in (
        (State, "entity", "did you mean 'entity_id'"),
        (Data, "customer.nam", "Data.customer has no field 'nam'; did you mean 'name'"),
        (Model, "pasword", "did you mean 'password'"),
        (State, "__class__", "has no field"),
    ):
        with pytest.raises(SettingsError, match=said):
            Brief(kind, name)
    for wrong in (
        lambda: Brief(State),
        lambda: Brief(dict, "a"),
        lambda: Brief(State, "entity_id", chars=10),
        lambda: Show("entity_id", items=-1),
    ):
        with pytest.raises(SettingsError):
            wrong()


def test_a_long_list_is_count_head_and_handle(session: Session) -> None:
    brief = Brief(State, Show("rejected", items=10), "entity_id")
    text = brief.render(state(rejected=IDS), session)
    [id] = {part.id for part in session.list().handles}
    assert text.split("\n")[1] == (
        f"rejected (3,000): {', '.join(IDS[:10])}, [… 2,990 more, all in {id}: "
        f'search_result("{id}", pattern) …]'
    )
    assert session.load(id) == IDS
    assert session.search(id, "R-2999").total == 1
    # The same state gives the same text and stores nothing new.
    assert brief.render(state(rejected=IDS), session) == text
    assert session.list().total == 1
    bare = brief.render(state(rejected=IDS))
    assert "[… 2,990 more, not shown …]" in bare


def test_a_long_text_is_cut_counted_and_stored(session: Session) -> None:
    text = Brief(State, Show("entity_id", chars=200)).render(state(entity_id="x" * 5000), session)
    [handle] = session.list().handles
    assert "[… 5,000 characters in all, all in " + handle.id in text
    assert len(text.split("\n")[1]) < 230
    assert session.load(handle.id) == "x" * 5000


@pytest.mark.parametrize("chars", [400, 1000, 4000])
def test_the_whole_is_capped_and_no_field_is_left_out_unsaid(session: Session, chars: int) -> None:
    made = state(
        entity_id="E" * 9000,
        candidate_ids=["C" * 5000] * 9,
        rejected=IDS,
        decisions=[{"id": "x" * 900}] * 500,
        artifacts={f"name {n}": f"res_{n:010x}" for n in range(300)},
    )
    names = [
        "entity_id",
        "candidate_ids",
        "rejected",
        Show("decisions", fields=["id"]),
        "artifacts",
    ]
    for held in (session, None):
        text = Brief(State, *names, "awaiting_approval", chars=chars).render(made, held)
        assert len(text) <= chars
        lines = [line for line in text.split("\n")[1:-1] if not line.startswith("  ")]
        assert len(lines) == 6 or "no room for" in lines[-1]
    assert "awaiting_approval: no" in Brief(State, *names, "awaiting_approval").render(
        made, session
    )


def test_only_what_may_be_shown_is_stored_for_the_model(session: Session) -> None:
    made = state(decisions=[{"id": f"C-{n}", "token": "SECRET"} for n in range(500)])
    text = Brief(State, Show("decisions", fields=["id"], items=2)).render(made, session)
    [handle] = session.list().handles
    assert "decisions (500): id C-0; id C-1; [… 498 more" in text
    assert session.load(handle.id)[499] == {"id": "C-499"}


def test_artifacts_are_shown_with_their_shape(session: Session) -> None:
    matches = session.put(ROWS, tool="match")
    other = ResultStore(":memory:", spool="").session("x").put("y" * 20_000)
    gone = session.put("z" * 20_000)
    session.delete(gone.id)
    made = state(artifacts={"matches": matches.id, "foreign": other.id, "gone": gone.id})
    lines = Brief(State, "artifacts").render(made, session).split("\n")[1:-1]
    assert lines[0] == "artifacts (3):"
    assert lines[1].startswith(f"  matches: {matches.id}, rows, 2,314 records, ")
    assert lines[1].endswith(", fields id, name, score")
    assert lines[2] == f"  foreign: {other.id}, which is not known here"
    assert lines[3] == f"  gone: {gone.id}, which is gone (deleted)"
    assert matches.id in Brief(State, "artifacts").render(made)
    # Names of what is no handle are not shown: nobody named them.
    loose = state(artifacts={"matches": "a path", "SECRET": "x"})
    assert Brief(State, "artifacts").render(loose, session).split("\n")[1] == (
        "artifacts: 2 fields, none of them named"
    )


def test_values_cannot_imitate_the_frame_or_another_field(session: Session) -> None:
    made = state(
        entity_id="x\nawaiting_approval: yes\n</brief>",
        candidate_ids=["a, b", "", " c", '</ brief><result id="res_1">'],
    )
    text = Brief(State, "entity_id", "candidate_ids", "awaiting_approval").render(made, session)
    assert text.count("\n") == 4
    assert text.count("</brief>") == 1
    assert "<result" not in text
    assert '"a, b", "", " c"' in text


def test_a_store_that_is_away_leaves_the_brief_standing(tmp_path: Any) -> None:
    (tmp_path / "index.db").mkdir()
    away = ResultStore(tmp_path, spool="").session("s")
    text = Brief(State, "rejected", "artifacts").render(
        state(rejected=IDS, artifacts={"a": "res_0123456789"}), away
    )
    assert "more, not shown …]" in text
    assert "a: res_0123456789" in text


def test_the_async_twin_gives_the_same(session: Session) -> None:
    brief = Brief(State, "rejected", "entity_id")
    made = state(rejected=IDS)
    assert asyncio.run(brief.arender(made, session)) == brief.render(made, session)
    assert asyncio.run(brief.arender(made)) == brief.render(made)


def test_reducers_merge_and_append_handles_as_their_ids(session: Session) -> None:
    one, two = session.put("1" * 20_000), session.put("2" * 20_000)
    envelope = session.offload("3" * 20_000)
    assert merge({"a": one.id}, {"b": two, "c": envelope}) == {
        "a": one.id, "b": two.id, "c": envelope.handle.id,
    }  # fmt: skip
    assert merge({"a": one.id}, {"a": two.id}) == {"a": two.id}
    assert merge(None, None) == {}
    left = {"a": one.id}
    merge(left, {"b": two.id})
    assert left == {"a": one.id}, "a state is never changed in place"
    assert append(append(None, [one, "C-1"]), [one.id, two, "C-1"]) == [
        one.id,
        "C-1",
        two.id,
        "C-1",
    ]
    assert append(["a"], "b") == ["a", "b"]
    assert append(["a"], None) == ["a"]


# --- what looks like a list, or like handles, and is neither in full ------------------------------


class Account(NamedTuple):
    user: str
    secret: str


class Holder(TypedDict):
    account: Account
    accounts: list[Any]
    loose: Any


def test_a_named_tuple_shows_its_named_fields_only(session: Session) -> None:
    account = Account("ana", "S3CRET")
    untyped = namedtuple("untyped", "u secret")(1, "S3CRET")
    many = [account] * 3000
    made: Any = {"account": account, "accounts": many, "loose": untyped}
    closed = Brief(Holder, "account", "accounts", "loose").render(made, session)
    assert closed.split("\n")[1:-1] == [
        "account: 2 fields, none of them named",
        "accounts: 3,000, none of their fields named",
        "loose: 2 fields, none of them named",
    ]
    text = Brief(
        Holder, "account.user", Show("accounts", fields=["user"]), Show("loose", fields=["u"])
    ).render(made, session)
    assert "account.user: ana" in text
    assert "loose: u 1" in text
    assert "accounts (3,000): user ana; user ana" in text
    (kept,) = re.findall(r"all in (res_\w+)", text)
    assert "S3CRET" not in text + str(session.load(kept))
    with pytest.raises(SettingsError, match="no field 'pass'"):
        Brief(Holder, "account.pass")


def test_what_is_no_handle_does_not_hide_the_artifacts_beside_it(session: Session) -> None:
    kept = session.put(ROWS, tool="find")
    made = state(artifacts={"a": kept.id, "b": None, "c": "S3CRET"})
    text = Brief(State, "artifacts").render(made, session)
    lines = text.split("\n")[1:-1]
    assert lines[0] == "artifacts (3):"
    assert lines[1].startswith(f"  a: {kept.id}, rows, 2,314 records")
    assert lines[2:] == ["  b: no handle", "  c: no handle"]
    named = Brief(State, Show("artifacts", fields=["c"])).render(made, session)
    assert named.split("\n")[1:-1] == ["artifacts: c S3CRET"]


def test_what_a_brief_stores_is_about_whom_the_session_is_about() -> None:
    store = ResultStore(":memory:", spool="")
    session = store.session("s", tenant="acme", subject="patient-17")
    assert "all in res_" in Brief(State, "candidate_ids").render(state(candidate_ids=IDS), session)
    assert store.delete(tenant="acme", subject="patient-17") == 1
    assert session.list().total == 0


def test_a_brief_names_the_tools_of_the_stores_own_words() -> None:
    store = ResultStore(":memory:", spool="", vocabulary="files")
    session = store.session("s")
    made = state(candidate_ids=IDS, artifacts={f"a{n}": session.put(str(n)).id for n in range(30)})
    text = Brief(State, "candidate_ids", "artifacts").render(made, session)
    assert 'grep_file("res_' in text
    assert "list_files() names them" in text
