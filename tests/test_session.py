"""One conversation: what is put in, what comes back, and what becomes of it."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import logging
import os
import pickle
import random
import re
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from callslip import (
    Envelope,
    Event,
    HandleGone,
    Quota,
    ResultStore,
    Session,
    SettingsError,
    StoreUnavailable,
    UnknownHandle,
    limits,
)
from callslip.stacks.ops import (
    FindPayload,
    Forget,
    Garbage,
    Get,
    Insert,
    PutObject,
    ReadObject,
    Remove,
)
from callslip.testing.faults import FaultyBackend

BIG = "\n".join(f"finding {n}: " + "d" * 60 for n in range(1, 3001))


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / "store")


@pytest.fixture
def session(store: ResultStore) -> Session:
    return store.session("s", user="u", tenant="t")


def id_of(envelope: object) -> str:
    assert isinstance(envelope, Envelope)
    assert envelope.handle is not None
    return envelope.handle.id


def noisy(size: int, seed: int = 0) -> str:
    """Text that does not compress into an index row."""
    chance = random.Random(seed)
    return "".join(f"{chance.random():.17f}\n" for _ in range(size // 20))


# --- in -------------------------------------------------------------------------------------------


def test_the_threshold_is_strict(tmp_path: Path) -> None:
    session = ResultStore(tmp_path, threshold_chars=5_000).session("s")
    assert session.offload("x" * 5_000, tool="t") == "x" * 5_000
    assert isinstance(session.offload("x" * 5_001, tool="t"), Envelope)


def test_a_threshold_in_tokens_takes_any_counter(tmp_path: Path) -> None:
    session = ResultStore(
        tmp_path, threshold_tokens=2_000, count_tokens=lambda text: len(text.split())
    ).session("s")
    assert isinstance(session.offload("word " * 2_001, tool="t"), Envelope)
    assert session.offload("wordword " * 2_000, tool="t").startswith("wordword")


def test_the_same_call_and_content_is_the_same_handle_and_the_same_words(session: Session) -> None:
    first = session.offload(BIG, tool="t", args={"q": 1})
    assert session.offload(BIG, tool="t", args={"q": 1}) == first
    by_id = session.offload(BIG + "!", tool="t", call_id="c1")
    assert session.offload(BIG + "!", tool="t", call_id="c1") == by_id
    assert session.list().total == 2


def test_two_contents_under_one_call_id_are_two_handles(session: Session) -> None:
    ids = {session.put(f"{n} {BIG}", tool="t", call_id="same").id for n in range(5)}
    assert len(ids) == 5


def test_the_same_content_again_is_one_line_that_names_the_first(session: Session) -> None:
    first = id_of(session.offload(BIG, tool="a", args={"q": 1}))
    again = session.offload(BIG, tool="b", args={"q": 2})
    assert "\n" not in again
    assert first in again
    assert session.load(id_of(again)) == BIG
    unnamed = session.offload(noisy(50_000), tool="c")
    repeated = session.offload(noisy(50_000), tool="c")
    assert "\n" not in repeated
    assert id_of(repeated) == id_of(unnamed)
    assert session.store.stats().payloads == 2


def test_equal_content_is_one_payload_in_a_tenant_and_another_in_the_next(
    store: ResultStore,
) -> None:
    text = noisy(300_000)
    for tenant in ("a", "b"):
        for session in ("s1", "s2", "s3"):
            store.session(session, tenant=tenant).put(text, tool="t")
    assert store.stats(tenant="a").payloads == 1
    assert store.stats().payloads == 2
    assert store.stats().results == 6


def test_an_error_result_keeps_its_status_and_both_ends_of_its_text(session: Session) -> None:
    value = {
        "success": False,
        "error_type": "rate_limit",
        "error": "E_FIRST " + "x" * 50_000 + " LAST",
    }
    seen = session.offload(value, tool="t")
    assert 'status="error"' in seen
    assert "rate_limit" in seen
    assert "E_FIRST" in seen
    assert "LAST" in seen
    assert len(seen) <= limits.PREVIEW_CHARS + limits.ENVELOPE_CHARS
    assert session.load(id_of(seen)) == value
    assert str(session.handle(id_of(seen))) == seen
    assert 'status="error"' in session.offload(BIG, tool="t", status="error", call_id="x")


def test_what_a_failed_call_leaves_out_is_counted_in_our_own_words(session: Session) -> None:
    text = "E_FIRST " + "so it went " * 5_000 + " [… 9 lines left out …] LAST"
    seen = session.offload({"success": False, "error": text}, tool="t")
    (left,) = [
        int(n.replace(",", "")) for n in re.findall(r"\[… ([\d,]+) characters left out …\]", seen)
    ]
    shown = re.search(r'shown="([\d,]+) of ([\d,]+) characters"', seen)
    assert shown is not None
    assert int(shown[1].replace(",", "")) + left == len(text) == int(shown[2].replace(",", ""))


def test_a_handle_and_an_envelope_serve_as_an_id(session: Session) -> None:
    seen = session.offload(BIG, tool="t")
    assert session.load(seen) == BIG
    assert session.read(session.handle(seen.handle)).total == 3000


def test_the_file_vocabulary_names_its_tools_everywhere(tmp_path: Path) -> None:
    session = ResultStore(tmp_path, vocabulary="files").session("s")
    seen = session.offload(BIG, tool="t", args={"n": 1})
    assert f'read_slice("{id_of(seen)}")' in seen
    again = session.offload(BIG, tool="t", args={"n": 2})
    assert f'grep_file("{id_of(again)}", pattern)' in again
    assert {tool.name for tool in session.tools()} >= {"read_slice", "grep_file"}
    for tool in session.tools():
        assert "_result(" not in tool.call(path=id_of(seen), pattern="finding 7")


def test_keep_says_what_stays_inline(tmp_path: Path) -> None:
    session = ResultStore(tmp_path, keep=lambda value, tool: tool == "read_file").session("s")
    assert session.offload(BIG, tool="read_file") is BIG
    assert isinstance(session.offload(BIG, tool="fetch"), Envelope)


def chunks(size: int) -> Iterator[bytes]:
    for n in range(size):
        yield b"%d %d\n" % (n, n * 7919)


async def achunks(size: int) -> AsyncIterator[bytes]:
    for block in chunks(size):
        yield block


@pytest.mark.parametrize("size", [0, 3, 5_000, 200_000])
def test_streams_of_every_sort_are_stored_as_their_whole(session: Session, size: int) -> None:
    raw = b"".join(chunks(size))
    text = raw.decode()
    given: list[tuple[Any, Any]] = [
        (chunks(size), raw),
        (io.BytesIO(raw), raw),
        (io.StringIO(text), text),
        (iter(text.splitlines(keepends=True)), text),
    ]
    for value, whole in given:
        assert session.load(session.put(value, tool="t").id) in (whole, [])
        if size:
            assert session.load(session.put(whole, tool="t").id) == whole
    got = asyncio.run(session.aput(achunks(size), tool="t"))
    assert session.load(got.id) in (raw, [])


def test_a_short_stream_comes_back_as_its_whole(session: Session) -> None:
    assert session.offload(iter(["a", "b"]), tool="t") == "ab"
    assert session.offload(io.BytesIO(b"raw"), tool="t") == b"raw"
    assert session.list().total == 0


def test_a_short_stream_of_a_tool_that_is_always_offloaded_is_never_a_dead_envelope(
    tmp_path: Path,
) -> None:
    session = ResultStore(tmp_path, tools={"t": "always"}, threshold_chars=0).session("s")
    for size in (1, 100, 700, 3_000, 9_000):
        seen = session.offload(iter(["word "] * size), tool="t")
        assert seen == "word " * size or session.load(id_of(seen)) == "word " * size


def test_a_hook_redacts_before_anything_is_written(tmp_path: Path) -> None:
    secret = "hunter2-" * 3

    def redact(text: str) -> str:
        return text.replace(secret, "[gone]")

    for payload in (
        BIG + secret,
        noisy(500_000) + secret,
        {"rows": [secret] * 3000},
        [BIG, secret],
    ):
        store = ResultStore(tmp_path / "s", redact=redact)
        session = store.session("s")
        seen = session.offload(payload, tool="t")
        assert secret not in seen
        assert session.search(id_of(seen), "hunter2").total == 0
        assert "[gone]" in str(session.load(id_of(seen)))
        store.close()
        for path in (tmp_path / "s").rglob("*"):
            assert path.is_dir() or secret.encode() not in path.read_bytes()


def test_events_carry_sizes_and_no_content(tmp_path: Path) -> None:
    events: list[Event] = []
    session = ResultStore(tmp_path, on_event=events.append).session("s")
    seen = session.offload(BIG, tool="t")
    assert events == [Event("stored", "t", id_of(seen), len(BIG), len(seen))]
    sizes = f"{len(BIG):,} bytes, {len(seen):,} characters shown"
    assert str(events[0]) == f"stored: a result of t ({id_of(seen)}, {sizes})"
    assert str(Event("spooled", reason="failed")) == "spooled: a result of no tool (failed)"


def test_an_event_hook_that_raises_fails_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = ResultStore(tmp_path, on_event=lambda event: 1 / 0).session("s")
    with caplog.at_level(logging.ERROR, "callslip"):
        assert isinstance(session.offload(BIG, tool="t"), Envelope)
    assert "on_event raised" in caplog.text


# --- when the store is away -------------------------------------------------------------------------


def broken(store: ResultStore, fault: Exception, **how: Any) -> None:
    store._backend.index = FaultyBackend(store._backend.index, fault=fault, times=None, **how)
    store._backend.payloads = FaultyBackend(store._backend.payloads, fault=fault, times=None, **how)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (StoreUnavailable("x", reason="locked"), "locked"),
        (OSError(28, "No space left on device"), "disk full"),
        (PermissionError(13, "denied", "/secret/path"), "permission denied"),
        (RuntimeError("a bug, with SELECT * FROM secret"), "failed"),
    ],
)
def test_a_tool_goes_on_while_the_store_is_away(
    store: ResultStore, fault: Exception, reason: str
) -> None:
    session = store.session("s")
    broken(store, fault)
    head = "".join(f"turn {n}: worker said something\n" for n in range(20_000))
    for value in (head + "LATEST: ok", iter([head, "LATEST: ok"])):
        seen = session.offload(value, tool="history")
        assert isinstance(seen, Envelope)
        assert seen.handle is None
        assert f'reason="{reason}"' in seen
        assert "turn 0: worker" in seen
        assert "LATEST: ok" in seen
        assert len(seen) <= limits.REFUSED_CHARS
        assert not {"secret", "SELECT"} & set(seen.replace("/", " ").split())
    with pytest.raises((StoreUnavailable, RuntimeError)):
        session.put(head, tool="history")
    for tool in session.tools():
        assert len(tool.call(result_id="res_0123456789", pattern="x")) < 300


def test_what_the_spool_took_is_delivered_by_another_process_too(
    tmp_path: Path, store: ResultStore
) -> None:
    session = store.session("s", user="u", tenant="t")
    broken(store, OSError(28, "No space left on device"))
    texts = [noisy(200_000, seed=n) for n in range(3)] + ["small " * 5_000]
    for n, text in enumerate(texts):
        session.offload(text, tool=f"t{n}")
    later = ResultStore(tmp_path / "store")
    assert later.session("s", user="u", tenant="t").list().total == 0
    assert later.gc().delivered == 4
    found = later.session("s", user="u", tenant="t").list().handles
    assert [later.session("s", user="u", tenant="t").load(handle.id) for handle in found] == texts
    assert later.gc().delivered == 0
    assert later.verify().ok


def test_without_a_spool_the_loss_is_said(tmp_path: Path) -> None:
    events: list[Event] = []
    store = ResultStore(tmp_path, spool="", on_event=events.append)
    broken(store, OSError(28, "full"))
    store.session("s").offload(BIG, tool="t")
    assert [(event.name, event.reason) for event in events] == [("refused", "disk full")]


# --- what becomes of it -----------------------------------------------------------------------------


def test_results_expire_after_the_last_activity_not_after_the_put(tmp_path: Path) -> None:
    now = [0.0]
    store = ResultStore(tmp_path, ttl_seconds=100, clock=lambda: now[0])
    session = store.session("s")
    id = session.put(BIG, tool="t").id
    for _ in range(20):
        now[0] += 80
        assert session.read(id).total == 3000
        store.sweep()
    now[0] += 101
    with pytest.raises(HandleGone) as gone:
        session.read(id)
    assert gone.value.why == "expired"
    store.sweep()
    assert store.stats().payloads == 0
    with pytest.raises(HandleGone):
        session.read(id)


def test_a_closed_session_can_be_opened_again_with_nothing_in_it(session: Session) -> None:
    id = session.put(BIG, tool="t").id
    with session:
        assert session.read(id).total == 3000
    with pytest.raises(HandleGone):
        session.load(id)
    assert session.list().total == 0
    assert session.put(BIG, tool="t").id == id, "the same call and content, stored again"
    assert session.load(id) == BIG


def test_one_result_goes_without_a_look_at_the_others_of_its_session(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_, last = (session.put(f"{n} {BIG}", tool="t").id for n in range(3))
    session.read(first)
    run, asked = session.store._backend.run, []
    monkeypatch.setattr(
        session.store._backend, "run", lambda op: (asked.append(type(op)), run(op))[1]
    )
    assert session.delete(first)
    assert asked == [Get, Remove, Garbage]
    assert not session.store.caches.directories._items, "nothing of it is kept in memory"
    monkeypatch.undo()
    assert session.list().handles[-1].id == last


def test_a_page_costs_no_envelope_where_nobody_asks_for_one(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = session.put(BIG, tool="t").id
    monkeypatch.setattr("callslip.access.handle_of", None)
    assert session.read(id).total == 3000


def test_a_payload_lives_as_long_as_one_result_needs_it(store: ResultStore, tmp_path: Path) -> None:
    text = noisy(400_000)
    one, two = store.session("one"), store.session("two")
    first, second = one.put(text, tool="t").id, two.put(text, tool="t").id

    def files() -> list[Path]:
        return [path for path in (tmp_path / "store" / "payloads").rglob("*") if path.is_file()]

    assert len(files()) == 1
    one.close()
    assert two.load(second) == text
    with pytest.raises(HandleGone):
        one.load(first)
    two.close()
    assert files() == []


def test_deleting_by_subject_leaves_no_trace(store: ResultStore, tmp_path: Path) -> None:
    for tenant in ("a", "b"):
        for user in ("ana", "bo"):
            for name in ("s1", "s2"):
                store.session(name, user=user, tenant=tenant).put(
                    noisy(100_000) + tenant + user + name,
                    tool="t",
                    args={"who": f"{tenant}-{user}"},
                )
    assert store.delete(tenant="a", user="ana", session="s1") == 1
    assert store.delete(tenant="a", user="ana") == 1
    with pytest.raises(UnknownHandle):
        store.session("s1", user="ana", tenant="a").read("res_0123456789")
    assert store.delete(tenant="b") == 4
    assert store.stats().results == 2
    store.close()
    left = b"".join(p.read_bytes() for p in (tmp_path / "store").rglob("*") if p.is_file())
    assert b"a-bo" in left
    assert store.verify().ok


def test_a_quota_evicts_the_oldest(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, quota=Quota(session_results=3, tenant_bytes=500_000))
    session = store.session("s")
    ids = [session.put(noisy(60_000, seed=n), tool="t", args={"n": n}).id for n in range(5)]
    assert [handle.id for handle in session.list().handles] == ids[2:]
    with pytest.raises(HandleGone) as gone:
        session.read(ids[0])
    assert gone.value.why == "evicted"
    for n in range(20):
        store.session(f"other {n}").put(noisy(60_000, seed=100 + n), tool="t")
    assert store.stats().content_bytes <= 500_000
    assert store.stats(tenant="").payloads == store.stats().payloads


def test_damage_is_reported_and_never_returned(store: ResultStore, tmp_path: Path) -> None:
    session = store.session("s")
    text = noisy(2_000_000)
    id = session.put(text, tool="t").id
    (payload,) = (p for p in (tmp_path / "store" / "payloads").rglob("*") if p.is_file())
    raw = bytearray(payload.read_bytes())
    raw[len(raw) // 2] ^= 1
    payload.write_bytes(raw)
    again = ResultStore(tmp_path / "store")
    found = again.verify()
    assert not found.ok
    assert "checksum" in found.problems[0]
    reader = again.session("s")
    replies = {reader.tools()[0].call(result_id=id, start=n) for n in range(1, 100_000, 500)}
    assert any("damaged" in reply for reply in replies)
    shown = "".join(line for reply in replies for line in reply.splitlines(keepends=True))
    lines = set(text.splitlines())
    assert {line for line in shown.splitlines() if line.startswith("0.")} <= lines
    payload.unlink()
    assert not ResultStore(tmp_path / "store").verify().ok


OPS = (FindPayload, Insert, PutObject, ReadObject, Get, Remove, Garbage, Forget)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_one_lost_operation_leaves_a_store_that_gc_makes_whole(
    store: ResultStore, op: type, when: Any
) -> None:
    session = store.session("s")
    kept = session.put(noisy(300_000, seed=9), tool="kept").id
    store._backend.index = FaultyBackend(store._backend.index, only=op, when=when)
    store._backend.payloads = FaultyBackend(store._backend.payloads, only=op, when=when)
    for step in (
        lambda: session.put(noisy(300_000), tool="t"),
        lambda: session.read(kept),
        lambda: session.delete(session.list().handles[-1].id),
        lambda: session.put(noisy(300_000, seed=5), tool="t"),
    ):
        try:
            step()
        except StoreUnavailable:
            continue
    store.gc(grace_seconds=0)
    found = store.verify()
    assert found.ok
    assert found.orphans == 0
    for handle in session.list().handles:
        session.load(handle.id)


def test_async_twins_answer_the_same(session: Session) -> None:
    async def run() -> None:
        seen = await session.aoffload(BIG, tool="t", args={"q": 1})
        assert seen == session.offload(BIG, tool="t", args={"q": 1})
        id = id_of(seen)
        assert await session.aread(id, start=5, limit=2) == session.read(id, start=5, limit=2)
        assert await session.asearch(id, "finding 7") == session.search(id, "finding 7")
        assert await session.alist() == session.list()
        assert await session.ahandle(id) == session.handle(id)
        assert await session.aload(id) == BIG
        async with await session.aopen(id) as file:
            assert await file.read(10) == BIG[:10].encode()
            assert b"".join([block async for block in file]) == BIG[10:].encode()
        (read, *_) = session.tools()
        reply = await read.acall(result_id=id, start=7)
        assert reply == session.tools()[0].call(result_id=id, start=7)
        store = session.store
        assert await store.averify() == store.verify()
        assert await store.astats() == store.stats()
        await store.asweep()
        await store.agc()
        assert await session.adelete(id)
        assert await session.aclose() == 0
        assert await store.adelete(tenant="t") == 0

    asyncio.run(run())


def test_the_event_loop_keeps_ticking_while_much_is_stored_and_searched(session: Session) -> None:
    text = noisy(6_000_000)
    gaps: list[float] = []

    async def tick() -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(0.001)
            gaps.append(loop.time() - last)
            last = loop.time()

    async def run() -> None:
        ticking = asyncio.create_task(tick())
        handle = await session.aput(text, tool="t")
        await session.asearch(handle.id, "0.1234|x.*y")
        ticking.cancel()

    asyncio.run(run())
    assert len(gaps) > 10, "the loop was blocked from beginning to end"


def test_the_exact_bytes_are_a_seekable_file(session: Session) -> None:
    raw = noisy(1_000_000).encode()
    with session.open(session.put(raw, tool="t").id) as file:
        assert file.size == len(raw)
        assert file.read(100) == raw[:100]
        file.seek(500_000)
        assert file.readline() == raw[500_000 : raw.index(b"\n", 500_000) + 1]
        file.seek(-10, io.SEEK_END)
        assert file.read() == raw[-10:]
        file.seek(0)
        assert file.read() == raw


def test_many_threads_put_and_read_one_session(session: Session) -> None:
    wrong: list[str] = []

    def work(n: int) -> None:
        for k in range(10):
            text = f"{n}-{k} " * 9_000
            id = session.put(text, tool="t", args=[n, k]).id
            if session.load(id) != text or session.search(id, f"{n}-{k} ").total != 9_000:
                wrong.append(id)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert session.list().total == 80


def test_a_one_line_json_array_is_read_one_record_a_line(session: Session) -> None:
    rows = [{"n": n, "text": "word " * 9} for n in range(20_000)]
    for value in (json.dumps(rows), rows):
        handle = session.put(value, tool="t", args=type(value).__name__)
        assert handle.lines == 20_000
        assert (
            json.loads(session.read(handle.id, start=777, limit=1).text.rstrip(",\n ")) == rows[776]
        )
        assert session.search(handle.id, '"n": ?12345').hits[0].line == 12_346
        assert session.load(handle.id) == value


# --- odd things that people do ----------------------------------------------------------------------


def test_a_stream_that_could_not_be_stored_is_spooled_whole(
    store: ResultStore, tmp_path: Path
) -> None:
    session = store.session("s")
    text = noisy(900_000)
    inner = store._backend.payloads
    for when in ("before", "half", "after"):
        store._backend.payloads = FaultyBackend(
            inner, fault=OSError(28, "No space left on device"), only=PutObject, when=when
        )
        seen = session.offload(iter([text[:300_000], text[300_000:], when]), tool=when)
        assert isinstance(seen, Envelope)
        assert seen.handle is None
        assert when in seen
    store._backend.payloads = inner
    assert store.gc().delivered == 3
    found = {handle.tool: handle for handle in session.list().handles}
    for when in ("before", "half", "after"):
        assert session.load(found[when]) == text + when


def test_a_mock_and_what_lies_about_its_class_are_taken_as_they_are(session: Session) -> None:
    class Liar:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            return dict

    for value in (MagicMock(), AsyncMock(), Mock(spec=dict), MagicMock(spec=str), Liar()):
        assert session.offload(value, tool="t") is value
        session.put(value, tool="t")


def test_a_stream_with_nothing_to_read_yet_is_not_taken_for_its_end(session: Session) -> None:
    ends = os.pipe()
    os.set_blocking(ends[0], False)
    os.write(ends[1], b"first ")
    with os.fdopen(ends[0], "rb", buffering=0) as file, pytest.raises(BlockingIOError):
        session.put(file, tool="t")
    os.close(ends[1])
    assert session.list().total == 0


def test_cancelling_a_put_ends_the_stream_it_was_given(session: Session) -> None:
    ended: list[bool] = []

    async def slow() -> AsyncIterator[str]:
        try:
            while True:
                yield "line\n" * 100
                await asyncio.sleep(0.005)
        finally:
            ended.append(True)

    async def run() -> None:
        task = asyncio.create_task(session.aput(slow(), tool="t"))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(100):
            if ended:
                return
            await asyncio.sleep(0.01)

    asyncio.run(run())
    assert ended == [True]
    assert session.list().total == 0


def test_a_policy_hook_that_raises_does_not_cost_the_result(tmp_path: Path) -> None:
    session = ResultStore(tmp_path, keep=lambda value, tool: 1 / 0).session("s")
    assert session.load(session.offloaded(lambda: BIG)()) == BIG


def test_names_of_any_type_do_for_a_call(session: Session) -> None:
    for tool, call_id in ((None, 5), (7, None), ("", b"x")):
        handle = session.put(f"{tool} {BIG}", tool=tool, call_id=call_id, status=None)  # type: ignore[arg-type]
        assert session.load(handle).endswith(BIG)


def test_a_store_may_be_copied_with_an_agent_and_sent_to_a_process(store: ResultStore) -> None:
    session = store.session("s")
    id = session.put(BIG, tool="t").id
    assert copy.deepcopy({"agent": session})["agent"].load(id) == BIG
    assert pickle.loads(pickle.dumps(session)).load(id) == BIG


def test_a_picture_is_no_text(session: Session) -> None:
    png = made_png()
    handle = session.put(png, tool="shot")
    page = session.read(handle)
    assert (
        str(page)
        == f"{handle.id} is image/png, {len(png)}B: no text, and no tool here shows more of it."
    )
    assert session.load(handle) == png


def made_png() -> bytes:
    raw = (
        b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (640).to_bytes(4, "big") + (420).to_bytes(4, "big")
    )
    return raw + b"\x08\x02\0\0\0" + bytes(range(256))


@pytest.mark.parametrize(
    "wrong",
    [
        {"ttl_seconds": "1h"},
        {"ttl_seconds": 0},
        {"ttl_seconds": 10**400},
        {"keep": 5},
        {"redact": "x"},
        {"tools": ["a"]},
        {"tools": {"a": "sometimes"}},
        {"quota": 5},
        {"count_tokens": 5},
        {"url": ""},
        {"url": "x\0y"},
        {"url": "\ud800"},
        {"url": "mysql://x"},
        {"preview_chars": -1},
        {"threshold_chars": "16000"},
        {"vocabulary": "tools"},
        {"style": "xml"},
        {"on_event": 1},
    ],
)
def test_a_wrong_setting_is_named_with_its_value(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(SettingsError) as told:
        ResultStore(**wrong)
    assert name in str(told.value)
    assert repr(value)[:20] in str(told.value) or name in ("tools", "url")
