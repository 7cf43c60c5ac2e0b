"""The fault-injecting backend fails where it is told to, and nowhere else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from callslip.errors import PayloadDamaged, StoreUnavailable
from callslip.stacks.ops import DeleteObjects, ListObjects, PutObject, ReadObject
from callslip.stacks.payloads import open_payloads
from callslip.testing.faults import FaultyBackend
from callslip.testing.payloads import key


def test_the_nth_operation_fails_and_no_other() -> None:
    store = FaultyBackend(open_payloads("memory://"), at=2)
    store.run(PutObject(key("a"), [b"1"]))
    with pytest.raises(StoreUnavailable):
        store.run(PutObject(key("b"), [b"1"]))
    store.run(PutObject(key("c"), [b"1"]))
    assert [entry[0] for entry in store.run(ListObjects(None, 9))] == [key("a"), key("c")]
    assert [type(op) for op in store.seen] == [PutObject, PutObject, PutObject, ListObjects]


def test_only_the_operations_it_is_told_count() -> None:
    store = FaultyBackend(
        open_payloads("memory://"), fault=PayloadDamaged("so"), only=ReadObject, times=None
    )
    store.run(PutObject(key("a"), [b"1"]))
    for _ in range(3):
        with pytest.raises(PayloadDamaged, match="so"):
            store.run(ReadObject(key("a"), 0, 1))
        store.run(ListObjects(None, 9))


def test_after_the_operation_it_was_done_and_the_answer_is_lost() -> None:
    inner = open_payloads("memory://")
    store = FaultyBackend(inner, when="after", only=DeleteObjects)
    store.run(PutObject(key("a"), [b"1"]))
    with pytest.raises(StoreUnavailable):
        store.run(DeleteObjects([key("a")]))
    assert list(inner.run(ListObjects(None, 9))) == []


def test_half_way_through_the_parts(tmp_path: Path) -> None:
    drawn: list[int] = []

    def parts() -> object:
        for n in range(3):
            drawn.append(n)
            yield b"1234"

    store = FaultyBackend(open_payloads(tmp_path), when="half")
    with pytest.raises(StoreUnavailable):
        store.run(PutObject(key("a"), parts()))  # type: ignore[arg-type]
    assert drawn == [0]
    assert list(store.run(ListObjects(None, 9))) == []


@pytest.mark.parametrize(("when", "left"), [("before", 0), ("half", 1), ("after", 1)])
def test_a_kill_ends_the_process_at_once(tmp_path: Path, when: str, left: int) -> None:
    script = (
        "from callslip.stacks.payloads import open_payloads\n"
        "from callslip.stacks.ops import PutObject\n"
        "from callslip.testing.faults import FaultyBackend\n"
        f"store = FaultyBackend(open_payloads({str(tmp_path)!r}), fault='kill', when={when!r})\n"
        "try:\n"
        "    store.run(PutObject('a.cslip', [b'1234']))\n"
        "finally:\n"
        "    print('cleaned up')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout == ""
    assert len(os.listdir(tmp_path)) == left
