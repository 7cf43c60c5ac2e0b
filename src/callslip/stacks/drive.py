"""Two drivers for one flow: in the caller's thread, or off the caller's event loop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar, cast

from callslip.stacks.ops import Flow, IndexOp, Op, Runs

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")


class Backend:
    """An index and a payload store, as the one thing that runs operations."""

    def __init__(self, index: Runs, payloads: Runs) -> None:
        self.index = index
        self.payloads = payloads

    def run(self, op: Op[T], /) -> T:
        return (self.index if isinstance(op, IndexOp) else self.payloads).run(op)


def drive(backend: Runs, flow: Flow[T]) -> T:
    """Run a flow to its end here. A backend's error comes back into the flow, at its `yield`."""
    try:
        op: Op[Any] = next(flow)
        while True:
            try:
                result = backend.run(op)
            except Exception as error:
                op = flow.throw(error)
            else:
                op = flow.send(result)
    except StopIteration as stop:
        return cast("T", stop.value)


_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def worker_pool() -> ThreadPoolExecutor:
    """The threads that blocking work runs on when the caller has an event loop.

    Our own, so that a hundred reads never starve the default executor that the caller's code uses.
    """
    global _pool
    with _pool_lock:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="callslip")
        return _pool


def _forget_pool() -> None:
    # A forked child has the object but none of its threads.
    global _pool
    _pool = None


if hasattr(__import__("os"), "register_at_fork"):
    __import__("os").register_at_fork(after_in_child=_forget_pool)


async def adrive(backend: Runs, flow: Flow[T]) -> T:
    """Run a flow to its end on a worker thread, compression and regex included."""
    import asyncio
    import contextvars

    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(worker_pool(), lambda: context.run(drive, backend, flow))
