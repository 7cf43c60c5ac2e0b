"""How often a server is asked for one operation: `python -m bench.round_trips` prints the times."""

from __future__ import annotations

import pytest

from bench.round_trips import Counted, measured
from callslip import limits
from tests.faults.deployment import Deployment

AT_MOST = {
    "put, in the index row (20 KB)": (1, 0),
    "put, an object (1 MB)": (3, 2),
    "put, an object (10 MB)": (3, 2),
    "put, a stream (1 MB)": (3, 2),
    "put, the same again (1 MB)": (2, 1),
    "page, in the index row": (1, 0),
    "page, its directory not cached": (2, 2),
    "page, warm": (1, 1),
    "page, the next one": (1, 1),
    "search of 1 MB": (1, 1),
    "search of 1 MB, again": (1, 0),
    "query of 50,000 rows, cold": (1, 3),
    "query of 50,000 rows, warm": (1, 0),
    "list": (1, 0),
    "delete": (5, 1),
}


@pytest.fixture
def counted(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> list[Counted]:
    monkeypatch.setattr(limits, "SWEEP_EVERY_SECONDS", 3600)  # what is done by the way is not it
    deployment.worker().session("first").put("x", tool="t")
    return measured(
        deployment.index, deployment.objects, deployment.dsn, deployment.payloads, part=0.3
    )


def test_no_operation_asks_its_servers_more_often_than_stated(counted: list[Counted]) -> None:
    found = {row.name: (row.index, row.objects) for row in counted}
    assert found.keys() == AT_MOST.keys()
    more = {
        name: trips
        for name, trips in found.items()
        if trips[0] > AT_MOST[name][0] or trips[1] > AT_MOST[name][1]
    }
    assert not more
