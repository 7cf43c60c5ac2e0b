"""Schemas of an index that are used by one test after another: making one takes a third of a second."""

from __future__ import annotations

from itertools import count

from callslip.stacks.index.postgres.schema import MIGRATIONS
from tests.servers.postgres import Postgres


class Schemas:
    """Empty schemas in a database whose owner is no superuser."""

    def __init__(self, postgres: Postgres) -> None:
        self.postgres = postgres
        self.database = postgres.new_database(postgres.new_role())
        self._super = postgres.dsn_of(self.database.rpartition("/")[2])
        self._numbers = count(1)
        self._empty: list[str] = []

    def take(self) -> str:
        """The name of one that is empty, or not made yet."""
        return self._empty.pop() if self._empty else f"s{next(self._numbers)}"

    def give(self, schema: str) -> None:
        """It is to be emptied; one that a test changed is dropped."""
        try:
            version = self.postgres.sql(f"SELECT version FROM {schema}.schema_version", self._super)
        except Exception:  # noqa: BLE001 - it was never made, or a test dropped it
            version = []
        if version != [(len(MIGRATIONS),)]:
            self.postgres.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE", self._super)
            return
        # Without the triggers: the audit does not let itself be emptied.
        self.postgres.sql(
            f"""DO $$ DECLARE each text; BEGIN
                SET LOCAL session_replication_role = replica;
                FOR each IN SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'
                    AND tablename <> 'schema_version' LOOP
                    EXECUTE format('DELETE FROM {schema}.%I', each);
                END LOOP;
                INSERT INTO {schema}.store DEFAULT VALUES;
            END $$""",
            self._super,
        )
        self._empty.append(schema)
