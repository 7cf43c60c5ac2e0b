"""A TCP proxy that spoils the way to a server, and counts what goes by."""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Literal, Self

from tests.servers.http import Requests

Way = Literal["up", "down"]
BLOCK = 64 * 1024


class FaultProxy:
    """Stands on `port` of loopback in front of a server; faults may come and go at any time.

    Use it as a context, or `close` it. Counts since the last `reset`: `connections`, bytes `up`
    (to the server) and `down`, `round_trips` (how often a client spoke after it had listened), and
    with http=True also `requests`, by method, and `log`, the lines "METHOD /target".
    """

    def __init__(self, host: str, port: int, *, http: bool = False) -> None:
        self._to = (host, port)
        self._http = http
        self._lock = threading.Lock()
        self._open: set[_Pipe] = set()
        self._listener: socket.socket | None = _bound(0)
        self.port: int = self._listener.getsockname()[1]
        self._closed = False
        self.clear()
        self.reset()
        self._listen()

    # --- faults ---

    def clear(self) -> None:
        """No faults any more; what was cut stays cut."""
        self.delayed = 0.0
        self.hanging = False
        self.corrupting = 0
        self.cutting: tuple[int, Way] | None = None
        self.rate = 0.0
        self.refused_requests = 0
        self._answer = b""
        if getattr(self, "_refusing", False):
            self._refusing = False
            self._listen()
        self._refusing = False

    def delay(self, seconds: float) -> None:
        """Everything takes so long each way: a round trip takes twice that."""
        self.delayed = seconds

    def refuse(self) -> None:
        """The server is away: connections are refused, and the open ones are reset."""
        self._refusing = True
        self._unlisten()
        self.drop()

    def drop(self) -> None:
        """Reset the connections that are open now."""
        for pipe in self._pipes():
            pipe.reset()

    def hang(self) -> None:
        """Connections are taken and stay open, and nothing goes through them."""
        self.hanging = True

    def cut(self, after_bytes: int, way: Way = "up") -> None:
        """Every connection is reset once so many more bytes went through it, to the server or back."""
        for pipe in self._pipes():
            pipe.gone = {"up": 0, "down": 0}
        self.cutting = (after_bytes, way)

    def corrupt(self, at_least: int = 1) -> None:
        """A byte is wrong in each block that comes back; with http=True, of the bodies only.

        Blocks that are smaller than `at_least` stay whole: an error's text, a listing.
        """
        self.corrupting = at_least

    def throttle(self, bytes_per_s: float) -> None:
        """No connection is faster than this, either way."""
        self.rate = bytes_per_s

    def slow_down(self, times: int, status: str = "503 Slow Down", code: str = "SlowDown") -> None:
        """Answer the next requests with a refusal, as S3 does under load; the server sees none."""
        assert self._http
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self._answer = (
            f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()
        self.refused_requests = times

    # --- counts ---

    def reset(self) -> None:
        """Count from nought."""
        with self._lock:
            self.connections = self.up = self.down = self.round_trips = 0
            self.requests: Counter[str] = Counter()
            self.log: list[str] = []

    def close(self) -> None:
        self._closed = True
        self._unlisten()
        if self._listener is not None:
            self._listener.close()
        self.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- how it is done ---

    def _listen(self) -> None:
        assert self._listener is not None
        self._listener.listen(128)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _unlisten(self) -> None:
        # A socket that is bound and does not listen refuses connections, and keeps the port.
        old, self._listener = self._listener, None
        if old is not None:
            with contextlib.suppress(OSError):
                old.shutdown(socket.SHUT_RDWR)
            old.close()
        if not self._closed:
            self._listener = _bound(self.port)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._to, 10)
            except OSError:
                _reset(client)  # the server behind is away: so are we
                continue
            server.settimeout(None)
            with self._lock:
                self.connections += 1
                pipe = _Pipe(self, client, server)
                self._open.add(pipe)
            pipe.start()

    def _pipes(self) -> list[_Pipe]:
        with self._lock:
            return list(self._open)

    def _forget(self, pipe: _Pipe) -> None:
        with self._lock:
            self._open.discard(pipe)

    def _counted(self, way: Way, size: int, turned: bool) -> None:
        with self._lock:
            if way == "up":
                self.up += size
                self.round_trips += turned
            else:
                self.down += size

    def _asked(self, line: str) -> bytes | None:
        """Note a request; the answer, where this one is refused."""
        with self._lock:
            self.requests[line.partition(" ")[0]] += 1
            self.log.append(line)
            if self.refused_requests > 0:
                self.refused_requests -= 1
                return self._answer
        return None


