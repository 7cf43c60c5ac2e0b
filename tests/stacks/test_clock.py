"""Workers whose clocks are apart go by the index's."""

from __future__ import annotations

from typing import Any

import pytest

from callslip import limits
from callslip.errors import StoreUnavailable
from callslip.stacks.checkops import CheckIndex, IndexFacts
from callslip.stacks.clock import SharedClock
from callslip.stacks.drive import drive
from callslip.stacks.ops import FindPayload, Flow, Op, do


class Index:
    """Its clock stands at `clock`."""

    def __init__(self, clock: float | None) -> None:
        self.clock = clock
        self.away = False
        self.seen: list[type] = []

    def run(self, op: Op[Any], /) -> Any:
        self.seen.append(type(op))
        if self.away:
            raise StoreUnavailable("away", reason="unreachable")
        return IndexFacts("a server", 1, self.clock) if isinstance(op, CheckIndex) else None


def flow(clock: SharedClock) -> Flow[float]:
    now = clock.now()
    yield from do(FindPayload("", b""))
    return now


def test_the_very_first_operation_goes_by_the_servers_clock() -> None:
    index, clock = Index(5_000.0), SharedClock(lambda: 12_200.0, asks=True)
    assert drive(index, clock.asked(flow(clock))) == 5_000.0
    assert drive(index, clock.asked(flow(clock))) == 5_000.0
    assert index.seen == [CheckIndex, FindPayload, FindPayload]


def test_a_second_is_the_networks() -> None:
    index, clock = Index(5_000.9), SharedClock(lambda: 5_000.0, asks=True)
    assert drive(index, clock.asked(flow(clock))) == 5_000.0


def test_a_clock_that_was_given_or_is_this_machines_is_not_asked_about() -> None:
    index, clock = Index(5_000.0), SharedClock(lambda: 1.0, asks=False)
    assert drive(index, clock.asked(flow(clock))) == 1.0
    assert index.seen == [FindPayload]
    index, clock = Index(None), SharedClock(lambda: 1.0, asks=True)
    assert drive(index, clock.asked(flow(clock))) == 1.0


def test_an_index_that_is_away_is_asked_again() -> None:
    index, clock = Index(5_000.0), SharedClock(lambda: 0.0, asks=True)
    index.away = True
    for _ in range(2):
        try:
            drive(index, clock.asked(flow(clock)))
        except StoreUnavailable:
            continue
    assert index.seen == [CheckIndex, FindPayload] * 2
    index.away = False
    assert drive(index, clock.asked(flow(clock))) == 5_000.0


def test_it_is_asked_now_and_then(monkeypatch: Any) -> None:
    index, clock = Index(5_000.0), SharedClock(lambda: 0.0, asks=True)
    drive(index, clock.asked(flow(clock)))
    index.clock = 6_000.0
    monkeypatch.setattr(limits, "CLOCK_SECONDS", 0.0)
    assert drive(index, clock.asked(flow(clock))) == 6_000.0


def test_it_is_asked_as_soon_as_this_machines_clock_was_set() -> None:
    index, own = Index(5_000.0), [5_000.0]
    clock = SharedClock(lambda: own[0], asks=True)
    drive(index, clock.asked(flow(clock)))
    for own[0] in (23_000.0, -40_000.0):
        assert clock.now() == pytest.approx(5_000.0, abs=100), "until then it only goes on"
        assert drive(index, clock.asked(flow(clock))) == 5_000.0
    assert index.seen == [CheckIndex, FindPayload] * 3
    own[0] = 0.0
    index.away = True
    with pytest.raises(StoreUnavailable):
        drive(index, clock.asked(flow(clock)))
    assert clock.now() == pytest.approx(5_000.0, abs=100)


def test_nothing_is_ended_by_a_clock_that_was_never_compared() -> None:
    index, clock = Index(5_000.0), SharedClock(lambda: 12_200.0, asks=True)
    index.away = True
    with pytest.raises(StoreUnavailable):
        drive(index, clock.sure())
    index.away = False
    assert drive(index, clock.sure()) == 5_000.0
    assert drive(index, clock.sure()) == 5_000.0
    assert index.seen == [CheckIndex] * 2
    assert drive(index, SharedClock(lambda: 1.0, asks=False).sure()) == 1.0
