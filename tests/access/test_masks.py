"""`mask=`: what a model sees of fields, wherever it looks; the caller's side has all of it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from callslip import Envelope, Resolved, ResultStore, Session, StoreUnavailable, top
from callslip.masks import hashed, hidden, last4
from callslip.patterns.shared import SharedSession
from callslip.stacks.index.sealed.master import new_key_file
from callslip.stacks.ops import Insert
from callslip.testing.faults import FaultyBackend

COUNT = 300


def ssn(n: int) -> str:
    return f"{n:03d}-{n % 97:02d}-{n * 7919 % 10000:04d}"


def mail(n: int) -> str:
    return f"user{n}@example.org"


ROWS: list[dict[str, Any]] = [
    {
        "id": n,
        "ssn": ssn(n),
        "user": {"mail": mail(n), "team": f"t{n % 7}"},
        "raw": json.dumps({"ssn": ssn(n), "n": n}),
    }
    for n in range(COUNT)
]
PLAIN = [{"id": n, "name": f"p{n}" * 40} for n in range(COUNT)]
HIDDEN = [ssn(n) for n in range(0, COUNT, 13)] + [mail(n) for n in range(0, COUNT, 31)]


def _csv() -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["id", "ssn", "user.mail", "note"])
    writer.writerows([n, ssn(n), mail(n), f'a "quoted", {n}'] for n in range(COUNT))
    return out.getvalue()


def _frame() -> Any:
    import pandas

    return pandas.DataFrame([{"id": n, "ssn": ssn(n), "n": 1.5 * n} for n in range(COUNT)])


FORMS: dict[str, Any] = {
    "objects": lambda: ROWS,
    "JSON text": lambda: json.dumps(ROWS),
    "laid-out JSON": lambda: json.dumps(ROWS, indent=2),
    "bytes": lambda: json.dumps(ROWS).encode(),
    "NDJSON": lambda: "".join(json.dumps(row) + "\n" for row in ROWS),
    "a stream of objects": lambda: iter(ROWS),
    "a document with a list": lambda: {"owner": {"ssn": ssn(13)}, "rows": ROWS, "ssn": ssn(26)},
    "a document": lambda: {f"person {n}": ROWS[n] for n in range(COUNT)},
    "JSON in JSON": lambda: json.dumps(json.dumps(ROWS)),
    "a tool's output": lambda: {"output": "\n".join(map(json.dumps, ROWS)), "exit_code": 0},
    "columns": lambda: {"id": [*range(COUNT)], "ssn": [ssn(n) for n in range(COUNT)]},
    "rows under a header": lambda: {
        "columns": ["id", "ssn"],
        "data": [[n, ssn(n)] for n in range(COUNT)],
    },
    "CSV": _csv,
    "a DataFrame": _frame,
    "a log": lambda: "\n".join(f"2026-01-01 10:00:00 INFO got {json.dumps(row)}" for row in ROWS),
    "Python's own": lambda: "\n".join(map(repr, ROWS)),
}


def store_in(folder: Path, **given: Any) -> ResultStore:
    given = {"threshold_chars": 2_000, **given}
    return ResultStore(folder / "s", mask={"ssn": last4, "user.mail": hidden}, **given)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return store_in(tmp_path).session("s")


def pages(session: Session, id: str) -> Iterator[str]:
    where: dict[str, int] | None = {"start": 1}
    while where is not None:
        page = session.read(id, limit=10_000, **where)
        yield str(page)
        where = page.next


@pytest.mark.parametrize("form", FORMS)
def test_no_way_of_reading_shows_a_masked_value_and_loading_gives_all_of_it(
    session: Session, form: str
) -> None:
    value = FORMS[form]()
    seen = session.offload(value, tool="crm", args={"ssn": ssn(13), "q": 1})
    assert isinstance(seen, Envelope)
    assert seen.handle is not None
    id = seen.handle.id
    shown = [str(seen), str(session.list()), str(session.handle(id)), *pages(session, id)]
    for n in (13, 26):
        for pattern in (ssn(n), ssn(n)[:6], mail(n).split("@")[0] + "@"):
            assert session.search(id, pattern).total == 0
        shown.append(str(session.search(id, "(?i)ssn", limit=100, context=3)))
        shown.append(str(session.get(id, n)))
        shown.append(str(session.get(id, n, "ssn")))
        shown.append(str(session.get(id, ssn(n))).replace(ssn(n), "what was asked"))
    if session.handle(id).shape.records is not None and session.handle(id).shape.fields:
        tools = {tool.name: tool for tool in session.tools()}
        shown.append(tools["query_result"].call(result_id=id, order_by="ssn desc", limit=200))
        shown.append(str(session.query(id, fields="max(ssn), min(ssn), count(distinct ssn)")))
        shown.append(str(session.query(id, group_by="ssn", limit=200)))
        shown.append(str(session.sql(f"select ssn from {id} order by ssn limit 200", limit=200)))
        for n in (13, 26):
            assert session.query(id, {"ssn": ssn(n)}).total == 0
            assert session.query(id, f"ssn like '{ssn(n)[:6]}%'").total == 0
            starred = f"***-**-{ssn(n)[-4:]}"
            assert session.query(id, f"ssn = '{starred}'").total >= 1
    leaked = [secret for secret in HIDDEN if any(secret in text for text in shown)]
    assert not leaked, (form, leaked[:3])
    assert any(f"***-**-{ssn(0)[-4:]}" in text for text in shown)
    back = session.load(id)
    if form == "a DataFrame":
        assert back.equals(value)
        assert session.frame(id).equals(value)
    elif form == "a stream of objects":
        assert list(back) == ROWS
    else:
        assert back == value
    assert ssn(13).encode() in session.open(id).read()


def test_what_a_model_sees_has_its_own_lines_and_the_handle_says_so(session: Session) -> None:
    value = [{"id": n, "ssn": {"digits": ssn(n), "kind": "us"}} for n in range(COUNT)]
    text = json.dumps(value, indent=1)
    handle = session.put(text, tool="t")
    assert handle.size == len(text)
    page = session.read(handle.id)
    assert handle.lines == page.total < text.count("\n")
    assert f'lines="{page.total}"' in str(handle).replace(",", "")
    assert session.query(handle.id).total == COUNT


def test_the_callers_side_has_all_of_it(session: Session) -> None:
    id = session.put(json.dumps({"note": "x", "ssn": ROWS}), tool="t").id
    assert session.handle(id).shape.records is None, "of the masked list nothing is left to count"
    assert [row["ssn"] for row in session.records(id)] == [ssn(n) for n in range(COUNT)]
    assert list(session.frame(id)["ssn"]) == [ssn(n) for n in range(COUNT)]

    async def walk() -> list[Any]:
        return [record async for record in session.arecords(id)]

    assert asyncio.run(walk()) == ROWS


def test_an_argument_gets_the_whole_and_what_comes_of_it_is_masked_anew(session: Session) -> None:
    got: list[Any] = []

    def report(rows: Annotated[list[Any], Resolved]) -> list[Any]:
        got.append(rows)
        return rows[::-1]

    id = session.put(ROWS, tool="crm").id
    tool: Any = session.offloaded(report)
    seen = tool(id)
    assert got == [ROWS]
    assert isinstance(seen, Envelope)
    assert not any(secret in seen for secret in HIDDEN)


def test_a_saved_query_holds_what_a_model_may_see(session: Session) -> None:
    id = session.put(ROWS, tool="crm").id
    saved = session.query(id, "user.team = 't3'", save_as="team 3")
    assert {row["ssn"][:7] for row in session.load(saved.id)} == {"***-**-"}


def test_a_preview_of_the_callers_making_is_made_from_what_may_be_seen(session: Session) -> None:
    given: list[Any] = []

    def own(value: Any) -> str:
        given.append(value)
        return f"first: {value[0]['ssn']} {json.dumps(value[1])}"

    seen = session.offload(ROWS, tool="crm", preview=own)
    assert f"first: ***-**-{ssn(0)[-4:]}" in seen
    assert ssn(0) not in str(given)
    assert not any(secret in seen for secret in HIDDEN)
    best = session.offload(ROWS, tool="best", preview=top("id"))
    assert not any(secret in best for secret in HIDDEN)


@pytest.mark.parametrize("form", ["objects", "CSV", "a stream of objects", "a log"])
def test_what_could_not_be_stored_is_shown_masked(tmp_path: Path, form: str) -> None:
    store = store_in(tmp_path, spool="")
    away = StoreUnavailable("away", reason="unreachable")
    store._backend.index = FaultyBackend(store._backend.index, only=Insert, fault=away)
    seen = store.session("s").offload(FORMS[form](), tool="crm")
    assert 'stored="false"' in seen
    assert "***-**-" in seen
    assert ssn(0) not in seen
    assert ssn(COUNT - 1) not in seen
    assert mail(0) not in seen


def test_errors_and_tombstones_show_no_masked_argument(session: Session) -> None:
    long = {"pad": "x" * 200, "ssn": ssn(13), "more": "y" * 400}
    handle = session.put(ROWS, tool="crm", args=long)
    assert ssn(13)[:6] not in handle.args
    session.delete(handle.id)
    reply = session.tools()[0].call(result_id=handle.id)
    assert "call crm again" in reply
    assert ssn(13)[:6] not in reply
    failed = session.offload(f'boom {{"ssn": "{ssn(13)}"}} ' * 3_000, tool="t", status="error")
    assert ssn(13) not in failed


def test_a_mask_that_raises_hides_the_value(tmp_path: Path) -> None:
    def fails(value: Any) -> str:
        raise ValueError(value)

    session = ResultStore(tmp_path / "s", mask={"ssn": fails}).session("s")
    id = session.put(ROWS, tool="crm").id
    assert str(session.get(id, 14)).count("[hidden]") == 2
    assert session.query(id, "ssn = '[hidden]'").total == COUNT
    assert ssn(13) not in "".join(pages(session, id))


def test_a_function_of_text_masks_whatever_it_knows(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "s", mask=lambda text: text.replace("example.org", "…"))
    session = store.session("s")
    id = session.put(ROWS, tool="crm").id
    assert session.search(id, "example").total == 0
    assert "example.org" not in "".join(pages(session, id))
    assert session.load(id) == ROWS
    assert session.query(id, "user.mail = 'user3@…'").total == 1


def test_equal_values_stay_equal_under_a_keyed_hash(tmp_path: Path) -> None:
    session = ResultStore(tmp_path / "s", mask={"ssn": hashed("k" * 16)}).session("s")
    rows = [{"ssn": ssn(n % 5), "n": n} for n in range(500)]
    people = [{"ssn": ssn(n), "name": f"p{n}"} for n in range(5)]
    a, b = session.put(rows, tool="a").id, session.put(people, tool="b").id
    found = session.sql(
        f"select p.name, count(*) as n from {a} r join {b} p on p.ssn = r.ssn group by p.name"
    )
    assert found.total == 5
    assert [json.loads(row)["n"] for row in found.records] == [100] * 5


def test_what_a_query_saved_is_compared_with_what_it_came_of(tmp_path: Path) -> None:
    for function, name in ((hashed("k" * 16), "hashed"), (last4, "last4")):
        session = ResultStore(tmp_path / name, mask={"ssn": function}).session("s")
        people = session.put([{"ssn": ssn(n), "name": f"p{n}"} for n in range(9)], tool="crm").id
        few = session.query(people, "name < 'p3'", save_as="few").id
        assert str(session.get(few, 1).text).split('"')[3] == session.get(people, 1).value["ssn"]
        joined = f"select a.name from {few} a join {people} b on a.ssn = b.ssn"
        assert session.sql(joined).total == 3


def test_two_stores_with_other_masks_do_not_mix(tmp_path: Path) -> None:
    masked = store_in(tmp_path)
    clear = ResultStore(tmp_path / "s")
    other = ResultStore(tmp_path / "s", mask={"id": hidden})
    first = masked.session("s").put(ROWS, tool="crm")
    for _ in range(2):
        assert ssn(13) not in str(masked.session("s").get(first.id, 14))
        assert ssn(13) in str(clear.session("s").get(first.id, 14))
        assert '"id":"[hidden]"' in str(other.session("s").get(first.id, 14))
        assert clear.session("s").query(first.id, {"ssn": ssn(13)}).total == 1
        assert masked.session("s").query(first.id, {"ssn": ssn(13)}).total == 0
    # Decided once: what was shown stays as it was shown.
    assert str(clear.session("s").handle(first.id)) == str(first)


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("rows", [ROWS, ROWS * 20, PLAIN])
def test_who_stored_a_result_reads_it_without_masking_it_again(
    rows: list[Any], sealed: bool, tmp_path: Path
) -> None:
    looked: list[Any] = []

    def tells(value: Any) -> str:
        looked.append(value)
        return last4(value) or ""

    def opened() -> Session:
        keys = None if not sealed else str(tmp_path / "store.key")
        return ResultStore(tmp_path / "s", mask={"ssn": tells}, keys=keys, spool="").session("s")

    if sealed:
        new_key_file(tmp_path / "store.key")
    session = opened()
    ids = [session.put(rows, tool="crm").id, session.put(json.dumps(rows), tool="crm").id]
    count = len(looked)
    told = ["".join(pages(session, id)) + session.query(id, "id > 200").text for id in ids]
    assert len(looked) == count, "the first read made the view anew"
    other = opened()
    again = ["".join(pages(other, id)) + other.query(id, "id > 200").text for id in ids]
    assert again == told, "what one process keeps is what another makes"
    assert (len(looked) > count) == ("ssn" in rows[0])


def test_what_is_deleted_is_not_kept_as_a_view(session: Session) -> None:
    held = session.put(ROWS, tool="crm")
    assert session.store.caches.views._items
    session.delete(held.id)
    assert not session.store.caches.views._items


def test_a_sub_agent_sees_what_its_session_sees(session: Session) -> None:
    id = session.put(ROWS, tool="crm").id
    below = SharedSession.beside(session)
    below.share([id])
    shown = [str(below.read(id)), str(below.query(id, "id = 13")), str(below.get(id, 14))]
    assert not any(ssn(n) in text for text in shown for n in range(20))
    assert "***-**-" in shown[1]


def test_a_result_larger_than_what_is_kept_is_masked_in_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("hiding.view", "hiding.masker", "recognise", "writing"):
        monkeypatch.setattr(f"callslip.stacks.{place}.LOOKED_INTO_BYTES", 100_000)
    session = store_in(tmp_path).session("s")
    id = session.put(ROWS * 20, tool="crm").id
    assert session.get(id, 2_414).text == session.get(id, 14).text
    assert ssn(13) not in "".join(pages(session, id))
    assert session.query(id, "id = 13").total == 20
    monkeypatch.setattr("callslip.stacks.hiding.view.DERIVED_CACHED_BYTES", 10_000)
    other = store_in(tmp_path).session("s")
    reply = other.tools()[0].call(result_id=id)
    assert (
        reply
        == f"{id} is too large to be shown with its fields masked; ask the tool for less of it."
    )
    assert other.load(id) == ROWS * 20
