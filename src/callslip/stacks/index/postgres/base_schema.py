"""The PostgreSQL schema of results, payloads, sessions and files: the first migration."""

from __future__ import annotations

BASE: tuple[str, ...] = ()
