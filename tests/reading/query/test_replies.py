"""What a model reads of a query: the total first, few records, and a way on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callslip.errors import QueryError
from callslip.handle import Rows
from callslip.limits import PAGE_CAP_CHARS, ROWS_DEFAULT
from callslip.reading.query import Select, Tables, export, export_select, select
from tests.reading.query.listed_records import Listed, ask, listed, run

ORDERS = [
    {
        "id": n,
        "status": ["ok", "ok", "failed", "skipped"][n % 4],
        "amount": n * 1.5,
        "who": {"k": n},
    }
    for n in range(100)
]
CUSTOMERS = [{"id": n, "name": f"customer {n}"} for n in range(0, 100, 2)]


def join(sql: str, **how: Any) -> Rows:
    tables = {"res_orders1": listed(*ORDERS), "res_names1": listed(*CUSTOMERS)}
    asked = Select.of(sql)
    return run(select(asked, [tables[table.id] for table in asked.tables], Tables(), sql, **how))


def test_the_total_comes_first_and_the_call_that_goes_on_last() -> None:
    answer = ask(listed(*ORDERS), "status = 'failed'")
    first, *lines, end, note = str(answer).split("\n")
    assert first.startswith('<rows matched="25" shown="1-8" of="100 records" id="res_abc12345"')
    assert len(lines) == ROWS_DEFAULT and end == "</rows>"
    assert lines[0] == '#3 {"id": 2, "status": "failed", "amount": 3.0, "who": {"k": 2}}'
    assert note.endswith('query_result("res_abc12345", where="status = \'failed\'", after=8).')
    assert answer.next == {"after": 8}


def test_a_count_alone_is_one_sentence() -> None:
    answer = ask(listed(*ORDERS), "status = 'failed'", limit=0)
    assert str(answer).startswith("25 of the 100 records of res_abc12345 match where status")
    assert answer.records == ()
    assert len(str(answer)) < 250


def test_nothing_found_says_what_was_asked_and_what_the_fields_hold() -> None:
    assert str(ask(listed(*ORDERS), "status = 'faild'")).endswith(
        'status holds "ok" (50), "failed" (25), "skipped" (25).'
    )
    assert str(ask(listed(*ORDERS), "amount > 5000")).endswith("amount goes from 0.0 to 148.5.")
    names = listed(*({"name": f"customer number {n}"} for n in range(50)))
    assert '"customer number 7" (1)' in str(ask(names, "name = 'custmer number 7'"))
    nulls = listed({"x": None, "y": 1}, {"x": None, "y": 2})
    assert "x is null in all of them" in str(ask(nulls, "x = 5"))


def test_a_wrong_field_gets_the_fields_that_are_there() -> None:
    with pytest.raises(QueryError) as raised:
        ask(listed(*ORDERS), "state = 'failed'")
    assert raised.value.for_model == (
        "There is no field state; perhaps status. Fields: id, status, amount, who."
    )
    late = listed({"a": 1}, {"b": 2})
    assert ask(late, "b = 2").total == 1, "a field that only a later record has is found too"


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("status = 5", "status is text: compare it with '5', in quotes."),
        ("amount = 'high'", "amount is a number: compare it with a number, without quotes."),
        ("id > status", "id is a whole number, status is text: these cannot be compared."),
        ("who = 'x'", "who is a list or an object: use list_contains(field, value), len(field) or a path into it."),
        ("status", "status is text: a condition compares it with something."),
    ],
)  # fmt: skip
def test_a_wrong_type_says_which_type_the_field_has(where: str, said: str) -> None:
    with pytest.raises(QueryError) as raised:
        ask(listed(*ORDERS), where)
    assert raised.value.for_model == said


@pytest.mark.parametrize(
    ("given", "total"),
    [
        ('{"status": "failed"}', 25), ({"status": ["failed", "skipped"]}, 50),
        ('status = "failed"', 25), ("where status = 'failed';", 25), ("STATUS == 'failed'", 25),
        ("", 100), (None, 100), ("  ", 100), ("id = '7'", 1), ({"who.k": 3}, 1), ("status != null", 100),
    ],
)  # fmt: skip
def test_what_a_model_means_is_understood(given: object, total: int) -> None:
    assert ask(listed(*ORDERS), given).total == total


def test_arguments_of_a_wrong_type_are_mended() -> None:
    source = listed(*ORDERS)
    answer = ask(source, None, limit="2", after="3.0", fields='["id"]', order_by=["id desc"])
    assert answer.records == ('{"id": 96}', '{"id": 95}')
    assert ask(source, limit=10**9, fields="id").total == 100
    assert ask(source, limit=None, after=None).next == {"after": ROWS_DEFAULT}
    assert ask(source, fields="*").records == ask(source).records


@pytest.mark.parametrize("size", [10, 3_000, 400_000])
@pytest.mark.parametrize("limit", [1, 8, 200])
def test_no_reply_is_longer_than_a_page(size: int, limit: int) -> None:
    source = listed(
        *({"id": n, "text": "</rows> é" * (size // 9), "k" * 200: n} for n in range(30))
    )
    answer = ask(source, "id >= 0", limit=limit, fields=None)
    assert len(str(answer)) <= PAGE_CAP_CHARS
    assert answer.total == 30 and answer.records
    assert str(answer).count("</rows>") == 1, "content cannot close the reply"
    if size > 100_000:
        assert "get_record(" in str(answer)
    assert json.loads(answer.records[0])["id"] == 0, "the records themselves are whole"


def test_a_long_condition_does_not_fill_the_reply() -> None:
    where = " or ".join(f"id = {n}" for n in range(100))
    assert len(str(ask(listed(*ORDERS), where, limit=1))) < 600


def test_records_that_come_in_several_lines_stand_in_one() -> None:
    answer = ask(Listed([b'{"id":\n 1,\r\n "t": "a\\nb"}']), "id = 1")
    assert '#1 {"id":  1,  "t": "a\\nb"}' in str(answer)
    assert answer.records[0] == '{"id":\n 1,\r\n "t": "a\\nb"}'


def test_no_records_at_all() -> None:
    assert "has 0 records" in str(ask(listed()))
    with pytest.raises(QueryError, match="no fields"):
        ask(Listed([b"1", b"2"]), "x = 1")


# --- several results ------------------------------------------------------------------------------


def test_two_results_are_joined() -> None:
    answer = join(
        "select c.name, sum(o.amount) as paid from res_orders1 o join res_names1 c "
        "on o.id = c.id where o.status = 'ok' group by c.name order by paid desc limit 3"
    )
    expected = sorted(
        ((f"customer {o['id']}", o["amount"]) for o in ORDERS
         if o["status"] == "ok" and o["id"] % 2 == 0),  # type: ignore[operator]
        key=lambda pair: -pair[1],  # type: ignore[operator]
    )  # fmt: skip
    assert [json.loads(row) for row in answer.records] == [
        {"name": name, "paid": paid} for name, paid in expected[:3]
    ]
    assert answer.total == 3


@pytest.mark.parametrize(
    ("sql", "total", "first"),
    [
        ("select * from res_names1 order by id desc", 50, {"id": 98, "name": "customer 98"}),
        ("select o.id from res_orders1 o left join res_names1 c using (id) where c.name is null", 50, {"id": 1}),
        ("select distinct status from res_orders1 order by status", 3, {"status": "failed"}),
        ("select status, count(*) n from res_orders1 group by 1 having count(*) > 25", 1, {"status": "ok", "n": 50}),
        ("select status as s, max(amount) from res_orders1 group by s order by 2 desc", 3, {"s": "skipped", "max(amount)": 148.5}),
        ("select count(*) from res_orders1, res_names1", 1, {"count(*)": 5000}),
        ("select id from res_orders1 order by id limit 5 offset 2", 5, {"id": 2}),
        ("select a.id, b.id from res_orders1 a join res_orders1 b on a.id = b.id + 1 order by a.id", 99, {"a.id": 1, "b.id": 0}),
        ("select id from res_orders1 where id < 0", 0, None),
    ],
)  # fmt: skip
def test_a_select_answers(sql: str, total: int, first: object) -> None:
    answer = join(sql)
    assert answer.total == total
    assert (json.loads(answer.records[0]) if answer.records else None) == first


def test_a_select_goes_on_where_it_stopped() -> None:
    sql = "select id from res_orders1 order by id limit 20"
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        answer = join(sql, after=after)
        assert answer.total == 20
        seen += [json.loads(row)["id"] for row in answer.records]
        after = answer.next["after"] if answer.next else None
    assert seen == list(range(20))


def test_a_table_may_be_a_list_inside_a_document() -> None:
    asked = Select.of("select i.name from res_abc12345.data.items i where i.name is not null")
    assert [(t.id, t.path, t.alias) for t in asked.tables] == [("res_abc12345", "data.items", "i")]


def test_a_field_of_two_tables_wants_its_table() -> None:
    with pytest.raises(QueryError, match=r"write o\.id or c\.id"):
        join("select id from res_orders1 o join res_names1 c on o.id = c.id")


# --- save_as --------------------------------------------------------------------------------------


def exported(source: Listed, **how: Any) -> list[bytes]:
    return [record for group in run(export(source, Tables(), **how)) for record in run(group)]


def test_an_export_has_all_that_matches_in_its_exact_text() -> None:
    records = [b'{"id":%d,  "x" : 1.%d0}' % (n, n % 10) for n in range(5000)]
    source = Listed(records, group=700)
    assert exported(source) == records
    assert exported(source, where="id % 2 = 1") == records[1::2]
    assert exported(source, where="id < 30", order_by="id desc") == records[29::-1]
    assert exported(source, where="id < 2", fields="x") == [b'{"x": 1.00}', b'{"x": 1.10}']
    assert exported(source, group_by="id % 2 as odd")[0] == b'{"odd": 0, "count": 2500}'
    assert exported(Listed([b'{"a":\n1}'])) == [b'{"a": 1}'], "one line each"


def test_an_export_of_a_select() -> None:
    asked = Select.of("select o.id * 2 as twice from res_orders1 o order by twice desc limit 3")
    groups = run(export_select(asked, [listed(*ORDERS)], Tables()))
    assert [record for group in groups for record in run(group)] == [
        b'{"twice": 198}', b'{"twice": 196}', b'{"twice": 194}',
    ]  # fmt: skip
