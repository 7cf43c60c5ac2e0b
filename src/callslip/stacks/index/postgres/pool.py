"""PostgreSQL connections: opened in the caller's thread, borrowed by one at a time, fork-safe.

No background threads: nothing keeps a process from ending, and a server that is away is known at
the first attempt. Nothing is set on a connection outside of a transaction, so behind pgbouncer
each transaction may run on another server connection.
"""

from __future__ import annotations

import os
import re
import select
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.waiting import Ready, Wait

from callslip.errors import StoreUnavailable
from callslip.limits import INDEX_CONNECT_SECONDS, INDEX_IDLE_SECONDS

if TYPE_CHECKING:
    from callslip.stacks.index.address import Address


CROWDED = (
    r"too many connections|too many clients|remaining connection slots|no more connections allowed"
)
"""How a server, or a pooler, says that it has no connection left; there is no SQLSTATE with it."""


class TimedOut(psycopg.OperationalError):
    """The server did not answer in time; the connection is in the middle of something."""


class Connection(psycopg.Connection[Any]):
    """A connection on which nothing is waited for beyond `until`, whatever the network does.

    The server's own timeouts end a statement; this one ends the wait for a server that is gone
    without a word, which they cannot.
    """

    until: float = float("inf")
    """On the monotonic clock."""
    used_at: float = 0.0

    def was_ended(self) -> bool:
        """Whether the server said something to an idle connection: that can only be farewell. So
        one that a restart took away is known before it is used."""
        poll = select.poll()
        poll.register(self.pgconn.socket, select.POLLIN)
        return bool(poll.poll(0))

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        socket = self.pgconn.socket
        poll = select.poll()
        events = {Wait.R: select.POLLIN, Wait.W: select.POLLOUT}
        events[Wait.RW] = events[Wait.R] | events[Wait.W]
        try:
            wanted = next(gen)
            while True:
                left = min(self.until - time.monotonic(), 3600.0)
                poll.register(socket, events[wanted])
                ready = poll.poll(max(0.0, left) * 1000)
                if not ready:
                    self.pgconn.finish()
                    raise TimedOut("no answer in time")
                seen = ready[0][1]
                able = 0
                if seen & ~select.POLLOUT:
                    able |= Ready.R
                if seen & ~select.POLLIN:
                    able |= Ready.W
                wanted = gen.send(Ready(able) if able else Ready.R)
        except StopIteration as stop:
            return stop.value


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
_abandoned: list[Connection] = []
"""Connections that a forked child must neither use nor close."""


class Pool:
    """The connections of one index in one process: at most `address.connections` at a time."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.current = False
        """Whether the schema is known to be of today."""
        self._start()
        _pools.add(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._back = threading.Condition(self._lock)
        self._busy = 0  # connections that are lent, or being opened
        self._room = threading.BoundedSemaphore(self.address.connections)
        self._idle: list[Connection] = []
        # Who never closes a store leaves no connection to the server's patience.
        self._at_the_end = weakref.finalize(self, _close_all, self._idle)
        self.making = threading.Lock()
        """Held by the thread that brings the schema up to date."""
        self._pid = os.getpid()

    @contextmanager
    def borrow(self, until: float) -> Iterator[Connection]:
        """A connection for one transaction, or the error of psycopg's that opening one raised.

        A connection that is not idle in the end, or is broken, is closed and not used again.
        """
        room = self._room
        if not room.acquire(timeout=max(0.0, until - time.monotonic())):
            raise StoreUnavailable(
                f"all {self.address.connections} connections to {self.address.shown} are busy",
                reason="timed out",
            )
        try:
            connection = self._found(until)
            connection.until = until
            try:
                yield connection
            finally:
                self._give(connection)
        finally:
            room.release()

    def _found(self, until: float) -> Connection:
        with self._lock:
            self._busy += 1
        while True:
            try:
                return self._take() or self._open(until)
            except BaseException as error:
                with self._back:
                    self._done()
                    if not isinstance(error, psycopg.Error) or not re.search(CROWDED, str(error)):
                        raise
                    while not self._idle:  # one of ours may come back; of others' nothing is known
                        left = until - time.monotonic()
                        if not self._busy or left <= 0:
                            raise
                        self._back.wait(left)
                    self._busy += 1

    def _done(self) -> None:
        self._busy = max(0, self._busy - 1)  # a child that was forked meanwhile begins at 0
        self._back.notify_all()

    def _take(self) -> Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            stale = time.monotonic() - connection.used_at > INDEX_IDLE_SECONDS
            if not connection.closed and not stale and not connection.was_ended():
                return connection
            connection.close()

    def _open(self, until: float) -> Connection:
        # Each host of a list has its turn within the bound, if there are no more than five of them.
        left = (until - time.monotonic()) / self.address.hosts
        left = min(INDEX_CONNECT_SECONDS, left)
        return Connection.connect(
            self.address.conninfo,
            autocommit=True,
            # Prepared statements belong to a server connection, which pgbouncer gives to others.
            prepare_threshold=None,
            cursor_factory=psycopg.ClientCursor,
            client_encoding="utf8",
            connect_timeout=max(2, int(left)),
        )

    def _give(self, connection: Connection) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        sound = not connection.closed and connection.pgconn.transaction_status == idle
        connection.used_at = time.monotonic()
        connection.until = float("inf")
        if not sound:
            connection.close()
        with self._back:
            kept = sound and self._pid == os.getpid()
            if kept:
                self._idle.append(connection)
            self._done()
        if not kept:
            connection.close()

    def close(self) -> None:
        """Close the idle connections. A later operation opens new ones."""
        with self._lock:
            idle = self._idle.copy()
            self._idle.clear()
        _close_all(idle)

    def forked(self) -> None:
        """In a child: start afresh. What the parent opened stays untouched: closing it here would
        end the parent's session on the server."""
        self._at_the_end.detach()
        _abandoned.extend(self._idle)
        self._start()


def _close_all(connections: list[Connection]) -> None:
    while connections:
        connections.pop().close()


def _after_fork_in_child() -> None:
    for pool in list(_pools):
        pool.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
