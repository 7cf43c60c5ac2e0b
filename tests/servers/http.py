"""Where requests begin and end in what a client sends: for a proxy that counts or answers them."""

from __future__ import annotations

from collections.abc import Iterator


class Requests:
    """Cuts a client's stream into requests. `feed` gives each block's parts, in order.

    A part is the method and target of the request that begins with it ("" inside of one), its
    bytes, and whether the request ends with them.
    """

    def __init__(self) -> None:
        self._head = b""
        self._left = 0  # bytes of the body that are to come
        self._chunked = False
        self._line = b""

    def feed(self, block: bytes) -> Iterator[tuple[str, bytes, bool]]:
        while block:
            if self._left and not self._chunked:
                part, block = block[: self._left], block[self._left :]
                self._left -= len(part)
                yield "", part, not self._left
            elif self._chunked:
                taken = self._chunks(block)
                part, block = block[:taken], block[taken:]
                yield "", part, not self._chunked and not self._left
            else:
                self._head += block
                head, end, block = self._head.partition(b"\r\n\r\n")
                if not end:
                    return
                self._head = b""
                self._begin(head)
                line = head.partition(b"\r\n")[0].decode("latin-1").rpartition(" ")[0]
                yield line, head + end, not self._left and not self._chunked

    def _begin(self, head: bytes) -> None:
        for line in head.lower().split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name == b"content-length":
                self._left = int(value)
            elif name == b"transfer-encoding" and b"chunked" in value:
                self._chunked = True

    def _chunks(self, block: bytes) -> int:
        """How much of the block belongs to this chunked body."""
        at = 0
        while at < len(block):
            if self._left:
                step = min(self._left, len(block) - at)
                self._left -= step
                at += step
                continue
            cut = block.find(b"\n", at)
            self._line += block[at : cut + 1 if cut >= 0 else len(block)]
            if cut < 0:
                return len(block)
            at = cut + 1
            size, self._line = int(self._line.split(b";")[0].strip(), 16), b""
            self._left = size + 2
            if not size:  # the last chunk, and the empty line after it
                self._chunked = False
                left = min(self._left, len(block) - at)
                self._left -= left
                return at + left
        return at
