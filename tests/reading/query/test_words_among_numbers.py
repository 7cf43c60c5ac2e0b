"""A few words in a column of numbers do not make it one of text."""

from __future__ import annotations

import json

import pytest

from tests.reading.query.listed_records import Listed, ask, listed, values


def amounts(word: str, *, texts: bool = True) -> Listed:
    rows = [{"id": str(n), "amount": word if n == 1777 else str(n * 1.5)} for n in range(3000)]
    return Listed([json.dumps(row).encode() for row in rows], texts=texts)


@pytest.mark.parametrize("word", ["N/A", "null", "NaN", "-", "free"])
def test_order_and_extremes_are_those_of_the_numbers(word: str) -> None:
    source = amounts(word)
    found = values(ask(source, order_by="amount desc", limit=2))
    assert [row["amount"] for row in found] == ["4498.5", "4497.0"]
    found = values(ask(source, order_by="amount", limit=3))
    assert [row["amount"] for row in found] == ["0.0", "1.5", "3.0"]
    for way in ("", " desc"):
        last = values(ask(source, order_by=f"amount{way}", limit=1, after=2999))
        assert last[0]["amount"] == word
    row = values(ask(source, fields="max(amount) as most, min(amount) as least"))[0]
    assert row == {"most": 4498.5, "least": 0}


def test_a_number_in_quotes_is_in_order_as_the_number_is() -> None:
    source = amounts("N/A")
    assert ask(source, "amount > '100'").total == ask(source, "amount > 100").total == 2932
    assert ask(source, "amount between '3' and '15'").total == 9


def test_a_word_among_numbers_is_a_value_as_csv_and_duckdb_have_it() -> None:
    source = amounts("N/A")
    assert ask(source, "amount is null").total == 0
    assert values(ask(source, fields="count(amount) as n"))[0]["n"] == 3000
    assert ask(source, "amount <> 1.5").total == 2999


def test_strings_of_digits_in_json_are_strings() -> None:
    source = amounts("N/A", texts=False)
    row = values(ask(source, fields="max(amount) as most"))[0]
    assert row == {"most": "N/A"}


def test_groups_of_numbers_and_words_are_ordered_by_the_numbers() -> None:
    rows = [{"k": ["9", "10", "free"][n % 3 if n < 9 else n % 2]} for n in range(60)]
    source = Listed([json.dumps(row).encode() for row in rows], texts=True)
    found = values(ask(source, group_by="k", order_by="k desc"))
    assert [row["k"] for row in found] == ["10", "9", "free"]


def test_among_words_a_number_and_na_are_words() -> None:
    source = listed({"a": "NA"}, {"a": "b"}, {"a": "c"}, {"a": "10"}, {"a": "9"})
    assert ask(source, "a is null").total == 0
    assert [row["a"] for row in values(ask(source, order_by="a"))] == ["10", "9", "NA", "b", "c"]
