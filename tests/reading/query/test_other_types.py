"""A value of another type is different from what it is compared with; only null is unknown."""

from __future__ import annotations

import pytest

from tests.reading.query.listed_records import ask, listed

CODES = listed(*({"code": 404 if n % 10 else "ERR"} for n in range(1000)), {"code": None}, {})


@pytest.mark.parametrize(
    ("where", "total"),
    [
        ("code <> 'ERR'", 900),
        ("code != 404", 100),
        ("not (code = 'ERR')", 900),
        ("not (code = 404)", 100),
        ("code not in ('ERR')", 900),
        ("code not in (404, 'x')", 100),
        ("code not in (404, 'ERR')", 0),
        ("code <> true", 1000),
        ("code = 404", 900),
        ("code in ('ERR')", 100),
        ("code <> code", 0),
        ("not (code = null)", 1000),
        ("code is null", 2),
    ],
)
def test_values_of_another_type_are_different_and_null_is_unknown(where: str, total: int) -> None:
    assert ask(CODES, where).total == total


def test_fields_of_several_types_are_compared_value_by_value() -> None:
    source = listed(
        {"a": 1, "b": "x"}, {"a": "x", "b": "x"}, {"a": None, "b": "x"}, {"a": "y", "b": "x"}
    )
    assert ask(source, "a <> b").total == 2
    assert ask(source, "not (a = b)").total == 2
    assert ask(source, "a = b").total == 1
