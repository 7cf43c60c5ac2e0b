"""`authorize=`: what it does not allow is, for every verb and tool, as if it were not there."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from callslip import (
    Envelope,
    Handle,
    Resolved,
    ResultStore,
    Scope,
    Session,
    SettingsError,
    StoreUnavailable,
    UnknownHandle,
)
from callslip.patterns import answers
from callslip.patterns.brief import Brief
from callslip.patterns.shared import SharedSession, shared_tools
from callslip.stacks import ops
from callslip.stacks.index.sqlite import SqliteIndex

ROWS = [{"id": n, "name": f"person {n}"} for n in range(900)]
INVENTED = "res_0123456789"


class State(TypedDict):
    found: str


class Hook:
    """Says no to `denied` actions (all of them: `"*"`) on results of the tool `secret`."""

    def __init__(self) -> None:
        self.denied: set[str] = set()
        self.asked: list[tuple[Scope, str, str]] = []

    def __call__(self, scope: Scope, handle: Handle | None, action: str) -> bool:
        self.asked.append((scope, handle.id if handle else "-", action))
        if handle is None or handle.tool != "secret":
            return True
        return not self.denied & {action, "*"}


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
def session(tmp_path: Path, hook: Hook) -> Session:
    return ResultStore(tmp_path / "s", authorize=hook).session("s", user="u", tenant="t")


@pytest.fixture
def secret(session: Session) -> str:
    return session.put(ROWS, tool="secret").id


VERBS: dict[str, tuple[str, Callable[[Session, str], Any]]] = {
    "read": ("read", lambda s, id: s.read(id)),
    "search": ("search", lambda s, id: s.search(id, "person")),
    "query": ("query", lambda s, id: s.query(id, "id > 3")),
    "save_as": ("query", lambda s, id: s.query(id, "id > 3", save_as="mine")),
    "sql": ("query", lambda s, id: s.sql(f"select count(*) from {id}")),
    "get": ("get", lambda s, id: s.get(id, 3)),
    "handle": ("list", lambda s, id: s.handle(id)),
    "load": ("load", lambda s, id: s.load(id)),
    "open": ("open", lambda s, id: s.open(id).read()),
    "records": ("export", lambda s, id: list(s.records(id))),
    "frame": ("export", lambda s, id: s.frame(id)),
    "share": ("share", lambda s, id: s.share(id, user="v")),
    "aread": ("read", lambda s, id: asyncio.run(s.aread(id))),
    "aload": ("load", lambda s, id: asyncio.run(s.aload(id))),
    "ashare": ("share", lambda s, id: asyncio.run(s.ashare(id, user="v"))),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_asks_and_what_is_denied_is_unknown(
    session: Session, hook: Hook, secret: str, verb: str
) -> None:
    action, use = VERBS[verb]
    hook.asked.clear()
    use(session, secret)
    assert (session.scope, secret, action) in hook.asked
    hook.denied = {action}
    with pytest.raises(UnknownHandle) as denied:
        use(session, secret)
    with pytest.raises(UnknownHandle) as invented:
        use(session, INVENTED)
    assert type(denied.value) is type(invented.value)
    assert denied.value.for_model == invented.value.for_model
    assert str(denied.value).replace(secret, INVENTED) == str(invented.value)


def test_every_tool_answers_a_denied_handle_as_an_invented_one(
    session: Session, hook: Hook, secret: str
) -> None:
    hook.denied = {"*"}
    calls: dict[str, dict[str, Any]] = {
        "read_result": {},
        "search_result": {"pattern": "person"},
        "get_record": {"key": 1},
        "query_result": {"where": "id = 1"},
    }
    tools = {tool.name: tool for tool in session.tools()}
    for name, given in calls.items():
        denied = tools[name].call(result_id=secret, **given)
        assert denied == tools[name].call(result_id=INVENTED, **given)
    sql = "select count(*) from {}"
    denied = tools["query_results"].call(sql=sql.format(secret))
    assert denied == tools["query_results"].call(sql=sql.format(INVENTED))


def test_a_list_has_only_what_may_be_listed_and_counts_nothing_else(
    session: Session, hook: Hook
) -> None:
    for n in range(30):
        session.put(f"text {n}", tool="secret" if n % 3 else "open", args={"n": n})
    assert session.list().total == 30
    hook.denied = {"list"}
    seen = []
    where: dict[str, int] | None = {}
    while where is not None:
        page = session.list(limit=4, **where)
        assert page.total == 10
        assert "secret" not in str(page)
        seen += [json.loads(handle.args)["n"] for handle in page.handles]
        where = page.next
    assert seen == list(range(0, 30, 3))


def test_what_may_not_be_deleted_stays_and_the_answer_is_that_of_an_unknown_id(
    session: Session, hook: Hook, secret: str
) -> None:
    hook.denied = {"delete"}
    assert session.delete(secret) is session.delete(INVENTED) is False
    assert asyncio.run(session.adelete(secret)) is False
    assert session.load(secret) == ROWS
    hook.denied = set()
    assert session.delete(secret) is True


def test_what_may_not_be_stored_is_not_stored_nor_spooled(session: Session, hook: Hook) -> None:
    hook.denied = {"store"}
    seen = session.offload("line of it\n" * 4_000, tool="secret")
    assert isinstance(seen, Envelope)
    assert seen.handle is None
    assert "permission denied" in seen
    with pytest.raises(StoreUnavailable) as refused:
        session.put(ROWS, tool="secret")
    assert refused.value.reason == "permission denied"
    hook.denied = set()
    session.put("x", tool="open")
    assert [handle.tool for handle in session.list().handles] == ["open"]


def test_the_hook_sees_which_call_a_result_to_be_stored_is_of(session: Session) -> None:
    seen: list[Handle | None] = []
    store = ResultStore(
        session.store.settings.url,
        authorize=lambda scope, handle, action: seen.append(handle) is None,
    )
    store.session("x").put("text", tool="crm", args={"q": 1})
    (handle,) = seen
    assert handle is not None
    assert (handle.id, handle.tool, handle.args) == ("", "crm", '{"q":1}')


@pytest.mark.parametrize("error", [KeyError("who"), RuntimeError("db away")])
def test_a_hook_that_raises_says_no(
    session: Session, secret: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def raises(scope: Scope, handle: Handle | None, action: str) -> bool:
        raise error

    store = ResultStore(session.store.settings.url, authorize=raises)
    other = store.session("s", user="u", tenant="t")
    with caplog.at_level(logging.ERROR), pytest.raises(UnknownHandle) as denied:
        other.read(secret)
    assert str(error) not in str(denied.value) + denied.value.for_model
    assert "authorize= raised" in caplog.text
    assert other.list().total == 0


async def _awaited(scope: Scope, handle: Handle | None, action: str) -> bool:
    return False


def _yields(scope: Scope, handle: Handle | None, action: str) -> Any:
    yield False


class _Awaited:
    async def __call__(self, scope: Scope, handle: Handle | None, action: str) -> bool:
        return False


@pytest.mark.parametrize("given", [_awaited, _yields, _Awaited(), functools.partial(_awaited)])
def test_a_hook_whose_answer_is_not_known_when_it_is_asked_lets_nothing_pass(
    given: Any, session: Session, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SettingsError, match="authorize"):
        ResultStore(session.store.settings.url, authorize=given)

    def hides_it(scope: Scope, handle: Handle | None, action: str) -> Any:
        return given(scope, handle, action)

    other = ResultStore(session.store.settings.url, authorize=hides_it)
    denied = other.session("s", user="u", tenant="t")
    with caplog.at_level(logging.ERROR), pytest.raises(UnknownHandle):
        denied.read(secret)
    assert "it counts as a no" in caplog.text
    assert denied.list().total == 0


def test_a_tombstone_is_asked_about_too(session: Session, hook: Hook, secret: str) -> None:
    session.delete(secret)
    tool = session.tools()[0]
    assert "is gone" in tool.call(result_id=secret)
    hook.denied = {"read"}
    assert tool.call(result_id=secret) == tool.call(result_id=INVENTED)


def test_a_denied_handle_as_an_argument_is_not_resolved(
    session: Session, hook: Hook, secret: str
) -> None:
    def count(rows: Annotated[list[Any], Resolved]) -> int:
        return len(rows)

    offloaded: Any = session.offloaded(count)
    assert offloaded(secret) == 900
    hook.denied = {"load"}
    assert offloaded(secret) == offloaded(INVENTED)
    assert "no stored result" in offloaded(secret).lower()


def test_a_sub_agent_and_a_brief_are_denied_what_their_session_is(
    session: Session, hook: Hook, secret: str
) -> None:
    below = SharedSession.beside(session)
    below.share([secret])
    hook.denied = {"*"}
    for tool in shared_tools(below):
        given = {"pattern": "x", "key": 1, "where": "id = 1", "sql": f"select * from {secret}"}
        wanted = {name: given[name] for name in given if name in tool.parameters["properties"]}
        if "result_id" in tool.parameters["properties"]:
            wanted["result_id"] = secret
        reply = tool.call(**wanted)
        assert "person" not in reply
        assert "900" not in reply
    assert below.list().total == 0
    assert f"{secret}, which is not known here" in Brief(State, "found").render(
        {"found": secret}, session
    )


@pytest.mark.parametrize("style", ["text", "json"])
def test_what_may_be_listed_and_not_read_is_given_out_without_a_preview(
    tmp_path: Path, hook: Hook, style: Any
) -> None:
    session = ResultStore(tmp_path, authorize=hook, style=style, spool="").session("s")
    held = session.put(ROWS, tool="secret")
    assert "person" in held.envelope
    hook.denied = {"read"}
    [listed] = session.list().handles
    for handle in (listed, session.handle(held.id), asyncio.run(session.ahandle(held.id))):
        assert (handle.id, handle.shape) == (held.id, held.shape)
        assert "person" not in handle.envelope
    given = answers.given(session, {"rows": held.id})
    assert held.id in given.text and "person" not in given.text


def test_a_table_is_exported_by_who_may_export_it(session: Session, hook: Hook) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    id = session.put(frame, tool="secret").id
    hook.denied = {"load"}
    assert session.frame(id).equals(frame)
    hook.asked.clear()
    session.frame(id)
    assert [action for _, _, action in hook.asked] == ["export"]


def test_an_argument_is_asked_about_once(session: Session, hook: Hook, secret: str) -> None:
    def size(text: Annotated[str, Resolved]) -> int:
        return len(text)

    hook.asked.clear()
    assert session.offloaded(size)(secret) > 900
    assert [action for _, id, action in hook.asked if id == secret] == ["load"]


def test_nothing_is_asked_without_a_hook_and_a_wrong_one_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="authorize"):
        ResultStore(tmp_path, authorize="yes")  # type: ignore[arg-type]
    plain = f"{tmp_path.as_uri()}?plain"
    for name, given in (("authorize", Hook()), ("mask", {"ssn": str})):
        with pytest.raises(SettingsError, match=r"\?plain"):
            ResultStore(tmp_path, payloads=plain, **{name: given})  # type: ignore[arg-type]


# --- foreign is unknown, in the work that is done for it --------------------------------------------


def _steps(index: SqliteIndex, work: Callable[[], object]) -> tuple[int, int]:
    """How many statements, and how many steps of SQLite's machine, some work takes."""
    sent: list[str] = []
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    with index._pool.borrow() as db:
        db.set_trace_callback(sent.append)
        db.set_progress_handler(step, 1)
    try:
        work()
    finally:
        with index._pool.borrow() as db:
            db.set_trace_callback(None)
            db.set_progress_handler(None, 1)
    return len(sent), steps


