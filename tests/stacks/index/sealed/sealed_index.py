"""A sealed index for tests, with a master key that is made on the spot."""

from __future__ import annotations

from callslip.stacks.index.sealed import Sealed, master_of
from callslip.stacks.index.sealed.cipher import Box, fresh
from callslip.stacks.ops import Runs


class LocalKms:
    """A KMS as small as one can be: one key in memory."""

    key_id = "test"

    def __init__(self) -> None:
        self._box = Box(fresh())

    def wrap(self, key: bytes) -> bytes:
        return self._box.seal(key, b"")

    def unwrap(self, wrapped: bytes) -> bytes:
        return self._box.open(wrapped, b"")


def sealed(inner: Runs) -> Sealed:
    return Sealed(inner, master_of(LocalKms()))
