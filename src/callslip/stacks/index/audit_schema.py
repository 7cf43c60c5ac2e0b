"""The SQLite schema of the audit, legal holds, subjects and the retention of single rows: one migration."""

from __future__ import annotations

AUDIT: tuple[str, ...] = ()