def test_a_foreign_id_an_ended_share_and_an_invented_id_take_the_same_work(
    tmp_path: Path,
) -> None:
    now = [1_000.0]
    store = ResultStore(tmp_path / "s", clock=lambda: now[0], spool="")
    owner = store.session("s", user="u", tenant="t")
    reader = store.session("r", user="v", tenant="t")
    reader.put("own", tool="t")
    foreign, ended, revoked, deleted = (owner.put(f"text {n}", tool="t").id for n in range(4))
    owner.share(ended, with_session="r", user="v", seconds=10)
    owner.share(revoked, with_session="r", user="v", seconds=1_000)
    owner.share(deleted, with_session="r", user="v", seconds=1_000)
    owner.revoke(revoked)
    owner.delete(deleted)
    now[0] += 20
    index = SqliteIndex(tmp_path / "s" / "index.db")
    ids = {"foreign": foreign, "ended": ended, "revoked": revoked, "gone": deleted}
    for name, id in ids.items():
        # Its neighbour in every index. What stands behind an id there makes a step, whosever it is;
        # a row that is read makes dozens.
        invented = id[:-1] + ("0" if id[-1] != "0" else "1")
        work = []
        for each in (id, invented):

            def look(id: str = each) -> None:
                assert index.run(ops.Get(reader.scope, id, now[0])) is None

            look()
            work.append(_steps(index, look))
        assert work[0][0] == work[1][0] > 0, name
        assert abs(work[0][1] - work[1][1]) <= 1, name
        assert work[0][1] > 10
    index.close()


def test_denied_unknown_and_foreign_are_the_same_operations_and_the_same_questions(
    session: Session, hook: Hook, secret: str
) -> None:
    other = session.store.session("elsewhere", user="u", tenant="t").put("x", tool="t").id
    ran: list[str] = []
    backend: Any = session.store._backend
    run = backend.run
    backend.run = lambda op: (ran.append(type(op).__name__), run(op))[1]
    hook.denied = {"*"}
    seen = []
    for id in (secret, other, INVENTED):
        ran.clear()
        hook.asked.clear()
        with pytest.raises(UnknownHandle):
            session.read(id)
        seen.append((list(ran), len(hook.asked)))
    assert seen == [(["Get"], 1)] * 3
