"""A run does not wait for a store that is away more often than now and then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from callslip import ResultStore, StoreUnavailable, limits
from callslip.stacks.breaker import Breaker
from callslip.stacks.ops import FindPayload, KnownKeys, Op, PutObject, Repair
from tests.conftest import Clock


class Server:
    """Answers None, after what `before` does."""

    def __init__(self) -> None:
        self.seen: list[Op[Any]] = []
        self.before: Callable[[Op[Any]], None] = lambda op: None

    def run(self, op: Op[Any], /) -> Any:
        self.seen.append(op)
        self.before(op)
        return None


def refused(op: Op[Any]) -> None:
    raise StoreUnavailable("no", reason="unreachable")


ASK = FindPayload("", b"")


@pytest.fixture(autouse=True)
def _by_the_clock(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callslip.stacks.breaker.time", SimpleNamespace(monotonic=clock))


@pytest.fixture
def away(clock: Clock) -> Callable[[Op[Any]], None]:
    """What a server does that keeps its callers waiting in vain."""

    def waits(op: Op[Any]) -> None:
        clock.at += 2.0
        raise StoreUnavailable("no answer", reason="timed out")

    return waits


def test_a_hundred_calls_to_a_server_that_hangs_wait_once(
    away: Callable[[Op[Any]], None], clock: Clock
) -> None:
    server = Server()
    server.before = away
    breaker = Breaker(server)
    for _ in range(100):
        with pytest.raises(StoreUnavailable) as refusal:
            breaker.run(ASK)
        assert refusal.value.reason == "timed out"
        clock.at += 0.05
    assert len(server.seen) == 1


def test_a_refusal_that_comes_at_once_costs_nothing_and_is_asked_for_every_time() -> None:
    server = Server()
    server.before = refused
    breaker = Breaker(server)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            breaker.run(ASK)
    assert len(server.seen) == 3


def test_the_first_that_is_let_through_again_finds_the_server_well(
    away: Callable[[Op[Any]], None], clock: Clock
) -> None:
    server = Server()
    server.before = away
    breaker = Breaker(server)
    with pytest.raises(StoreUnavailable):
        breaker.run(ASK)
    server.before = lambda op: None
    clock.at += 2.0 * limits.PAUSE_FACTOR - 0.1
    with pytest.raises(StoreUnavailable):
        breaker.run(ASK)
    clock.at += 0.1
    breaker.run(ASK)
    breaker.run(ASK)
    assert len(server.seen) == 3


def test_one_finds_out_while_the_others_are_refused(
    away: Callable[[Op[Any]], None], clock: Clock
) -> None:
    server = Server()
    server.before = away
    breaker = Breaker(server)
    with pytest.raises(StoreUnavailable):
        breaker.run(ASK)
    clock.at += limits.PAUSE_SECONDS
    asked, go = threading.Event(), threading.Event()

    def slow(op: Op[Any]) -> None:
        asked.set()
        assert go.wait(30)

    server.before = slow
    probe = threading.Thread(target=breaker.run, args=(ASK,))
    probe.start()
    assert asked.wait(30)
    with pytest.raises(StoreUnavailable):
        breaker.run(ASK)
    go.set()
    probe.join(30)
    server.before = lambda op: None
    breaker.run(ASK)


def test_what_upkeep_asks_too_much_of_a_server_does_not_shut_it_off(
    away: Callable[[Op[Any]], None],
) -> None:
    server = Server()
    server.before = away
    breaker = Breaker(server)
    with pytest.raises(StoreUnavailable):
        breaker.run(Repair(mend=True))
    server.before = lambda op: None
    breaker.run(KnownKeys([]))


def test_a_lock_on_a_few_rows_says_nothing_of_a_server(clock: Clock) -> None:
    server = Server()

    def locked(op: Op[Any]) -> None:
        clock.at += 2.0
        raise StoreUnavailable("no", reason="locked")

    server.before = locked
    for breaker, asked in ((Breaker(server, locks_whole=False), 2), (Breaker(server), 1)):
        server.seen.clear()
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                breaker.run(ASK)
        assert len(server.seen) == asked


@pytest.mark.parametrize("raised", [OSError("the tool's own"), KeyError("x")])
def test_a_stream_that_is_slow_and_fails_is_not_the_servers_failure(
    raised: Exception, clock: Clock
) -> None:
    server = Server()

    def drink(op: Op[Any]) -> None:
        if isinstance(op, PutObject):
            list(op.parts)

    def parts() -> Iterator[bytes]:
        yield b"1"
        clock.at += 2.0
        raise raised

    server.before = drink
    breaker = Breaker(server)
    with pytest.raises(type(raised)):
        breaker.run(PutObject("k", parts()))
    breaker.run(ASK)
    assert len(server.seen) == 2


def test_only_the_wait_for_the_part_that_failed_counts(clock: Clock) -> None:
    server = Server()

    def drink(op: Op[Any]) -> None:
        if isinstance(op, PutObject):
            for _ in op.parts:
                clock.at += limits.AWAY_SECONDS * 0.9
            raise StoreUnavailable("no", reason="failed")

    server.before = drink
    breaker = Breaker(server)
    with pytest.raises(StoreUnavailable):
        breaker.run(PutObject("k", [b"1", b"2", b"3"]))
    breaker.run(ASK)
    assert len(server.seen) == 2


def test_a_store_asks_each_of_its_parts_through_one(tmp_path: Path) -> None:
    backend = ResultStore(tmp_path)._backend
    assert isinstance(backend.index, Breaker)
    assert isinstance(backend.payloads, Breaker)
