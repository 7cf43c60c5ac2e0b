"""Tables of other libraries: nothing of them is lost, and their rows are JSON records."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from callslip import Opaque, ResultStore
from callslip.errors import NotRestorable
from callslip.masks import last4
from callslip.reading.frames import made as made_frame
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
        "periods": pandas.DataFrame(
            {"p": pandas.PeriodIndex(["2026-01", None] * 3, freq="M"), "n": range(n)},
            index=pandas.period_range("2026Q1", periods=n, freq="Q", name="q"),
        ),
        "intervals": pandas.DataFrame({"i": pandas.interval_range(0, n, closed="left")}),
        "sparse": pandas.DataFrame(
            {
                "s": pandas.arrays.SparseArray([0, 0, 1] * 2),
                "f": pandas.arrays.SparseArray([1.5, numpy.nan] * 3, kind="block"),
            }
        ),
        "arrow": pandas.DataFrame({"a": pandas.array([1, None] * 3, dtype="int64[pyarrow]")}),
        "objects": pandas.DataFrame({"o": pandas.Series(["a", "b"] * 3, dtype=object)}),
        "no doubles": pandas.DataFrame({"a": range(n)}).set_flags(allows_duplicate_labels=False),
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


def test_a_column_of_periods_or_intervals_is_shown_as_text() -> None:
    frame = pandas.DataFrame(
        {
            "p": pandas.period_range("2026-01", periods=2, freq="M"),
            "i": pandas.interval_range(0, 2),
            "s": pandas.arrays.SparseArray([0, 1]),
        }
    )
    assert json.loads(canonical(frame).body) == [
        {"p": "2026-01", "i": "(0, 1]", "s": 0},
        {"p": "2026-02", "i": "(1, 2]", "s": 1},
    ]


@pytest.mark.parametrize(
    "series",
    [
        pandas.Series(range(200), name="x"),
        pandas.Series([1.5, None, float("inf")] * 50, index=list("abc") * 50),
        pandas.Series(["a", None, "b"], dtype=object),
        pandas.Series(pandas.period_range("2026-01", periods=3, freq="Q"), name=("a", 1)),
    ],
)
def test_a_pandas_series_comes_back_equal_and_is_shown_as_rows(series: Any) -> None:
    content = canonical(series)
    pandas.testing.assert_series_equal(restored(series), series)
    assert len(json.loads(content.body)) == len(series)


def test_the_index_of_a_series_is_shown_with_it() -> None:
    counts = pandas.Series([3, 1], index=["x", "y"])
    rows = [{"index": "x", "value": 3}, {"index": "y", "value": 1}]
    assert json.loads(canonical(counts).body) == rows


@pytest.mark.parametrize(
    "array",
    [
        numpy.arange(3000.0).reshape(300, 10),
        numpy.array([1.5, numpy.nan, -numpy.inf], dtype="f4"),
        numpy.array([[1, 2], [3, 4]], dtype=">u2"),
        numpy.array(["2026-01-01", "NaT"], dtype="M8[ns]"),
        numpy.array([1, None, "a", [2]], dtype=object),
        numpy.array([b"a", b"bc"]),
        numpy.array(["a", "\ud800"]),
        numpy.array([1 + 2j]),
        numpy.array(7),
        numpy.zeros((0, 3)),
    ],
)
def test_a_numpy_array_comes_back_equal_and_no_value_of_it_is_left_out(array: Any) -> None:
    content = canonical(array)
    made = restore(content.form, content.body, content.twin)
    assert (made.dtype, made.shape, type(made)) == (array.dtype, array.shape, type(array))
    numpy.testing.assert_array_equal(made, array)
    shown = json.loads(content.body.decode("utf-8", "surrogatepass"))
    assert numpy.shape(numpy.array(shown, dtype=object))[:1] == array.shape[:1]


def test_a_polars_series_comes_back_equal() -> None:
    series = polars.Series("x", list(range(200)))
    assert restored(series).equals(series)
    assert len(json.loads(canonical(series).body)) == 200


def test_what_is_kept_only_as_its_repr_says_so() -> None:
    lazy = polars.DataFrame({"a": [1]}).lazy()
    content = canonical(lazy)
    assert b"only the repr is kept of" in content.body
    assert type(restore(content.form, content.body, content.twin)).__name__ == "Opaque"


def test_a_table_with_half_a_surrogate_pair_comes_back_equal() -> None:
    texts = pandas.Series(["x", "\ud800y"], dtype=object)
    frame = pandas.DataFrame({"a": texts, "b": [1, 2]})
    frame.index = pandas.Index(texts, dtype=object)
    made = restored(frame)
    assert made["a"].tolist() == texts.tolist() == made.index.tolist()
    assert (made.dtypes == frame.dtypes).all()


def test_rows_with_half_a_surrogate_pair_become_a_table_or_say_why_not() -> None:
    rows = [json.dumps({"a": "\ud800"}).encode()] * 2
    assert made_frame("pandas", rows, ["a"], texts_only=False)["a"].tolist() == ["\ud800"] * 2
    for kind in ("polars", "arrow"):
        with pytest.raises(NotRestorable, match="surrogate"):
            made_frame(kind, rows, ["a"], texts_only=False)


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


@pytest.mark.parametrize("name", sorted(frames()))
def test_a_table_inside_a_value_is_kept_as_one_that_stands_alone(name: str) -> None:
    table = frames()[name]
    content = canonical({"orders": table, "total": 5})
    assert json.loads(content.body)["orders"] == json.loads(canonical(table).body)
    back = restore(content.form, content.body, content.twin)
    pandas.testing.assert_frame_equal(back["orders"], table)
    assert back["total"] == 5


def test_tables_of_every_library_inside_of_containers_come_back() -> None:
    series = pandas.Series([1, 2], name="s", index=["a", "b"])
    value = {
        "pair": (pandas.DataFrame({"n": [1]}), series),
        "polars": [polars.DataFrame({"n": [1]}), polars.Series("p", [2])],
        "arrow": pyarrow.table({"n": [1]}),
        "array": {"deep": numpy.array([[1.5, float("nan")]])},
    }
    view = json.loads(canonical(value).body)
    assert view["pair"] == [[{"n": 1}], [{"index": "a", "s": 1}, {"index": "b", "s": 2}]]
    assert view["array"] == {"deep": [[1.5, None]]}
    back = restored(value)
    pandas.testing.assert_series_equal(back["pair"][1], series)
    assert back["polars"][0].equals(value["polars"][0])
    assert back["arrow"] == value["arrow"]
    assert repr(back["array"]["deep"]) == repr(value["array"]["deep"])
    assert canonical(value) == canonical(value)


def test_a_table_that_occurs_twice_is_one_again() -> None:
    table = pandas.DataFrame({"n": range(100)})
    content = canonical({"first": table, "all": [table] * 50})
    assert len(content.twin or b"") < 5_000
    back = restore(content.form, content.body, content.twin)
    assert back["first"] is back["all"][49]


def test_tables_inside_of_themselves_and_of_each_other_end() -> None:
    array = numpy.empty(2, dtype=object)
    array[0], array[1] = {"it": array}, [array]
    back = restored({"array": array})["array"]
    assert type(back[0]["it"]) is Opaque
    table = pandas.DataFrame({"n": [1]})
    for _ in range(12):
        table = pandas.DataFrame({"n": [table, [table]]}, dtype=object)
    assert len(canonical({"table": table}).body) < 10_000


def test_a_column_inside_a_table_inside_a_value_is_masked(tmp_path: Path) -> None:
    people = pandas.DataFrame({"ssn": [f"123-45-{n:04d}" for n in range(50)]})
    session = ResultStore(tmp_path / "s", mask={"ssn": last4}).session("s")
    id = session.put({"people": people, "more": 1}, tool="crm").id
    assert session.query(id, limit=1).text == '{"ssn":"***-**-0000"}'
    assert "123-45" not in str(session.read(id, limit=100))
    assert list(session.load(id)["people"]["ssn"]) == list(people["ssn"])
