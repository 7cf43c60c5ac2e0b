"""Many workers on PostgreSQL and S3 whose servers go away and come back; and what is left then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from callslip import ResultStore
from tests.soak.mixed import digest

ROOT = Path(__file__).parents[2]


def run(
    dsn: str,
    payloads: str,
    folder: Path,
    *,
    processes: int,
    operations: int = 0,
    seconds: float = 0.0,
    restarts: Sequence[Callable[[], None]],
    environ: dict[str, str],
) -> str:
    """Start the workers, do the restarts at even distances, wait for the end, and check all of it.

    Answers a Markdown table of what the operations took. Raises AssertionError for anything that
    was acknowledged and is not there, or is there and was never stored.
    """
    spool = folder / "spool"
    ResultStore(dsn, payloads=payloads, spool="").session("first").put("x", tool="t")
    how = ["--operations", str(operations)] if operations else ["--seconds", str(seconds)]
    names = [f"worker{n}" for n in range(processes)]
    workers = []
    for n, name in enumerate(names):
        who = [dsn, payloads, str(spool), name, str(folder), "--first", str(1_000_000 * (n + 1))]
        command = [sys.executable, "-m", "tests.soak.mixed", *who, *how]
        log = (folder / f"{name}.log").open("w")
        workers.append(
            subprocess.Popen(
                command, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, **environ}
            )
        )
    began = time.monotonic()
    for n, restart in enumerate(restarts, 1):
        part = n / (len(restarts) + 1)
        while any(worker.poll() is None for worker in workers) and not (
            _done(folder, names) >= part * operations * processes
            if operations
            else time.monotonic() - began >= part * seconds
        ):
            time.sleep(0.05)
        restart()
    codes = [worker.wait(seconds + 600) for worker in workers]
    logs = {name: (folder / f"{name}.log").read_text()[-1500:] for name in names}
    assert codes == [0] * processes, logs
    return _checked(dsn, payloads, spool, folder, names)


def _done(folder: Path, names: Sequence[str]) -> int:
    marks = [folder / f"{name}.done" for name in names]
    return sum(int(mark.read_text() or 0) for mark in marks if mark.exists())


def _checked(dsn: str, payloads: str, spool: Path, folder: Path, names: Sequence[str]) -> str:
    store = ResultStore(dsn, payloads=payloads, spool=spool)
    store.gc(grace_seconds=0)
    kept = spooled = 0
    for name in names:
        session = store.session(name)
        told = [line.split() for line in (folder / f"{name}.acks").read_text().splitlines()]
        gone = {words[1] for words in told if words[0] == "gone"}
        there: dict[str, str] = {}
        more: dict[str, int] | None = {}
        while more is not None:
            listed = session.list(**more)
            more = listed.next
            for handle in listed.handles:
                if handle.tool == "t":
                    there[handle.id] = digest(session.load(handle.id))
        expected = {w[1]: w[2] for w in told if w[0] == "kept" and w[1] not in gone}
        lost = {id for id in expected if id not in there}
        mixed = {id for id, sha in expected.items() if id in there and there[id] != sha}
        assert not lost, f"{name}: {len(lost)} of {len(expected)} lost: {sorted(lost)[:3]}"
        assert not mixed, f"{name}: mixed: {sorted(mixed)[:3]}"
        late = [words[1] for words in told if words[0] == "spooled"]
        undelivered = set(late) - set(there.values())
        assert not undelivered, f"{name}: {len(undelivered)} of {len(late)} were never delivered"
        kept += len(expected)
        spooled += len(late)
    found = store.verify()
    assert found.ok, found.problems[:3]
    assert found.orphans == 0
    return _table(folder, names, kept, spooled)


def _table(folder: Path, names: Sequence[str], kept: int, spooled: int) -> str:
    took: dict[str, dict[str, list[float]]] = {
        "waits": defaultdict(list),
        "away": defaultdict(list),
    }
    for name in names:
        for what, kinds in json.loads((folder / f"{name}.json").read_text()).items():
            for kind, times in kinds.items():
                took[what][kind] += times
    total = sum(map(len, took["waits"].values())) + sum(map(len, took["away"].values()))
    told = f"{kept} acknowledged results, all there; {spooled} spooled, all delivered"
    lines = [
        f"{len(names)} processes, {total} calls: {told}",
        "| operation | calls | p50 ms | p95 ms | p99 ms | max ms | away | its longest ms |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for kind in sorted({*took["waits"], *took["away"]}):
        times, away = sorted(took["waits"][kind]), took["away"][kind]
        at = [_ms(times, part) for part in (0.5, 0.95, 0.99, 1.0)]
        longest = f"{max(away) * 1000:.0f}" if away else ""
        lines.append(
            f"| {kind} | {len(times)} | {' | '.join(at)} | {len(away) or ''} | {longest} |"
        )
    return "\n".join(lines)


def _ms(times: Sequence[float], part: float) -> str:
    if not times:
        return ""
    return f"{times[min(len(times) - 1, int(len(times) * part))] * 1000:.1f}"
