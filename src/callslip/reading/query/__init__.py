"""Questions about records: which match, in what order, how many in each group.

The condition comes from a model, so nothing of its text reaches an engine: it is parsed, each node
is looked at, and SQL of our own is written for those that are known (`guard`, `compile`). Columns
are decoded when a query first names them (`pull`, `columns`, `table`), and lent to DuckDB for one
statement (`arrow`, `engine`). What is shown of a record is its own bytes.

What may live here: queries over records, as flows. No I/O but through the source of the records.
"""

from __future__ import annotations

from callslip.reading.query.export import export, export_select, numbers
from callslip.reading.query.rows import query
from callslip.reading.query.select import Named, Select, select
from callslip.reading.query.table import Source, Table, Tables

__all__ = [
    "Named",
    "Select",
    "Source",
    "Table",
    "Tables",
    "export",
    "export_select",
    "numbers",
    "query",
    "select",
]
