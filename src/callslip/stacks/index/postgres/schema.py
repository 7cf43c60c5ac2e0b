"""The PostgreSQL schema of the index, as migrations that many workers may race.

Why it is as it is: `docs/decisions/0016-postgres.md`. Text of a caller is kept as BYTEA
(`rows.to_blob`): NUL and lone surrogates survive, and equality is equality of bytes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psycopg

from callslip.errors import SettingsError
from callslip.limits import MIGRATION_SECONDS
from callslip.stacks.index.postgres.audit_schema import AUDIT
from callslip.stacks.index.postgres.base_schema import BASE
from callslip.stacks.index.postgres.key_schema import KEYS
from callslip.stacks.index.postgres.memory_schema import MEMORY
from callslip.stacks.index.postgres.read_schema import READS
from callslip.stacks.index.postgres.revive_schema import REVIVED
from callslip.stacks.index.postgres.share_schema import SHARES
from callslip.stacks.index.postgres.transaction import Db

if TYPE_CHECKING:
    from callslip.stacks.index.address import Address
    from callslip.stacks.index.postgres.pool import Connection

MIGRATIONS: tuple[tuple[str, ...], ...] = (BASE, MEMORY, AUDIT, SHARES, KEYS, READS, REVIVED)
"""Each entry brings a schema from its position to the next version. Append, never edit."""


def version_of(connection: Connection, address: Address) -> int | None:
    """The version of the schema in that database; None where there is none."""
    db = Db(connection, address.schema, None)
    try:
        (there,) = db.execute("SELECT to_regclass('schema_version')")[0]
        if there is None:
            return None
        (version,) = db.execute("SELECT version FROM schema_version")[0]
        return int(version)
    finally:
        db.rollback()


def check(version: int | None, address: Address) -> bool:
    """Whether that version is today's. Raises SettingsError for one of a newer callslip."""
    if version is not None and version > len(MIGRATIONS):
        raise SettingsError(
            f"the schema {address.schema!r} in {address.shown} was written by a newer callslip "
            f"(version {version}, this one knows {len(MIGRATIONS)}); upgrade callslip, or give "
            "another schema with ?schema="
        )
    return version == len(MIGRATIONS)


def migrate(connection: Connection, address: Address) -> None:
    """Bring the schema to today's version, in one transaction; a racing worker finds it done."""
    if check(version_of(connection, address), address):
        return
    before, connection.until = connection.until, time.monotonic() + MIGRATION_SECONDS
    db = Db(connection, address.schema, None)
    try:
        # Workers take turns; the lock goes with the transaction.
        db.execute(
            "SELECT set_config('lock_timeout', '0', true),"
            " pg_advisory_xact_lock(hashtextextended(%s, 1874))",
            (f"callslip {address.schema}",),
        )
        known = db.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (address.schema,))
        if not known:
            db.execute(f'CREATE SCHEMA IF NOT EXISTS "{address.schema}"')
        db.execute(
            "CREATE TABLE IF NOT EXISTS schema_version (one boolean PRIMARY KEY DEFAULT true"
            " CHECK (one), version integer NOT NULL)"
        )
        (version,) = db.execute("SELECT coalesce(max(version), 0) FROM schema_version")[0]
        if not check(version, address):
            for statements in MIGRATIONS[version:]:
                if statements:
                    db.execute(";\n".join(statements))
            db.execute(
                "INSERT INTO schema_version (version) VALUES (%s)"
                " ON CONFLICT (one) DO UPDATE SET version = excluded.version",
                (len(MIGRATIONS),),
            )
        db.commit()
    except psycopg.errors.InsufficientPrivilege:
        db.rollback()
        raise SettingsError(
            f"the role of the index's URL may not make or change the schema {address.schema!r} in "
            f"{address.shown}; let its owner run once, or: GRANT CREATE ON DATABASE … TO …"
        ) from None
    except BaseException:
        db.rollback()
        raise
    finally:
        connection.until = before
