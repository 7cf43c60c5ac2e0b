"""DuckDB, locked down, as a calculator: it gets columns and a statement of ours, and gives rows.

A connection has a database of its own in memory, with nothing in it. It can reach no file, no URL,
no extension, no setting and no Python variable. Columns are lent to it for one statement. It works
on one thread, so that sums and orders come out the same each time, and it is interrupted when its
time is over.

What may live here: running statements that `compile.py` wrote. No text of a caller.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from callslip.errors import QueryError
from callslip.limits import QUERY_MEMORY_BYTES, QUERY_SECONDS
from callslip.reading.query.arrow import Batch, Field, Stream
from callslip.reading.query.columns import FORMATS
from callslip.reading.query.compile import Compiler
from callslip.reading.query.names import Names

__all__ = ["Run", "streams"]

_POOLED: Final = 4
_MARK = re.compile(r"\$\d+")
_CONFIG: Final[dict[str, str]] = {
    "threads": "1",
    "memory_limit": f"{QUERY_MEMORY_BYTES // 1024**2}MiB",
    "temp_directory": "",
    "max_temp_directory_size": "0B",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
}

_idle: list[tuple[int, Any]] = []
_lock = threading.Lock()


def _connection() -> Any:
    with _lock:
        while _idle:
            owner, found = _idle.pop()
            # Another process's database has none of its threads here.
            if owner == os.getpid():
                return found
    try:
        import duckdb
    except ImportError as error:
        raise QueryError("Queries need the package duckdb: pip install duckdb.") from error
    opened = duckdb.connect(":memory:", config=dict(_CONFIG))
    opened.execute("SET TimeZone='UTC'")
    opened.execute("SET enable_external_access=false")
    opened.execute("SET lock_configuration=true")
    return opened


def _give_back(connection: Any) -> None:
    with _lock:
        if len(_idle) < _POOLED:
            _idle.append((os.getpid(), connection))
            return
    connection.close()


def streams(compiler: Compiler, names: Names) -> dict[str, Stream]:
    """The columns that a compiled statement reads, as the tables it names."""
    found: dict[str, Stream] = {}
    for alias, (_, table) in names.tables.items():
        fields = [Field("n", "l")]
        columns: list[list[tuple[Any, ...]]] = [[(None, part) for part in table.numbers]]
        for (of, _), (bound, name) in compiler.used.items():
            if of != alias or bound.column.kind == "null":
                continue
            fields.append(Field(name, FORMATS[bound.column.kind]))
            columns.append(bound.column.batches)
            for variant, (kind, lent) in bound.column.variants.items():
                fields.append(Field(name + variant[0].replace("t", "s"), FORMATS[kind]))
                columns.append(lent)
        batches = [
            Batch(rows, tuple(column[place] for column in columns))
            for place, rows in enumerate(table.rows or ())
        ]
        found[names.alias_sql(alias)] = Stream(fields, batches)
    return found


class Run:
    """Statements over the same columns, within one limit of time. Use it as a context."""

    def __init__(self, tables: Mapping[str, Stream], seconds: float = QUERY_SECONDS) -> None:
        self._tables = dict(tables)
        self._seconds = seconds
        self._guard = threading.Lock()
        self._over = False
        self._late = False

    def __enter__(self) -> Self:
        self._connection = _connection()
        for name, stream in self._tables.items():
            self._connection.register(name, stream)
        self._timer = threading.Timer(self._seconds, self._interrupt)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *raised: object) -> None:
        with self._guard:
            self._over = True
        self._timer.cancel()
        try:
            for name in self._tables:
                self._connection.unregister(name)
        except Exception:
            self._connection.close()
            raise
        finally:
            for stream in self._tables.values():
                stream.close()
        if raised[0] is None:
            _give_back(self._connection)
        else:
            # Whatever state an interrupted or failed statement left behind is not used again.
            self._connection.close()

    def _interrupt(self) -> None:
        with self._guard:
            if not self._over:
                self._late = True
                self._connection.interrupt()

    def rows(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows that a statement gives; the statement itself limits them.

        Raises QueryError, with one sentence, if it took too long, too much memory, or left the
        range of a number.
        """
        import duckdb

        if self._late:
            raise self._too_long()
        # Only those that this statement names: the engine refuses a value without a place.
        named = {
            str(place): value
            for place, value in enumerate(parameters, 1)
            if f"${place}" in _marks(sql)
        }
        try:
            found: list[tuple[Any, ...]] = self._connection.execute(sql, named).fetchall()
        except duckdb.InterruptException as error:
            raise self._too_long() from error
        except (duckdb.OutOfMemoryException, MemoryError) as error:
            raise QueryError(
                "This query needs too much memory; narrow it with a condition first."
            ) from error
        except (duckdb.OutOfRangeException, duckdb.ConversionException) as error:
            if self._late:
                raise self._too_long() from error
            raise QueryError("A number in this query leaves its range.") from error
        except duckdb.Error as error:
            if self._late:
                raise self._too_long() from error
            raise QueryError("This query could not be computed; write it more simply.") from error
        return found

    def _too_long(self) -> QueryError:
        return QueryError(
            f"This query took more than {self._seconds:g} seconds; narrow it or ask for less."
        )


def _marks(sql: str) -> set[str]:
    return set(_MARK.findall(sql))
