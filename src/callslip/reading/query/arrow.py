"""Columns of plain Python buffers, offered to DuckDB by the Arrow C stream interface.

The interface is three C structures and a capsule, so it takes `ctypes` and no library. Nothing is
copied: DuckDB reads the very buffers that the columns keep, each time a query runs. There is no
table inside the engine, hence none that another query could reach.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Batch", "Field", "Stream"]


@dataclass(frozen=True, slots=True)
class Field:
    """A column's name and its Arrow format: `l` int64, `g` float64, `c` int8, `u` UTF-8 text,
    `d:38,0` a decimal of 38 digits."""

    name: str
    format: str


@dataclass(frozen=True, slots=True)
class Batch:
    """So many rows: for each field its buffers, the validity bitmap (or None) first."""

    rows: int
    columns: tuple[tuple[Any, ...], ...]


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_pointer = ctypes.c_void_p
_release_schema_type = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))
_release_array_type = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_get_schema_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))
_get_next_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))
_last_error_type = ctypes.CFUNCTYPE(_pointer, ctypes.POINTER(_Stream))
_release_stream_type = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))
_destructor_type = ctypes.CFUNCTYPE(None, _pointer)

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", _pointer),
    ("release", _release_schema_type),
    ("private_data", _pointer),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(_pointer)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", _pointer),
    ("release", _release_array_type),
    ("private_data", _pointer),
]
_Stream._fields_ = [
    ("get_schema", _get_schema_type),
    ("get_next", _get_next_type),
    ("get_last_error", _last_error_type),
    ("release", _release_stream_type),
    ("private_data", _pointer),
]

_NULLABLE = 2


# The owner of all memory is the `Stream`, which outlives the query; so releasing only marks the
# structure as released, which is what the interface asks for.
def _release_schema_now(schema: Any) -> None:
    schema.contents.release = _release_schema_type()


def _release_array_now(array: Any) -> None:
    array.contents.release = _release_array_type()


def _release_stream_now(stream: Any) -> None:
    stream.contents.release = _release_stream_type()


_release_schema = _release_schema_type(_release_schema_now)
_release_array = _release_array_type(_release_array_now)
_release_stream = _release_stream_type(_release_stream_now)
_no_error = _last_error_type(lambda _stream: None)


def _address(buffer: Any) -> int:
    """Where a buffer's bytes are. The caller keeps the buffer."""
    if isinstance(buffer, bytes):
        # A bytes object's own data: ctypes offers no writable view of it, nor do we need one.
        return ctypes.cast(ctypes.c_char_p(buffer), _pointer).value or 0
    address: int = buffer.buffer_info()[0]
    return address


class Stream:
    """Batches of columns that any reader of the Arrow C stream interface can scan, many times.

    Keep it until the query that reads it is over: DuckDB reads its memory in place.
    """

    def __init__(self, fields: Sequence[Field], batches: Sequence[Batch]) -> None:
        self._fields = tuple(fields)
        self._batches = tuple(batches)
        self._names = [(field.format.encode(), field.name.encode()) for field in self._fields]
        self._kept: list[Any] = []

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        stream = _Stream()
        at = 0

        def get_schema(_stream: Any, out: Any) -> int:
            self._fill_schema(out.contents)
            return 0

        def get_next(_stream: Any, out: Any) -> int:
            nonlocal at
            if at == len(self._batches):
                out.contents.release = _release_array_type()
                return 0
            self._fill_array(out.contents, self._batches[at])
            at += 1
            return 0

        stream.get_schema = _get_schema_type(get_schema)
        stream.get_next = _get_next_type(get_next)
        stream.get_last_error = _no_error
        stream.release = _release_stream
        self._kept.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [_pointer, ctypes.c_char_p, _pointer]
        capsule: object = new(ctypes.addressof(stream), b"arrow_array_stream", None)
        return capsule

    def close(self) -> None:
        """Let go of the memory that scans were lent. No scan may be under way."""
        self._kept.clear()

    def _fill_schema(self, out: Any) -> None:
        count = len(self._fields)
        children = (_Schema * count)()
        for child, (format, name) in zip(children, self._names, strict=True):
            child.format, child.name, child.flags = format, name, _NULLABLE
            child.release = _release_schema
        pointers = (ctypes.POINTER(_Schema) * count)(*map(ctypes.pointer, children))
        out.format, out.name, out.metadata, out.flags = b"+s", b"", None, 0
        out.n_children, out.children, out.dictionary = count, pointers, None
        out.release, out.private_data = _release_schema, None
        self._kept += [children, pointers]

    def _fill_array(self, out: Any, batch: Batch) -> None:
        count = len(self._fields)
        children = (_Array * count)()
        for child, buffers in zip(children, batch.columns, strict=True):
            addresses = (_pointer * len(buffers))(
                *(None if buffer is None else _address(buffer) for buffer in buffers)
            )
            child.length, child.offset = batch.rows, 0
            child.null_count = 0 if buffers[0] is None else -1
            child.n_buffers, child.buffers = len(buffers), addresses
            child.release = _release_array
            self._kept.append(addresses)
        pointers = (ctypes.POINTER(_Array) * count)(*map(ctypes.pointer, children))
        none = (_pointer * 1)(None)
        out.length, out.null_count, out.offset = batch.rows, 0, 0
        out.n_buffers, out.buffers = 1, none
        out.n_children, out.children, out.dictionary = count, pointers, None
        out.release, out.private_data = _release_array, None
        self._kept += [children, pointers, none]
