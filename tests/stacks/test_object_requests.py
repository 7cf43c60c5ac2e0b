"""What each operation costs at an object store, in requests: over a network, they are the price."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from callslip import ResultStore, Session
from callslip.stacks.index.sealed.master import new_key_file
from callslip.stacks.ops import Get, Result, do
from callslip.stacks.reader import open_reader
from tests.servers.proxy import FaultProxy
from tests.servers.s3 import Moto

MIB = 1024 * 1024


class Deployment:
    """A store over a way that counts."""

    def __init__(self, path: Path, url: str, way: FaultProxy) -> None:
        self.path, self.url, self.way = path, url, way
        self.store = self.fresh().store
        self.session = self.store.session("s")
        self.session.put(noise(1), tool="first")  # where the payloads are is recorded once

    def fresh(self) -> Session:
        """The same session of a store that has read nothing yet."""
        return ResultStore(self.path, payloads=self.url, spool="").session("s")

    def requests(self, act: Callable[[], Any]) -> list[str]:
        """The methods that `act` sent."""
        self.way.reset()
        act()
        return [line.partition(" ")[0] for line in self.way.log]


@pytest.fixture
def made(s3: Moto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    with FaultProxy("127.0.0.1", s3.port, http=True) as way:
        for name, value in s3.environ_at(way.port).items():
            monkeypatch.setenv(name, value)
        yield Deployment(tmp_path, s3.url("results"), way)


def noise(seed: int, size: int = 60_000) -> str:
    """Text that packs into more than the index keeps, and less than a part."""
    return random.Random(seed).randbytes(size).hex()


def rows(count: int) -> list[dict[str, Any]]:
    words = random.Random(3)
    return [
        {"id": n, "name": f"customer {words.random()}", "amount": words.randrange(10**9)}
        for n in range(count)
    ]


@cache
def lines() -> str:
    """Some 10 MB."""
    some = random.Random(5)
    return "".join(f"{n:07d} {some.getrandbits(200):x}\n" for n in range(170_000))


def test_a_put_is_one_request_and_its_end_read_back_another(made: Deployment) -> None:
    assert made.requests(lambda: made.session.put(noise(2), tool="t")) == ["PUT", "GET"]


def test_ten_megabytes_that_pack_into_a_part_are_the_same(made: Deployment) -> None:
    data = rows(160_000)
    assert len(json.dumps(data)) > 10 * MIB
    assert made.requests(lambda: made.session.put(data, tool="t")) == ["PUT", "GET"]


def test_a_long_stream_is_its_parts_and_four(made: Deployment) -> None:
    source = random.Random(4)
    blocks = (source.randbytes(MIB) for _ in range(12))
    sent = made.requests(lambda: made.session.put(blocks, tool="t"))
    # Is the key free; begin; three parts of 5 MiB; end; the end is read back.
    assert sorted(sent) == sorted(["HEAD", "POST", "PUT", "PUT", "PUT", "POST", "GET"])


def test_the_same_content_again_costs_one_look_at_its_end(made: Deployment) -> None:
    assert made.requests(lambda: made.session.put(noise(1), tool="again")) == ["GET"]
    assert "Range" not in made.way.log[0]
    assert made.way.down < 5_000, "no download"


def test_a_page_is_one_request_and_one_more_where_the_directory_is_not_known(
    made: Deployment,
) -> None:
    id = made.session.put(lines(), tool="t").id
    session = made.fresh()
    assert made.requests(lambda: session.read(id, start=90_000)) == ["GET", "GET"]
    for start in (1, 20_000, 55_555, 120_000, 169_999):
        assert len(made.requests(lambda: session.read(id, start=start))) <= 1  # noqa: B023
    assert made.requests(lambda: session.read(id, start=20_010)) == []


def test_sealed_it_costs_the_same_requests(made: Deployment, tmp_path: Path) -> None:
    new_key_file(tmp_path / "key")

    def fresh() -> Session:
        place = {"payloads": made.url, "keys": str(tmp_path / "key"), "spool": ""}
        return ResultStore(tmp_path / "sealed", **place).session("s")  # type: ignore[arg-type]

    session = fresh()
    session.put(noise(1), tool="first")
    assert made.requests(lambda: session.put(noise(2), tool="t")) == ["PUT", "GET"]
    assert made.requests(lambda: session.put(noise(2), tool="again")) == ["GET"]
    id = session.put(lines(), tool="t").id
    session = fresh()
    assert made.requests(lambda: session.read(id, start=90_000)) == ["GET", "GET"]
    for start in (20_000, 55_555, 120_000):
        assert made.requests(lambda: session.read(id, start=start)) == ["GET"]  # noqa: B023
    assert len(made.requests(lambda: session.search(id, "0169990 "))) <= 5


def test_a_page_over_the_end_of_a_chunk_is_one_request(made: Deployment) -> None:
    id = made.session.put(lines(), tool="t").id
    session = made.fresh()
    session.read(id, start=169_999)
    row = session.store.run_flow(do(Get(session.scope, id, session.store.now())))
    assert isinstance(row, Result)
    of = session.store.run_flow(open_reader(row.payload, session.store.caches)).directory
    for chunk in range(2, of.chunks - 2, 9):
        start = of.line_start(chunk) - 3  # its page begins in one chunk and ends in the next
        assert made.requests(lambda: session.read(id, start=start)) == ["GET"]  # noqa: B023


def test_a_page_inside_of_a_line_of_megabytes_is_one_request(made: Deployment) -> None:
    long = noise(5, 2 * MIB)
    id = made.session.put(f"first\n{long}\nlast\n", tool="t").id
    session = made.fresh()
    session.read(id)
    for column in (500_000, 1_700_000, 3_333_333, 4 * MIB - 2_000):
        assert made.requests(lambda: session.read(id, start=2, column=column)) == ["GET"]  # noqa: B023


def test_a_search_reads_more_at_once_the_longer_it_goes(made: Deployment) -> None:
    id = made.session.put(lines(), tool="t").id
    session = made.fresh()
    session.read(id)
    assert len(made.requests(lambda: session.search(id, "0169990 "))) <= 5
    assert len(made.requests(lambda: made.fresh().load(id))) <= 6


def test_records_and_queries(made: Deployment) -> None:
    id = made.session.put(rows(100_000), tool="t").id
    session = made.fresh()
    session.read(id)
    assert made.requests(lambda: session.get(id, "#50000")) == ["GET"]
    asked = made.requests(lambda: session.query(id, where="amount > 999990000"))
    assert len(asked) <= 5
    again = made.requests(lambda: session.query(id, where="amount > 999990001", limit=0))
    assert again == []


def test_a_session_of_many_goes_in_one_request(made: Deployment) -> None:
    other = made.store.session("other")
    for number in range(12):
        other.put(noise(100 + number), tool="t")
    assert made.requests(other.close) == ["POST"]


def test_a_gc_lists_a_thousand_at_once(made: Deployment) -> None:
    counts = itertools.count()
    for _ in range(5):
        made.session.put(noise(200 + next(counts)), tool="t")
    sent = made.requests(made.store.gc)
    # The clock's object, put, listed and deleted; then one listing, and its empty end.
    assert sorted(sent) == ["GET", "GET", "GET", "POST", "PUT"]
