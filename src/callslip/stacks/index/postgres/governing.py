"""Which function of PostgreSQL's does which operation of the audit, of legal holds and of subjects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callslip.stacks import auditops
from callslip.stacks.index.postgres import auditing, holding, subjects
from callslip.stacks.index.postgres.transaction import Db

Does = Callable[[Db, Any], Any]

READS: dict[type, Does] = {
    auditops.Trail: auditing.trail,
    auditops.Holds: holding.holds,
    auditops.HeldBy: holding.held_by,
    auditops.SubjectsOf: subjects.of_result,
    auditops.Holders: subjects.holders,
}
WRITES: dict[type, Does] = {
    auditops.Record: auditing.record,
    auditops.PlaceHold: holding.place,
    auditops.Release: holding.release,
    auditops.RemoveSubject: subjects.remove,
}
