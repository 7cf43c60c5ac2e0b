"""One transaction in as few round trips as it has statements.

The opening words go with the first statement and the commit, where the caller knows which is the
last, with the last: an operation of one statement is one round trip. psycopg's simple protocol
carries them, which any pooler takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg

from callslip.limits import INDEX_LOCK_SECONDS
from callslip.stacks.index.postgres.pool import Connection

Row = tuple[Any, ...]


class Answer(list[Row]):
    """The rows of one statement, and how many it touched."""

    rowcount: int = 0

    def fetchone(self) -> Row | None:
        """The first row, if there is one."""
        return self[0] if self else None

    def fetchall(self) -> list[Row]:
        """All rows."""
        return self


class Db:
    """The transaction that an operation runs in. `%s` marks a parameter, `%%` a percent sign.

    `tenant` (as `rows.to_blob` has it) is the only one whose rows its statements can see, whatever
    they ask for; None sees all (`wall`).
    """

    def __init__(self, connection: Connection, schema: str, tenant: bytes | None) -> None:
        self.connection = connection
        self.schema = schema
        self.tenant = tenant
        self.open = False
        self.done = False
        self.begin = "BEGIN"
        self.patience = INDEX_LOCK_SECONDS
        """Seconds that a statement waits for others' locks. Set before the first statement."""
        self.committing = False
        """Whether a commit was sent: from then on a lost connection leaves it unknown."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Answer:
        """Run one statement and fetch its rows."""
        return self._send(sql, values, last=False)

    def finish(self, sql: str, values: Sequence[Any] = ()) -> Answer:
        """Run the last statement of the transaction, and commit in the same round trip."""
        return self._send(sql, values, last=True)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("execute a statement and iterate over its answer")

    def commit(self) -> None:
        """Commit, unless that was done with the last statement, or nothing was asked."""
        if self.open and not self.done:
            self.committing = True
            self.connection.execute("COMMIT")
        self.done = True

    def rollback(self) -> None:
        """Undo all of it. The connection is closed where that cannot be said to the server."""
        self.done = True
        if self.connection.closed:
            return
        idle = psycopg.pq.TransactionStatus.IDLE
        if self.connection.pgconn.transaction_status != idle:
            try:
                self.connection.execute("ROLLBACK")
            except psycopg.Error:
                self.connection.close()

    def _send(self, sql: str, values: Sequence[Any], *, last: bool) -> Answer:
        assert not self.done, "the transaction is over"
        cursor = psycopg.ClientCursor(self.connection)
        text = cursor.mogrify(sql, values) if values else sql
        place = 0
        if not self.open:
            text = f"{self.begin}; {self._opening()}; {text}"
            place = 2
        if last:
            text += "; COMMIT"
            self.committing = True
        self.open, self.done = True, last
        cursor.execute(text)
        for _ in range(place):
            cursor.nextset()
        answer = Answer(cursor.fetchall() if cursor.description else ())
        answer.rowcount = cursor.rowcount
        cursor.close()
        return answer

    def _opening(self) -> str:
        left = max(1, int((self.connection.until - time.monotonic()) * 1000))
        return opening(self.schema, self.tenant, left, self.patience, self.settings())

    def settings(self) -> dict[str, str]:
        """What the transaction says of itself besides, to triggers."""
        return {}


def opening(
    schema: str,
    tenant: bytes | None,
    milliseconds: int,
    patience: float,
    more: Mapping[str, str] | None = None,
) -> str:
    """What every transaction begins with. It holds for this transaction alone."""
    wait = min(milliseconds, max(1, int(patience * 1000)))
    settings = {
        "search_path": f'"{schema}"',
        "statement_timeout": f"{milliseconds}ms",
        "lock_timeout": f"{wait}ms",
        # A worker that was stopped in the middle must not hold locks for ever.
        "idle_in_transaction_session_timeout": f"{milliseconds}ms",
        # Every statement here has its index, and stops where it has enough. What was planned while
        # a table was empty must not read all of it when it is full; no query is worth compiling.
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        "jit": "off",
        "callslip.tenant": "" if tenant is None else tenant.hex(),
        "callslip.all": "yes" if tenant is None else "",
        **(more or {}),
    }
    calls = (f"set_config('{name}', '{value}', true)" for name, value in settings.items())
    return "SELECT " + ", ".join(calls)
