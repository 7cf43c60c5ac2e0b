"""Work beside the packing: in order, its errors told, and never in the way of the process' end."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from callslip.stacks.beside import Beside


def test_work_is_done_in_order_and_all_of_it() -> None:
    done: list[int] = []
    threads: set[int] = set()
    with Beside() as beside:
        for n in range(200):
            beside.do(lambda n=n: (done.append(n), threads.add(threading.get_ident())))
        beside.wait()
    assert done == list(range(200))
    assert len(threads) == 2, "the first is done here, the others in one other thread"


def test_what_work_raises_comes_back() -> None:
    with Beside() as beside:
        beside.do(lambda: None)
        beside.do(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            beside.wait()
    with pytest.raises(ZeroDivisionError), Beside() as beside:
        beside.do(lambda: 1 / 0)


def test_a_packing_that_was_left_half_done_does_not_hinder_the_process_from_ending() -> None:
    code = (
        "from callslip.blocks import Whole\n"
        "from callslip.stacks.content import canonical\n"
        "from callslip.stacks.writing import Packing\n"
        "text = ''.join(f'{n * 7919 % 1000003} {n}\\n' for n in range(600_000))\n"
        "packing = Packing(Whole(canonical(text)), b'k')\n"
        "next(packing.frames)\n"
        "kept = packing\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
