"""What the tests start in processes of their own: importable, so that `spawn` finds it."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from callslip.errors import CallslipError, StoreUnavailable
from callslip.handle import Quota, Scope
from callslip.stacks import ops
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.testing.index import HOME, NOW, insert, make_row
from callslip.testing.index_files import make_write

SPAWN = multiprocessing.get_context("spawn")


def scope_of(worker: int) -> Scope:
    return Scope(f"s{worker}", "", "acme")


def index_at(where: Path | str) -> ops.Runs:
    """The SQLite index in a file, or the one of a database's URL."""
    if isinstance(where, Path):
        return SqliteIndex(where)
    from callslip.stacks.index.postgres import PostgresIndex

    return PostgresIndex(where)


def insert_and_read(where: Path | str, worker: int, count: int) -> str:
    """Insert rows, some of them the same content in all processes, and read each back."""
    index = index_at(where)
    for n in range(count):
        content = f"shared {n}" if n % 2 else f"{worker} {n}"
        row = make_row(content, call=str(n), scope=scope_of(worker), data=content.encode())
        inserted = index.run(insert(row, f"res_{n}"))
        assert inserted is not None
        assert inserted.created
        found = index.run(ops.Get(row.scope, f"res_{n}", NOW))
        assert isinstance(found, ops.Result)
        assert found.payload.data == content.encode()
    return "done"


def insert_until_killed(where: Path | str, acknowledged: Connection) -> None:
    index = index_at(where)
    for n in range(1_000_000):
        row = make_row(str(n), key=f"k/{n}") if n % 2 else make_row(str(n), data=b"x" * 30_000)
        assert index.run(insert(row, f"res_{n}")) is not None
        acknowledged.send(n)


def killed_after(where: Path | str, count: int) -> list[int]:
    """What a worker that inserts had acknowledged when it was killed: `count` rows or more."""
    ours, theirs = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=insert_until_killed, args=(where, theirs))
    process.start()
    theirs.close()
    acknowledged = [ours.recv() for _ in range(count)]
    process.kill()
    process.join()
    try:
        while True:
            acknowledged.append(ours.recv())
    except EOFError:
        return acknowledged  # the pipe is drained: the process is gone


def holds_what_was_acknowledged(index: ops.Runs, acknowledged: list[int]) -> None:
    for n in acknowledged:
        assert isinstance(index.run(ops.Get(HOME, f"res_{n}", NOW)), ops.Result)
    # At most the one insert that was under way may be there unacknowledged, and only whole.
    assert index.run(ops.Count()).results - len(acknowledged) in (0, 1)
    assert index.run(ops.Repair(mend=False)) == []


def mixed(where: Path | str, worker: int, count: int) -> str:
    """Everything at once on few sessions, contents and ids, so that workers do meet."""
    index, rng = index_at(where), random.Random(worker)
    for n in range(count):
        now, scope = NOW + n, Scope(f"s{rng.randrange(3)}", "", rng.choice("ab"))
        content, call = str(rng.randrange(6)), str(rng.randrange(20))
        quota = rng.choice([Quota(), Quota(session_results=5), Quota(tenant_results=8)])
        op: ops.Op[Any]
        match rng.randrange(8):
            case 0:
                op = ops.Remove("closed", now, scope.tenant, "", scope.session)
            case 1:
                op = ops.Remove("deleted", now, scope.tenant, tombstones=bool(n % 2))
            case 2:
                op = ops.Sweep(now, 50, 20.0)
            case 3:
                op = make_write(content, scope=scope, quota=quota, ttl=5.0, now=now)
            case 4:
                op = ops.List(scope, 0, 9, now)
            case _:
                row = make_row(content, call=call, scope=scope, data=content.encode())
                op = insert(
                    row, f"res_{call}", f"res_{call}_{content}", ttl=5.0, quota=quota, now=now
                )
        answer = index.run(op)
        if isinstance(answer, ops.Inserted):
            assert answer.result.payload.data == content.encode()
    return "done"


def open_as_nobody(path: Path) -> str:
    """What a process without rights gets: the error's reason, or `opened`."""
    os.setuid(65534)
    try:
        SqliteIndex(path).run(ops.Count())
    except StoreUnavailable as error:
        return error.reason
    except CallslipError as error:
        return type(error).__name__
    return "opened"


if __name__ == "__main__":
    print(open_as_nobody(Path(sys.argv[1])))


def fork_while_threads_write(index: ops.Runs, children: int) -> None:
    """Parent and children go on, one child after the other, while a thread of the parent writes."""
    stop = threading.Event()
    written = [0]

    def work() -> None:
        while not stop.is_set():
            row = make_row(str(written[0]), scope=scope_of(0))
            assert index.run(insert(row, f"res_{written[0]}")) is not None
            written[0] += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for child in range(1, children + 1):
            pid = os.fork()
            if pid == 0:
                # No exception may leave the child: it would run the tests a second time.
                code = 1
                try:
                    signal.alarm(20)
                    for n in range(5):
                        index.run(insert(make_row(f"{n}", scope=scope_of(child)), f"res_{n}"))
                    if index.run(ops.Count(scope=scope_of(child))).results == 5:
                        code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()
    assert index.run(ops.Count()).results == written[0] + 5 * children
    assert index.run(ops.Repair(mend=False)) == []
