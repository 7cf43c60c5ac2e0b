"""Tables of pandas, polars and Arrow: JSON records to read, and an exact form to restore.

None of these libraries is imported unless a value is one of theirs, and nothing is pickled: the
exact form is Arrow's own (polars, Arrow), or for pandas each column's buffer with its dtype.

What may live here: tables to records and back.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime, timezone, tzinfo
from math import isnan
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from callslip.errors import NotRestorable
from callslip.stacks import exact
from callslip.stacks.plain import dump_deep, dump_line, is_plain
from callslip.stacks.shown import shown, shown_key

__all__ = ["FORMS", "is_frame", "restored", "taken"]

FORMS: Final = ("pandas", "polars", "arrow")
_CLASSES: Final = {
    ("pandas", "DataFrame"): "pandas",
    ("polars", "DataFrame"): "polars",
    ("pyarrow", "Table"): "arrow",
    ("pyarrow", "RecordBatch"): "arrow",
}
_SCALARS: Final = frozenset({str, int, bool, type(None)})


def is_frame(value: object) -> str:
    """ "pandas", "polars" or "arrow" for a table of that library; "" for anything else."""
    cls = type(value)
    return _CLASSES.get((cls.__module__.partition(".")[0], cls.__name__), "")


def taken(value: Any) -> tuple[str, bytes, bytes] | None:
    """The form, the records as JSON (one a line) and the exact form of a table.

    None for one that has no exact form: a column of a type that is not known here. NaN, NaT and
    missing values are null in the records; dates are ISO. The index of a pandas table is a field
    where it has a name; any index is in the exact form.
    """
    form = is_frame(value)
    try:
        if form == "pandas":
            names, columns, twin = _pandas(value)
        elif form == "polars":
            names, columns = value.columns, [series.to_list() for series in value.get_columns()]
            sink = io.BytesIO()
            value.write_ipc_stream(sink, compat_level=None)
            twin = sink.getvalue()
        else:
            table = value
            names, columns = table.schema.names, [column.to_pylist() for column in table.columns]
            twin = _arrow_bytes(table)
    except Exception:  # noqa: BLE001 - a column of another library's making may refuse anything
        return None
    return form, _records(_unique(names), columns), twin


def _records(names: list[str], columns: list[list[Any]]) -> bytes:
    plain = [_plain(column) for column in columns]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*plain, strict=True)]
    if not rows:
        return b"[]"
    try:
        lines = msgspec.json.Encoder().encode_lines(rows)[:-1].replace(b"\n", b",\n")
        return b"[%b]" % lines
    except (OverflowError, UnicodeEncodeError):
        return b"[%b]" % b",\n".join(map(dump_line, rows))


def _plain(column: list[Any]) -> list[Any]:
    """A column's values as JSON has them."""
    kinds = set(map(type, column))
    if kinds <= _SCALARS:
        return column
    if kinds <= _SCALARS | {float}:
        # Not a number is no value; neither is infinity, which JSON lacks.
        return [
            None if type(item) is float and (isnan(item) or item in (_INF, -_INF)) else item
            for item in column
        ]
    return [item if is_plain(item) else _shown(item) for item in column]


_INF = float("inf")


def _shown(item: Any) -> Any:
    if type(item).__name__ in ("NaTType", "NAType"):
        return None
    if hasattr(type(item), "isoformat"):
        return item.isoformat()
    tree = shown(item).tree
    return tree if is_plain(tree) else dump_deep(tree, lines=False).decode("utf-8", "replace")


def _unique(labels: list[Any]) -> list[str]:
    names: dict[str, None] = {}
    for label in labels:
        name = shown_key(label)
        number, unique = 1, name
        while unique in names:
            number += 1
            unique = f"{name} {number}"
        names[unique] = None
    return list(names)


def _arrow_bytes(table: Any) -> bytes:
    import pyarrow  # type: ignore[import-untyped,unused-ignore]

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    batch = isinstance(table, pyarrow.RecordBatch)
    return (b"B" if batch else b"T") + bytes(sink.getvalue())


# --- pandas ---------------------------------------------------------------------------------------


def _pandas(frame: Any) -> tuple[list[Any], list[list[Any]], bytes]:
    if type(frame.attrs) is not dict or frame.flags.allows_duplicate_labels is not True:
        raise TypeError("a table with flags of its own")
    columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
    parts = {
        "columns": _index(frame.columns),
        "index": _index(frame.index),
        "data": [_array(column.array) for column in columns],
        "attrs": exact.encode(frame.attrs) if frame.attrs else None,
    }
    names: list[Any] = list(frame.columns)
    values = [_values(column) for column in columns]
    levels = frame.index.names
    for at in reversed(range(len(levels))):
        if levels[at] is not None:
            names.insert(0, levels[at])
            values.insert(0, list(frame.index.get_level_values(at)))
    return names, values, msgspec.msgpack.encode(parts)


def _values(column: Any) -> list[Any]:
    if column.dtype.kind in "Mm":
        return [
            None if gone else item.isoformat()
            for item, gone in zip(column, column.isna(), strict=True)
        ]
    found: list[Any] = column.tolist()
    return found


def _index(index: Any) -> Any:
    import pandas  # type: ignore[import-untyped,unused-ignore]

    if isinstance(index, pandas.RangeIndex):
        name = exact.encode(index.name)
        return ["range", index.start, index.stop, index.step, name]
    if isinstance(index, pandas.MultiIndex):
        names = exact.encode(list(index.names))
        levels = [_index(level) for level in index.levels]
        return ["multi", levels, [list(map(int, codes)) for codes in index.codes], names]
    freq = getattr(index, "freqstr", None)
    return ["flat", _array(index.array), exact.encode(index.name), freq]


