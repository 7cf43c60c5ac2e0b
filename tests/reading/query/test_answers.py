"""What a query answers is what Python's json computes over the records."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.errors import QueryError
from tests.reading.query.listed_records import Listed, ask, listed, matching, values

NAMES = ["a", "b", "select", "A", "a.b", 'qu"ote', "with space", "é", "", "x\\y", "group"]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(-(2**80), 2**80),
    st.sampled_from([0.5, -1.5, 1e300, 2.0, 0.1]),
    st.sampled_from(["", "a", "b", "B", "5", "0.5", "true", "ä", "a%b", "a\x00b", "ok\n"]),
)
OF_ONE_KIND = st.sampled_from(
    [
        st.one_of(st.none(), st.integers(-(2**80), 2**80)),
        st.one_of(st.none(), st.integers(-5, 5)),
        st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([0.5, 2.0, -1.5])),
        st.one_of(st.none(), st.booleans()),
        st.one_of(st.none(), st.sampled_from(["", "a", "b", "B", "5", "ä", "a\x00b", "a%b"])),
        st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.just({"k": 1})),
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[dict[str, Any]], str]:
    name = draw(st.sampled_from(NAMES))
    kind = draw(OF_ONE_KIND)
    rows: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 12))):
        row: dict[str, Any] = {"other": draw(st.integers(0, 3))}
        if draw(st.integers(0, 4)):
            row[name] = draw(kind)
        rows.append(row)
    rows[0].setdefault(name, draw(kind))
    return rows, name


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def said(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def same_kind(left: Any, right: Any) -> bool:
    number = (int, float)
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool)
    return (isinstance(left, number) and isinstance(right, number)) or (
        isinstance(left, str) and isinstance(right, str)
    )


def read_as_numbers(found: list[Any]) -> bool:
    """Texts of which most are numbers: they are ordered, and are null, as numbers are."""
    texts = [value for value in found if value is not None]
    numbers = sum(value in ("5", "0.5") for value in texts)
    return all(isinstance(value, str) for value in texts) and 2 * numbers > len(texts)


COMPARE = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}


@settings(max_examples=150, deadline=None)
@given(tables(), st.sampled_from(list(COMPARE)), st.data())
def test_a_comparison_holds_where_it_holds_in_python(
    table: tuple[list[dict[str, Any]], str], operator: str, data: st.DataObject
) -> None:
    rows, name = table
    if read_as_numbers([row.get(name) for row in rows]):
        return
    present = [row[name] for row in rows if isinstance(row.get(name), (int, float, str))]
    if not present:
        return
    value = data.draw(st.sampled_from(present))
    if isinstance(value, bool) and any(not isinstance(item, bool) for item in present):
        return
    expected = [
        place
        for place, row in enumerate(rows, 1)
        if (same_kind(row.get(name), value) and COMPARE[operator](row[name], value))
        # A value of another type is a different one; in order it stands nowhere.
        or (operator == "<>" and row.get(name) is not None and not same_kind(row[name], value))
    ]
    assert matching(listed(*rows, group=3), f"{quoted(name)} {operator} {said(value)}") == expected


@settings(max_examples=80, deadline=None)
@given(tables())
def test_null_is_what_python_has_as_none_or_not_at_all(
    table: tuple[list[dict[str, Any]], str],
) -> None:
    rows, name = table
    if read_as_numbers([row.get(name) for row in rows]):
        return
    source = listed(*rows, group=5)
    expected = [place for place, row in enumerate(rows, 1) if row.get(name) is None]
    assert matching(source, f"{quoted(name)} is null") == expected
    others = [place for place in range(1, len(rows) + 1) if place not in expected]
    assert matching(source, f"{quoted(name)} is not null") == others
    assert (
        matching(source, {name: None} if "." not in name else f"{quoted(name)} is null") == expected
    )


@settings(max_examples=80, deadline=None)
@given(tables(), st.booleans())
def test_an_order_is_pythons_with_null_last_and_ties_in_their_own_order(
    table: tuple[list[dict[str, Any]], str], down: bool
) -> None:
    rows, name = table
    found = [row.get(name) for row in rows]
    if read_as_numbers(found):
        return
    kinds = {
        bool if isinstance(v, bool) else str if isinstance(v, str) else float
        for v in found
        if v is not None and not isinstance(v, (list, dict))
    }
    if len(kinds) != 1 or any(isinstance(value, (list, dict)) for value in found):
        return
    some = [place for place, value in enumerate(found, 1) if value is not None]
    none = [place for place, value in enumerate(found, 1) if value is None]
    some.sort(key=lambda place: found[place - 1], reverse=down)
    if down:
        some.sort(key=lambda place: found[place - 1], reverse=True)
    order = f"{quoted(name)} {'desc' if down else 'asc'}"
    assert matching(listed(*rows, group=4), None, order_by=order) == some + none


@settings(max_examples=80, deadline=None)
@given(tables())
def test_groups_are_those_of_equal_values(table: tuple[list[dict[str, Any]], str]) -> None:
    rows, name = table
    expected: dict[str, int] = {}
    for row in rows:
        value = row.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        key = json.dumps(value)
        expected[key] = expected.get(key, 0) + 1
    answer = ask(listed(*rows, group=4), group_by=quoted(name), limit=100)
    assert answer.total == len(expected)
    found: dict[str, int] = {}
    for row in values(answer):
        value = row[name]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        found[json.dumps(value)] = row["count"]
    assert found == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-(2**40), 2**40)), min_size=1, max_size=30))
def test_totals_are_pythons(given_values: list[int | None]) -> None:
    source = listed(*({"v": value, "w": 1} for value in given_values))
    if all(value is None for value in given_values):
        return
    some = [value for value in given_values if value is not None]
    answer = values(
        ask(
            source,
            fields="count(*) as n, count(v) as c, sum(v) as s, min(v) as low, max(v) as high, "
            "avg(v) as mean, count(distinct v) as kinds",
        )
    )[0]
    assert answer.pop("mean") == pytest.approx(sum(some) / len(some))
    assert answer == {
        "n": len(given_values),
        "c": len(some),
        "s": sum(some),
        "low": min(some),
        "high": max(some),
        "kinds": len(set(some)),
    }


def test_the_sum_of_prices_is_not_off_in_its_last_digit() -> None:
    source = listed(*({"price": 0.1} for _ in range(10)))
    assert values(ask(source, fields="sum(price) as s"))[0] == {"s": 1.0}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a%", [1, 2, 6]),
        ("%b", [2, 3]),
        ("%a%", [1, 2, 4, 6]),
        ("a", [1]),
        ("_a_", [4]),
        ("%", [1, 2, 3, 4, 5, 6]),
        ("", [5]),
        ("a%b", [2]),
        ("a.%", [6]),
        ("a__", [2, 6]),
    ],
)
def test_like_takes_percent_and_underscore_and_nothing_else(
    pattern: str, expected: list[int]
) -> None:
    source = listed(*({"t": text} for text in ["a", "a\nb", "b", "xay", "", "a.c"]))
    assert matching(source, f"t like '{pattern}'") == expected
    others = [place for place in range(1, 7) if place not in expected]
    assert matching(source, f"t not like '{pattern}'") == others


def test_like_takes_an_escape_and_any_case() -> None:
    source = listed({"t": "50%"}, {"t": "500"}, {"t": "ÄB"})
    assert matching(source, "t like '50!%' escape '!'") == [1]
    assert matching(source, "t ilike 'äb'") == [3]


def test_the_text_of_a_record_comes_back_byte_for_byte() -> None:
    exact = [
        b'{"id": 9007199254740993, "x":1E400,  "y" : 1.10, "id2":123456789012345678901234567890}',
        b'{"id":1,"x":0.1,"y":"\\u00e9\\ud83d\\ude00"}',
    ]
    answer = ask(Listed(exact), "id > 9007199254740992")
    assert [record.encode() for record in answer.records] == [exact[0]]
    chosen = ask(Listed(exact), fields="id, y, x", order_by="id")
    assert chosen.records == (
        '{"id": 1, "y": "\\u00e9\\ud83d\\ude00", "x": 0.1}',
        '{"id": 9007199254740993, "y": 1.10, "x": 1E400}',
    )


def test_whole_numbers_are_exact_beyond_what_a_float_holds() -> None:
    big = [2**53 + 1, 2**53, 2**63, 2**63 - 1, -(2**63) - 1, 10**37]
    source = listed(*({"id": value} for value in big))
    for value in big:
        assert matching(source, f"id = {value}") == [big.index(value) + 1]
    assert matching(source, f"id > {2**53}") == [1, 3, 4, 6]
    assert values(ask(source, fields="max(id) as m"))[0] == {"m": 10**37}


ODD = [
    b'{"v": 1E400}',
    b'{"v": NaN}',
    b'{"v": "\\ud800"}',
    b'{"v": [1, {"k": "\\udfff"}]}',
    b'{"v": 1, "v": 2}',
    b'{"\\u0076": 7}',
    b'{"v": -0}',
    b"{}",
    b'{"v": {"v": null}}',
    b'{"v": 123456789012345678901234567890123456789012345678901234567890}',
    b" null ",
    b"[1]",
    b'"text"',
    b"not json",
    b'{"v": "\xff"}',
    b'{"v": Infinity}',
    b'{"v": ' + b"[" * 500 + b"]" * 500 + b"}",
    b'  {"v" : 3 }  ',
]


def test_no_record_makes_a_query_fail_or_the_others_wrong() -> None:
    for odd in ODD:
        source = Listed([b'{"v": 1}', odd, b'{"v": 2}', b'{"v": "x"}'])
        assert set(matching(source, "v = 1")) - {2} == {1}, odd
        assert set(matching(source, "v = 'x'")) - {2} == {4}, odd
        assert ask(source, group_by="v").total >= 3, odd
        assert ask(source, order_by="v desc", fields="v").total == 4, odd
    everything = Listed([*ODD, b'{"v": 5}'])
    assert matching(everything, "v = 5") == [len(ODD) + 1]
    assert matching(everything, "v is null") == [2, 8, 11, 12, 13, 14]
    assert matching(everything, "v > 1e308") == [1, 16]
    assert matching(everything, "v = 2") == [5], (
        "the last of two equal keys counts, as in json.loads"
    )
    assert matching(everything, "v = 7") == [6]


@pytest.mark.parametrize(
    "name", [*NAMES, "1st", "a-b", "{", "'", "\u2028", "x" * 300, "n", "r", "t0"]
)
def test_any_name_can_be_a_field(name: str) -> None:
    source = listed({name: 1, "z": 0}, {name: 2, "z": 0}, {"z": 0})
    assert matching(source, f"{quoted(name)} = 2") == [2]
    assert values(ask(source, fields=quoted(name), order_by=f"{quoted(name)} desc", limit=1)) == [
        {name: 2}
    ]


def test_names_that_differ_only_in_case_are_two_fields() -> None:
    source = listed({"Id": 1, "ID": 2, "id": 3}, {"Id": 3, "ID": 1, "id": 2})
    assert matching(source, "Id = 1") == [1]
    assert matching(source, "ID = 1") == [2]
    assert matching(source, "id = 2") == [2]


def test_a_name_in_another_case_is_understood_where_it_can_mean_only_one() -> None:
    assert matching(listed({"Status": "ok"}), "STATUS = 'ok'") == [1]


def test_a_thousand_fields_are_no_hindrance() -> None:
    rows = [{f"field {n}": n + row for n in range(1000)} for row in range(20)]
    source = listed(*rows)
    assert matching(source, '"field 999" = 1000 and "field 0" < 5') == [2]
    assert len(values(ask(source, limit=1))[0]) == 1000


def test_nested_fields_and_places_in_lists() -> None:
    source = listed(
        {"a": {"b": {"c": 1}}, "items": [{"name": "x"}, {"name": "y"}]},
        {"a": {"b": 5}, "items": []},
        {"a": None, "items": None},
    )
    assert matching(source, "a.b.c = 1") == [1]
    assert matching(source, "a.b = 5") == [2]
    assert matching(source, "items[1].name = 'y'") == [1]
    assert matching(source, "items[-1].name = 'y'") == [1]
    assert matching(source, "items->0->>'name' = 'x'") == [1]
    assert matching(source, "a->>'$.b.c' = 1") == [1]
    assert matching(source, "len(items) = 0") == [2]
    assert matching(source, {"a.b.c": 1}) == [1]


def test_lists_are_asked_for_a_value() -> None:
    source = listed({"tags": ["a", "b"]}, {"tags": ["ab", 1]}, {"tags": []}, {"tags": None})
    for written in ("list_contains(tags, 'a')", "'a' in tags", "'a' = any(tags)"):
        assert matching(source, written) == [1], written
    assert matching(source, "list_contains(tags, 1)") == [2]
    assert matching(source, "not list_contains(tags, 'a')") == [2, 3]


def test_csv_gets_its_numbers_from_its_text() -> None:
    source = listed(
        {"n": "1", "f": "1.5", "zip": "007", "mixed": "1", "e": ""},
        {"n": "10", "f": "", "zip": "8", "mixed": "x", "e": ""},
        {"n": "2", "f": "-2e1", "zip": "", "mixed": "", "e": ""},
        texts=True,
    )
    assert matching(source, "n > 1") == [2, 3]
    assert matching(source, None, order_by="n desc") == [2, 3, 1]
    assert matching(source, "f < 0") == [3]
    assert matching(source, "f is null") == [2]
    assert matching(source, "zip = '007'") == [1]
    assert matching(source, "mixed = 'x'") == [2]
    assert matching(source, "e is null") == [1, 2, 3]
    assert values(ask(source, fields="sum(n) as s")) == [{"s": 13}]


def test_dates_in_text_are_compared_as_dates() -> None:
    source = listed(
        {"d": "2026-01-02T03:04:05Z"}, {"d": "2026-02-02"}, {"d": "no date"}, {"d": None}
    )
    assert matching(source, "d > date '2026-01-15'") == [2]
    assert matching(source, "d::date = date '2026-01-02'") == [1]
    assert matching(source, "year(d) = 2026 and month(d) = 1") == [1]
    assert values(ask(source, "d is not null", group_by="date_trunc('month', d) as m", limit=1))


def test_pages_of_a_query_join_to_all_that_matches() -> None:
    source = listed(*({"id": n, "even": n % 2 == 0} for n in range(50)))
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        answer = ask(source, "even", order_by="id desc", limit=7, after=after)
        assert answer.total == 25
        seen += [row["id"] for row in values(answer)]
        after = answer.next["after"] if answer.next else None
    assert seen == list(range(48, -1, -2))


def test_the_second_query_over_a_field_reads_no_records() -> None:
    from callslip.reading.query import Tables

    source = listed(*({"id": n, "v": n % 7} for n in range(5000)))
    tables = Tables()
    ask(source, "v = 3", tables, limit=0)
    read = source.read
    ask(source, "v = 4", tables, limit=0, order_by="v")
    assert source.read == read
    tables.forget(source.key)  # type: ignore[arg-type]
    ask(source, "v = 4", tables, limit=0)
    assert source.read > read


def test_tables_are_let_go_of_when_they_take_too_much() -> None:
    from callslip.reading.query import Tables

    tables = Tables(room=1000)
    source = listed(*({"id": n} for n in range(1000)))
    assert ask(source, "id > 1", tables, limit=0).total == 998
    read = source.read
    ask(source, "id > 1", tables, limit=0)
    assert source.read > read, "a table larger than the room is not kept"


def test_true_among_values_of_several_types() -> None:
    source = listed({"v": True}, {"v": "true"}, {"v": False}, {"v": 1}, {"v": [True]}, {})
    assert matching(source, "v = true") == [1]
    assert matching(source, "v = 'true'") == [2]
    assert matching(source, "v = 1") == [4]
    assert matching(source, "not v") == [3]


@settings(max_examples=80, deadline=None)
@given(tables(), st.data())
def test_in_holds_where_a_value_is_among_those(
    table: tuple[list[dict[str, Any]], str], data: st.DataObject
) -> None:
    rows, name = table
    texts = [row[name] for row in rows if isinstance(row.get(name), str)]
    numbers = [row[name] for row in rows if type(row.get(name)) in (int, float)]
    kind = texts or numbers
    if not kind:
        return
    wanted = data.draw(st.lists(st.sampled_from(kind), min_size=1, max_size=4))
    held = [row.get(name) for row in rows]
    found = [p for p, v in enumerate(held, 1) if any(same_kind(v, w) and v == w for w in wanted)]
    listed_values = ", ".join(said(value) for value in wanted)
    assert matching(listed(*rows, group=3), f"{quoted(name)} in ({listed_values})") == found
    if all(value is None or same_kind(value, wanted[0]) for value in held):
        others = [p for p, v in enumerate(held, 1) if v is not None and p not in found]
        assert matching(listed(*rows), f"{quoted(name)} not in ({listed_values})") == others


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.text("ab%_.\\\n", max_size=6), min_size=1, max_size=8),
    st.text("ab%_.\\", max_size=6),
    st.booleans(),
)
def test_like_is_what_it_says(texts: list[str], pattern: str, fold: bool) -> None:
    parts = [{"%": ".*", "_": "."}.get(char, re.escape(char)) for char in pattern]
    wanted = re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if fold else 0))
    expected = [place for place, text in enumerate(texts, 1) if wanted.fullmatch(text)]
    word = "ilike" if fold else "like"
    assert matching(listed(*({"t": t} for t in texts)), f"t {word} '{pattern}'") == expected


def test_a_text_field_of_numbers_and_a_few_words_is_compared_by_its_numbers() -> None:
    source = listed({"m": "3750"}, {"m": "NA"}, {"m": "3800.5"}, {"m": "12"}, texts=True)
    assert matching(source, "m > 3000") == [1, 3]
    assert matching(source, "m = 'NA'") == [2]
    assert values(ask(source, fields="max(m::double) as most")) == [{"most": 3800.5}]
    words = listed({"m": "x"}, {"m": "1"}, {"m": "y"})
    with pytest.raises(QueryError, match="m is text"):
        matching(words, "m > 0")
