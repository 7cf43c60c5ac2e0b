"""The PostgreSQL schema of memory: one migration."""

from __future__ import annotations

MEMORY: tuple[str, ...] = ()
