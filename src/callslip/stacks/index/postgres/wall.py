"""The second wall between tenants: row-level security, as statements for a migration."""

from __future__ import annotations


def wall(table: str, column: str = "tenant") -> tuple[str, ...]:
    """The statements that let a transaction see a table's rows of its own tenant alone, or, where
    it is for the whole store, all of them. Owners too, but not superusers."""
    own = f"{column} = decode(current_setting('callslip.tenant', true), 'hex')"
    every = "current_setting('callslip.all', true) = 'yes'"
    return (
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY own_tenant ON {table} USING ({own} OR {every})",
    )
