"""Queries through a session: conditions, selects, outcomes kept as handles; sync, async, by tools."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from callslip import Event, Handle, ResultStore, Session, top
from callslip.errors import HandleGone, QueryError, UnknownHandle
from callslip.handle import Rows
from callslip.limits import ENVELOPE_CHARS, PAGE_CAP_CHARS, PREVIEW_CHARS
from callslip.patterns.shared import SharedSession, shared_tools
from callslip.tools import SYSTEM_LINE, Tool

ORDERS = [
    {
        "id": n,
        "status": ["ok", "failed", "ok", "open"][n % 4],
        "amount": n * 1.25,
        "who": {"city": ["Rome", "Oslo"][n % 2]},
        "big": 2**60 + n,
    }
    for n in range(4_000)
]
CUSTOMERS = [{"order": n, "name": f"customer {n}"} for n in range(0, 4_000, 10)]
DOCUMENT = {
    "meta": {"run": 7},
    "data": {"items": [{"k": n, "v": n * n} for n in range(300)]},
    "errors": [{"k": n, "why": "timeout " * 20} for n in range(0, 300, 7)],
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultStore]:
    opened = ResultStore(tmp_path / "s")
    yield opened
    opened.close()


@pytest.fixture
def session(store: ResultStore) -> Session:
    return store.session("s")


def table(rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


COLUMNS = {name: [row[name] for row in ORDERS] for name in ("id", "status", "amount")}
FORMS: dict[str, Any] = {
    "objects": ORDERS,
    "one line": json.dumps(ORDERS),
    "many lines": json.dumps(ORDERS, indent=1),
    "NDJSON": "\n".join(map(json.dumps, ORDERS)),
    "bytes": json.dumps(ORDERS).encode(),
    "a stream": ORDERS,
    "CSV": table([{k: row[k] for k in ("id", "status", "amount")} for row in ORDERS]),
    "TSV": table([{k: row[k] for k in ("id", "status", "amount")} for row in ORDERS], "\t"),
    "columns": json.dumps(COLUMNS),
    "a list in a document": json.dumps({"total": 4_000, "items": ORDERS}),
    "text in a document": json.dumps({"exit_code": 0, "stdout": json.dumps(ORDERS)}),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_form_are_asked_alike(form: str, session: Session) -> None:
    value = FORMS[form]
    id = session.put(iter(value) if form == "a stream" else value, tool="orders").id
    expected = [row for row in ORDERS if row["status"] == "failed" and float(row["amount"]) > 100]  # type: ignore[arg-type]
    found = session.query(id, "status = 'failed' and amount > 100", limit=3)
    assert found.total == len(expected)
    first = [json.loads(record) for record in found.records]
    assert [int(row["id"]) for row in first] == [row["id"] for row in expected[:3]]
    if form not in ("CSV", "TSV", "columns"):
        assert first == expected[:3], "whole records, exact"
    totals = session.query(id, fields="status, sum(amount) as paid", group_by="status")
    sums = {row["status"]: row["paid"] for row in map(json.loads, totals.records)}
    paid = sum(n * 1.25 for n in range(4_000) if n % 4 == 1)
    assert sums["failed"] == paid
    assert len(str(found)) <= PAGE_CAP_CHARS


def test_a_list_inside_a_document_is_asked_by_its_path(session: Session) -> None:
    id = session.put(json.dumps(DOCUMENT), tool="report").id
    assert session.query(id, "v > 40000", path="data.items").total == 99
    assert session.query(id, path="errors", limit=0).total == 43
    with pytest.raises(QueryError, match=r"There is no wrong\. The top level has these keys"):
        session.query(id, path="wrong")
    with pytest.raises(QueryError, match=r'path="errors"\) of 43 .*data\.items \(300\)'):
        session.query(id, "v > 1")


def test_results_are_joined_and_inner_lists_are_tables(session: Session) -> None:
    orders, names = session.put(ORDERS, tool="a").id, session.put(table(CUSTOMERS), tool="b").id
    found = session.sql(
        f"select n.name, o.amount from {orders} o join {names} n on n.order = o.id "
        "where o.status = 'failed' order by o.amount desc limit 2"
    )
    expected = [row for row in CUSTOMERS if ORDERS[row["order"]]["status"] == "failed"]  # type: ignore[call-overload]
    assert found.total == min(2, len(expected)) or not expected
    document = session.put(json.dumps(DOCUMENT), tool="c").id
    counted = session.sql(
        f"select count(*) as n, max(i.v) as most from {document}.data.items i "
        f"join {document}.errors e on i.k = e.k"
    )
    assert json.loads(counted.records[0]) == {"n": 43, "most": 294**2}


def test_an_outcome_becomes_a_handle_without_passing_the_window(store: ResultStore) -> None:
    session = store.session("big")
    rows = ({"id": n, "odd": n % 2 == 1, "note": f"note {n}"} for n in range(200_000))
    id = session.put(rows, tool="stream").id
    kept = session.query(id, "odd", save_as="the odd ones")
    assert isinstance(kept, Handle)
    assert (kept.tool, kept.kind, kept.shape.records) == ("the odd ones", "rows", 100_000)
    assert len(str(kept)) <= PREVIEW_CHARS + ENVELOPE_CHARS
    loaded = session.load(kept.id)
    assert len(loaded) == 100_000 and loaded[-1] == {
        "id": 199_999,
        "odd": True,
        "note": "note 199999",
    }
    assert session.query(kept.id, "id > 199990", limit=0).total == 5
    assert session.query(id, "odd", save_as="the odd ones").id == kept.id, "the same asked again"
    least = session.query(id, "odd and id > 199994", "id", "id desc", limit=2, save_as="some")
    kept_ids = [{"id": 199_999}, {"id": 199_997}, {"id": 199_995}]
    assert session.load(least.id) == kept_ids, "a limit is of what is shown"
    both = session.sql(
        f"select a.id from {kept.id} a join {least.id} b on a.id = b.id", save_as="c"
    )
    assert session.load(both.id) == kept_ids[::-1]


def test_what_is_kept_keeps_its_exact_text_and_a_csv_its_types(session: Session) -> None:
    exact = ['{"n": 1.10, "big": 123456789012345678901234567890}', '{"n":2.0, "u":"\\u00e9"}']
    id = session.put(f"[{','.join(exact * 50)}]", tool="t").id
    kept = session.query(id, "n > 1", save_as="k")
    assert session.open(kept.id).read().decode() == "\n".join(exact * 50) + "\n"
    people = [{"name": f'n "{n}"', "age": n, "zip": f"0{n}"} for n in range(500)]
    csv_id = session.put(table(people), tool="people").id
    old = session.query(csv_id, "age >= 400", save_as="old")
    assert list(csv.DictReader(io.StringIO(session.load(old.id)))) == [
        {name: str(value) for name, value in row.items()} for row in people[400:]
    ]
    mean = session.query(old.id, fields="avg(age) as mean, min(zip) as zip")
    assert json.loads(mean.records[0]) == {"mean": 449.5, "zip": "0400"}
    counted = session.query(csv_id, fields="zip, count(*) as n", group_by="zip", save_as="g")
    assert session.load(counted.id)[0] == {"zip": "00", "n": 1}


def test_what_is_kept_is_redacted_and_told_like_any_result(tmp_path: Path) -> None:
    events: list[Event] = []
    store = ResultStore(
        tmp_path / "s", redact=lambda text: text.replace("secret", "******"), on_event=events.append
    )
    session = store.session("s")
    id = session.put([{"n": n, "t": "a secret"} for n in range(90)], tool="t").id
    kept = session.query(id, "n > 3", ["n", "concat(t, ' ', 'sec', 'ret') as t"], save_as="k")
    assert "secret" not in str(session.load(kept.id))
    assert [event.tool for event in events] == ["t", "k"]
    store.close()


def test_nothing_found_saves_nothing(session: Session) -> None:
    id = session.put(ORDERS, tool="t").id
    with pytest.raises(QueryError, match="nothing was saved"):
        session.query(id, "amount < 0", save_as="none")
    assert session.list().total == 1


def test_async_gives_the_same_and_the_loop_goes_on(session: Session) -> None:
    id = session.put(ORDERS, tool="t").id
    sql = f"select status, count(*) as n from {id} group by status"

    async def ask() -> tuple[Rows, Rows, Handle, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        found = await session.aquery(id, "amount > 4000")
        selected = await session.asql(sql)
        kept = await session.aquery(id, "amount > 4000", save_as="kept")
        ticking.cancel()
        return found, selected, kept, ticks

    found, selected, kept, ticks = asyncio.run(ask())
    assert str(found) == str(session.query(id, "amount > 4000"))
    assert str(selected) == str(session.sql(sql))
    assert kept.shape.records == found.total
    assert ticks > 3


def test_a_runaway_select_ends_in_one_sentence_and_the_loop_goes_on(session: Session) -> None:
    id = session.put([{"n": n, "t": f"text {n % 977}"} for n in range(60_000)], tool="t").id
    sql = f"select count(*) from {id} a join {id} b on a.t < b.t join {id} c on b.n + c.n > a.n"
    ticks = 0

    async def ask() -> str:
        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        reply = await tools(session)["query_results"].acall(sql=sql)
        ticking.cancel()
        return reply

    assert asyncio.run(ask()) == "This query took more than 2 seconds; narrow it or ask for less."
    assert ticks > 20
    assert session.query(id, "n = 7").total == 1, "the next one is answered"


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_tables_of_other_libraries_are_asked_alike(library: str, session: Session) -> None:
    pandas = pytest.importorskip("pandas")
    columns = {"id": list(range(500)), "amount": [n / 4 for n in range(499)] + [None]}
    value: Any = pandas.DataFrame(columns)
    if library == "polars":
        value = pytest.importorskip("polars").DataFrame(columns)
    elif library == "arrow":
        value = pytest.importorskip("pyarrow").table(columns)
    id = session.put(value, tool="t").id
    assert session.query(id, "amount > 100").total == 98
    assert session.query(id, "amount is null").total == 1
    kept = session.query(id, "amount > 100", save_as="k")
    assert session.frame(kept.id)["amount"].sum() == sum(n / 4 for n in range(401, 499))


def test_many_threads_may_ask_the_same_first_question(session: Session) -> None:
    id = session.put([{"n": n, "t": f"text {n}"} for n in range(100_000)], tool="t").id
    wheres = ["n >= 50000", "t like '%99'", "n < 10 or t = 'text 500'"] * 4
    with ThreadPoolExecutor(len(wheres)) as pool:
        totals = [found.total for found in pool.map(lambda where: session.query(id, where), wheres)]
    assert totals == [50_000, 1_000, 11] * 4
    assert sum(map(len, session.store.tables._tables.popitem()[1].numbers)) == 100_000


def test_other_sessions_and_gone_results_cannot_be_asked(store: ResultStore) -> None:
    session, other = store.session("s", user="u"), store.session("x", user="u")
    id = session.put(ORDERS, tool="t").id
    own = other.put(CUSTOMERS, tool="t").id
    with pytest.raises(UnknownHandle):
        other.query(id, "id = 1")
    for sql in (
        f"select count(*) from {id}",
        f"select count(*) from {own} a join {id} b on a.order = b.id",
    ):
        with pytest.raises(UnknownHandle):
            other.sql(sql)
    assert session.query(id, "id = 1").total == 1
    session.delete(id)
    with pytest.raises(HandleGone):
        session.query(id, "id = 1")


def test_nothing_of_a_deleted_result_stays_in_memory(store: ResultStore) -> None:
    session, beside = store.session("s"), store.session("x")
    ids = [session.put([{"n": n, "k": k} for n in range(50)], tool="t").id for k in range(3)]
    kept = beside.put([{"n": n} for n in range(50)], tool="t").id
    for owner, id in [*((session, id) for id in ids), (beside, kept)]:
        owner.query(id, "n > 1")
    held = store.tables._tables
    assert len(held) == 4
    session.delete(ids[0])
    assert len(held) == 3
    session.close()
    assert len(held) == 1
    store.delete()
    assert not store.tables._tables


# --- the tools ------------------------------------------------------------------------------------


def tools(session: Session, vocabulary: Any = None) -> dict[str, Tool]:
    return {tool.name: tool for tool in session.tools(vocabulary)}


@pytest.mark.parametrize("vocabulary", ["results", "files"])
def test_all_schemas_and_the_line_together_stay_small(session: Session, vocabulary: Any) -> None:
    told = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in session.tools(vocabulary)
    ]
    assert len(told) == 6
    assert len(json.dumps(told)) + len(SYSTEM_LINE) < 3_500


def test_the_schemas_do_not_change_with_what_is_stored(session: Session) -> None:
    def told() -> list[Any]:
        return [(tool.name, tool.description, tool.parameters) for tool in session.tools()]

    before = told()
    session.put(ORDERS, tool="t")
    assert told() == before


def test_a_model_asks_counts_and_keeps(session: Session) -> None:
    id = session.put(ORDERS, tool="t").id
    bound = tools(session)
    count = bound["query_result"].call(result_id=id, where="status = 'failed'", limit=0)
    assert count.startswith(f"1,000 of the 4,000 records of {id} match where status = 'failed'")
    kept = bound["query_result"].call(
        result_id=f'"{id}"', where={"status": "failed"}, limit=5, save_as="failed"
    )
    new = re.search(r'<result id="(res_\w+)" tool="failed"', kept)
    assert new, "the envelope of the new result"
    assert session.handle(new[1]).shape.records == 1_000, "a limit of what is shown keeps all"
    joined = bound["query_results"].call(
        sql=f"select count(*) as n from {id} a join {new[1]} b on a.id = b.id where b.amount > 10"
    )
    assert '{"n": 998}' in joined


@pytest.mark.parametrize(
    "given",
    [
        {"where": "None", "fields": "null", "order_by": "", "group_by": [], "limit": None},
        {"where": None, "fields": "None", "path": None, "after": "0", "save_as": None},
        {"where": "", "limit": "8", "after": 0.0, "path": "", "save_as": "", "unknown": 1},
        {"where": {}, "limit": 8.0},
    ],
)
def test_what_a_model_leaves_empty_means_nothing(session: Session, given: Any) -> None:
    id = session.put(ORDERS, tool="t").id
    plain = tools(session)["query_result"].call(result_id=id)
    assert tools(session)["query_result"].call(result_id=id, **given) == plain
    assert 'matched="4000"' in plain


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("query_result", {"where": "state = 1"}, "There is no field state; perhaps status."),
        ("query_result", {"where": "amount = 'x'"}, "amount is a number"),
        ("query_result", {"where": "id = 1; drop table x"}, ""),
        ("query_result", {"where": 17}, "`where` takes a condition"),
        ("query_result", {"where": ["a"]}, ""),
        ("query_result", {"fields": 3}, ""),
        ("query_result", {"path": "meta"}, ""),
        ("query_result", {"where": "status = 'none'", "save_as": "x"}, "nothing was saved"),
        ("query_results", {"sql": "select * from 'file.csv'"}, ""),
        ("query_results", {"sql": "select * from res_0123456789"}, "No stored result has this id"),
        ("query_results", {"sql": "delete from res_0123456789"}, ""),
        ("query_results", {"sql": 5}, "Say what to select"),
        ("query_results", {}, "Say what to select"),
    ],
)
def test_what_is_wrong_gets_one_short_sentence(
    session: Session, name: str, given: Any, said: str
) -> None:
    id = session.put(ORDERS, tool="t").id
    arguments = given if name == "query_results" else {"result_id": id, **given}
    reply = tools(session)[name].call(**arguments)
    assert said in reply
    assert len(reply) < 800 and "\n" not in reply
    assert "failed for a reason of ours" not in reply
    assert asyncio.run(tools(session)[name].acall(**arguments)) == reply


def test_the_same_query_right_after_itself_gets_a_line(session: Session) -> None:
    id = session.put(ORDERS, tool="t").id
    tool = tools(session)["query_result"]
    first = tool.call(result_id=id, where="id > 5")
    again = tool.call(result_id=f"`{id}`", where="id > 5", limit=None)
    assert again.startswith("You made this very call just now") and "after=8" in again
    assert tool.call(result_id=id, where="id > 5") == first
    kept = tools(session)["query_results"]
    kept.call(sql=f"select id from {id}", save_as="k")
    assert "Go on with query_result(" in kept.call(sql=f"select id from {id}", save_as="k")


def test_the_file_vocabulary_asks_in_its_own_words(session: Session) -> None:
    id = session.put(json.dumps(DOCUMENT), tool="report").id
    bound = tools(session, "files")
    assert list(bound) == [
        "read_slice", "grep_file", "get_by_id", "query_file", "query_files", "list_files"
    ]  # fmt: skip
    reply = bound["query_file"].call(path=id, where="v > 4", inside="data.items")
    assert reply.endswith(f'query_file("{id}", where="v > 4", inside="data.items", after=8).')
    assert "#4 " in reply
    assert bound["get_by_id"].call(path=id, id="meta.run").count("7")
    several = bound["query_files"].call(sql=f"select k from {id}.errors")
    assert 'query_files("select k' in several.rpartition("</rows>")[2]
    orders = session.put(ORDERS, tool="t").id
    assert '"id":42,' in bound["get_by_id"].call(path=orders, id=42)


def test_a_sub_agent_asks_what_it_was_given_and_keeps_its_own(store: ResultStore) -> None:
    asker = store.session("asker")
    given, other = asker.put(ORDERS, tool="a").id, asker.put(CUSTOMERS, tool="b").id
    shared = SharedSession.beside(asker)
    shared.share([given])
    bound = {tool.name: tool for tool in shared_tools(shared)}
    kept = bound["query_result"].call(result_id=given, where="status = 'failed'", save_as="f")
    own = re.search(r'id="(res_\w+)"', kept)
    assert own and asker.list().total == 2, "nothing of it is the asker's"
    joined = bound["query_results"].call(
        sql=f"select count(*) as n from {given} a join {own[1]} b on a.id = b.id"
    )
    assert '{"n": 1000}' in joined
    for name, asked in (
        ("query_result", {"result_id": other}),
        ("query_results", {"sql": f"select * from {given} a join {other} b on a.id = b.order"}),
    ):
        assert "No stored result has this id" in bound[name].call(**asked)


# --- previews by a score, and handles as JSON -----------------------------------------------------


def test_a_preview_by_a_score_shows_the_best_whoever_asks_for_it(session: Session) -> None:
    rows = [{"id": n, "score": (n * 7919) % 1_000, "text": "t" * 40} for n in range(1_000)]
    best = max(rows, key=lambda row: row["score"])  # type: ignore[arg-type, return-value]

    @session.offloaded(preview=top("score"))
    def search() -> list[dict[str, Any]]:
        return rows

    other = session.store.session("other")
    for seen in (
        search(),
        other.offload(rows, tool="a", preview=top("score")),
        other.put(iter([*rows, rows[0]]), tool="b", preview=top("score")),
    ):
        assert json.dumps(best, separators=(",", ":")) in str(seen)
        assert "score" in str(seen)
    text = "a line\n" * 9_000
    usual = str(session.put(text, tool="t"))
    assert (
        str(other.put(text, tool="t", preview=top("score")))
        .partition("\n")[2]
        .partition("</result>")[0]
        == usual.partition("\n")[2].partition("</result>")[0]
    ), "no rows: the usual preview"


@pytest.mark.parametrize("vocabulary", ["results", "files"])
def test_handles_as_json_parse_and_keep_the_cap(tmp_path: Path, vocabulary: Any) -> None:
    store = ResultStore(tmp_path / "s", style="json", vocabulary=vocabulary)
    session = store.session("s")
    seen: Any = session.offload(ORDERS, tool="orders")
    told = json.loads(seen)
    assert list(told) == ["saved_to", "tool", "rows", "fields", "shown", "preview", "hint"]
    assert (told["saved_to"], told["rows"]) == (seen.handle.id, 4_000)
    assert told["fields"] == list(ORDERS[0]) and told["preview"][0] == ORDERS[0]
    assert ("query_result(" if vocabulary == "results" else "query_file(") in told["hint"]
    assert str(session.handle(seen.handle.id)) == seen, "the same for ever"
    for value in ("line\n" * 9_000, json.dumps(DOCUMENT) * 1, b"\x89PNG\r\n\x1a\n" + bytes(20_000)):
        handle = session.put(value, tool='q"\x00' * 40)
        assert json.loads(str(handle))["saved_to"] == handle.id
        assert len(str(handle)) <= PREVIEW_CHARS + ENVELOPE_CHARS
    failed = json.loads(session.offload({"success": False, "error": "no " * 9_000}, tool="t"))
    assert failed["status"] == "error"
    again = json.loads(session.offload(ORDERS, tool="other"))
    assert again["same_as"] == told["saved_to"] and told["saved_to"] in again["hint"]
    plain = ResultStore(tmp_path / "s", vocabulary=vocabulary).session("s")
    assert str(plain.handle(told["saved_to"])).startswith(f'<result id="{told["saved_to"]}"')
    store.close()


def test_a_refused_result_is_json_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    session = ResultStore(tmp_path / "file" / "s", style="json", spool="").session("s")
    told = json.loads(session.offload("line\n" * 9_000, tool="t"))
    assert told["stored"] is False and told["chars"] == 45_000
    assert "saved_to" not in told and told["hint"].startswith("Not stored")
