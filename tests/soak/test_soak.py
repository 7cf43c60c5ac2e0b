"""Long runs: many processes on one store, and kill -9 at random points. Only `make soak`.

`CALLSLIP_SOAK_SECONDS` sets how long the killing goes on (30).
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from callslip import ResultStore

pytestmark = pytest.mark.soak

PROCESSES = 8
ROUNDS = 200
SECONDS = float(os.environ.get("CALLSLIP_SOAK_SECONDS", "30"))

# Texts of both kinds: those that live in the index row and those that get an object. Some are
# equal among processes, so that payloads are shared, released and fought over.
COMMON = """
import hashlib, random, sys
from callslip import ResultStore

def text_of(seed):
    dice = random.Random(seed)
    words = "".join(f"{seed} {dice.getrandbits(64):016x} line {n}\\n" for n in range(dice.choice((40, 400, 9_000))))
    return words

folder, name, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
session = ResultStore(folder).session(name)
"""

MANY = (
    COMMON
    + f"""
own = []
for n in range({ROUNDS}):
    seed = n if n % 5 == 0 else first + n
    text = text_of(seed)
    id = session.put(text, tool="soak", args={{"seed": seed}}).id
    own.append((id, text))
    back, kept = random.Random(first + n).choice(own)
    assert session.load(back) == kept, back
    page = session.read(back, start=2, limit=1)
    assert page.text == kept.splitlines(keepends=True)[1], page
    if n % 40 == 39:
        gone, _ = own.pop(0)
        assert session.delete(gone)
assert session.list().total == len(own)
for id, text in own:
    assert session.load(id) == text
print("done")
"""
)

# Acknowledged means: `put` returned, and the line about it was written after that.
KILLED = (
    COMMON
    + """
import os
ack = os.open(sys.argv[4], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
print("ready", flush=True)
for n in range(100_000):
    seed = first + n
    text = text_of(seed)
    id = session.put(text, tool="soak", args={"seed": seed}).id
    digest = hashlib.sha256(text.encode()).hexdigest()
    os.write(ack, f"{name} {id} {digest}\\n".encode())
"""
)


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_eight_processes_on_one_store_neither_lock_lose_nor_mix(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    running = [start(MANY, folder, f"s{n}", 1_000 * (n + 1)) for n in range(PROCESSES)]
    ends = [process.communicate() for process in running]
    assert [out.strip() or err[-400:] for out, err in ends] == ["done"] * PROCESSES
    store = ResultStore(folder)
    assert store.stats().results == PROCESSES * (ROUNDS - ROUNDS // 40)
    store.gc(grace_seconds=0)
    findings = store.verify()
    assert findings.ok, findings.problems
    assert findings.orphans == 0


def test_what_was_acknowledged_survives_kill_9_at_random_points(tmp_path: Path) -> None:
    folder, acks = tmp_path / "store", tmp_path / "acks"
    dice = random.Random(int.from_bytes(os.urandom(4), "big"))
    until = time.monotonic() + SECONDS
    kills = 0
    while time.monotonic() < until:
        running = [
            start(KILLED, folder, f"s{n}", 10_000_000 * kills + 100_000 * n, acks) for n in range(2)
        ]
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        time.sleep(dice.uniform(0.0, 0.8))
        for process in running:
            process.send_signal(signal.SIGKILL)
        for process in running:
            _, err = process.communicate()
            assert process.returncode == -signal.SIGKILL, err[-400:]
            kills += 1
    lines = acks.read_text().splitlines()
    assert len(lines) > kills, "the runs were killed before they stored anything"

    store = ResultStore(folder)
    findings = store.verify()
    assert findings.ok, findings.problems
    for line in lines:
        name, id, digest = line.split()
        text = store.session(name).load(id)
        assert hashlib.sha256(text.encode()).hexdigest() == digest, line
    store.gc(grace_seconds=0)
    assert store.verify().orphans == 0
    print(f"\n{kills} kills, {len(lines)} acknowledged puts, none lost")
