"""Rows of docs/faults.md: the index away, slow, failing half-way, throttled, full, restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from callslip import Envelope, StoreUnavailable, limits
from callslip.stacks.index.postgres import server
from tests.faults.deployment import LARGE, SMALL, Deployment, Disk, again, assert_sound, delivered
from tests.servers.postgres import Postgres
from tests.servers.process import give_away
from tests.servers.proxy import FaultProxy

Fault = Callable[[FaultProxy], None]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make the index's limit a short one, for a test that waits until it is reached."""
    return lambda: monkeypatch.setattr(server, "INDEX_SECONDS", 1.0)


AWAY: dict[str, tuple[Fault, str]] = {
    "refused": (lambda proxy: proxy.refuse(), "unreachable"),
    "hanging": (lambda proxy: proxy.hang(), "timed out"),
}


@pytest.mark.parametrize("text", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("fault", AWAY, ids=list(AWAY))
def test_a_result_that_cannot_be_filed_is_told_in_short_and_delivered_later(
    fault: str, text: str, deployment: Deployment, impatient: Callable[[], None]
) -> None:
    spoil, reason = AWAY[fault]
    session = deployment.worker().session("a")
    kept = session.put("before", tool="t")
    if fault == "hanging":
        impatient()
    spoil(deployment.index)

    shown = session.offload(text, tool="report")
    assert isinstance(shown, Envelope)
    assert shown.handle is None
    assert len(shown) < 6_000 and f'stored="false" reason="{reason}"' in shown
    assert text[:40] in shown and text[-20:].strip() in shown
    assert deployment.names() == ["stored", "spooled"]
    for verb in (lambda: session.put(text, tool="t"), lambda: session.read(kept.id)):
        with pytest.raises(StoreUnavailable) as refusal:
            verb()
        assert "postgres@" not in str(refusal.value) and "SELECT" not in str(refusal.value)

    deployment.clear()
    # What the index was asked for and could not acknowledge it may have done: once, all the same.
    assert sorted(delivered(deployment)) == sorted([text, "before"])
    assert deployment.worker().session("a").load(kept.id) == "before"
    assert_sound(deployment)


def test_the_next_put_that_works_delivers_the_spool(deployment: Deployment) -> None:
    session = deployment.worker().session("a")
    deployment.index.refuse()
    assert session.offload(SMALL, tool="t").handle is None
    deployment.clear()
    again(lambda: session.put("after", tool="t"))
    assert deployment.names() == ["spooled", "stored", "delivered"]
    assert {session.load(handle.id) for handle in session.list().handles} == {SMALL, "after"}


def test_a_run_of_many_calls_waits_for_a_hanging_index_once(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, impatient: Callable[[], None]
) -> None:
    monkeypatch.setattr(limits, "PAUSE_FACTOR", 600.0)
    monkeypatch.setattr(limits, "PAUSE_SECONDS", 600.0)
    session = deployment.worker().session("a")
    session.put("before", tool="t")
    impatient()
    deployment.index.hang()
    deployment.index.reset()
    texts = {f"{n}\n{SMALL}" for n in range(25)}
    for text in texts:
        assert session.offload(text, tool="t").handle is None
    asked = deployment.index.connections + deployment.index.round_trips
    assert asked <= 2, f"25 calls asked a hanging index {asked} times"
    deployment.clear()
    assert set(delivered(deployment)) == texts | {"before"}


@pytest.mark.asyncio
async def test_tasks_that_wait_for_a_hanging_index_do_not_hold_up_the_loop(
    deployment: Deployment, impatient: Callable[[], None]
) -> None:
    session = deployment.worker().session("a")
    await session.aput("before", tool="t")
    impatient()
    deployment.index.hang()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    texts = {f"{n}\n{SMALL}" for n in range(20)}
    shown = await asyncio.gather(*(session.aoffload(text, tool="t") for text in texts))
    ticking.cancel()
    assert ticks > 5
    assert [envelope.handle for envelope in shown] == [None] * 20
    deployment.clear()
    assert set(delivered(deployment)) == texts | {"before"}


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("after", [0, 300, 2_000])
def test_a_connection_that_breaks_in_the_middle_neither_loses_nor_doubles(
    way: str, after: int, deployment: Deployment
) -> None:
    session = deployment.worker().session("a")
    session.put("before", tool="t")
    deployment.index.cut(after, way)  # type: ignore[arg-type]
    session.offload(SMALL, tool="t", call_id="1")
    deployment.index.cutting = None
    again(lambda: session.put(SMALL, tool="t", call_id="1"))
    deployment.worker().gc()
    handles = deployment.worker().session("a").list().handles
    assert len(handles) == 2
    assert session.load(handles[-1].id) == SMALL


@pytest.mark.parametrize("spoil", [lambda p: p.delay(0.05), lambda p: p.throttle(500_000)])
def test_a_slow_index_is_waited_for(spoil: Fault, deployment: Deployment) -> None:
    session = deployment.worker().session("a")
    session.put("before", tool="t")
    spoil(deployment.index)
    handle = session.offload(SMALL, tool="t").handle
    assert handle is not None
    assert session.load(handle.id) == SMALL


def test_a_killed_server_keeps_what_it_acknowledged(
    deployment: Deployment, postgres: Postgres
) -> None:
    session = deployment.worker().session("a")
    kept = {session.put(f"{n}\n{SMALL}", tool="t").id: f"{n}\n{SMALL}" for n in range(5)}
    postgres.kill()
    assert session.offload(SMALL, tool="t").handle is None
    postgres.start()
    for id, text in kept.items():
        again(lambda id=id: session.read(id))  # type: ignore[misc]
        assert session.load(id) == text
    assert set(delivered(deployment)) == {*kept.values(), SMALL}
    assert_sound(deployment)


@pytest.fixture
def full_database(postgres: Postgres, small_disk: Disk) -> Iterator[str]:
    """A database that is alone on a small disk; the server's log is elsewhere."""
    give_away(small_disk.place)
    database = postgres.new_database().rpartition("/")[2]
    postgres.sql(f"CREATE TABLESPACE of_{database} LOCATION '{small_disk.place}'")
    postgres.sql(f"ALTER DATABASE {database} SET TABLESPACE of_{database}")
    yield database
    small_disk.empty()  # a server whose disk is full cannot even drop it
    postgres.sql(f"DROP DATABASE {database} WITH (FORCE)")
    postgres.sql(f"DROP TABLESPACE of_{database}")


def test_a_full_index_says_so_and_takes_the_spool_when_there_is_room(
    full_database: str, small_disk: Disk, deployment: Deployment, postgres: Postgres
) -> None:
    deployment.dsn = postgres.dsn_of(full_database, port=deployment.index.port)
    session = deployment.worker().session("a")
    kept = session.put(SMALL, tool="t")
    small_disk.fill()
    shown = [session.offload(f"{n}\n{SMALL}", tool="t", call_id=str(n)) for n in range(40)]
    refused = [envelope for envelope in shown if envelope.handle is None]
    assert refused, "the disk was not full"
    assert all('reason="disk full"' in envelope for envelope in refused)
    assert session.load(kept.id) == SMALL, "what is there can still be read"
    small_disk.empty()
    assert set(delivered(deployment)) == {f"{n}\n{SMALL}" for n in range(40)} | {SMALL}
    assert_sound(deployment)


def test_where_the_spool_is_away_too_the_model_is_told_and_nothing_is_promised(
    deployment: Deployment, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    session = deployment.worker(spool=tmp_path / "file" / "spool").session("a")
    deployment.index.refuse()
    shown = session.offload(SMALL, tool="t")
    assert shown.handle is None and 'stored="false" reason="unreachable"' in shown
    assert deployment.names() == ["refused"]
