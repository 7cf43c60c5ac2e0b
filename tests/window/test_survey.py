"""What a look at a whole content finds: parts and paths, dimensions, pages, and no bomb."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.window.survey import (
    DocumentOutline,
    MediaFacts,
    media_of_base64,
    outline_of,
    step,
    text_mime,
)
from callslip.window.survey.media import media_of, mime_of
from tests.window.window_helpers import case_input


def outlined(value: Any) -> DocumentOutline:
    made = outline_of(json.dumps(value).encode(), "application/json")
    assert isinstance(made, DocumentOutline)
    return made


def at(value: Any, path: str) -> Any:
    """The part of a value at a path of ours, by another way of reading it."""
    rest = path
    while rest:
        if rest.startswith('["'):
            name, end = json.JSONDecoder().raw_decode(rest[1:])
            value, rest = value[name], rest[end + 2 :]
        elif rest.startswith("["):
            number, _, rest = rest[1:].partition("]")
            value = value[int(number)]
        else:
            rest = rest.removeprefix(".")
            end = min((rest.index(m) for m in ".[" if m in rest), default=len(rest))
            value, rest = value[rest[:end]], rest[end:]
    return value


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=90)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=12), st.dictionaries(st.text(max_size=12), inner, max_size=12)
    ),
    max_leaves=120,
)


@given(JSON)
@settings(max_examples=120, deadline=None)
def test_every_path_of_an_outline_leads_to_a_part_of_that_kind_and_count(value: Any) -> None:
    made = outlined(value)
    kinds = {dict: "object", list: "list", str: "string", bool: "boolean", type(None): "null"}
    parts = [(made.root, value)]
    parts += [(part, at(value, part.path)) for part in (*made.around, *made.largest)]
    if isinstance(value, dict):
        assert [part.path for part in made.parts] == list(value)
        parts += [(part, value[part.path]) for part in made.parts]
    for part, found in parts:
        assert part.type == kinds.get(type(found), "number")
        if part.type in ("object", "list", "string"):
            assert part.count == len(found)


def test_paths_name_keys_plainly_where_they_can() -> None:
    assert step("", "info", False) == "info"
    assert step("info", "version", False) == "info.version"
    assert step("items", "3", True) == "items[3]"
    assert step("files", 'a "b"', False) == 'files["a \\"b\\""]'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1,]",
        b'{"a": tru}',
        b"nonsense",
        b"[" * 5_000 + b"]" * 5_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    ],
)
def test_what_is_not_json_or_too_deep_has_no_outline(body: bytes) -> None:
    assert outline_of(body, "application/json") is None


def test_a_string_of_half_a_surrogate_pair_is_no_reason_to_give_up() -> None:
    made = outline_of(b'{"a": "\\ud800", "b": 1}', "application/json")
    assert isinstance(made, DocumentOutline)
    assert [part.type for part in made.parts] == ["string", "number"]


def test_a_list_of_millions_is_counted_where_that_is_cheap_and_never_taken_apart() -> None:
    numbers = outline_of(b"[" + b"1," * 1_999_999 + b"1]", "application/json")
    assert isinstance(numbers, DocumentOutline)
    assert (numbers.root.count, numbers.root.each, numbers.parts) == (2_000_000, "number", ())
    empty = outline_of(b"[" + b"{}," * 999_999 + b"{}]", "application/json")
    assert isinstance(empty, DocumentOutline) and empty.root.count == -1


def test_json_inside_a_string_is_opened_once() -> None:
    inner = {"entities": [{"name": f"n{n}", "kind": "x"} for n in range(90)], "more": False}
    twice = outlined({"text": json.dumps(inner), "isError": False})
    assert twice.inner_path == "text" and twice.inner is not None
    assert [part.path for part in twice.inner.parts] == ["entities", "more"]
    thrice = outlined({"text": json.dumps({"again": json.dumps(inner)})})
    assert thrice.inner is not None and thrice.inner.inner is None


def test_what_wraps_the_content_is_looked_through() -> None:
    made = outlined({"jsonrpc": "2.0", "result": {"data": {"items": [1] * 900, "next": 7}}})
    assert [(part.path, part.value) for part in made.around if part.value] == [
        ("result.data.next", "7")
    ]


# --- media ---------------------------------------------------------------------------------------


def jpeg(width: int, height: int) -> bytes:
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + bytes(3)
    return b"\xff\xd8" + app + frame + b"\xff\xd9"


def webp(chunk: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def wav(seconds: float) -> bytes:
    data = bytes(int(16_000 * seconds))
    form = struct.pack("<HHIIHH", 1, 1, 8_000, 16_000, 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"LIST" + struct.pack("<I", 3) + b"abc\0"
    body += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


MEDIA = [
    (case_input("29_base64_screenshot").png(33, 21), ("image/png", 33, 21)),
    (b"GIF89a" + struct.pack("<HH", 320, 200) + bytes(9), ("image/gif", 320, 200)),
    (jpeg(1_024, 768), ("image/jpeg", 1_024, 768)),
    (
        b"BM" + struct.pack("<IIIIii", 99, 0, 54, 40, 64, -48) + bytes(40),
        ("image/bmp", 64, 48),
    ),
    (
        webp(b"VP8X" + struct.pack("<I", 10) + bytes(4) + b"\x7f\x02\0" + b"\xa3\x01\0"),
        ("image/webp", 640, 420),
    ),
    (
        webp(b"VP8L" + struct.pack("<IBI", 9, 0x2F, 99 | 49 << 14) + bytes(4)),
        ("image/webp", 100, 50),
    ),
    (
        webp(
            b"VP8 " + struct.pack("<I", 10) + bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", 7, 9)
        ),
        ("image/webp", 7, 9),
    ),
]


@pytest.mark.parametrize(("raw", "facts"), MEDIA, ids=[facts[0] for _, facts in MEDIA])
def test_images_tell_their_dimensions(raw: bytes, facts: tuple[str, int, int]) -> None:
    found = media_of(raw)
    assert found is not None
    assert (found.mime, found.width, found.height) == facts
    assert found.size == len(raw)
    assert text_mime(raw) == facts[0]
    as_text = media_of_base64(base64.b64encode(raw).decode())
    assert as_text == found


def test_a_pdf_tells_its_pages_in_the_open_or_packed() -> None:
    page = b"<< /Type /Page /Parent 1 0 R >>\n"
    plain = b"%PDF-1.4\n<< /Type /Pages /Count 3 >>\n" + page * 3 + b"%%EOF"
    assert media_of(plain) == MediaFacts("application/pdf", len(plain), pages=3)
    packed = zlib.compress(page * 5)
    body = b"%PDF-1.5\n<< /Type /ObjStm /N 5 /First 9 >>\nstream\n" + packed + b"\nendstream"
    found = media_of(body)
    assert found is not None and found.pages == 5


def test_sound_tells_its_duration_and_a_header_that_lies_is_not_believed() -> None:
    found = media_of(wav(1.5))
    assert found is not None and (found.mime, found.seconds) == ("audio/wav", 1.5)
    lying = bytearray(wav(1.5))
    place = lying.index(b"data") + 4
    lying[place : place + 4] = b"\xff\xff\xff\xff"
    again = media_of(bytes(lying))
    assert again is not None and again.seconds == 1.5


def test_a_data_uri_tells_its_type_and_the_size_of_what_it_holds() -> None:
    raw = case_input("29_base64_screenshot").png()
    text = "data:image/png;base64," + base64.b64encode(raw).decode()
    assert media_of_base64(text) == MediaFacts("image/png", len(raw), 640, 420)
    head = media_of_base64(text[:5_000], len(text))
    assert head is not None and abs(head.size - len(raw)) <= 2
    assert media_of_base64("data:image/png,hello") is None
    assert media_of_base64("A" * 400) is None


@given(
    st.binary(max_size=80), st.sampled_from([raw[:14] for raw, _ in MEDIA] + [b"%PDF-", b"RIFF"])
)
@settings(max_examples=200)
def test_a_damaged_file_is_described_as_far_as_it_goes(rest: bytes, start: bytes) -> None:
    found = media_of(start + rest)
    assert found is None or found.mime == mime_of(start + rest)
    outline_of(start + rest, "application/pdf")
