"""What the PostgreSQL index says of itself."""

from __future__ import annotations

import secrets

from callslip.stacks.checkops import CheckIndex, IndexFacts
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
