"""The PostgreSQL schema of keys: one migration.

A table of its own: a dump that leaves its data out (`--exclude-table-data=*.wrapped_keys`) holds
nothing that opens what it holds. Names may be longer than an index takes: the index is of their
hashes, and of their first bytes for the order.
"""

from __future__ import annotations

KEYS: tuple[str, ...] = (
    "CREATE TABLE wrapped_keys (name bytea NOT NULL, wrapped bytea NOT NULL, made_at float8 NOT NULL)",
    "CREATE UNIQUE INDEX wrapped_keys_name ON wrapped_keys (sha256(name))",
    "CREATE INDEX wrapped_keys_order ON wrapped_keys (substring(name FROM 1 FOR 256))",
    "ALTER TABLE store ADD COLUMN sealed bytea",
)
