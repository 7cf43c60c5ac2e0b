"""Many processes that open a sealed store at once, the first use of all included."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from callslip import ResultStore
from callslip.stacks.index.sealed.master import new_key_file

WORKERS, PUTS = 4, 12


def _work(folder: str, key: str, worker: int) -> list[tuple[str, str, str]]:
    store = ResultStore(folder, keys=key, spool="")
    done = []
    for n in range(PUTS):
        tenant, text = f"tenant {n % 3}", f"{n % 4} is shared by some " * 4_000
        session = store.session(f"session {n % 5}", user="ana", tenant=tenant)
        id = session.put(text, args={"worker": worker, "n": n}).id
        assert session.load(id) == text
        done.append((tenant, f"session {n % 5}", id))
    store.close()
    return done


def test_workers_that_begin_together_seal_with_the_same_keys(tmp_path: Path) -> None:
    new_key_file(tmp_path / "key")
    folder, key = str(tmp_path / "store"), str(tmp_path / "key")
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        rows = pool.starmap(_work, [(folder, key, worker) for worker in range(WORKERS)])
    store = ResultStore(folder, keys=key, spool="")
    for done in rows:
        for n, (tenant, name, id) in enumerate(done):
            session = store.session(name, user="ana", tenant=tenant)
            assert session.load(id) == f"{n % 4} is shared by some " * 4_000
    assert store.stats().results == WORKERS * PUTS
    assert store.stats().payloads == 12, "a tenant's equal contents are one payload, as ever"
    assert store.verify().ok
