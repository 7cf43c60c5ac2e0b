"""Flows that ask whether a store works: a quick look for a worker, a thorough one for a person."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from callslip.errors import CallslipError, StoreUnavailable
from callslip.stacks.checkops import CheckIndex, IndexFacts
from callslip.stacks.flows import aside
from callslip.stacks.layout import KEY_SUFFIX, NO_SECRET
from callslip.stacks.ops import (
    Count,
    DeleteObjects,
    Flow,
    ListObjects,
    PutObject,
    ReadObject,
    do,
)

T = TypeVar("T")

SKEW_SECONDS = 30.0
"""Clocks further apart than this are a finding: retention and orphans go by the clock."""
_PROBE = b"callslip doctor"


@dataclass(frozen=True, slots=True)
class Check:
    """What was found of one part of a store."""

    part: str
    """`index`, `payloads`, `clock`, `spool` or `keys`."""
    ok: bool
    said: str
    """One line: what it is, or what is wrong with it."""
    advice: str = ""
    """What to do, where something is wrong."""


@dataclass(frozen=True, slots=True)
class Health:
    """What a store says of itself. `str(health)` is one line for each part."""

    checks: tuple[Check, ...]
    seconds: float
    """How long it took to find out."""

    @property
    def ok(self) -> bool:
        """True if every part works."""
        return all(check.ok for check in self.checks)

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each part that does not work."""
        return tuple(f"{check.part}: {check.said}" for check in self.checks if not check.ok)

    def __str__(self) -> str:
        return "\n".join(
            f"{check.part}: {'ok' if check.ok else 'NOT OK'}, {check.said}" for check in self.checks
        )


def look(spool: bool) -> Flow[Health]:
    """One request to the index and one to the payload store; reads only. Never raises for their
    sake. `spool`: whether there is one that holds something."""
    began = time.monotonic()
    checks = [
        (yield from _checked("index", _index(False, [], {}))),
        (yield from _checked("payloads", _listed())),
        (yield from _spool(spool)),
    ]
    return Health(_said_once(checks), time.monotonic() - began)


def examine(spool: bool, wall: Callable[[], float], blocked: str = "") -> Flow[Health]:
    """As `look`, and besides: the index is written to, an object is put, read back and deleted,
    and the clocks are compared with `wall`. `blocked`: a folder that the spool cannot be made in."""
    began = time.monotonic()
    clocks: dict[str, float] = {}
    known: list[IndexFacts] = []
    checks = [
        (yield from _checked("index", _index(True, known, clocks, wall))),
        (yield from _checked("payloads", _probed(clocks, wall))),
        *map(_keys, known),
    ]
    if clocks:
        checks.append(_clock(clocks))
    checks.append(_blocked(blocked) if blocked else (yield from _spool(spool)))
    return Health(_said_once(checks), time.monotonic() - began)


def _said_once(checks: list[Check]) -> tuple[Check, ...]:
    """The index says where the payloads are: where it fails, they were not tried for themselves."""
    index, payloads, *others = checks
    if not index.ok and payloads.said == index.said:
        payloads = Check(payloads.part, False, "not tried: the index says where they are")
    return index, payloads, *others


def touched() -> Flow[None]:
    """Have the index opened, and so migrated."""
    yield from do(CheckIndex(write=False))


def _checked(part: str, flow: Flow[str]) -> Flow[Check]:
    began = time.monotonic()
    try:
        said = yield from flow
    except StoreUnavailable as error:
        return Check(part, False, str(error), _ADVICE.get(error.reason, _ADVICE["failed"]))
    except CallslipError as error:
        return Check(part, False, str(error), "change what the message names")
    return Check(part, True, f"{said}, in {(time.monotonic() - began) * 1000:.1f} ms")


_ADVICE = {
    "unreachable": "see that the server runs, has connections left, and can be reached from here under "
    "that name and port",
    "timed out": "see what holds the server up: locks, load, the network between",
    "locked": "see which other process writes to the file for so long",
    "disk full": "make room, or give the store another place",
    "permission denied": "see user, password and rights (docs/postgres.md, docs/object-storage.md); of "
    "a folder, whose it is",
    "over quota": "raise the quota, or delete what is not needed",
    "failed": "change what the message names, or see the server's own log for the same moment",
}


def _index(
    write: bool,
    known: list[IndexFacts],
    clocks: dict[str, float],
    wall: Callable[[], float] = time.time,
) -> Flow[str]:
    before = wall()
    facts = yield from do(CheckIndex(write))
    known.append(facts)
    if facts.clock is not None:
        clocks["index"] = facts.clock - (before + wall()) / 2
    return f"{facts.server}, schema {facts.schema}, {'read and written' if write else 'read'}"


def _listed() -> Flow[str]:
    yield from do(ListObjects(None, 1))
    return "listed"


def _probed(clocks: dict[str, float], wall: Callable[[], float]) -> Flow[str]:
    key = f"doctor/{secrets.token_hex(16)}{KEY_SUFFIX}"
    before = wall()
    yield from do(PutObject(key, [_PROBE], NO_SECRET))
    middle = (before + wall()) / 2
    try:
        found = yield from do(ReadObject(key, 0, len(_PROBE), NO_SECRET, len(_PROBE)))
        # Keys are in order: what stands behind the one just before ours is ours.
        listed = yield from do(ListObjects(key[: -len(KEY_SUFFIX)], 1))
    finally:
        yield from do(DeleteObjects([key]))
    if found != _PROBE:
        raise StoreUnavailable("an object did not read back as it was written", reason="failed")
    if not listed or listed[0][0] != key:
        raise StoreUnavailable("an object that was just written is not listed", reason="failed")
    clocks["payloads"] = listed[0][2] - middle
    return "an object written, read back, listed and deleted"


def _keys(facts: IndexFacts) -> Check:
    if facts.sealed:
        return Check("keys", True, "what is stored is sealed, and the master key at hand opens it")
    return Check("keys", True, "none: what is stored is compressed, not sealed")


def _clock(clocks: dict[str, float]) -> Check:
    said = ", ".join(f"{part} {round(apart, 1) + 0.0:+} s" for part, apart in clocks.items())
    ok = all(abs(apart) <= SKEW_SECONDS for apart in clocks.values())
    advice = "set the clocks by a time server: retention and the age of orphans go by them"
    return Check("clock", ok, f"against this machine: {said}", "" if ok else advice)


def _blocked(folder: str) -> Check:
    return Check(
        "spool",
        False,
        f"{folder} cannot be written to: while the store is away no result would be kept",
        "give spool= or XDG_STATE_HOME a folder of this user's, or spool='' for none",
    )


def _spool(waits: bool) -> Flow[Check]:
    if not waits:
        return Check("spool", True, "nothing waits")
    try:
        held = yield from aside(do(Count()))
    except CallslipError as error:
        return Check("spool", False, f"it cannot be read: {error}", "see who owns its folder")
    if not held.results:
        return Check("spool", True, "nothing waits")
    return Check(
        "spool",
        False,
        f"{held.results} result{'s wait' if held.results > 1 else ' waits'} to be delivered",
        "once the store is back, the next put delivers them, or `callslip gc` now",
    )
