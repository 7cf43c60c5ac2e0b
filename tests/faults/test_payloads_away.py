"""Rows of docs/faults.md: the payload store away, slow, cut, throttling, full, damaged."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest

from callslip import Envelope, PayloadDamaged, StoreUnavailable
from tests.faults.deployment import LARGE, SMALL, Deployment, Disk, again, assert_sound, delivered
from tests.servers.proxy import FaultProxy

Fault = Callable[[FaultProxy], None]

AWAY: dict[str, tuple[Fault, str]] = {
    "refused": (lambda proxy: proxy.refuse(), "unreachable"),
    "hanging": (lambda proxy: proxy.hang(), "timed out"),
    "cut on its way there": (lambda proxy: proxy.cut(100_000, "up"), ""),
    "cut on its way back": (lambda proxy: proxy.cut(10, "down"), ""),
    "throttling for good": (lambda proxy: proxy.slow_down(10_000), "failed"),
    "full": (lambda proxy: proxy.slow_down(10_000, "507 Insufficient", "Full"), "disk full"),
    "refusing us": (
        lambda proxy: proxy.slow_down(9, "403 No", "AccessDenied"),
        "permission denied",
    ),
}


@pytest.mark.parametrize("fault", AWAY, ids=list(AWAY))
def test_a_result_that_cannot_be_stored_is_told_in_short_and_delivered_later(
    fault: str, deployment: Deployment
) -> None:
    spoil, reason = AWAY[fault]
    store = deployment.worker()
    session = store.session("a")
    kept = session.put(f"before {LARGE}", tool="t")
    spoil(deployment.objects)

    shown = session.offload(LARGE, tool="report")
    assert isinstance(shown, Envelope)
    assert shown.handle is None
    assert len(shown) < 6_000 and 'stored="false"' in shown
    assert LARGE[:40] in shown and LARGE[-20:].strip() in shown
    if reason:
        assert f'reason="{reason}"' in shown
    assert deployment.names() == ["stored", "spooled"]
    with pytest.raises(StoreUnavailable) as refusal:
        session.put(f"put {LARGE}", tool="t")
    for word in ("testing-secret", "127.0.0.1", "AWS"):
        assert word not in str(refusal.value)
        assert word not in shown
    # What fits into the index row needs no payload store.
    assert session.offload(SMALL, tool="t").handle is not None

    deployment.clear()
    assert delivered(deployment) == [f"before {LARGE}", SMALL, LARGE]
    assert deployment.worker().session("a").load(kept.id) == f"before {LARGE}"
    assert_sound(deployment)


def test_a_full_payload_folder_says_so_and_takes_the_spool_when_there_is_room(
    small_disk: Disk, deployment: Deployment
) -> None:
    deployment.payloads = str(small_disk.place / "payloads")
    session = deployment.worker().session("a")
    kept = session.put(f"before {LARGE}", tool="t")
    small_disk.fill()
    shown = session.offload(LARGE, tool="t")
    assert shown.handle is None and 'reason="disk full"' in shown
    assert session.load(kept.id) == f"before {LARGE}"
    small_disk.empty()
    assert delivered(deployment) == [f"before {LARGE}", LARGE]
    assert_sound(deployment)


@pytest.mark.parametrize("fault", ["refused", "hanging", "throttling for good"])
def test_a_read_says_that_the_store_is_away_and_works_again_after_that(
    fault: str, deployment: Deployment
) -> None:
    kept = deployment.worker().session("a").put(LARGE, tool="t")
    session = deployment.worker().session("a")  # nothing cached
    AWAY[fault][0](deployment.objects)
    with pytest.raises(StoreUnavailable):
        session.read(kept.id)
    tool = {tool.name: tool for tool in session.tools()}["read_result"]
    said = tool.call(id=kept.id)
    assert said.startswith("The store could not answer (") and len(said) < 120
    deployment.clear()
    again(lambda: session.read(kept.id))
    assert session.load(kept.id) == LARGE


def test_a_stream_whose_store_goes_away_in_the_middle_is_delivered_whole(
    deployment: Deployment,
) -> None:
    lines = [random.Random(n).randbytes(60_000).hex() + "\n" for n in range(120)]

    def stream() -> Iterator[str]:
        yield from lines[:100]
        # Parts go up beside: a part is on its way, and the proxy may have seen little of it yet.
        until = time.monotonic() + 10
        while deployment.objects.up < 1_000_000 and time.monotonic() < until:
            time.sleep(0.01)
        assert deployment.objects.up > 1_000_000, "some of it is on its way"
        deployment.objects.refuse()
        yield from lines[100:]

    shown = deployment.worker().session("a").offload(stream(), tool="t")
    assert shown.handle is None
    deployment.clear()
    assert delivered(deployment) == ["".join(lines)]
    assert_sound(deployment)


def test_a_few_refusals_under_load_are_waited_out(deployment: Deployment) -> None:
    session = deployment.worker().session("a")
    deployment.objects.slow_down(2)
    handle = session.offload(LARGE, tool="t").handle
    assert handle is not None and deployment.names() == ["stored"]
    fresh = deployment.worker().session("a")
    deployment.objects.slow_down(2)
    assert fresh.load(handle.id) == LARGE


@pytest.mark.parametrize("spoil", [lambda p: p.delay(0.05), lambda p: p.throttle(2_000_000)])
def test_a_slow_payload_store_is_waited_for(spoil: Fault, deployment: Deployment) -> None:
    spoil(deployment.objects)
    session = deployment.worker().session("a")
    handle = session.offload(LARGE, tool="t").handle
    assert handle is not None
    assert deployment.worker().session("a").load(handle.id) == LARGE


def test_damaged_bytes_are_never_shown_and_not_remembered(deployment: Deployment) -> None:
    kept = deployment.worker().session("a").put(LARGE, tool="t")
    session = deployment.worker().session("a")
    deployment.objects.corrupt(at_least=200)
    with pytest.raises(PayloadDamaged):
        session.load(kept.id)
    tool = {tool.name: tool for tool in session.tools()}["read_result"]
    assert "damaged" in tool.call(id=kept.id, start=30_000)
    deployment.clear()
    assert session.load(kept.id) == LARGE


def test_what_does_not_read_back_as_it_was_written_gets_no_handle(deployment: Deployment) -> None:
    session = deployment.worker().session("a")
    deployment.objects.corrupt(at_least=200)
    assert session.offload(LARGE, tool="t").handle is None
    deployment.clear()
    assert delivered(deployment) == [LARGE]
    assert_sound(deployment)
