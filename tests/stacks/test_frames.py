"""Tables of other libraries: nothing of them is lost, and their rows are JSON records."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from callslip.stacks.content import canonical, restore

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
numpy = pytest.importorskip("numpy")


def restored(value: Any) -> Any:
    content = canonical(value)
    assert content.kind in ("rows", "document")
    return restore(content.form, content.body, content.twin)


def frames() -> dict[str, Any]:
    n = 6
    zone = pandas.date_range("2026-01-01", periods=n, tz="Asia/Tokyo", unit="ns")
    return {
        "numbers": pandas.DataFrame(
            {
                "i8": numpy.arange(n, dtype="i1"),
                "u64": numpy.array([2**64 - 1] * n, dtype="u8"),
                "f32": numpy.array([0.1, numpy.nan, numpy.inf, -0.0, 1e30, 2], dtype="f4"),
                "bool": [True, False] * 3,
                "complex": [1 + 2j] * n,
            }
        ),
        "times": pandas.DataFrame(
            {
                "naive": pandas.to_datetime(["2026-01-02", None] * 3),
                "zone": zone,
                "delta": pandas.to_timedelta([1, None, 3, 4, 5, 6], unit="s"),
            },
            index=zone,
        ),
        "masked": pandas.DataFrame(
            {
                "int": pandas.array([1, None] * 3, dtype="Int64"),
                "bool": pandas.array([True, None] * 3, dtype="boolean"),
                "float": pandas.array([1.5, None] * 3, dtype="Float32"),
            }
        ),
        "texts": pandas.DataFrame(
            {
                "str": ["a", None, "é\n", "", "\U0001f600", "x"],
                "python": pandas.array(["a", None] * 3, dtype=pandas.StringDtype("python")),
                "mixed": [1, "a", None, pandas.NaT, [1, {"b": 2}], date(2026, 1, 1)],
                "kind": pandas.Categorical(["b", "a", None] * 2, ["b", "a"], ordered=True),
            }
        ),
        "indexed": pandas.DataFrame(
            {("a", 1): range(4), ("a", 2): range(4)},
            index=pandas.MultiIndex.from_product([["x", "y"], [1, 2]], names=["k", None]),
        ),
        "doubled": pandas.DataFrame([[1, 2]] * 3, columns=["a", "a"], index=[7, 7, 7]),
        "empty": pandas.DataFrame(),
        "no rows": pandas.DataFrame({"a": pandas.Series(dtype="i4")}),
        "strided": pandas.DataFrame({"a": range(10)}).iloc[::-2],
    }


@pytest.mark.parametrize("name", list(frames()))
def test_a_pandas_table_comes_back_equal(name: str) -> None:
    frame = frames()[name]
    pandas.testing.assert_frame_equal(restored(frame), frame, check_freq=True)
    rows = json.loads(canonical(frame).body)
    assert len(rows) == len(frame) or not frame.shape[1]


def test_a_pandas_table_is_shown_as_records_without_nan() -> None:
    frame = pandas.DataFrame(
        {"a": [1.5, numpy.nan], "t": pandas.to_datetime(["2026-01-02", None])}, index=[4, 4]
    )
    content = canonical(frame)
    assert json.loads(content.body) == [
        {"a": 1.5, "t": "2026-01-02T00:00:00"},
        {"a": None, "t": None},
    ]
    assert content.body.count(b"\n") == 1


def test_an_index_with_a_name_is_a_field() -> None:
    frame = pandas.DataFrame({"v": [1, 2]}, index=pandas.Index(["x", "y"], name="k"))
    assert json.loads(canonical(frame).body) == [{"k": "x", "v": 1}, {"k": "y", "v": 2}]


def test_a_table_with_a_column_of_unknown_making_is_kept_as_an_object_is() -> None:
    frame = pandas.DataFrame({"p": pandas.period_range("2026-01", periods=2, freq="M")})
    content = canonical(frame)
    assert content.form == "python"


def test_a_polars_table_comes_back_equal() -> None:
    frame = polars.DataFrame(
        {
            "i": [1, None, 3],
            "f": [1.5, float("nan"), None],
            "t": [datetime(2026, 1, 1, tzinfo=UTC), None, None],
            "l": [[1, 2], [], None],
            "s": [{"a": 1}, {"a": None}, None],
            "c": polars.Series(["x", "y", "x"], dtype=polars.Categorical),
        }
    )
    assert restored(frame).equals(frame)
    assert restored(frame).schema == frame.schema
    rows = json.loads(canonical(frame).body)
    assert rows[1]["f"] is None
    assert rows[0]["t"] == "2026-01-01T00:00:00+00:00"


def test_an_arrow_table_comes_back_equal_with_its_metadata() -> None:
    table = pyarrow.table({"a": [1, None], "b": [["x"], []]}).replace_schema_metadata({"k": "v"})
    assert restored(table).equals(table, check_metadata=True)
    batch = table.to_batches()[0]
    assert restored(batch).equals(batch)
    assert json.loads(canonical(table).body) == [{"a": 1, "b": ["x"]}, {"a": None, "b": []}]
