"""What SQLite says it would do for the statements that an index sends."""

from __future__ import annotations

from collections.abc import Iterator

from callslip.stacks.index.sqlite import SqliteIndex


def traced(index: SqliteIndex, sent: list[str]) -> None:
    """From here on, each statement of the index's idle connection is added to `sent`."""
    with index._pool.borrow() as db:
        db.set_trace_callback(sent.append)


def walks_over_tables(index: SqliteIndex, sent: list[str]) -> Iterator[tuple[str, str]]:
    """The steps of those statements that walk over a table, each with its statement."""
    with index._pool.borrow() as db:
        db.set_trace_callback(None)
        for sql in sent:
            if sql.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
                for *_, step in db.execute("EXPLAIN QUERY PLAN " + sql):
                    if step.startswith("SCAN ") and not step.startswith("SCAN (subquery"):
                        yield step, sql
