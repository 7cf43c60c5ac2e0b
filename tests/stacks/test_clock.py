"""Workers whose clocks are apart go by the index's."""

from __future__ import annotations

from typing import Any

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
