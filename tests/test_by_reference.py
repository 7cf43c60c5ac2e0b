"""Handles as arguments of the tools of others: resolved where that was asked for, else an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from callslip import Envelope, Handle, Reply, Resolved, ResultStore, Session, SettingsError
from tests.cases.test_core_cases import made

REPORT = "".join(f"finding {n}\n" for n in range(3_000))
ROWS = [{"id": n, "amount": n * 2} for n in range(2_000)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultStore]:
    opened = ResultStore(tmp_path / "s")
    yield opened
    opened.close()


@pytest.fixture
def session(store: ResultStore) -> Session:
    return store.session("s")


def forms_of(handle: Handle) -> list[Any]:
    id = handle.id
    return [
        id, f" {id}\n", f'"{id}"', {"$handle": id}, {"handle": id}, json.dumps({"$handle": id}),
        str(handle), Envelope(str(handle), handle), handle, {"saved_to": id, "rows": 3},
    ]  # fmt: skip


def test_case_51_a_page_is_handed_on_by_its_handle(session: Session) -> None:
    case = made("51_pass_by_handle").make()
    page = session.offload(case["result"], tool="get_page")
    sent: list[Any] = []

    def update_page(page: str, body: dict[str, Any]) -> str:
        sent.append(body)
        return f"{page} updated"

    arguments = json.loads(json.dumps(case["next_call"]["args"]).replace("<id>", page.handle.id))
    on = session.offloaded(update_page, resolve=["body"])
    assert on(**arguments) == "p1 updated"
    assert sent == [json.loads(case["result"])], "the full payload, as what was wanted"

    off = session.offloaded(update_page)
    error = off(**arguments)
    assert isinstance(error, Reply)
    assert error.startswith(
        f"Error: body takes the data itself, and {page.handle.id} is the handle"
    )
    assert len(sent) == 1, "never the handle itself"


@pytest.mark.parametrize("form", range(10))
def test_a_parameter_that_opted_in_receives_the_value(form: int, session: Session) -> None:
    text, rows = session.put(REPORT, tool="t"), session.put(ROWS, tool="t")

    @session.offloaded(resolve=["rows"])
    def count(report: Annotated[str, Resolved], rows: list[Any], title: str = "") -> str:
        assert report == REPORT and rows == ROWS
        return title

    given, listed = forms_of(text)[form], forms_of(rows)[form]
    assert count(given, rows=listed, title="res_ab is short") == "res_ab is short"
    assert count(REPORT, ROWS) == "", "a value is a value"


def test_the_wrapped_function_keeps_its_signature_and_colour(session: Session) -> None:
    import inspect

    id = session.put(REPORT, tool="t").id

    def plain(report: str) -> int:
        return len(report)

    async def awaited(report: str) -> int:
        return len(report)

    def lines(report: str) -> Iterator[str]:
        yield from report.splitlines()[:3]

    async def alines(report: str) -> AsyncIterator[str]:
        for line in report.splitlines()[:3]:
            yield line

    class Sender:
        @session.offloaded(resolve=["report"])
        def send(self, report: str) -> int:
            return len(report)

    wrapped = [session.offloaded(resolve=["report"])(fn) for fn in (plain, awaited, lines, alines)]
    for made_of, fn in zip(wrapped, (plain, awaited, lines, alines), strict=True):
        assert inspect.signature(made_of) == inspect.signature(fn)

    async def collected() -> list[str]:
        return [line async for line in wrapped[3](id)]

    first = ["finding 0", "finding 1", "finding 2"]
    assert wrapped[0](id) == asyncio.run(wrapped[1](id)) == len(REPORT)
    assert list(wrapped[2](report=id)) == asyncio.run(collected()) == first
    assert Sender().send(id) == Sender().send(report=id) == len(REPORT)
    refused = [session.offloaded(fn) for fn in (plain, awaited, lines, alines)]

    async def errors() -> list[str]:
        return [await refused[1](id)] + [item async for item in refused[3](id)]

    assert {refused[0](id), *refused[2](id), *asyncio.run(errors())} == {refused[0](id)}
    assert "takes the data itself" in refused[0](id)


def test_the_call_is_known_by_what_was_passed(session: Session) -> None:
    id = session.put(REPORT, tool="t").id
    echo = session.offloaded(lambda report: report.upper(), tool="upper", resolve="report")
    handle = echo(id).handle
    assert json.loads(handle.args) == {"report": id}
    assert session.load(handle.id) == REPORT.upper()


def test_what_a_parameter_wants_it_gets(session: Session) -> None:
    rows, raw = session.put(ROWS, tool="t"), session.put(b"\x00\xff" * 9_000, tool="t")
    text = session.put(json.dumps(ROWS), tool="t")

    @session.offloaded(resolve=["a", "b", "c", "d", "rest"])
    def check(a: str, b: list[Any], c: Any, d: bytes, *more: str, **rest: Any) -> Any:
        assert json.loads(a) == ROWS and b == ROWS and c == ROWS and d == b"\x00\xff" * 9_000
        return rest

    assert check(rows.id, text.id, rows.id, raw.id) == {}
    reports = session.offloaded(lambda parts: [len(p) for p in parts], resolve=["parts"])
    assert reports([session.put(REPORT, tool="t").id, "short"]) == [len(REPORT), 5]


def test_only_handles_of_the_scope_resolve(store: ResultStore, session: Session) -> None:
    foreign = store.session("x").put(REPORT, tool="t").id
    gone = session.put(REPORT, tool="t").id
    session.delete(gone)
    seen: list[str] = []
    send = session.offloaded(seen.append, tool="send", resolve=())
    opted = session.offloaded(lambda report: seen.append(report), resolve=["report"])
    for id in (foreign, "res_0123456789"):
        assert "No stored result has this id here" in opted(id)
    assert "is gone" in opted(gone)
    assert seen == []
    send(foreign)
    assert seen == [foreign], "a text like any other, where nothing is behind it"


def test_an_unknown_handle_is_told_in_the_words_of_the_vocabulary(tmp_path: Path) -> None:
    session = ResultStore(tmp_path, vocabulary="files").session("s")
    opted = session.offloaded(lambda report: report, resolve=["report"])
    assert "list_files() shows" in opted("res_0123456789")
    for tool in session.tools():
        asked = {"path": "res_0123456789", "pattern": "x", "id": "1"}
        reply = tool.call(**asked, sql="select * from res_0123456789")
        assert "list_results" not in reply


def test_what_wants_the_id_gets_the_id(session: Session) -> None:
    id = session.put(REPORT, tool="t").id

    def summary(result_id: str, file: str, handle: Any, note: str = "") -> Any:
        return [result_id, file, handle, note]

    wrapped = session.offloaded(summary)
    assert wrapped(id, id, id, f"see {id}") == [id, id, id, f"see {id}"]
    assert "note takes the data itself" in wrapped(id, id, id, note=id)


def test_a_handle_in_a_list_or_by_a_name_is_one_too(session: Session) -> None:
    first, second = (session.put(f"{REPORT}{n}", tool="t").id for n in (1, 2))
    sent: list[Any] = []

    @session.offloaded(resolve=["pages", "parts"])
    def merge(pages: list[str], parts: dict[str, Any], body: Any = None, sources: Any = ()) -> str:
        sent.append((pages, parts, body, sources))
        return "merged"

    named = {"head": first, "tail": json.dumps({"result_id": second}), "count": 2}
    assert merge([first, "as it is", second], named, sources=[first]) == "merged"
    value = {"head": f"{REPORT}1", "tail": f"{REPORT}2", "count": 2}
    assert sent == [([f"{REPORT}1", "as it is", f"{REPORT}2"], value, None, [first])]
    for body in ([1, first], {"page": first}, {"page": json.dumps({"id": first}, indent=1)}):
        said = merge([], {}, body=body)
        assert "body takes the data itself" in said
        assert first in said
    assert merge([], {}, body={"page_id": first, "page": "res_0123456789"}) == "merged"
    assert len(sent) == 2, "never the handle itself"


def test_a_wrong_name_is_an_error_of_the_caller(session: Session) -> None:
    with pytest.raises(SettingsError, match="no such parameter"):
        session.offloaded(resolve=["repotr"])(lambda report: report)
    everything = session.offloaded(lambda **given: given["report"] == REPORT, resolve=["report"])
    assert everything(report=session.put(REPORT, tool="t").id) is True


def test_what_a_function_does_not_take_it_says_itself(session: Session) -> None:
    id = session.put(REPORT, tool="t").id
    with pytest.raises(TypeError):
        session.offloaded(lambda report: report, resolve=["report"])(id, id, id)
