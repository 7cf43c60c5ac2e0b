"""The PostgreSQL schema of keys: one migration."""

from __future__ import annotations

KEYS: tuple[str, ...] = ()
