from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from callslip import ResultStore
from callslip.stacks import ops
from callslip.stacks.index.postgres import PostgresIndex
from callslip.testing.index import NOW, insert, make_row
from tests.stacks.index.index_worker import (
    SPAWN,
    fork_while_threads_write,
    holds_what_was_acknowledged,
    insert_and_read,
    killed_after,
    mixed,
    scope_of,
)
from tests.stacks.index.postgres.conftest import Opens


def test_many_threads_share_one_index_and_its_few_connections(opens: Opens) -> None:
    index = opens()

    def work(worker: int) -> None:
        for n in range(10):
            row = make_row(f"{n}", call=str(n), scope=scope_of(worker))
            assert index.run(insert(row, f"res_{n}")) is not None
            assert isinstance(index.run(ops.Get(row.scope, f"res_{n}", NOW)), ops.Result)

    with ThreadPoolExecutor(24) as threads:
        list(threads.map(work, range(24)))
    held = index.run(ops.Count())
    assert (held.sessions, held.results, held.payloads) == (24, 240, 10)
    assert index.run(ops.Repair(mend=False)) == []
    assert len(index.server.pool._idle) <= index.server.address.connections


def test_eight_spawned_processes_race_the_migrations_and_lose_nothing(url: str) -> None:
    with ProcessPoolExecutor(8, mp_context=SPAWN) as processes:
        done = list(processes.map(insert_and_read, [url] * 8, range(8), [20] * 8))
    assert done == ["done"] * 8
    index = PostgresIndex(url)
    held = index.run(ops.Count())
    assert (held.sessions, held.results, held.payloads) == (8, 160, 8 * 10 + 10)
    assert index.run(ops.Repair(mend=False)) == []
    index.close()


def test_workers_that_meet_everywhere_wait_for_each_other_and_leave_the_index_whole(
    url: str,
) -> None:
    with ProcessPoolExecutor(4, mp_context=SPAWN) as processes:
        done = list(processes.map(mixed, [url] * 4, range(4), [60] * 4))
    assert done == ["done"] * 4
    index = PostgresIndex(url)
    assert index.run(ops.Repair(mend=False)) == []
    index.close()


def test_what_was_acknowledged_survives_kill_9_of_its_worker(url: str) -> None:
    acknowledged = killed_after(url, 40)
    index = PostgresIndex(url)
    holds_what_was_acknowledged(index, acknowledged)
    index.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_and_its_parent_go_on_while_threads_write(opens: Opens) -> None:
    index = opens()
    fork_while_threads_write(index, 3)


def test_a_process_ends_though_it_never_closed_its_store(url: str, tmp_path: Path) -> None:
    code = (
        "import sys; from callslip import ResultStore\n"
        "store = ResultStore(sys.argv[1], payloads=sys.argv[2])\n"
        "print(store.session('s').put('x' * 99_999, tool='t').id)"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code, url, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout[:4], done.stderr) == ("res_", "")


def test_twenty_async_puts_at_once_are_all_stored(url: str, tmp_path: Path) -> None:
    store = ResultStore(url, payloads=tmp_path)
    session = store.session("s", tenant="acme")

    async def work() -> list[str]:
        puts = [session.aput(f"{n}\n" * 30_000, tool="t") for n in range(20)]
        return [handle.id for handle in await asyncio.gather(*puts)]

    ids = asyncio.run(work())
    assert [session.load(id) for id in ids] == [f"{n}\n" * 30_000 for n in range(20)]
    store.close()
