"""The SQLite schema of wrapped data keys, and what else encryption needs: one migration."""

from __future__ import annotations

KEYS: tuple[str, ...] = ()
