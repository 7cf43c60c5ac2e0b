"""Records as a table of another library, which is imported only here and only when asked for."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from callslip.errors import NotRestorable, SettingsError
from callslip.stacks.paths import chars_of

__all__ = ["made"]


def made(kind: str, texts: Sequence[bytes], fields: Sequence[str], *, texts_only: bool) -> Any:
    """A table of these JSON records: every field of any of them is a column, in the order in which
    they occur. With `texts_only` (CSV) the types of columns are read off their texts."""
    rows = [json.loads(chars_of(text)) for text in texts]
    rows = [row if isinstance(row, dict) else {"value": row} for row in rows]
    names = dict.fromkeys(name for row in rows for name in row) or dict.fromkeys(fields)
    try:
        return _made(kind, rows, names, texts_only)
    except UnicodeEncodeError as error:
        if kind == "pandas":
            import pandas  # type: ignore[import-untyped,unused-ignore]

            columns = {name: [row.get(name) for row in rows] for name in names}
            return pandas.DataFrame(columns, dtype=object)
        raise NotRestorable(
            f"these records hold half of a surrogate pair, which {kind} cannot; pandas can"
        ) from error


def _made(kind: str, rows: Sequence[dict[str, Any]], names: Iterable[str], texts_only: bool) -> Any:
    if texts_only and kind in ("pandas", "polars", "arrow"):
        return _typed(kind, rows, list(names))
    columns = {name: [row.get(name) for row in rows] for name in names}
    if kind == "pandas":
        import pandas  # type: ignore[import-untyped,unused-ignore]

        return pandas.DataFrame(columns)
    if kind == "polars":
        import polars

        return polars.DataFrame(columns, strict=False, infer_schema_length=None)
    if kind == "arrow":
        import pyarrow  # type: ignore[import-untyped,unused-ignore]

        return pyarrow.table(columns)
    raise SettingsError(f"kind={kind!r}: give 'pandas', 'polars' or 'arrow'")


def _typed(kind: str, rows: Sequence[dict[str, Any]], names: Sequence[str]) -> Any:
    """The library's own reader of CSV, given the cells in one dialect."""
    import csv

    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([row.get(name, "") for name in names] for row in rows)
    if kind == "pandas":
        import pandas  # type: ignore[import-untyped,unused-ignore]

        return pandas.read_csv(io.StringIO(out.getvalue()))
    data = out.getvalue().encode("utf-8", "replace")
    if kind == "polars":
        import polars

        return polars.read_csv(io.BytesIO(data), infer_schema_length=None)
    from pyarrow import csv as arrow_csv  # type: ignore[import-untyped,unused-ignore]

    return arrow_csv.read_csv(io.BytesIO(data))
