"""`Session.offloaded`: any function, wrapped so that a large result never reaches the window."""

from __future__ import annotations

import functools
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from callslip.errors import SettingsError
from callslip.handle import Envelope, Reply
from callslip.stacks.kinds import is_stream

if TYPE_CHECKING:
    import asyncio

    from callslip.by_reference import References
    from callslip.offloading import PreviewOf
    from callslip.session import Session

F = TypeVar("F", bound=Callable[..., Any])
_OWNERS = ("self", "cls")
_Given = tuple[tuple[Any, ...], dict[str, Any]] | Reply


class Wrapping:
    """What `Session` inherits: `offloaded`, for any function."""

    @overload
    def offloaded(
        self,
        fn: F,
        /,
        *,
        tool: str | None = None,
        preview: PreviewOf | None = None,
        resolve: Sequence[str] = (),
    ) -> F: ...

    @overload
    def offloaded(
        self,
        fn: None = None,
        /,
        *,
        tool: str | None = None,
        preview: PreviewOf | None = None,
        resolve: Sequence[str] = (),
    ) -> Callable[[F], F]: ...

    def offloaded(
        self,
        fn: Any = None,
        /,
        *,
        tool: str | None = None,
        preview: PreviewOf | None = None,
        resolve: Sequence[str] = (),
    ) -> Any:
        """Wrap any function so that what it returns goes through `offload`; also a decorator.

        Sync, async, generator and async generator functions, methods and callable objects. Name,
        docstring, signature and annotations stay, so frameworks build the same tool schema. What
        the function raises, its caller gets.

        tool      its name in envelopes (default: the function's own)
        preview   makes the preview from the value it returned, or `top("score")`
        resolve   parameters that receive the stored value where a model passes its handle, as does
                  one that is `Annotated[str, Resolved]`. Where another gets a handle instead of
                  data, the function is not called and an error is returned that says so; a
                  parameter whose name ends in `id`, `handle`, `path`, `file`, `ref` or `key` wants
                  the id itself.
        """
        session = cast("Session", self)
        if fn is None:
            return lambda function: wrap(session, function, tool, preview, resolve)
        return wrap(session, fn, tool, preview, resolve)


def wrap(
    session: Session,
    fn: F,
    tool: str | None,
    preview: PreviewOf | None,
    resolve: Sequence[str] = (),
) -> F:
    """The wrapped function; of the same colour, with the same name, docstring and signature.

    Our own read-back tools come back as they are (law 8). A generator function yields what it
    yields if that is short, or else one thing: the envelope.
    """
    from callslip.tools import Tool

    if isinstance(getattr(fn, "__self__", fn), Tool):
        return fn
    if not callable(fn):
        raise SettingsError(f"offloaded({fn!r}): give a function, or use offload() for a value")
    name = tool or getattr(fn, "__name__", "") or type(fn).__name__
    from callslip.by_reference import References

    made = _maker(session, fn, name, preview, References.of(fn, resolve))
    functools.update_wrapper(made, fn)
    return cast("F", made)


