"""Rows of docs/faults.md: a worker killed, two with the same content, clocks apart."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.faults.deployment import LARGE, SMALL, Deployment, assert_sound

BEGIN = f"""
import sys, time
sys.path.insert(0, {str(__file__).rpartition("/tests/")[0]!r})
from callslip import ResultStore
from callslip.stacks import ops
from callslip.testing.faults import FaultyBackend
from tests.faults.deployment import LARGE, SMALL
store = ResultStore(sys.argv[1], payloads=sys.argv[2], spool="", ttl_seconds=3600)
"""

KILLED = (
    BEGIN
    + """
kind = {"index": "index", "payloads": "payloads"}[sys.argv[3]]
only = ops.Insert if kind == "index" else ops.PutObject
part = FaultyBackend(getattr(store._backend, kind), fault="kill", when=sys.argv[4], only=only)
setattr(store._backend, kind, part)
store.session("a").put(LARGE, tool="t", call_id="1")
"""
)

SAME = (
    BEGIN
    + """
sys.stdin.readline()
for n in range(5):
    text = f"{n}\\n{LARGE}"
    session = store.session(f"{sys.argv[3]}")
    handle = session.put(text, tool="t", call_id=str(n))
    assert session.load(handle.id) == text
print("done")
"""
)

# Before callslip is imported: a store goes by the clock that it found then.
SET = """
import time
own, by = time.time, [float(0)]
time.time = lambda: own() + by[0]
"""

AHEAD = (
    SET
    + BEGIN
    + """
by[0] = 5 * 3600
store.sweep()
session = store.session("ahead")
mine = session.put(SMALL, tool="t").id
store.gc()
assert store.session("a").load(sys.argv[3]) == LARGE
print(mine)
"""
)

IN_BETWEEN = (
    SET
    + BEGIN
    + """
from callslip import Retention
store = ResultStore(
    sys.argv[1], payloads=sys.argv[2], spool="", ttl_seconds=3600, retention=Retention(tools={"brief": 600})
)
session = store.session("set")
for by[0] in (0, 5 * 3600, -5 * 3600, 3 * 365 * 86_400):
    store._tidied_at = float("-inf")
    print(session.put(f"{by[0]}", tool="brief").id)
"""
)


def started(code: str, deployment: Deployment, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, deployment.dsn, deployment.payloads, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize(
    ("part", "when", "orphans"),
    [
        ("payloads", "half", 0),  # half an object is no object
        ("payloads", "after", 1),
        ("index", "before", 1),
        ("index", "after", 0),  # the row is there: only nobody was told
    ],
)
def test_a_worker_killed_between_the_two_writes_leaves_at_worst_an_orphan(
    part: str, when: str, orphans: int, deployment: Deployment
) -> None:
    worker = started(KILLED, deployment, part, when)
    _, told = worker.communicate(timeout=60)
    assert worker.returncode == -signal.SIGKILL, told[-500:]
    store = deployment.worker()
    found = store.verify()
    assert found.ok, found.problems
    assert found.orphans == orphans
    assert store.gc().orphans == 0, "a put may be under way"
    assert store.gc(grace_seconds=0).orphans == orphans
    assert store.verify().orphans == 0
    # Done again, as a run that is resumed does it: one handle, the same as if nothing had been.
    session = store.session("a")
    handle = session.put(LARGE, tool="t", call_id="1")
    assert [each.id for each in session.list().handles] == [handle.id]
    assert session.load(handle.id) == LARGE
    assert_sound(deployment)


def test_workers_that_write_the_same_content_at_once_keep_one_payload(
    deployment: Deployment,
) -> None:
    names = ["a", "a", "b", "c"]
    workers = [started(SAME, deployment, name) for name in names]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    ends = [worker.communicate(timeout=120) for worker in workers]
    assert [out.strip() or err[-800:] for out, err in ends] == ["done"] * 4
    store = deployment.worker()
    store.gc(grace_seconds=0)
    held = store.stats()
    assert (held.results, held.payloads) == (15, 5)
    for name in "abc":
        session = store.session(name)
        texts = [session.load(handle.id) for handle in session.list().handles]
        assert texts == [f"{n}\n{LARGE}" for n in range(5)]
    assert_sound(deployment)


def test_a_worker_whose_clock_is_hours_ahead_ends_nobodys_session(deployment: Deployment) -> None:
    store = deployment.worker(ttl_seconds=3600)
    session = store.session("a")
    kept = session.put(LARGE, tool="t").id
    worker = started(AHEAD, deployment, kept)
    out, told = worker.communicate(timeout=60)
    assert worker.returncode == 0, told[-800:]
    assert session.load(kept) == LARGE
    assert store.session("ahead").load(out.strip()) == SMALL
    (theirs,) = store.session("ahead").list().handles
    assert abs(theirs.created_at - time.time()) < 1800, "it is filed under the index's time"
    assert_sound(deployment)


def test_a_clock_that_is_set_while_a_worker_runs_ends_nothing_either(
    deployment: Deployment,
) -> None:
    store = deployment.worker(ttl_seconds=3600)
    kept = store.session("a").put(LARGE, tool="t").id
    worker = started(IN_BETWEEN, deployment)
    out, told = worker.communicate(timeout=60)
    assert worker.returncode == 0, told[-800:]
    assert store.session("a").load(kept) == LARGE
    theirs = [store.session("set").load(id) for id in out.split()]
    assert theirs == ["0", "18000", "-18000", "94608000"]
    assert_sound(deployment)
