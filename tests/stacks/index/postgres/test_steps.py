"""What goes in several transactions, each of few rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callslip.stacks import ops
from callslip.stacks.index.postgres import PostgresIndex, retention
from callslip.testing.index import HOME, NOW, insert, make_row
from callslip.testing.index_files import make_write
from tests.stacks.index.postgres.conftest import Opens


def fill(index: PostgresIndex) -> None:
    for n in range(5):
        scope = replace(HOME, session=f"s{n}")
        ttl = 10.0 if n == 4 else None
        for m in range(8):
            row = make_row(f"{n} {m}", call=str(m), scope=scope, key=f"k/{n}/{m}")
            assert index.run(insert(row, f"res_{m}", ttl=ttl)) is not None
            assert index.run(make_write(f"{n} {m}", f"f{m % 3}", scope=scope, ttl=ttl)) is not None
    # One that ran out and goes on: eight rows below its floor.
    late = replace(HOME, session="s4")
    index.run(insert(make_row("late", scope=late), "res_late", ttl=10.0, now=NOW + 20))


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("tombstones", [True, False])
def test_a_removal_in_many_steps_removes_what_one_would(
    opens: Opens, batch: int, tombstones: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", batch)
    index = opens()
    fill(index)
    scope = {"user": "ana", "session": "s1"}
    remove = ops.Remove("deleted", NOW + 21, "acme", tombstones=tombstones)
    assert index.run(replace(remove, **scope)) == 8
    assert index.run(ops.Count(scope=replace(HOME, session="s1"))).files == 0
    assert index.run(remove) == 24 + 1
    held = index.run(ops.Count())
    gone = 41 if tombstones else 0
    assert (held.sessions, held.results, held.files, held.tombstones) == (0, 0, 0, gone)
    assert held.garbage == 40
    assert index.run(ops.Repair(mend=False)) == []
    assert index.run(remove) == 0


def test_a_user_with_more_sessions_than_one_step_takes_is_removed_whole(opens: Opens) -> None:
    index = opens()
    for n in range(90):
        scope = replace(HOME, session=f"s{n}", user="ana" if n % 10 else "bo")
        assert index.run(insert(make_row(scope=scope), "res_a")) is not None
    assert index.run(ops.Remove("deleted", NOW, "acme", "ana")) == 81
    assert index.run(ops.Remove("deleted", NOW, "acme", tombstones=False)) == 9
    assert index.run(ops.Count()) == ops.Totals(0, 0, 0, 0, 0, 0, 0)


def test_what_was_counted_is_folded_by_the_sweep_and_stays_the_same(opens: Opens) -> None:
    index = opens()
    fill(index)
    before = index.run(ops.Count("acme"))
    assert (before.results, before.files) == (41, 32)
    index.run(ops.Sweep(NOW, 0, 1000.0))
    left = index.server.transact(
        lambda db: db.execute("SELECT (SELECT count(*) FROM deltas), results FROM tallies"),
        tenant=None,
        again=True,
    )
    assert left == [(0, before.results)]
    assert index.run(ops.Count("acme")) == before
