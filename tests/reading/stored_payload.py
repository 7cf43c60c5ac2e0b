"""A packed payload in a dict, and a runner that counts what is read of it."""

from __future__ import annotations

from array import array
from typing import Any, TypeVar

from callslip.handle import Source
from callslip.stacks.drive import drive
from callslip.stacks.ops import Flow, Op, Payload, ReadObject
from callslip.stacks.packing import Packer
from callslip.stacks.reader import Caches, Reader, open_reader

T = TypeVar("T")


class Objects:
    """A payload store that is a dict. `read` holds the (start, length) of each ReadObject."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.read: list[tuple[int, int]] = []

    def run(self, op: Op[Any], /) -> Any:
        assert isinstance(op, ReadObject), "a reader only reads"
        self.read.append((op.start, op.length))
        return self.objects[op.key][op.start : op.start + op.length]


class Stored:
    """One content, packed, and a reader of it."""

    def __init__(
        self,
        value: str | bytes,
        *,
        spans: list[tuple[int, int]] | None = None,
        twin: bytes | None = None,
        inline: bool = False,
        caches: Caches | None = None,
    ) -> None:
        source: Source = "str" if isinstance(value, str) else "bytes"
        self.body = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        packer = Packer(source, b"key", source, by_record=spans is not None)
        flat = None if spans is None else array("Q", [edge for span in spans for edge in span])
        packed = packer.add(self.body, flat)
        packed += packer.finish(twin, records=None if spans is None else len(spans))
        self.backend = Objects()
        self.backend.objects["k"] = packed
        self.row = Payload(
            packer.digest,
            source,
            packer.packed,
            packer.trailer,
            key=None if inline else "k",
            data=packed if inline else None,
        )
        self.caches = caches or Caches()
        self.reader: Reader = self.run(open_reader(self.row, self.caches))
        errors = "surrogatepass" if source == "str" else "surrogateescape"
        view = self.body.decode("utf-8", errors)
        self.shown = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in view)

    def run(self, flow: Flow[T]) -> T:
        return drive(self.backend, flow)
