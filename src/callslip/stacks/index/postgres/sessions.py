"""Sessions in PostgreSQL, as the reads need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from callslip.stacks.index.postgres.read_schema import SESSION
from callslip.stacks.index.postgres.transaction import Db
from callslip.stacks.index.rows import touch_after

COLUMNS = ", ".join(name for name, _ in SESSION)
WIDTH = len(SESSION)
WHERE = 's.tenant = %s AND s.name = %s AND s."user" = %s'


@dataclass(frozen=True, slots=True)
class Session:
    """A row of `sessions`, as far as the operations need it."""

    n: int
    active_at: float
    ttl: float | None
    expires_at: float | None
    closed: bool
    floor: int
    floor_at: float
    results: int
    dead: int
    held: bool

    def expired(self, now: float) -> bool:
        """Whether its ttl has run out, swept or not. While it is held, it never has."""
        if self.closed or self.held or self.expires_at is None:
            return False
        return self.expires_at < now

    def ended(self, now: float) -> bool:
        """Whether a reader finds nothing in it any more."""
        return self.closed or self.expired(now)

    def live(self, now: float) -> int:
        """How many rows a reader sees, and those that ran out by themselves."""
        return 0 if self.ended(now) else self.results - self.dead

    def due(self, now: float) -> bool:
        """Whether a read now is activity worth a write."""
        return not self.ended(now) and now - self.active_at >= touch_after(self.ttl)


def session_from(row: Sequence[Any]) -> Session:
    """The session of a row that begins with `COLUMNS`."""
    return Session(*row[:WIDTH])


def touch(db: Db, session: Session, now: float) -> None:
    """Count a read as activity, unless the session ended since it was looked up. A writer who has
    it just now counts as activity himself: he is not waited for."""
    db.finish(
        "UPDATE sessions SET active_at = %s, expires_at = %s + ttl WHERE n ="
        " (SELECT n FROM sessions WHERE n = %s AND NOT closed AND active_at < %s"
        " AND (expires_at IS NULL OR held OR expires_at >= %s) FOR UPDATE SKIP LOCKED)",
        (now, now, session.n, now, now),
    )
