"""A name in a list that is a field is that field, whatever SQL would make of it."""

from __future__ import annotations

import pytest

from callslip.errors import QueryError
from tests.reading.query.listed_records import ask, listed, matching, values

ODD = ["a b", "1st", "null", "true", "count(*)", "x-y", "@id", "from", "when", "a.b", "'q'", "-a"]


@pytest.mark.parametrize("name", ODD)
def test_a_listed_name_that_is_a_field_is_that_field(name: str) -> None:
    rows = [{name: n, "a": -n, "b": 7, "x": 1, "y": 2} for n in range(20)]
    source = listed(*rows)
    assert values(ask(source, fields=[name], limit=2)) == [{name: 0}, {name: 1}]
    assert values(ask(source, fields=[name, "a"], limit=1, after=3)) == [{name: 3, "a": -3}]
    assert matching(source, None, order_by=[f"{name} desc"])[:2] == [20, 19]
    assert matching(source, None, order_by=name)[:2] == [1, 2]
    assert matching(source, None, order_by=f"{name} desc")[:2] == [20, 19]
    groups = values(ask(source, fields=[name, "max(a) as most"], group_by=[name], limit=2))
    assert groups == [{name: 0, "most": 0}, {name: 1, "most": -1}]
    assert values(ask(source, group_by=name, limit=1)) == [{name: 0, "count": 1}]


def test_a_field_of_later_records_alone_is_found_by_its_exact_name() -> None:
    source = listed({"a": 1}, {"a": 2, "x-y": 5})
    assert values(ask(source, fields=["x-y"])) == [{"x-y": None}, {"x-y": 5}]


def test_what_is_no_field_is_an_expression() -> None:
    source = listed({"a": 1, "b": 2}, {"a": 2, "b": 2})
    assert values(ask(source, fields=["a + b as c"])) == [{"c": 3}, {"c": 4}]
    assert values(ask(source, fields=["count(*)"])) == [{"count(*)": 2}]


@pytest.mark.parametrize("what", ["fields", "order_by", "group_by"])
def test_an_empty_name_is_refused_in_one_sentence(what: str) -> None:
    with pytest.raises(QueryError, match=f"A name in `{what}` is empty: leave it out."):
        ask(listed({"a": 1}), **{what: ["a", " "]})
