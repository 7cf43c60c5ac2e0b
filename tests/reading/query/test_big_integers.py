"""Integers beyond 64 bits are compared digit by digit, also where they come as texts."""

from __future__ import annotations

import json

import pytest

from callslip.errors import QueryError
from tests.reading.query.listed_records import Listed, ask, matching


@pytest.mark.parametrize("base", [2**63 - 5, 2**64, 10**37, -(2**70)])
def test_a_table_of_large_integers_is_compared_exactly(base: int) -> None:
    rows = [{"v": str(base + n)} for n in range(900)]
    source = Listed([json.dumps(row).encode() for row in rows], texts=True)
    assert matching(source, f"v = {base + 7}") == [8]
    assert matching(source, {"v": base + 7}) == [8]
    assert ask(source, f"v > {base + 7}").total == 892
    assert ask(source, f"v <> {base + 7}").total == 899
    assert ask(source, f"v in ({base + 1}, {base + 2})").total == 2
    assert matching(source, None, order_by="v desc")[:2] == [900, 899]
    assert ask(source, f"v = '{base + 7}'").total == 1


def test_more_digits_than_are_told_apart_are_refused() -> None:
    source = Listed([json.dumps({"v": 10**40 + n}).encode() for n in range(900)])
    for where in (f"v = {10**40 + 7}", f"v = '{10**40 + 7}'", f"v < -{10**40}", {"v": 10**40}):
        with pytest.raises(QueryError, match="more than 38 digits are not compared"):
            ask(source, where)
    assert ask(source, "v > 1e30").total == 900