def _maker(
    session: Session,
    fn: Callable[..., Any],
    name: str,
    preview: PreviewOf | None,
    references: References,
) -> Callable[..., Any]:
    plain = inspect.isroutine(fn) or isinstance(fn, functools.partial)
    called: Any = fn if plain else cast("Any", fn).__call__
    masked = session.store.mask is not None

    def stays(value: Any, name: str) -> bool:  # the one hot path: no flow for a short result
        return not masked and session._stays(value, name)

    def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Given:
        if not references.hold(args, kwargs):
            return args, kwargs
        return session.store.run_flow(references.resolved(session, args, kwargs))

    async def agiven(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Given:
        if not references.hold(args, kwargs):
            return args, kwargs
        return await session.store.arun_flow(references.resolved(session, args, kwargs))

    if inspect.isasyncgenfunction(called):

        async def astreamed(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
            kept: list[Any] = []
            taken = await agiven(args, kwargs)
            if isinstance(taken, Reply):
                yield taken
                return
            value = await session.aoffload(
                _anoted(fn(*taken[0], **taken[1]), kept),
                tool=name,
                args=_arguments(fn, args, kwargs),
                preview=preview,
            )
            for item in _items(value, kept, masked):
                yield item

        return astreamed
    if inspect.isgeneratorfunction(called):

        def streamed(*args: Any, **kwargs: Any) -> Generator[Any, None, None]:
            kept: list[Any] = []
            taken = given(args, kwargs)
            if isinstance(taken, Reply):
                yield taken
                return
            value = session.offload(
                _noted(fn(*taken[0], **taken[1]), kept),
                tool=name,
                args=_arguments(fn, args, kwargs),
                preview=preview,
            )
            yield from _items(value, kept, masked)

        return streamed

    async def finished(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if stays(value, name):
            return value
        arguments = _arguments(fn, args, kwargs)
        return await session.aoffload(value, tool=name, args=arguments, preview=preview)

    if inspect.iscoroutinefunction(called):

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            taken = await agiven(args, kwargs)
            if isinstance(taken, Reply):
                return taken
            return await finished(await fn(*taken[0], **taken[1]), args, kwargs)

        return awaited

    def direct(*args: Any, **kwargs: Any) -> Any:
        taken = given(args, kwargs)
        if isinstance(taken, Reply):
            return taken
        value = fn(*taken[0], **taken[1])
        if inspect.iscoroutine(value):
            return _then(value, lambda result: finished(result, args, kwargs))
        if stays(value, name):
            return value
        arguments = _arguments(fn, args, kwargs)
        return session.offload(value, tool=name, args=arguments, preview=preview)

    return direct


async def _then(value: Any, after: Callable[[Any], Any]) -> Any:
    return await after(await value)


def _items(value: Any, kept: list[Any], masked: bool) -> Iterable[Any]:
    """What a generator yields for a value that it was offloaded as: the envelope, or its own items
    as they came; what may be seen of them where fields are masked."""
    if isinstance(value, Envelope):
        return [value]
    if masked:
        return value if isinstance(value, list) else [value]
    return kept


def _noted(items: Iterable[Any], kept: list[Any]) -> Iterator[Any]:
    """The items, each kept as long as the whole is short enough to be yielded as it came."""
    for item in items:
        kept.append(item)
        yield item


async def _anoted(items: AsyncIterator[Any], kept: list[Any]) -> AsyncIterator[Any]:
    async for item in items:
        kept.append(item)
        yield item


def _arguments(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call's arguments by name; what a method is bound to is none of them."""
    try:
        bound = inspect.signature(fn).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        # A builtin without a signature, or a call that the function itself took differently.
        return {"args": list(args), **kwargs}
    return {name: value for name, value in bound.items() if name not in _OWNERS}


_BATCH = 512
"""Items that one hop to the event loop fetches: a hop costs as much as hundreds of items."""


class Bridge:
    """An async iterator of an event loop, as an iterator that a worker thread can walk.

    Made on that loop. `stop` is for the task that waits for the thread and is cancelled: it ends
    the async iterator, so that what it holds open is closed now and not some day.
    """

    def __init__(self, items: Any) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._items = aiter(items)
        self._walk = self._walked()
        self._fetching: asyncio.Task[Any] | None = None
        self._stopped = False

    def __iter__(self) -> Iterator[Any]:
        return self._walk

    def __next__(self) -> Any:
        return next(self._walk)

    def stop(self) -> None:
        """End it; to be called on its loop."""
        self._stopped = True
        if self._fetching is not None:
            self._fetching.cancel()

    def _walked(self) -> Iterator[Any]:
        import asyncio

        while True:
            got, error = asyncio.run_coroutine_threadsafe(self._fetched(), self._loop).result()
            yield from got
            if isinstance(error, StopAsyncIteration):
                return
            if error is not None:
                raise error

    async def _fetched(self) -> tuple[list[Any], BaseException | None]:
        import asyncio

        self._fetching = asyncio.current_task()
        got: list[Any] = []
        try:
            while len(got) < _BATCH and not self._stopped:
                got.append(await anext(self._items))
        except BaseException as error:  # noqa: BLE001 - raised again, behind what came before it
            return got, error
        finally:
            self._fetching = None
        if not self._stopped:
            return got, None
        if hasattr(self._items, "aclose"):
            await self._items.aclose()
        return [], asyncio.CancelledError()


def bridged(value: Any) -> Any:
    """An async iterator as one that a worker thread can walk; anything else as it is.

    Must be called on the event loop that the iterator belongs to.
    """
    return Bridge(value) if is_stream(value) and hasattr(type(value), "__anext__") else value