class _Pipe:
    """One connection: two readers that take what comes, two writers that pass it on in time."""

    def __init__(self, proxy: FaultProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._queues: dict[Way, queue.Queue[tuple[float, bytes]]] = {
            "up": queue.Queue(64),
            "down": queue.Queue(64),
        }
        self.gone: dict[Way, int] = {"up": 0, "down": 0}
        self._last: Way = "down"
        self._requests = Requests()
        self._refusal: bytes | None = None
        self._over = False
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        work: list[tuple[Callable[..., None], tuple[object, ...]]] = [
            (self._take, (self._client, "up")),
            (self._give, (self._server, "up")),
            (self._take, (self._server, "down")),
            (self._give, (self._client, "down")),
        ]
        for target, args in work:
            threading.Thread(target=target, args=args, daemon=True).start()

    def reset(self) -> None:
        self._over = True
        for end in (self._client, self._server):
            _reset(end)
        self._proxy._forget(self)

    def _take(self, source: socket.socket, way: Way) -> None:
        while not self._over:
            try:
                block = source.recv(BLOCK)
            except OSError:
                break
            turned = way == "up" and self._last == "down" and bool(block)
            self._last = way if block else self._last
            self._proxy._counted(way, len(block), turned)
            if block and way == "up" and self._proxy._http:
                block = self._looked_at(block)
                if not block:
                    continue
            self._queues[way].put((time.monotonic() + self._proxy.delayed, block))
            if not block:
                return
        self._queues[way].put((0.0, b""))

    def _looked_at(self, block: bytes) -> bytes:
        """What of a client's block goes to the server: not the requests that are answered here."""
        passed = []
        for line, part, ends in self._requests.feed(block):
            if line:
                self._refusal = self._proxy._asked(line)
            if self._refusal is None:
                passed.append(part)
            elif ends:
                due = time.monotonic() + self._proxy.delayed
                self._queues["down"].put((due, self._refusal))
                self._refusal = None
        return b"".join(passed)

    def _give(self, target: socket.socket, way: Way) -> None:
        while not self._over:
            due, block = self._queues[way].get()
            if due > time.monotonic():
                time.sleep(due - time.monotonic())
            while self._proxy.hanging and not self._over:
                time.sleep(0.01)
            if not block:
                with contextlib.suppress(OSError):
                    target.shutdown(socket.SHUT_WR)
                break
            if way == "down" and self._proxy.corrupting:
                block = _spoiled(block, self._proxy._http, self._proxy.corrupting)
            try:
                self._pass_on(target, way, block)
            except OSError:
                self.reset()
        else:
            return
        if way == "down":  # the server has said all: a half-open connection serves nobody
            self._over = True
            for end in (self._client, self._server):
                end.close()
            self._proxy._forget(self)

    def _pass_on(self, target: socket.socket, way: Way, block: bytes) -> None:
        cutting = self._proxy.cutting
        if cutting is not None and cutting[1] == way:
            block = block[: max(0, cutting[0] - self.gone[way])]
        rate = self._proxy.rate
        step = max(1, int(rate / 20)) if rate else len(block)
        for at in range(0, len(block), max(1, step)):
            piece = block[at : at + step]
            target.sendall(piece)
            if rate:
                time.sleep(len(piece) / rate)
        self.gone[way] += len(block)
        if cutting is not None and cutting[1] == way and self.gone[way] >= cutting[0]:
            self.reset()


def _spoiled(block: bytes, http: bool, at_least: int) -> bytes:
    start = block.find(b"\r\n\r\n") + 4 if http and block.startswith(b"HTTP/1.") else 0
    size = len(block) - start
    if size < at_least:
        return block
    middle = start + size // 2
    return block[:middle] + bytes([block[middle] ^ 0x55]) + block[middle + 1 :]


def _bound(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener


def _reset(end: socket.socket) -> None:
    """Close with an RST, as a machine that is gone and back does."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RD)  # wakes the thread that reads from it; sends nothing
    with contextlib.suppress(OSError):
        end.close()
