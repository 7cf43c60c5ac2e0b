"""A store on two servers, a proxy before each, and what every test of faults asks of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from callslip import Event, ResultStore, StoreUnavailable
from tests.servers.proxy import FaultProxy

SMALL = "".join(f"line {n}: {n * n}\n" for n in range(3_000))
"""Over the threshold; packed, it stands in the index row."""

LARGE = "".join(f"{n * 7919 % 1000003:x} {n * 104729 % 999983:x}\n" for n in range(40_000))
"""Packed, an object of some 300 KB."""


@dataclass
class Deployment:
    """Two servers, the way to each, and how a worker's store is made."""

    index: FaultProxy
    objects: FaultProxy
    dsn: str
    """By way of the proxy."""
    payloads: str
    spool: Path
    events: list[Event] = field(default_factory=list)

    def worker(self, **settings: object) -> ResultStore:
        """A store as another worker has it: nothing cached, nothing opened."""
        given = {"payloads": self.payloads, "spool": self.spool, "on_event": self.events.append}
        return ResultStore(self.dsn, **{**given, **settings})  # type: ignore[arg-type]

    def clear(self) -> None:
        self.index.clear()
        self.objects.clear()

    def names(self) -> list[str]:
        """What happened, by the events of all workers."""
        return [event.name for event in self.events]


@dataclass
class Disk:
    """A file system of 40 MiB."""

    place: Path

    def fill(self) -> None:
        with suppress(OSError), (self.place / "filler").open("wb", buffering=0) as out:
            while out.write(b"\0" * 65_536):
                pass

    def empty(self) -> None:
        (self.place / "filler").unlink(missing_ok=True)


def again(work: Callable[[], object]) -> None:
    """Do it as soon as the store is asked again."""
    until = time.monotonic() + 30
    while True:
        try:
            work()
        except StoreUnavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def delivered(deployment: Deployment) -> list[str]:
    """All of session "a" once the spool is delivered, as a worker that saw no fault reads it."""
    deployment.worker().gc()
    session = deployment.worker().session("a")
    ids: list[str] = []
    more: dict[str, int] | None = {}
    while more is not None:
        listed = session.list(**more)
        ids += [handle.id for handle in listed.handles]
        more = listed.next
    assert len(set(ids)) == len(ids)
    return [session.load(id) for id in ids]


def assert_sound(deployment: Deployment) -> None:
    store = deployment.worker()
    store.gc(grace_seconds=0)
    found = store.verify()
    assert found.ok, found.problems
    assert found.orphans == 0
