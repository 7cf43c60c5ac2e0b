"""A pandas table taken apart into its columns, and put together again: each its buffer and dtype.

pandas is imported only inside; nothing is pickled. What may live here: the exact form of pandas.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from callslip.stacks import exact

__all__ = ["apart", "together"]


def apart(frame: Any) -> tuple[list[Any], list[list[Any]], bytes]:
    """The names and values of the columns of a DataFrame, index fields first, and the exact form.

    A column of a dtype that is not known here is kept as its texts."""
    if type(frame.attrs) is not dict:
        raise TypeError("a table with attributes of its own")
    columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
    parts = {
        "columns": _index(frame.columns),
        "index": _index(frame.index),
        "data": [_array(column.array) for column in columns],
        "unique": frame.flags.allows_duplicate_labels is False,
        "attrs": exact.encode(frame.attrs) if frame.attrs else None,
    }
    names: list[Any] = list(frame.columns)
    values = [_values(column) for column in columns]
    levels = frame.index.names
    for at in reversed(range(len(levels))):
        if levels[at] is not None:
            names.insert(0, levels[at])
            values.insert(0, _level(frame.index.get_level_values(at)))
    return names, values, msgspec.msgpack.encode(parts)


def _values(column: Any) -> list[Any]:
    if column.dtype.kind in "Mm":
        return [
            None if gone else item.isoformat()
            for item, gone in zip(column, column.isna(), strict=True)
        ]
    array = column.array
    items: list[Any] = (array.to_dense() if hasattr(array, "sp_values") else column).tolist()
    return [str(item) if type(item).__name__ in ("Period", "Interval") else item for item in items]


def _level(index: Any) -> list[Any]:
    items = list(index)
    return [str(item) if type(item).__name__ in ("Period", "Interval") else item for item in items]


def _index(index: Any) -> Any:
    import pandas  # type: ignore[import-untyped,unused-ignore]

    if isinstance(index, pandas.RangeIndex):
        name = exact.encode(index.name)
        return ["range", index.start, index.stop, index.step, name]
    if isinstance(index, pandas.MultiIndex):
        names = exact.encode(list(index.names))
        levels = [_index(level) for level in index.levels]
        return ["multi", levels, [list(map(int, codes)) for codes in index.codes], names]
    freq = getattr(index, "freqstr", None) if index.dtype.kind in "Mm" else None
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
    if isinstance(dtype, pandas.PeriodDtype):
        return ["period", numpy.asarray(array.asi8).tobytes(), str(dtype)]
    if isinstance(dtype, pandas.IntervalDtype):
        return ["interval", _index(array.left), _index(array.right), array.closed]
    if isinstance(dtype, pandas.SparseDtype):
        fill = _python(_scalar(array.fill_value))
        return [
            "sparse",
            _array(pandas.array(array.to_dense(), dtype=dtype.subtype)),
            array.kind,
            exact.encode(fill),
        ]
    if isinstance(dtype, pandas.ArrowDtype):
        import pyarrow  # type: ignore[import-untyped,unused-ignore]

        table = pyarrow.table({"0": array.__arrow_array__()})
        sink = io.BytesIO()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write(table)
        return ["arrow", sink.getvalue()]
    gone = numpy.asarray(pandas.isna(array))
    texts = [None if lost else str(item) for item, lost in zip(array, gone, strict=True)]
    return ["object", exact.encode(texts)]


def _scalar(item: Any) -> Any:
    return item.item() if hasattr(type(item), "item") else item


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


def together(twin: bytes) -> Any:
    import pandas

    parts = msgspec.msgpack.decode(twin)
    index = _to_index(parts["index"])
    data = {at: _series(_to_array(part), index) for at, part in enumerate(parts["data"])}
    frame = pandas.DataFrame(data, index=index)
    frame.columns = _to_index(parts["columns"])
    if parts.get("unique"):
        frame.flags.allows_duplicate_labels = False
    if parts["attrs"] is not None:
        frame.attrs = exact.decode(parts["attrs"])
    return frame


def _series(array: Any, index: Any) -> Any:
    import pandas

    # Without its dtype named, an array of objects that are all texts becomes one of texts.
    return pandas.Series(array, index=index, dtype=array.dtype)


def _to_index(parts: Any) -> Any:
    import pandas

    if parts[0] == "range":
        return pandas.RangeIndex(*parts[1:4], name=exact.decode(parts[4]))
    if parts[0] == "multi":
        levels = [_to_index(level) for level in parts[1]]
        return pandas.MultiIndex(levels=levels, codes=parts[2], names=exact.decode(parts[3]))
    array = _to_array(parts[1])
    index = pandas.Index(array, dtype=array.dtype, name=exact.decode(parts[2]))
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
    if kind in _MADE:
        return _MADE[kind](parts)
    data = numpy.frombuffer(parts[1], dtype=parts[2]).copy()
    mask = numpy.frombuffer(parts[3], dtype=bool).copy()
    made = pandas.array(data, dtype=parts[4])
    made[mask] = pandas.NA
    return made


def _period(parts: Any) -> Any:
    import numpy
    import pandas

    ordinals = numpy.frombuffer(parts[1], dtype="i8").copy()
    return pandas.arrays.PeriodArray(ordinals, dtype=pandas.api.types.pandas_dtype(parts[2]))


def _interval(parts: Any) -> Any:
    import pandas

    ends = _to_index(parts[1]), _to_index(parts[2])
    return pandas.arrays.IntervalArray.from_arrays(*ends, closed=parts[3])


def _sparse(parts: Any) -> Any:
    import numpy
    import pandas

    dense = numpy.asarray(_to_array(parts[1]))
    fill = exact.decode(parts[3])
    return pandas.arrays.SparseArray(dense, fill_value=fill, kind=parts[2])


def _arrow(parts: Any) -> Any:
    import pandas
    import pyarrow

    column = pyarrow.ipc.open_stream(pyarrow.py_buffer(parts[1])).read_all().column(0)
    return pandas.arrays.ArrowExtensionArray(column)


_MADE: Final[dict[str, Callable[[Any], Any]]] = {
    "period": _period,
    "interval": _interval,
    "sparse": _sparse,
    "arrow": _arrow,
}
