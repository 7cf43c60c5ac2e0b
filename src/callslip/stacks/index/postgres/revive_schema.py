"""What is stored again after it ran out, in PostgreSQL: one migration.

The row of before goes by the way of a tombstone, so that the audit says that it ran out; deleted it
would be proof of a deletion that nobody asked for.
"""

from __future__ import annotations

from callslip.stacks.index.postgres.base_functions import FUNCTIONS

_BEFORE = "DELETE FROM results WHERE session = s.n AND seq = _seq;"
_NOW = """PERFORM bury(s.n, _seq, _seq + 1, 'expired', _now, 1);
                DELETE FROM tombstones WHERE session = s.n AND id = chosen.id;"""

REVIVED: tuple[str, ...] = tuple(
    each.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION").replace(_BEFORE, _NOW)
    for each in FUNCTIONS
    if _BEFORE in each
)
