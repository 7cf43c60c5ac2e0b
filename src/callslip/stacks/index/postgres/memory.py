"""Which function of PostgreSQL's does which operation on memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callslip.stacks.index.postgres.transaction import Db

Does = Callable[[Db, Any], Any]

READS: dict[type, Does] = {}
WRITES: dict[type, Does] = {}
