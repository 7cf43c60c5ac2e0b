"""One look at a content while it is packed: what it is, where its records are, what they are like.

What may live here: the recogniser, the profiler and the outline, put together. Pure.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from functools import partial

from callslip.handle import Shape, Source
from callslip.limits import STREAM_BLOCK_BYTES
from callslip.stacks.beside import Beside
from callslip.stacks.ops import Payload
from callslip.stacks.payload import Packer
from callslip.stacks.recognise import (
    LOOKED_INTO_BYTES,
    Inner,
    holds_base64,
    inner_of,
    opens_base64,
    recognise,
    transposed,
)
from callslip.stacks.records import HEAD_BYTES
from callslip.window.preview.sample import Sample
from callslip.window.profile import Cut, Profiler
from callslip.window.survey import outline_of

__all__ = ["Look", "packed_text"]

_FORMATS = frozenset({"json", "ndjson", "csv"})
_FEW = 3


class Look:
    """Give it every block with `add`, then `finish`; then `shape` and `sample` tell of the whole.

    `head` is the beginning of the content, `whole` all of it where that is in memory. `top` names a
    field whose largest values a preview should show.
    """

    def __init__(
        self, head: bytes, source: Source, form: str, whole: bytes | None, top: str = ""
    ) -> None:
        self._found = recognise(head, source, form, whole)
        self._head = head
        self._whole = whole
        self._top = top
        self._held = b""
        self._base = 0
        self._base64 = self._found.kind != "media" and opens_base64(head[:HEAD_BYTES])
        self._profiler: Profiler | None = None
        if self._found.kind == "rows" or self._found.table:
            self._profiler = self._new_profiler()

    @property
    def by_record(self) -> bool:
        """Whether a line of this content is a record."""
        return self._found.by_record

    def add(self, block: bytes, beside: Beside) -> array[int] | None:
        """Take the next bytes; answer the records found, as `Recogniser.feed` does.

        What does not bear on that is done `beside`: it holds once that was waited for.
        """
        if self._found.kind != "media":
            beside.do(partial(self._look_for_base64, block))
        return self._noted(self._found.feed(block), block, beside)

    def finish(self, beside: Beside) -> array[int] | None:
        """The content is at its end; answer the last records."""
        return self._noted(self._found.finish(), b"", beside)

    def _look_for_base64(self, block: bytes) -> None:
        self._base64 = self._base64 or holds_base64(block)

    def _new_profiler(self) -> Profiler | None:
        found = self._found
        if found.format in _FORMATS or found.table:
            return Profiler(
                "csv" if found.format == "csv" else "json",
                found.fields,
                found.delimiter,
                top=self._top,
            )
        return None

    def _noted(self, spans: array[int] | None, block: bytes, beside: Beside) -> array[int] | None:
        if self._profiler is None or spans is None:
            self._held = b""
            return spans
        self._held += block
        if spans:
            beside.do(partial(self._profiler.add, Cut(self._held, spans, self._base)))
            done = spans[-1] - self._base
            self._held = self._held[done:]
            self._base += done
        return spans

    # --- at the end -------------------------------------------------------------------------------

    def shape(self, shape: Shape) -> Shape:
        """`shape`, which has the sizes, with what was recognised."""
        found = self._found
        shape = replace(
            shape,
            kind=found.kind,
            mime=found.mime,
            records=found.records,
            fields=found.fields,
            table=found.table if found.kind == "rows" else "",
            format=found.format,
            base64=self._base64,
        )
        inner = self._inner()
        if inner is None:
            return shape
        said = inner.recognised
        return replace(
            shape,
            kind=said.kind if said.kind == "rows" else "document",
            mime=said.mime if said.kind == "rows" else found.mime,
            chars=inner.chars,
            lines=inner.lines,
            records=said.records,
            fields=said.fields,
            table=said.table if said.kind == "rows" else "",
            format=said.format,
            by_record=inner.by_record,
            inside=found.inside,
        )

    def sample(self, sample: Sample) -> Sample:
        """`sample`, which has the head and the tail, with what the records or the parts are like."""
        found = self._found
        profiler = self._profiler if found.kind == "rows" else None
        if found.format == "columns" and self._whole is not None:
            profiler = Profiler(top=self._top)
            profiler.add(transposed(self._whole).split(b"\n")[:-1])
        told = False
        if profiler is not None:
            profile = profiler.finish()
            told = bool(profile.fields) and profile.records >= _FEW
            sample = replace(sample, profile=profile)
        if found.table or not told:
            body = self._whole if self._whole is not None else self._head
            size = len(body) if self._whole is not None else len(body) + 1
            if len(body) <= LOOKED_INTO_BYTES:
                sample = replace(sample, outline=outline_of(body, found.mime, size=size))
        return sample

    def _inner(self) -> Inner | None:
        return inner_of(self._found)


def packed_text(text: bytes) -> Payload:
    """A text as a payload in memory, its records found: to be read, not to be stored."""
    found = recognise(text[: 2 * HEAD_BYTES], "str", "str", text)
    packer = Packer("str", b"", "str", by_record=found.by_record)
    parts = []
    for start in range(0, len(text), STREAM_BLOCK_BYTES):
        block = text[start : start + STREAM_BLOCK_BYTES]
        parts.append(packer.add(block, found.feed(block)))
    if spans := found.finish():
        parts.append(packer.add(b"", spans))
    parts.append(packer.finish())
    data = b"".join(parts)
    return Payload(packer.digest, "str", packer.packed, packer.trailer, data=data)
