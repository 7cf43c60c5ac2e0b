"""Records as text: read to be counted, or cut to be shown. Pure."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from callslip.window.columns import typed
from callslip.window.survey.media import media_of_base64

__all__ = ["Row", "csv_rows", "exact_row", "json_rows", "loads", "row_of"]

_CELL: Final = 200
_CELLS: Final = 60


@dataclass(frozen=True, slots=True)
class Row:
    """One record by its number, from 1: its fields as JSON texts, long ones cut and marked so.

    `left` counts the fields beyond those kept.
    """

    number: int
    cells: tuple[tuple[str, str], ...]
    left: int = 0


def loads(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def json_rows(raws: Sequence[bytes]) -> list[dict[str, Any] | None]:
    """JSON records as objects; None for one that is none, or cannot be read."""
    import msgspec

    try:
        read = msgspec.json.decode(b"[%b]" % b",".join(raws))
        if len(read) != len(raws):
            read = list(map(loads, raws))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        # One number beyond a float, one lone surrogate: then one by one, and more patiently.
        read = list(map(loads, raws))
    return [row if type(row) is dict else None for row in read]


def csv_rows(
    raws: Sequence[bytes], fields: Sequence[str], delimiter: str
) -> list[dict[str, Any] | None]:
    """CSV rows as objects, their cells with the types of their columns."""
    cells: list[list[str]] = []
    for raw in raws:
        text = raw.decode("utf-8-sig", "replace").strip("\r\n")
        try:
            cells.append(next(csv.reader([text], delimiter=delimiter), []))
        except csv.Error:
            # A cell beyond the module's field size limit.
            cells.append([])
    columns: list[list[Any]] = []
    for at in range(len(fields)):
        columns.append(typed([row[at] if at < len(row) else "" for row in cells]))
    turned: Iterator[tuple[Any, ...]] = zip(*columns, strict=True) if columns else iter(())
    rows = [dict(zip(fields, values, strict=True)) for values in turned]
    return [row if given else None for row, given in zip(rows, cells, strict=True)]


def exact_row(number: int, raw: bytes) -> Row | None:
    import msgspec

    try:
        parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        every = [(key, bytes(part)) for key, part in parts.items()]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        row = loads(raw)
        return row_of(number, row) if type(row) is dict else None
    cells = tuple((key[:_CELL], _shown(part)) for key, part in every[:_CELLS])
    return Row(number, cells, len(every) - len(cells))


def row_of(number: int, row: Mapping[str, Any]) -> Row:
    cells = tuple(
        (key[:_CELL], _shown(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")))
        for key, value in list(row.items())[:_CELLS]
    )
    return Row(number, cells, len(row) - len(cells))


def _shown(part: bytes) -> str:
    """The JSON text of a cell, exact and on one line if it is short; else what it is, as a string."""
    import msgspec

    if part[:1] in b"[{":
        if len(part) > 4096:
            kind = "a list" if part[:1] == b"[" else "an object"
            return json.dumps(f"… {kind} of {len(part):,} bytes", ensure_ascii=False)
        try:
            part = msgspec.json.format(part, indent=-1)
        except (msgspec.MsgspecError, RecursionError):
            return json.dumps("…", ensure_ascii=False)
        if len(part) > _CELL:
            value = loads(part)
            many = len(value) if isinstance(value, list | dict) else 0
            return json.dumps(
                f"… {'list' if part[:1] == b'[' else 'object'} of {many}", ensure_ascii=False
            )
        return part.decode("utf-8", "replace")
    if len(part) <= _CELL:
        return part.decode("utf-8", "replace")
    if part[:1] == b'"':
        media = media_of_base64(part[1:4097].decode("ascii", "replace").rstrip('"'), len(part) - 2)
        if media is not None:
            what = f"… {media.mime}, {media.size:,} bytes as base64"
            if media.width:
                what = f"… {media.mime}, {media.width}x{media.height} pixels, as base64"
            return json.dumps(what, ensure_ascii=False)
        # Cut a long string before it is read, not inside an escape of it.
        text = _string_head(part)
        return json.dumps(text[: _CELL - 1] + "…", ensure_ascii=False)
    return json.dumps(part[: _CELL // 2].decode("utf-8", "replace") + "…", ensure_ascii=False)


def _string_head(part: bytes) -> str:
    head = part[: 4 * _CELL + 16].decode("utf-8", "ignore").rstrip('"')
    for back in range(13):
        try:
            return str(json.loads(head[: len(head) - back] + '"'))
        except ValueError:
            continue
    return ""
