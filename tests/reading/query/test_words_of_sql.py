"""A field whose name is a word of SQL: the answer says how to write it, and nothing else prints."""

from __future__ import annotations

import pytest

from callslip.errors import QueryError
from tests.reading.query.listed_records import ask, listed

SAID = "from when on for with any map case like limit desc set show update order group"
WORDS = SAID.split()


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_sql_is_asked_for_in_double_quotes(
    word: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    source = listed(*({word: n, "a": n} for n in range(10)))
    for where in (f"{word} = 3", f"{word} > 3 and a < 5", f"a < 5 and {word} > 3"):
        try:
            found = ask(source, where)
        except QueryError as error:
            assert f'write "{word}" in double quotes' in str(error)
        else:
            assert found.total == 1, "it was taken for the field"
    assert ask(source, f'"{word}" = 3').total == 1
    assert capfd.readouterr().err == ""
    assert not [record for record in caplog.records if record.name == "sqlglot"]


def test_what_was_understood_is_not_blamed() -> None:
    source = listed({"a": 1, "from": 2, "show": 3})
    for where in ("a = = 1", "nosuch = 4 and show = 3", '"from" = 2 and nosuch = 4'):
        with pytest.raises(QueryError) as refused:
            ask(source, where)
        assert "is a word of SQL" not in str(refused.value)
