"""The PostgreSQL schema of the audit, legal holds, subjects: one migration."""

from __future__ import annotations

AUDIT: tuple[str, ...] = ()
