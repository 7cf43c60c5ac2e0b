"""Tables of pandas, polars and Arrow: JSON records to read, and an exact form to restore.

None of these libraries is imported unless a value is one of theirs, and nothing is pickled: the
exact form is Arrow's own (polars, Arrow), or for pandas each column's buffer with its dtype.

What may live here: tables to records and back.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from math import isnan
from typing import Any, Final

import msgspec

from callslip.errors import NotRestorable
from callslip.stacks import exact
from callslip.stacks.pandas_parts import apart, together
from callslip.stacks.plain import dump, dump_deep, dump_line, is_plain
from callslip.stacks.shown import shown, shown_key

__all__ = ["FORMS", "is_frame", "restored", "taken"]

FORMS: Final = ("pandas", "polars", "arrow", "pandas series", "polars series", "numpy")
_CLASSES: Final = {
    ("pandas", "DataFrame"): "pandas",
    ("pandas", "Series"): "pandas series",
    ("polars", "DataFrame"): "polars",
    ("polars", "Series"): "polars series",
    ("numpy", "ndarray"): "numpy",
    ("pyarrow", "Table"): "arrow",
    ("pyarrow", "RecordBatch"): "arrow",
}
_SCALARS: Final = frozenset({str, int, bool, type(None)})


def is_frame(value: object) -> str:
    """The form of a table, series or array of these libraries; "" for anything else."""
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
        if form == "numpy":
            return form, *_numpy(value)
        if form in ("pandas series", "polars series"):
            name = value.name if value.name not in (None, "") else "value"
            of_table = of_rows = taken(value.to_frame(name))
            if form == "pandas series" and _tells(value.index):
                # Of a series, the index is half of what it says.
                of_rows = taken(value.rename_axis("index").to_frame(name))
            if of_table is None or of_rows is None:
                return None
            return form, of_rows[1], _named(value.name, of_table[2])
        if form == "pandas":
            names, columns, twin = apart(value)
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


def _tells(index: Any) -> bool:
    return type(index).__name__ not in ("RangeIndex", "MultiIndex") and index.name is None


def _named(name: Any, twin: bytes) -> bytes:
    return msgspec.msgpack.encode([exact.encode(name), twin])


def _numpy(array: Any) -> tuple[bytes, bytes]:
    """An array as nested lists (rows where its dtype has fields), and its buffer."""
    import numpy

    kind = array.dtype.kind
    if kind == "O":
        parts = ["object", exact.encode(array.ravel().tolist())]
    elif kind in "biufcMmUS":
        parts = [array.dtype.str, numpy.ascontiguousarray(array).tobytes()]
    else:
        raise TypeError(f"an array of {array.dtype}")
    values = numpy.datetime_as_string(array) if kind == "M" else array
    tree = values.tolist()
    if kind == "f" and not numpy.isfinite(array).all():
        values = array.astype(float).astype(object)
        values[~numpy.isfinite(array)] = None
        tree = values.tolist()
    elif kind not in "biufU":
        tree = shown(tree).tree
    body = dump(tree) if is_plain(tree) else dump_deep(tree)
    return body, msgspec.msgpack.encode([list(array.shape), *parts])


def _to_numpy(twin: bytes) -> Any:
    import numpy

    shape, dtype, data = msgspec.msgpack.decode(twin)
    if dtype != "object":
        return numpy.frombuffer(data, dtype=dtype).reshape(shape).copy()
    items = exact.decode(data)
    made = numpy.empty(len(items), dtype=object)
    for at, item in enumerate(items):
        made[at] = item
    return made.reshape(shape)


def _to_pandas_series(twin: bytes) -> Any:
    name, table = msgspec.msgpack.decode(twin)
    series = together(table).iloc[:, 0]
    series.name = exact.decode(name)
    return series


def _to_polars_series(twin: bytes) -> Any:
    name, table = msgspec.msgpack.decode(twin)
    return _to_polars(table).to_series(0).rename(exact.decode(name))


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
    if type(item).__name__ in ("Period", "Interval"):
        return str(item)
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


def restored(form: str, twin: bytes) -> Any:
    """The table again. Raises NotRestorable where its library is not installed."""
    makers: dict[str, Callable[[bytes], Any]] = {
        "pandas": together,
        "polars": _to_polars,
        "arrow": _to_arrow,
        "pandas series": _to_pandas_series,
        "polars series": _to_polars_series,
        "numpy": _to_numpy,
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
