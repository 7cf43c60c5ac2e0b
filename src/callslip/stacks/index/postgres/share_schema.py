"""The PostgreSQL schema of sharing: one migration."""

from __future__ import annotations

SHARES: tuple[str, ...] = ()
