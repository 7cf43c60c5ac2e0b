"""What SQLite says it would do: nothing of the audit, holds and subjects walks over a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from callslip.stacks import auditops, ops
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.stacks.telling import Teller
from callslip.testing.index import HOME, NOW, insert, make_row
from tests.stacks.index.plans import traced, walks_over_tables

SMALL = (
    "auditing",
    "erasing USING INDEX erasing_fresh",
    "e USING INDEX erasing_fresh",
    "h",
    "holds",
    "CONSTANT ROW",
    "a",
)
"""One row, the rows of this very transaction, and the holds, of which there are few."""


def test_nothing_that_is_told_held_or_about_somebody_scans_a_table(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index.db")
    told = Teller("", lambda: NOW).audited
    sent: list[str] = []
    traced(index, sent)
    for n in range(4):
        op = insert(make_row(str(n), key=f"k/{n}"), f"res_{n}", ttl=5.0, quota=ops.Quota(3))
        index.run(told(replace(op, subjects=("p",), expires_at=NOW + n)))
    index.run(told(ops.Get(HOME, "res_3", NOW)))
    index.run(told(ops.List(HOME, 0, 9, NOW + 2)))
    index.run(told(auditops.PlaceHold("acme", "ana", None, "", "", NOW)))
    index.run(told(auditops.Release("acme", "ana", None)))
    index.run(told(ops.Sweep(NOW + 2.5, 9, 1000.0)))
    index.run(told(auditops.RemoveSubject("acme", "p", NOW, 9)))
    index.run(ops.Forget(["k/0", "k/1"], NOW))
    for which in ({"tenant": "acme"}, {"id": "res_1"}, {"cause": "c"}, {"session": "s"}):
        index.run(auditops.Trail(0, 9, **which))  # type: ignore[arg-type]
    index.run(auditops.Holders("acme", b"d" * 32, 9))
    index.run(auditops.SubjectsOf(HOME, "res_1"))
    walks = {walk for walk, _ in walks_over_tables(index, sent)}
    assert len(sent) > 100
    assert {walk for walk in walks if walk[5:] not in SMALL} == {
        "SCAN sessions USING INDEX sessions_dead"  # of the few that wait for the sweep
    }
