"""Transactions for who brings SQL of his own, as LangGraph's checkpoint saver does: in our schema,
on our connections, within our bounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import psycopg
from psycopg.rows import dict_row

from callslip.limits import INDEX_LOCK_SECONDS, INDEX_SECONDS, MIGRATION_SECONDS
from callslip.stacks.index.postgres.pool import Connection
from callslip.stacks.index.postgres.server import Server, unavailable
from callslip.stacks.index.postgres.transaction import Db, opening


@contextmanager
def cursor(server: Server, *, pipeline: bool = False) -> Iterator[psycopg.Cursor[dict[str, Any]]]:
    """A cursor in a transaction of at most `limits.INDEX_SECONDS`, rows as dicts; committed in the
    end. Raises StoreUnavailable; nothing of the transaction is done then, unless the very commit
    was cut off."""
    until = time.monotonic() + INDEX_SECONDS
    server.transact(lambda db: None, tenant=None, again=True)  # brings the schema to today's
    try:
        with ExitStack() as lent:
            connection = _begun(server, until, lent)
            try:
                sent = connection.pipeline() if pipeline else nullcontext()
                with sent, psycopg.Cursor(connection, row_factory=dict_row) as own:
                    own.format = psycopg.pq.Format.BINARY
                    yield own
                connection.execute("COMMIT")
            except BaseException:
                Db(connection, server.address.schema, None).rollback()
                raise
    except psycopg.Error as error:
        raise unavailable(error, server.address.shown) from None


def _begun(server: Server, until: float, lent: ExitStack) -> Connection:
    """A connection in a transaction. One that was lost while it was idle is replaced by another."""
    for last in (False, True):
        with ExitStack() as held:
            connection = held.enter_context(server.pool.borrow(until))
            left = max(1, int((until - time.monotonic()) * 1000))
            begin = opening(server.address.schema, None, left, INDEX_LOCK_SECONDS)
            try:
                connection.execute(f"BEGIN; {begin}")
            except psycopg.OperationalError:
                server.pool.close()  # the others were opened before it, too
                if last:
                    raise
            else:
                lent.push(held.pop_all())
                return connection
    raise AssertionError("the second connection was neither begun nor refused")


def migrated(server: Server, lock: str, migrate: Callable[[Db], None]) -> None:
    """Run migrations of somebody else's tables in our schema, one worker at a time."""

    def work(db: Db) -> None:
        db.execute(
            "SELECT set_config('lock_timeout', '0', true),"
            " set_config('enable_seqscan', 'on', true),"
            " pg_advisory_xact_lock(hashtextextended(current_schema() || %s, 1874))",
            (f" {lock}",),
        )
        migrate(db)

    server.transact(work, tenant=None, again=True, seconds=MIGRATION_SECONDS)
