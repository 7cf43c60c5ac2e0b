"""A payload store around another one, which sees nothing but what is sealed.

::

    header (8 bytes) | piece 0 | piece 1 | … | piece n

Each piece is AES-256-GCM over 16 KiB of what is stored, under the object's own secret; its number and
whether it is the last are its nonce. So no piece can be taken for another, of this object or of any
other, and an object that was cut off at a piece's end has no last one. A range is read with the
pieces that it lies in, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, cast

from callslip.errors import PayloadDamaged
from callslip.stacks.index.sealed.cipher import aesgcm, derived, invalid
from callslip.stacks.layout import AS_STORED
from callslip.stacks.ops import (
    DeleteObjects,
    IsRemote,
    ListObjects,
    Op,
    PutObject,
    ReadObject,
    Runs,
)

__all__ = ["HEADER", "PIECE_BYTES", "SealedPayloads", "plain_size", "sealed_size"]

T = TypeVar("T")

HEADER = b"CSEAL\x01\0\0"
"""For people and tools that find an object without its row. The number is that of the format."""

PIECE_BYTES = 16 * 1024
_TAG_BYTES = 16
_WHOLE = PIECE_BYTES + _TAG_BYTES


class SealedPayloads:
    """Seals what `PutObject` writes and opens what `ReadObject` reads: both bring the secret."""

    def __init__(self, inner: Runs) -> None:
        self.inner = inner

    def run(self, op: Op[T], /) -> T:
        """Run one operation. Damage and tampering alike raise `PayloadDamaged`."""
        match op:
            case PutObject(key, parts, secret):
                size = self.inner.run(PutObject(key, _sealed(parts, _aead(secret))))
                return cast("T", plain_size(size))
            case ReadObject():
                return cast("T", self._read(op))
            case ListObjects():
                listed = self.inner.run(op)
                return cast("T", [(key, plain_size(size), at) for key, size, at in listed])
        if isinstance(op, DeleteObjects | IsRemote):
            return cast("T", self.inner.run(op))
        # What is not known here might store in the clear.
        raise TypeError(f"a payload store with keys does not run {type(op).__name__}")

    def close(self) -> None:
        """Close the store."""
        if hasattr(self.inner, "close"):
            self.inner.close()

    def _read(self, op: ReadObject) -> bytes:
        if op.secret == AS_STORED:
            return self.inner.run(op)
        if not op.length:
            return self.inner.run(ReadObject(op.key, 0, 0))
        first, last = op.start // PIECE_BYTES, (op.start + op.length - 1) // PIECE_BYTES
        end = min((last + 1) * PIECE_BYTES, op.size)
        if op.start + op.length > op.size:
            raise PayloadDamaged(f"payload {op.key} has {op.size} bytes")
        begin = len(HEADER) + first * _WHOLE
        length = end - first * PIECE_BYTES + (last + 1 - first) * _TAG_BYTES
        found = memoryview(self.inner.run(ReadObject(op.key, begin, length)))
        aead, final = _aead(op.secret), (op.size - 1) // PIECE_BYTES
        try:
            pieces = [
                aead.decrypt(
                    _nonce(number, number == final),
                    found[(number - first) * _WHOLE : (number - first + 1) * _WHOLE],
                    HEADER,
                )
                for number in range(first, last + 1)
            ]
        except invalid():
            raise PayloadDamaged(
                f"payload {op.key} does not match its seal, a checksum with a key"
            ) from None
        opened = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        skip = op.start - first * PIECE_BYTES
        return opened[skip : skip + op.length]


def _sealed(parts: Iterable[bytes], aead: Any) -> Iterator[bytes]:
    yield HEADER
    held: list[bytes] = []
    size = number = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size <= PIECE_BYTES:
            continue
        # One piece is kept back: only the end tells which is the last.
        whole = memoryview(b"".join(held))
        at, out = 0, []
        while size - at > PIECE_BYTES:
            piece = whole[at : at + PIECE_BYTES]
            out.append(aead.encrypt(_nonce(number, False), piece, HEADER))
            number += 1
            at += PIECE_BYTES
        held, size = [bytes(whole[at:])], size - at
        yield b"".join(out)
    yield aead.encrypt(_nonce(number, True), b"".join(held), HEADER)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "little") + bytes([last])


def _aead(secret: bytes) -> Any:
    if not secret:
        raise PayloadDamaged("the key of a payload's object does not open")
    return aesgcm(derived(secret, "object"))


def sealed_size(size: int) -> int:
    """How many bytes an object has that was given so many."""
    pieces = max(1, -(-size // PIECE_BYTES))
    return len(HEADER) + size + pieces * _TAG_BYTES


def plain_size(size: int) -> int:
    """How many bytes an object was given that has so many."""
    rest = max(0, size - len(HEADER))
    return max(0, rest - max(1, -(-rest // _WHOLE)) * _TAG_BYTES)
