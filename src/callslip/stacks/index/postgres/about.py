"""What the PostgreSQL index says of itself."""

from __future__ import annotations

import secrets
import time

import psycopg

from callslip.limits import INDEX_SECONDS
from callslip.stacks.checkops import CheckIndex, IndexFacts
from callslip.stacks.index.postgres import schema
from callslip.stacks.index.postgres.server import Server, unavailable
from callslip.stacks.index.postgres.transaction import Db


def facts(db: Db, op: CheckIndex) -> IndexFacts:
    """Do `CheckIndex`: what it writes is a key of no object, and taken back."""
    ask = db.execute if op.write else db.finish
    version, schema, clock = ask(
        "SELECT current_setting('server_version'), (SELECT version FROM schema_version),"
        " extract(epoch FROM clock_timestamp())::float8"
    )[0]
    if op.write:
        db.execute("INSERT INTO garbage (key) VALUES (%s)", (secrets.token_bytes(16),))
        db.rollback()
    return IndexFacts(f"PostgreSQL {version.split()[0]}", schema, clock)


def versions(url: str) -> tuple[int, int]:
    """The version of the schema of that URL, 0 where there is none, and the newest there is.

    Reads only. Raises `SettingsError` for a schema of a newer callslip, and `StoreUnavailable`."""
    server = Server(url)
    try:
        with server.pool.borrow(time.monotonic() + INDEX_SECONDS) as connection:
            found = schema.version_of(connection, server.address)
    except psycopg.Error as error:
        raise unavailable(error, server.address.shown) from None
    finally:
        server.close()
    schema.check(found, server.address)
    return found or 0, len(schema.MIGRATIONS)
