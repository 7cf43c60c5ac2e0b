"""The SQLite schema of handles that are shared on purpose: one migration."""

from __future__ import annotations

SHARES: tuple[str, ...] = ()
