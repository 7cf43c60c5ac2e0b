"""Two drivers for one flow: in the caller's thread, or off the caller's event loop."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from callslip.errors import SettingsError, StoreUnavailable
from callslip.stacks.ops import Aside, Flow, IndexOp, Op, Runs, Secret

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")


class Lazy:
    """A backend that is opened by its first operation, so that a store costs nothing until used.

    What opening raises is raised by that operation, inside the flow, and tried again by the next.
    """

    def __init__(self, open_backend: Callable[[], Runs]) -> None:
        self._open = open_backend
        self._opened: Runs | None = None
        self._lock = threading.Lock()

    def run(self, op: Op[T], /) -> T:
        opened = self._opened
        if opened is None:
            with self._lock:
                opened = self._opened
                if opened is None:
                    opened = self._opened = self._open()
        return opened.run(op)

    def close(self) -> None:
        """Close what was opened; a later operation opens it again."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None and hasattr(opened, "close"):
            opened.close()


class SpoolUnavailable(StoreUnavailable):
    """It is the spool that cannot be used; of the store it says nothing."""


class Backend:
    """An index, a payload store, and the local store that takes results while those are away."""

    def __init__(
        self, index: Runs, payloads: Runs, spool: Runs | None = None, *, sealed: bool = False
    ) -> None:
        self.index = index
        self.payloads = payloads
        self.spool = spool
        self.sealed = sealed
        """Whether the index seals what it is given, and so has secrets."""

    def run(self, op: Op[T], /) -> T:
        if isinstance(op, Aside):
            if self.spool is None:
                raise StoreUnavailable("this store has no spool", reason="failed")
            try:
                return cast("T", self.spool.run(op.op))
            except (StoreUnavailable, SettingsError) as error:
                # Of another key or version: no more than one that is full may it fail a tool's call.
                reason = error.reason if isinstance(error, StoreUnavailable) else "failed"
                raise SpoolUnavailable(f"the spool: {error}", reason=reason) from error
        if isinstance(op, Secret) and not self.sealed:
            return cast("T", b"")
        try:
            of_index = isinstance(op, IndexOp | Secret)
            return (self.index if of_index else self.payloads).run(op)
        except OSError as error:
            raise StoreUnavailable(
                f"{type(op).__name__}: {error}", reason=reason_of(error)
            ) from error

    def close(self) -> None:
        """Close every part that can be closed."""
        for part in (self.index, self.payloads, self.spool):
            if part is not None and hasattr(part, "close"):
                part.close()


_REASONS = {
    errno.ENOSPC: "disk full",
    errno.EDQUOT: "disk full",
    errno.EFBIG: "disk full",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "permission denied",
    errno.ETIMEDOUT: "timed out",
    errno.ECONNREFUSED: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.EHOSTUNREACH: "unreachable",
}


def reason_of(error: OSError) -> str:
    """The fixed words of `StoreUnavailable.reason` for an operating system's error."""
    return _REASONS.get(error.errno or 0, "failed")


def drive(backend: Runs, flow: Flow[T]) -> T:
    """Run a flow to its end here. A backend's error comes back into the flow, at its `yield`."""
    try:
        op: Op[Any] = next(flow)
        while True:
            try:
                result = backend.run(op)
            except Exception as error:  # noqa: BLE001 - whatever it is, the flow decides
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
    More than there are cores: most of them wait for a server. One is made only when it is needed.
    """
    global _pool
    with _pool_lock:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(max_workers=32, thread_name_prefix="callslip")
        return _pool


def _forget_pool() -> None:
    # A forked child has the object but none of its threads.
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


async def adrive(backend: Runs, flow: Flow[T]) -> T:
    """Run a flow to its end on a worker thread, compression and regex included."""
    import asyncio
    import contextvars

    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(worker_pool(), lambda: context.run(drive, backend, flow))