def _array(array: Any) -> Any:
    """One column or index: the name of its making, and its parts."""
    import numpy
    import pandas

    dtype = array.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        codes = numpy.asarray(array.codes).tobytes()
        return [
            "categorical",
            codes,
            array.codes.dtype.str,
            _index(dtype.categories),
            dtype.ordered,
        ]
    if isinstance(dtype, pandas.DatetimeTZDtype):
        data = numpy.asarray(array.asi8).tobytes()
        # A zone is kept as that of some moment in it.
        return [
            "zoned",
            data,
            dtype.unit,
            exact.encode(datetime(2026, 1, 1, tzinfo=_zone(dtype.tz))),
        ]
    if isinstance(dtype, pandas.StringDtype):
        missing = "nan" if dtype.na_value is not pandas.NA else "na"
        texts = [item if isinstance(item, str) else None for item in array]
        return ["string", exact.encode(texts), dtype.storage, missing]
    if isinstance(dtype, numpy.dtype) or type(array).__name__ == "NumpyExtensionArray":
        values = numpy.ascontiguousarray(numpy.asarray(array))
        dtype = values.dtype
        if dtype.kind in "biufcMm":
            return ["numpy", values.tobytes(), dtype.str]
        if dtype.kind == "O":
            items = [_python(item) for item in values.tolist()]
            return ["object", exact.encode(items)]
    if type(array).__name__ in ("IntegerArray", "FloatingArray", "BooleanArray"):
        data, mask = array._data, array._mask
        return ["masked", data.tobytes(), data.dtype.str, mask.tobytes(), str(dtype)]
    raise TypeError(f"a column of {dtype}")


def _zone(zone: Any) -> tzinfo:
    if type(zone) in (ZoneInfo, timezone):
        found: tzinfo = zone
        return found
    raise TypeError(f"a time zone of {type(zone)}")


_MISSING: Final = {"NaTType": "NaT", "NAType": "NA"}


def _python(item: Any) -> Any:
    """An item of an object column; pandas' own marks of nothing are named."""
    name = _MISSING.get(type(item).__name__)
    if name is not None:
        return {"$pandas": name}
    if type(item) is dict and "$pandas" in item:
        raise TypeError("a key of ours in another's data")
    return item


def restored(form: str, twin: bytes) -> Any:
    """The table again. Raises NotRestorable where its library is not installed."""
    makers: dict[str, Callable[[bytes], Any]] = {
        "pandas": _to_pandas,
        "polars": _to_polars,
        "arrow": _to_arrow,
    }
    try:
        return makers[form](twin)
    except ImportError as error:
        raise NotRestorable(f"this result is a table of {form}, which is not installed") from error


def _to_polars(twin: bytes) -> Any:
    import polars

    return polars.read_ipc_stream(io.BytesIO(twin))


def _to_arrow(twin: bytes) -> Any:
    import pyarrow

    table = pyarrow.ipc.open_stream(pyarrow.py_buffer(twin[1:])).read_all()
    if twin[:1] == b"T":
        return table
    batches = table.to_batches()
    return batches[0] if batches else pyarrow.RecordBatch.from_pylist([], schema=table.schema)


def _to_pandas(twin: bytes) -> Any:
    import pandas

    parts = msgspec.msgpack.decode(twin)
    index = _to_index(parts["index"])
    data = {
        at: pandas.Series(_to_array(part), index=index) for at, part in enumerate(parts["data"])
    }
    frame = pandas.DataFrame(data, index=index)
    frame.columns = _to_index(parts["columns"])
    if parts["attrs"] is not None:
        frame.attrs = exact.decode(parts["attrs"])
    return frame


def _to_index(parts: Any) -> Any:
    import pandas

    if parts[0] == "range":
        return pandas.RangeIndex(*parts[1:4], name=exact.decode(parts[4]))
    if parts[0] == "multi":
        levels = [_to_index(level) for level in parts[1]]
        return pandas.MultiIndex(levels=levels, codes=parts[2], names=exact.decode(parts[3]))
    index = pandas.Index(_to_array(parts[1]), name=exact.decode(parts[2]))
    if parts[3] is not None:
        index.freq = parts[3]
    return index


def _to_array(parts: Any) -> Any:
    import numpy
    import pandas

    kind = parts[0]
    if kind == "numpy":
        return numpy.frombuffer(parts[1], dtype=parts[2]).copy()
    if kind == "object":
        marks = {"NaT": pandas.NaT, "NA": pandas.NA}
        found = numpy.empty(len(items := exact.decode(parts[1])), dtype=object)
        for at, item in enumerate(items):
            marked = type(item) is dict and item.keys() == {"$pandas"}
            found[at] = marks[item["$pandas"]] if marked else item
        return found
    if kind == "string":
        missing = numpy.nan if parts[3] == "nan" else pandas.NA
        dtype = pandas.StringDtype(parts[2], na_value=missing)
        return pandas.array(exact.decode(parts[1]), dtype=dtype)
    if kind == "categorical":
        codes = numpy.frombuffer(parts[1], dtype=parts[2])
        return pandas.Categorical.from_codes(codes, _to_index(parts[3]), ordered=parts[4])
    if kind == "zoned":
        values = numpy.frombuffer(parts[1], dtype="i8").view(f"M8[{parts[2]}]")
        return (
            pandas.DatetimeIndex(values, tz="UTC").tz_convert(exact.decode(parts[3]).tzinfo).array
        )
    data = numpy.frombuffer(parts[1], dtype=parts[2]).copy()
    mask = numpy.frombuffer(parts[3], dtype=bool).copy()
    made = pandas.array(data, dtype=parts[4])
    made[mask] = pandas.NA
    return made
