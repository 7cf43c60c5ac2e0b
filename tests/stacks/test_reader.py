from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.errors import PayloadDamaged
from callslip.reading.page import read
from callslip.reading.search import search
from callslip.stacks.drive import adrive, drive
from callslip.stacks.reader import Caches, open_reader
from tests.reading.stored_payload import Stored

BODY = "".join(f"{i} é line\n" for i in range(60_000))


@settings(max_examples=50, deadline=None)
@given(st.integers(-5, 1_000_000), st.integers(0, 400_000))
def test_any_part_of_the_bytes_comes_back(start: int, length: int) -> None:
    stored = SHARED
    expected = stored.body[start : start + length] if start >= 0 else b""
    assert stored.run(stored.reader.part(start, length)) == expected


SHARED = Stored(BODY)


def test_the_whole_comes_back_and_the_twin() -> None:
    stored = Stored(BODY, twin=b"exact" * 100)
    assert stored.run(stored.reader.body()) == BODY.encode()
    assert b"".join(stored.run(flow) for flow in stored.reader.blocks()) == BODY.encode()
    assert stored.run(stored.reader.twin()) == b"exact" * 100
    assert SHARED.run(SHARED.reader.twin()) is None
    assert Stored("").run(Stored("").reader.body()) == b""


def test_an_inline_payload_needs_no_operation() -> None:
    stored = Stored(BODY, inline=True)
    assert stored.run(read(stored.reader, "res_1", start=50_000)).text.startswith("49999 é")
    assert stored.run(search(stored.reader, "res_1", "59999 é")).total == 1
    assert stored.backend.read == []


def test_a_second_look_at_the_same_place_reads_nothing() -> None:
    stored = Stored(BODY)
    stored.run(read(stored.reader, "res_1", start=30_000))
    stored.backend.read.clear()
    again = stored.run(open_reader(stored.row, stored.caches))
    stored.run(read(again, "res_1", start=30_000))
    assert stored.backend.read == []
    stored.caches.forget(stored.row.digest)
    again = stored.run(open_reader(stored.row, stored.caches))
    stored.run(read(again, "res_1", start=30_000))
    assert len(stored.backend.read) == 2


def test_a_cache_keeps_what_was_used_last() -> None:
    caches = Caches(directories=2, chunks=1)
    stored = [Stored(f"text {i}\n", caches=caches) for i in range(3)]
    for one in stored:
        one.backend.read.clear()
        one.run(open_reader(one.row, caches))
    assert [len(one.backend.read) for one in stored] == [1, 1, 1]
    stored[2].backend.read.clear()
    stored[2].run(open_reader(stored[2].row, caches))
    assert stored[2].backend.read == []


def test_a_damaged_or_missing_byte_is_reported_and_never_returned() -> None:
    stored = Stored(BODY)
    packed = stored.backend.objects["k"]
    start, length = stored.reader.directory.extent(3)
    flipped = bytearray(packed)
    flipped[start + length // 2] ^= 1
    stored.backend.objects["k"] = bytes(flipped)
    line = stored.reader.directory.line_start(3) + 5
    with pytest.raises(PayloadDamaged):
        stored.run(read(stored.reader, "res_1", start=line))
    with pytest.raises(PayloadDamaged):
        stored.run(search(stored.reader, "res_1", "nowhere"))
    with pytest.raises(PayloadDamaged):
        stored.run(stored.reader.body())
    assert stored.run(read(stored.reader, "res_1")).text.startswith("0 é line")
    stored.backend.objects["k"] = packed[:-1]
    with pytest.raises(PayloadDamaged, match="cut short"):
        stored.run(open_reader(stored.row, Caches()))
    with pytest.raises(PayloadDamaged):
        stored.run(open_reader(replace(stored.row, key=None), Caches()))


def test_more_readers_than_threads_all_come_to_an_end() -> None:
    # Each runs on a thread of the pool and wants another of them for half of its chunks.
    async def ask() -> list[int]:
        flows = [search(SHARED.reader, "res_1", "9999 é") for _ in range(24)]
        found = await asyncio.gather(*(adrive(SHARED.backend, flow) for flow in flows))
        return [hits.total for hits in found]

    assert asyncio.run(asyncio.wait_for(ask(), 60)) == [6] * 24


def test_one_reader_serves_many_threads() -> None:
    wrong: list[str] = []

    def look(line: int) -> None:
        for _ in range(10):
            page = drive(SHARED.backend, read(SHARED.reader, "res_1", start=line, limit=1))
            if page.text != f"{line - 1} é line\n":
                wrong.append(page.text)

    threads = [threading.Thread(target=look, args=(1 + 7_000 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
