"""The view of a content that a model has: masked, and then looked at as any content is.

What a view is like (lines, records, fields, the text inside) is found in what is shown, so pages,
searches and queries need to know nothing of a mask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from callslip.errors import CallslipError
from callslip.handle import Shape, Source
from callslip.limits import DERIVED_CACHED_BYTES, STREAM_BLOCK_BYTES
from callslip.stacks.beside import Beside
from callslip.stacks.caches import Caches, key_of
from callslip.stacks.hiding.masker import Mask, Masker
from callslip.stacks.looking import Look
from callslip.stacks.ops import Flow, Payload, Result
from callslip.stacks.payload import Packer
from callslip.stacks.reader import Reader, open_reader
from callslip.stacks.recognise import LOOKED_INTO_BYTES
from callslip.stacks.records import HEAD_BYTES
from callslip.window.preview.sample import Sample, Sampler

__all__ = ["Seeing", "View", "keep_view", "seen"]

_NAME = "masked"


class View:
    """Takes a content block by block; after `finish`: whether it is `changed`, and if so `shape` and
    `sample` of what is shown, and its packed `parts` where `keep` says so.

    `parts` is None where they would take more than `DERIVED_CACHED_BYTES`.
    """

    def __init__(
        self,
        mask: Mask | None,
        source: Source,
        form: str,
        whole: bytes | None = None,
        top: str = "",
        *,
        keep: bool = False,
    ) -> None:
        self.changed = False
        self.shape = Shape()
        self.sample = Sample()
        self.parts: list[bytes] | None = [] if keep else None
        self.packer: Packer | None = None
        self._mask, self._source, self._form, self._top = mask, source, form, top
        self._whole = whole
        self._keep = keep
        self._raw = b""
        self._masker: Masker | None = None
        self._head = b""
        self._look: Look | None = None
        self._sampler = Sampler(source)
        self._beside = Beside()

    def add(self, block: bytes) -> None:
        """Take the next bytes of the content itself."""
        if self._whole is not None:
            return
        if self._masker is None:
            self._raw += block
            if len(self._raw) < HEAD_BYTES:
                return
            block, self._raw = self._raw, b""
            self._masker = Masker(self._mask, block, self._source, self._form, None)
        self._take(self._masker.add(block))

    def finish(self) -> None:
        """The content is at its end."""
        whole = self._whole
        if whole is None and self._masker is None:
            whole = self._raw
        if whole is not None:
            self._masker = Masker(self._mask, whole, self._source, self._form, whole)
            shown = self._masker.add(whole) + self._masker.finish()
            self._begin(shown, shown)
            for start in range(0, len(shown), STREAM_BLOCK_BYTES):
                self._pack(shown[start : start + STREAM_BLOCK_BYTES])
        else:
            assert self._masker is not None
            self._take(self._masker.finish())
            if self._look is None:
                head = self._head
                self._begin(head, head)
                self._pack(head)
        self._end()
        self.changed = self._masker.changed

    def _take(self, shown: bytes) -> None:
        if self._look is None:
            self._head += shown
            if len(self._head) < HEAD_BYTES:
                return
            shown, self._head = self._head, b""
            self._begin(shown, None)
        self._pack(shown)

    def _begin(self, head: bytes, whole: bytes | None) -> None:
        self._look = Look(head, self._source, self._form, whole, self._top)
        self.packer = Packer(self._source, b"", self._form, by_record=self._look.by_record)

    def _pack(self, shown: bytes) -> None:
        look, packer = self._look, self.packer
        assert look is not None
        assert packer is not None
        if not shown:
            return
        self._sampler.add(shown)
        self._kept(packer.add(shown, look.add(shown, self._beside)))

    def _end(self) -> None:
        look, packer = self._look, self.packer
        assert look is not None
        assert packer is not None
        with self._beside:
            if spans := look.finish(self._beside):
                packer.add(b"", spans)
            self._beside.wait()
        self._kept(packer.finish())
        sizes = Shape(
            size=packer.size,
            chars=packer.chars,
            lines=packer.lines,
            marked=packer.marked,
            by_record=packer.by_record,
        )
        self.shape = look.shape(sizes)
        self.sample = look.sample(self._sampler.finish())

    def _kept(self, part: bytes) -> None:
        if self.parts is None or self.packer is None:
            return
        self.parts.append(part)
        if self.packer.packed > DERIVED_CACHED_BYTES:
            self.parts = None

    def said_of(self, shape: Shape) -> Shape:
        """The shape of a row whose content has `shape` and is shown as this: the size is its own."""
        return replace(self.shape, size=shape.size, masked=True) if self.changed else shape


@dataclass(frozen=True, slots=True)
class Seeing:
    """What is kept of a view: its shape, and its packed bytes; none where it is the content's own."""

    shape: Shape
    payload: Payload | None
    too_large: bool = False

    @property
    def weight(self) -> int:
        """About how many bytes that takes."""
        return 2_000 + (len(self.payload.data or b"") if self.payload else 0)


def seen(
    row: Result, reader: Reader, mask: Mask | None, caches: Caches
) -> Flow[tuple[Result, Reader]]:
    """A row and a reader of what `mask` lets be seen of it; without one, of all of it.

    Made once for each payload, in one pass that holds a block or two and what is packed of it, and
    kept while there is room. Raises CallslipError for a content whose masked view does not fit.
    """
    if mask is None and not row.shape.masked:
        return row, reader
    key = (reader.key, mask is None)
    known = caches.views.get(key)
    if known is None:
        known = yield from _seen(row, reader, mask)
        caches.views.put(key, known)
    if known.too_large:
        said = f"{row.id} is too large to be shown with its fields masked; ask the tool for less of it."
        raise CallslipError(said, for_model=said)
    row = replace(row, shape=known.shape)
    if known.payload is None:
        return row, reader
    return row, (yield from open_reader(known.payload, caches))


def _seen(row: Result, reader: Reader, mask: Mask | None) -> Flow[Seeing]:
    directory = reader.directory
    whole = None
    if directory.size <= LOOKED_INTO_BYTES:
        whole = yield from reader.body()
    view = View(mask, directory.source, row.payload.form, whole, keep=mask is not None)
    if whole is None:
        for flow in reader.blocks():
            view.add((yield from flow))
    view.finish()
    return _seeing(row, view)


def keep_view(row: Result, view: View, caches: Caches) -> None:
    """Keep the view that was made of a content while it was stored, for the first read of it here.

    Only one that was made of the `whole` of it, as a read makes it: both see the same then.
    """
    caches.views.put((key_of(row.payload), False), _seeing(row, view))


def _seeing(row: Result, view: View) -> Seeing:
    if not view.changed:
        return Seeing(view.shape if row.shape.masked else row.shape, None)
    packer = view.packer
    if packer is None or view.parts is None:
        return Seeing(row.shape, None, too_large=True)
    payload = Payload(
        row.payload.digest,
        row.payload.form,
        packer.packed,
        packer.trailer,
        key=f"{row.payload.key}#{_NAME}",
        data=b"".join(view.parts),
    )
    return Seeing(view.said_of(row.shape), payload)
