"""Wrapping a function: what it returns changes for a window, and nothing else of it."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from callslip import Envelope, ResultStore, Session, SettingsError

BIG = "row\n" * 20_000


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return ResultStore(tmp_path / "store").session("s")


def id_of(envelope: object) -> str:
    assert isinstance(envelope, Envelope)
    assert envelope.handle is not None
    return envelope.handle.id


def test_name_docstring_signature_and_annotations_stay(session: Session) -> None:
    def search(query: str, *, limit: int = 5) -> list[dict[str, Any]]:
        """Find things."""
        return [{"q": query}] * limit

    wrapped = session.offloaded(search)
    assert wrapped.__name__ == "search"
    assert wrapped.__doc__ == "Find things."
    assert inspect.signature(wrapped) == inspect.signature(search)
    assert wrapped.__annotations__ == search.__annotations__
    assert wrapped("a", limit=2) == [{"q": "a"}] * 2


def test_a_short_result_is_the_very_object(session: Session) -> None:
    for value in ({"a": 1}, "text", None, 7, [1, 2], b"raw"):
        assert session.offloaded(lambda value=value: value)() is value


def test_a_long_result_is_an_envelope_that_knows_its_call(session: Session) -> None:
    @session.offloaded
    def search(query: str, limit: int = 5) -> str:
        return BIG + query

    seen = search("cats", limit=3)
    handle = session.handle(id_of(seen))
    assert handle.tool == "search"
    assert handle.args == '{"query":"cats","limit":3}'
    assert session.load(handle.id) == BIG + "cats"
    assert search("cats", limit=3) == seen, "the same call again is a replay"


def test_a_decorator_takes_a_tool_name_and_a_preview(session: Session) -> None:
    @session.offloaded(tool="find", preview=lambda rows: f"best: {max(rows)}")
    def numbers() -> list[int]:
        return list(range(10_000))

    seen = numbers()
    assert 'tool="find"' in seen
    assert "best: 9999" in seen
    assert session.load(id_of(seen)) == list(range(10_000))


def test_a_preview_that_raises_costs_nothing(session: Session) -> None:
    seen = session.offloaded(lambda: BIG, preview=lambda value: 1 / 0)()
    assert "row" in seen
    assert session.load(id_of(seen)) == BIG


def test_what_a_function_raises_its_caller_gets(session: Session) -> None:
    @session.offloaded
    def broken() -> str:
        raise LookupError("no such row " * 9000)

    with pytest.raises(LookupError, match="no such row"):
        broken()


def test_async_functions_stay_async_and_never_block_the_loop(session: Session) -> None:
    stored_in: list[int] = []

    @session.offloaded(preview=lambda value: stored_in.append(threading.get_ident()) or "p")
    async def search(query: str) -> str:
        await asyncio.sleep(0)
        return BIG + query

    assert inspect.iscoroutinefunction(search)
    seen = asyncio.run(search("x"))
    assert session.load(id_of(seen)) == BIG + "x"
    assert stored_in
    assert threading.get_ident() not in stored_in


def test_a_function_that_returns_a_coroutine_is_awaited(session: Session) -> None:
    async def work() -> str:
        return BIG

    wrapped = session.offloaded(lambda: work())
    assert isinstance(asyncio.run(wrapped()), Envelope)


def test_a_generator_yields_its_items_or_one_envelope(session: Session) -> None:
    @session.offloaded
    def lines(count: int) -> Iterator[str]:
        """Lines."""
        for n in range(count):
            yield f"line {n}\n"

    assert inspect.isgeneratorfunction(lines)
    assert list(lines(3)) == ["line 0\n", "line 1\n", "line 2\n"]
    for count in (2_000, 9_000, 300_000):
        (seen,) = lines(count)
        assert session.load(id_of(seen)) == "".join(f"line {n}\n" for n in range(count))
    assert list(lines(0)) == []


def test_a_generator_of_objects_is_stored_one_a_line(session: Session) -> None:
    @session.offloaded
    def rows(count: int) -> Iterator[dict[str, Any]]:
        for n in range(count):
            yield {"n": n, "pair": (n, n)}

    assert list(rows(2)) == [{"n": 0, "pair": (0, 0)}, {"n": 1, "pair": (1, 1)}]
    (seen,) = rows(2_000)
    id = id_of(seen)
    assert session.read(id, start=1001, limit=1).text == '{"n":1000,"pair":[1000,1000]}\n'
    assert session.load(id)[1000] == {"n": 1000, "pair": (1000, 1000)}


def test_an_async_generator_does_the_same(session: Session) -> None:
    @session.offloaded
    async def lines(count: int) -> AsyncIterator[str]:
        for n in range(count):
            await asyncio.sleep(0)
            yield f"line {n}\n"

    async def collected(count: int) -> list[str]:
        return [item async for item in lines(count)]

    assert inspect.isasyncgenfunction(lines)
    assert asyncio.run(collected(2)) == ["line 0\n", "line 1\n"]
    for count in (3_000, 20_000):
        (seen,) = asyncio.run(collected(count))
        assert session.load(id_of(seen)) == "".join(f"line {n}\n" for n in range(count))


def test_what_a_generator_raises_half_way_its_caller_gets(session: Session) -> None:
    @session.offloaded
    def broken(after: int) -> Iterator[str]:
        for n in range(after):
            yield f"line {n} of many\n"
        raise ConnectionResetError("cut")

    for after in (3, 2_000, 60_000, 600_000):
        with pytest.raises(ConnectionResetError):
            list(broken(after))
    assert session.list().total == 0
    assert session.store.verify().orphans == 0


def test_methods_partials_builtins_and_callable_objects_work(session: Session) -> None:
    class Api:
        def fetch(self, path: str) -> str:
            return BIG + path

        def __call__(self, path: str) -> str:
            return BIG + path

    api = Api()
    assert '{"path":"a"}' in session.handle(id_of(session.offloaded(api.fetch)("a"))).args
    assert isinstance(session.offloaded(api)("a"), Envelope)
    assert isinstance(session.offloaded(functools.partial(api.fetch, "b"))(), Envelope)
    assert isinstance(session.offloaded(str)(BIG), Envelope)

    class Decorated:
        @session.offloaded
        def fetch(self, path: str) -> str:
            return BIG + path

    assert session.handle(id_of(Decorated().fetch("c"))).args == '{"path":"c"}'


def test_what_is_no_function_is_said_so(session: Session) -> None:
    with pytest.raises(SettingsError, match="give a function"):
        session.offloaded("not a function")  # type: ignore[type-var]


def test_threads_may_share_a_wrapped_function(session: Session) -> None:
    @session.offloaded
    def work(n: int) -> str:
        return f"{n}\n" * 20_000

    found: dict[int, str] = {}

    def run(n: int) -> None:
        found[n] = session.load(id_of(work(n)))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: f"{n}\n" * 20_000 for n in range(12)}
