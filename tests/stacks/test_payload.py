"""The packed payload: what is packed comes back, in place, or is reported as damaged."""

from __future__ import annotations

import hashlib
import random
import threading
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.errors import PayloadDamaged
from callslip.handle import Source
from callslip.limits import CHUNK_BYTES, CHUNK_MIN_BYTES
from callslip.stacks import directory as directory_module
from callslip.stacks import packing as packing_module
from callslip.stacks.layout import CHECK_BYTES, FOOTER, HEADER, INFO, MAGIC
from callslip.stacks.payload import Chunk, Directory, Packer, plain_digest

KEY = b"a tenant's key"
Span = tuple[int, int]


@contextmanager
def small(**more: int) -> Iterator[None]:
    """Chunks of at most 48 bytes, so that a short content has many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing_module, "CHUNK_BYTES", 48)
        patch.setattr(packing_module, "CHUNK_MIN_BYTES", 24)
        for name, value in more.items():
            patch.setattr(packing_module, name, value)
            if hasattr(directory_module, name):
                patch.setattr(directory_module, name, value)
        yield


@dataclass
class Packed:
    packer: Packer
    blob: bytes

    @property
    def directory(self) -> Directory:
        return Directory.parse(self.blob[self.packer.trailer :])

    def frame(self, index: int) -> bytes:
        start, length = self.directory.extent(index)
        return self.blob[start : start + length]

    def chunks(self) -> list[Chunk]:
        return [self.directory.unpack(i, self.frame(i)) for i in range(self.directory.chunks)]

    def frames(self, first: int = 0, last: int | None = None) -> bytes:
        last = self.directory.chunks if last is None else last
        if first == last:
            return b""
        end = sum(self.directory.extent(last - 1))
        return self.blob[self.directory.extent(first)[0] : end]


def pack(
    data: bytes,
    source: Source = "str",
    *,
    cuts: list[int] | None = None,
    spans: list[Span] | None = None,
    by_record: bool = False,
    twin: bytes | None = None,
    late: bool = False,
) -> Packed:
    """Pack `data` in blocks cut at `cuts`; each span with the first block that has the whole of
    it, or (`late`) with the one in which the next record starts."""
    packer = Packer(source, KEY, "str", by_record)
    out = b""
    edges = [0, *sorted(cuts or []), len(data)]
    given_spans = 0
    for start, end in pairwise(edges):
        if spans is None:
            out += packer.add(data[start:end])
            continue
        ready = given_spans
        while ready < len(spans) and (
            spans[ready][1] <= end
            if not late
            else ready + 1 < len(spans) and spans[ready + 1][0] < end
        ):
            ready += 1
        out += packer.add(data[start:end], flat(spans[given_spans:ready]))
        given_spans = ready
    if spans is not None:
        out += packer.add(b"", flat(spans[given_spans:]))
    out += packer.finish(twin)
    assert packer.packed == len(out)
    return Packed(packer, out)


def flat(spans: list[Span]) -> array[int]:
    return array("Q", [edge for span in spans for edge in span])


def view(data: bytes, source: Source) -> str:
    return data.decode("utf-8", "surrogatepass" if source == "str" else "surrogateescape")


lines = st.lists(
    st.text(
        st.characters(exclude_categories=()) | st.sampled_from("\n\n\r\0aé漢𝒜\ud800\udfff"),
        max_size=70,
    ),
    max_size=12,
).map("\n".join)
texts = st.tuples(lines.map(lambda s: s.encode("utf-8", "surrogatepass")), st.just("str"))
raws = st.tuples(
    st.lists(
        st.binary(max_size=80)
        | lines.map(lambda s: s.encode("utf-8", "surrogatepass")[1:])
        | st.sampled_from([b"\x80" * 90, b"\xf0\x9d\x92" * 30, b"\xed\xa0\x80" * 20, b"\n"]),
        max_size=8,
    ).map(b"".join),
    st.just("bytes"),
)
contents = texts | raws


@st.composite
def spans_of(draw: st.DrawFn, data: bytes) -> list[Span]:
    starts = [i for i, byte in enumerate(data) if byte & 0xC0 != 0x80]
    if not starts:
        return []
    chosen = sorted(draw(st.sets(st.sampled_from(starts), min_size=1, max_size=40)))
    bounds = [*chosen[1:], len(data)]
    return [
        (start, draw(st.integers(start + 1, bound)))
        for start, bound in zip(chosen, bounds, strict=True)
    ]


def line_edges(data: bytes, spans: list[Span], by_record: bool) -> list[int]:
    """Where each line starts."""
    if not data:
        return []
    if by_record:
        return [0, *(start for start, _ in spans[1:])]
    edges = [0] + [i + 1 for i, byte in enumerate(data) if byte == 10]
    return edges[:-1] if edges[-1] == len(data) else edges


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_any_content_cut_anyhow_is_packed_in_its_place(data: st.DataObject) -> None:
    body, source = data.draw(contents)
    spans = data.draw(st.none() | spans_of(body))
    by_record = spans is not None and data.draw(st.booleans())
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=8))
    with small():
        packed = pack(
            body, source, cuts=cuts, spans=spans, by_record=by_record, late=data.draw(st.booleans())
        )
        whole = pack(body, source, spans=spans, by_record=by_record)
    assert packed.blob == whole.blob, "the cuts of the stream must not show in the payload"

    found = packed.directory
    chunks = packed.chunks()
    text = view(body, source)
    known = spans or []
    starts = line_edges(body, known, by_record)
    assert b"".join(chunk.raw for chunk in chunks) == body
    assert "".join(view(chunk.raw, source) for chunk in chunks) == text
    assert (found.source, found.form, found.by_record) == (source, "str", by_record)
    assert (found.size, found.chars, found.lines) == (len(body), len(text), len(starts))
    assert found.records == (len(known) or None)
    assert found.sha256 == hashlib.sha256(body).digest()
    assert found.marked == sum("\ud800" <= c <= "\udfff" for c in text)
    assert found.twin_extent() is None
    same = ("size", "chars", "lines", "records", "marked", "sha256", "form", "source")
    assert [getattr(packed.packer, n) for n in same] == [getattr(found, n) for n in same]

    at = 0
    for i, chunk in enumerate(chunks):
        assert chunk.index == i
        assert found.raw_start(i) == at
        assert len(chunk.raw) <= 48
        assert found.char_start(i) == len(view(body[:at], source))
        line = bisect_right(starts, at) - 1
        assert found.line_start(i) == line
        assert found.column(i) == len(view(body[starts[line] : at], source))
        mine = [s for s in known if at <= s[0] < at + len(chunk.raw)]
        assert list(chunk.spans) == [edge - at for span in mine for edge in span]
        assert found.record_start(i) == sum(s[0] < at for s in known)
        at += len(chunk.raw)

    def holder(offset: int) -> int:
        return bisect_right([found.raw_start(i) for i in range(found.chunks)], offset) - 1

    assert [found.chunk_of_line(n + 1) for n in range(len(starts))] == [holder(s) for s in starts]
    assert [found.chunk_of_record(n + 1) for n in range(len(known))] == [
        holder(s) for s, _ in known
    ]
    assert [found.chunk_of_byte(n) for n in range(len(body))] == [
        holder(n) for n in range(len(body))
    ]
    for wrong in (0, -1, len(starts) + 1):
        with pytest.raises(IndexError):
            found.chunk_of_line(wrong)
    for wrong in (-1, len(body)):
        with pytest.raises(IndexError):
            found.chunk_of_byte(wrong)
    for wrong in (0, len(known) + 1):
        with pytest.raises(IndexError):
            found.chunk_of_record(wrong)
    assert found.raw_start(found.chunks) == len(body)


def everything(blob: bytes, trailer: int) -> tuple[object, ...]:
    """All that can be read of a payload."""
    packed = Packed(Packer("str", KEY, ""), blob)
    packed.packer.trailer = trailer
    found = packed.directory
    twin = found.twin_extent()
    return (
        [(chunk.raw, list(chunk.spans)) for chunk in packed.chunks()],
        found.unpack_twin(blob[twin[0] : sum(twin)]) if twin else None,
        (found.form, found.source, found.size, found.chars, found.lines, found.records),
        (found.marked, found.sha256, found.by_record),
    )


def a_payload() -> Packed:
    body = b"[" + b",\n".join(b'{"n": %d}' % n for n in range(40)) + b"]"
    spans = []
    at = 1
    for n in range(40):
        size = len(b'{"n": %d}' % n)
        spans.append((at, at + size))
        at += size + 2
    with small(TWIN_BYTES=100):
        return pack(body, spans=spans, twin=random.Random(2).randbytes(250))


def test_a_flipped_byte_anywhere_is_reported_or_harmless() -> None:
    packed = a_payload()
    harmless = []
    with small(TWIN_BYTES=100):
        want = everything(packed.blob, packed.packer.trailer)
        for place in range(len(packed.blob)):
            for mask in (1, 0x80, 0xFF):
                flipped = bytearray(packed.blob)
                flipped[place] ^= mask
                try:
                    assert everything(bytes(flipped), packed.packer.trailer) == want
                except PayloadDamaged:
                    continue
                harmless.append(place)
    assert set(harmless) == set(range(HEADER.size)), "only the header says nothing new"


def test_a_truncated_trailer_is_reported() -> None:
    packed = a_payload()
    trailer = packed.blob[packed.packer.trailer :]
    for length in range(len(trailer)):
        with pytest.raises(PayloadDamaged):
            Directory.parse(trailer[:length])
        with pytest.raises(PayloadDamaged):
            Directory.parse(trailer[length + 1 :])


def test_a_truncated_frame_is_reported() -> None:
    packed = a_payload()
    found = packed.directory
    for index in range(found.chunks):
        frame = packed.frame(index)
        for length in range(len(frame)):
            with pytest.raises(PayloadDamaged):
                found.unpack(index, frame[:length])
        with pytest.raises(PayloadDamaged):
            found.unpack(index, frame + b"more")
    start, length = found.twin_extent() or (0, 0)
    with small(TWIN_BYTES=100):
        for wrong in (packed.blob[start : start + length - 1], b"", b"x" * (length + 1)):
            with pytest.raises(PayloadDamaged):
                found.unpack_twin(wrong)


def test_a_frame_in_another_ones_place_is_reported() -> None:
    packed = a_payload()
    with pytest.raises(PayloadDamaged):
        packed.directory.unpack(0, packed.frame(1))


def resealed(trailer: bytes) -> bytes:
    """The trailer with its checks made to fit, as one who forges it would."""
    body = trailer[: -FOOTER.size]
    check = hashlib.sha256(body).digest()[:CHECK_BYTES]
    return body + FOOTER.pack(len(trailer), check, MAGIC)


def test_a_forged_frame_that_unpacks_to_something_huge_is_not_unpacked() -> None:
    packed = pack(b"hello")
    trailer = packed.blob[packed.packer.trailer :]
    bomb = zstandard.ZstdCompressor().compress(b"\0" * 50_000_000)
    check = hashlib.sha256(bomb).digest()[:CHECK_BYTES]
    forged = trailer[: -FOOTER.size - CHECK_BYTES] + check + trailer[-FOOTER.size :]
    with pytest.raises(PayloadDamaged, match="does not hold"):
        Directory.parse(resealed(forged)).unpack(0, bomb)
    for junk in (b"", b"junk", bomb[:20]):
        check = hashlib.sha256(junk).digest()[:CHECK_BYTES]
        forged = trailer[: -FOOTER.size - CHECK_BYTES] + check + trailer[-FOOTER.size :]
        with pytest.raises(PayloadDamaged):
            Directory.parse(resealed(forged)).unpack(0, junk)


def test_a_later_versions_flag_is_not_read_as_ours() -> None:
    packed = pack(b"hello")
    trailer = bytearray(packed.blob[packed.packer.trailer :])
    trailer[1] |= 0x80
    with pytest.raises(PayloadDamaged, match="later version"):
        Directory.parse(resealed(bytes(trailer)))


def test_a_trailer_that_lies_about_its_counts_is_reported() -> None:
    packed = pack(b"hello")
    trailer = packed.blob[packed.packer.trailer :]
    fields = list(INFO.unpack(trailer[: INFO.size]))
    for field in (1, 2, 3):
        wrong = fields.copy()
        wrong[field] += 5000
        with pytest.raises(PayloadDamaged):
            Directory.parse(resealed(INFO.pack(*wrong) + trailer[INFO.size :]))


@settings(max_examples=100, deadline=None)
@given(contents, st.none() | st.binary(max_size=300), st.text(max_size=5), st.binary(max_size=9))
def test_the_digest_needs_no_packing(
    content: tuple[bytes, Source], twin: bytes | None, form: str, key: bytes
) -> None:
    body, source = content
    try:
        form.encode()
    except UnicodeEncodeError:
        form = "str"
    packer = Packer(source, key, "unknown yet")
    out = packer.add(body[:50]) + packer.add(body[50:]) + packer.finish(twin, form=form)
    assert packer.digest == plain_digest(key, form, source, body, twin)
    assert len(packer.digest) == 32
    found = Directory.parse(out[packer.trailer :])
    assert found.form == form
    extent = found.twin_extent()
    assert (extent is None) == (twin is None)
    if extent is not None:
        assert found.unpack_twin(out[extent[0] : sum(extent)]) == twin


def test_digests_differ_by_key_form_source_body_and_twin() -> None:
    variants = {
        plain_digest(key, form, source, body, twin)
        for key in (b"k", b"l")
        for form in ("str", "bytes", "json")
        for source in ("str", "bytes")
        for body in (b"a", b"", b"str")
        for twin in (None, b"", b"a")
    }
    assert len(variants) == 2 * 3 * 2 * 3 * 3


def test_a_chunk_ends_at_a_line_where_there_is_one() -> None:
    line = b"x" * 99 + b"\n"
    packed = pack(line * 10_000)
    for chunk in packed.chunks()[:-1]:
        assert chunk.raw.endswith(b"\n")
        assert CHUNK_MIN_BYTES <= len(chunk.raw) <= CHUNK_BYTES
        assert len(chunk.raw) > CHUNK_BYTES - 100


def test_one_long_line_is_cut_between_characters() -> None:
    text = "漢" * 200_000
    packed = pack(text.encode())
    assert "".join(chunk.raw.decode() for chunk in packed.chunks()) == text
    found = packed.directory
    assert found.lines == 1
    assert [found.column(i) for i in range(found.chunks)] == [
        found.char_start(i) for i in range(found.chunks)
    ]
    assert found.chunk_of_line(1) == 0


def test_large_blocks_pack_and_unpack_as_small_ones_do() -> None:
    body = "".join(f"{n} – {n * 7919 % 10007}\n" for n in range(200_000)).encode()
    whole = pack(body)
    pieces = pack(body, cuts=list(range(0, len(body), 50_001)))
    assert whole.blob == pieces.blob
    found = whole.directory
    chunks = [found.unpack(i, whole.frame(i)) for i in range(found.chunks)]
    assert [chunk.index for chunk in chunks] == list(range(found.chunks))
    assert b"".join(chunk.raw for chunk in chunks) == body


def test_a_damaged_frame_among_many_is_reported() -> None:
    body = random.Random(3).randbytes(2_000_000)
    packed = pack(body, "bytes")
    for index in range(packed.directory.chunks):
        frame = bytearray(packed.frame(index))
        frame[len(frame) // 2] ^= 1
        with pytest.raises(PayloadDamaged):
            packed.directory.unpack(index, bytes(frame))


def test_one_directory_serves_many_threads() -> None:
    body = b"".join(b"%d\n" % n for n in range(300_000))
    packed = pack(body)
    found = packed.directory
    wrong: list[int] = []

    def work() -> None:
        for _ in range(3):
            for i in range(found.chunks):
                if not body.startswith(found.unpack(i, packed.frame(i)).raw, found.raw_start(i)):
                    wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_empty_content_has_no_chunks() -> None:
    packed = pack(b"")
    found = packed.directory
    assert (found.chunks, found.size, found.lines, found.chars) == (0, 0, 0, 0)
    assert packed.blob.startswith(MAGIC)
    with_twin = pack(b"", twin=b"twin")
    assert with_twin.blob.startswith(MAGIC)
    assert with_twin.directory.chunks == 0


def test_the_number_of_records_may_be_told_at_the_end() -> None:
    packer = Packer("str", KEY, "str")
    packer.add(b"[]")
    out = packer.finish(records=0)
    assert Directory.parse(out[packer.trailer - packer.packed :]).records == 0


def test_a_record_longer_than_what_may_be_held_ends_the_search_for_records() -> None:
    with small(HELD_BYTES=1000):
        packer = Packer("str", KEY, "str", by_record=True)
        out = packer.add(b'[1,"', array("Q", [1, 2]))
        for _ in range(50):
            out += packer.add(b"x" * 100, array("Q"))
        assert len(out) > 500, "frames are given out before the record's end is found"
        out += packer.add(b'",3]', array("Q", [3, 5005, 5006, 5007]))
        out += packer.finish()
    found = Directory.parse(out[packer.trailer :])
    assert packer.size == 5008
    assert found.records is None
    assert found.lines == 1
    assert found.record_start(found.chunks) == 1


def test_wrong_spans_are_refused() -> None:
    for wrong in ([5, 9, 7, 12], [3], [5, 4], [0, 99]):
        packer = Packer("str", KEY, "str")
        with pytest.raises(ValueError, match="spans"):
            packer.add(b"x" * 50, array("Q", wrong))
            packer.finish()
    packer = Packer("str", KEY, "str")
    packer.add(b"x" * 400_000)
    with pytest.raises(ValueError, match="too late"):
        packer.add(b"", array("Q", [5, 9]))
    packer = Packer("str", KEY, "str")
    packer.add(b"x" * 50, array("Q", [50, 50]))
    with pytest.raises(ValueError, match="behind the end"):
        packer.finish()


def test_a_packer_packs_one_content() -> None:
    packer = Packer("str", KEY, "str")
    packer.finish()
    with pytest.raises(ValueError, match="one content"):
        packer.add(b"x")
    with pytest.raises(ValueError, match="one content"):
        packer.finish()


def test_a_block_may_be_reused_by_its_owner() -> None:
    packer = Packer("bytes", KEY, "bytes")
    block = bytearray(b"first")
    packer.add(block)  # type: ignore[arg-type]
    block[:] = b"XXXXX"
    out = packer.finish()
    found = Directory.parse(out[packer.trailer :])
    start, length = found.extent(0)
    assert found.unpack(0, out[start : start + length]).raw == b"first"


def test_many_tiny_records_cost_little() -> None:
    body = b"[" + b",".join([b"1"] * 300_000) + b"]"
    spans = [(1 + 2 * n, 2 + 2 * n) for n in range(300_000)]
    packed = pack(body, spans=spans, by_record=True)
    assert packed.packer.lines == 300_000
    assert len(packed.blob) < len(body) // 50
