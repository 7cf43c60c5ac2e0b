"""The contract of a payload store, over sealed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callslip.stacks.ops import PutObject, ReadObject
from callslip.stacks.payloads import open_payloads
from callslip.stacks.payloads.sealed import SealedPayloads
from callslip.testing.payloads import PayloadsContract


class _Remembers:
    """Brings the secret and the size of each object, as the rows of an index do."""

    def __init__(self, inner: SealedPayloads) -> None:
        self._inner = inner
        self._known: dict[str, tuple[bytes, int]] = {}

    def run(self, op: Any, /) -> Any:
        if isinstance(op, PutObject):
            secret = f"{op.key} {len(self._known)}".encode().ljust(32, b"\0")[-32:]
            size = self._inner.run(PutObject(op.key, op.parts, secret))
            self._known.setdefault(op.key, (secret, size))
            return size
        if isinstance(op, ReadObject):
            secret, size = self._known.get(op.key, (b"\0" * 32, op.start + op.length))
            return self._inner.run(ReadObject(op.key, op.start, op.length, secret, size))
        return self._inner.run(op)


class TestSealedFolder(PayloadsContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder, self.opened = tmp_path, 0

    def open(self) -> Any:
        self.opened += 1
        return _Remembers(SealedPayloads(open_payloads(self.folder / str(self.opened))))


class TestSealedMemory(PayloadsContract):
    def open(self) -> Any:
        return _Remembers(SealedPayloads(open_payloads("memory://")))
