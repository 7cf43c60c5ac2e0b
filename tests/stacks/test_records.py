from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.stacks.records import HEAD_BYTES, MAX_RECORD_BYTES, ArrayScanner, by_record

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["},{", "],["]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


def scan(text: bytes, cuts: list[int]) -> tuple[ArrayScanner, list[bytes]]:
    scanner, found = ArrayScanner(), []
    for start, end in pairwise([0, *sorted(cuts), len(text)]):
        found += scanner.feed(text[start:end])
    found += scanner.finish()
    return scanner, [text[a:b] for a, b in zip(found[::2], found[1::2], strict=True)]


@given(st.lists(JSON, max_size=8), st.sampled_from([None, 1]), st.booleans(), st.data())
def test_records_are_the_elements_wherever_the_blocks_are_cut(
    value: list[Any], indent: int | None, ascii_only: bool, data: st.DataObject
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    scanner, records = scan(text + b"\r\n ", cuts)
    assert [json.loads(record) for record in records] == value
    assert scanner.complete and not scanner.failed
    assert scanner.records == len(value)
    assert scanner.objects == all(isinstance(item, dict) for item in value)


def test_records_are_found_one_byte_at_a_time() -> None:
    value = [{"a": [{"b": "},{"}, {"b": 2}]}, {"a": 'x\\",{'}, 3, "]", [], None] * 3
    text = b"\xef\xbb\xbf" + json.dumps(value, indent=2).encode()
    _, records = scan(text, list(range(1, len(text))))
    assert [json.loads(record) for record in records] == value


def test_the_bytes_of_a_record_stay_as_they_came() -> None:
    elements = [b'{"n": 1E400}', b"9" * 5000, b'{ "a" :1.10 }', b'"\xff\xed\xa0\x80"']
    _, records = scan(b"[ " + b" ,\t".join(elements) + b"]", [7])
    assert records == elements


def test_a_record_is_reported_with_the_block_in_which_the_next_one_starts() -> None:
    text = json.dumps([{"a": {"b": [1, {"c": i}]}, "d": i} for i in range(50)]).encode()
    _, records = scan(text, [])
    starts = [text.index(record) for record in records]
    for cut in range(1, len(text)):
        scanner = ArrayScanner()
        begun = sum(start < cut for start in starts)
        assert len(scanner.feed(text[:cut])) // 2 >= begun - 1


@pytest.mark.parametrize(
    "text",
    [b"", b"  ", b'{"a": 1}', b"[1, 2", b"[1,]", b"[1] [2]", b"[1 2]", b"plain text", b'["a]']
    + [b"[log] a line, and more"],
)
def test_what_is_not_one_array_fails(text: bytes) -> None:
    scanner, _ = scan(text, [])
    assert scanner.failed and not scanner.complete


def test_a_record_that_is_absurdly_large_makes_the_scanner_give_up() -> None:
    text = b'[{"a": 1}, "' + b"x" * (MAX_RECORD_BYTES + 1)
    scanner, records = scan(text, [1000])
    assert records == [b'{"a": 1}'] and scanner.failed


def test_a_record_nested_too_deep_to_check_makes_the_scanner_give_up() -> None:
    scanner, _ = scan(b"[" * 100_000 + b"]" * 100_000, [])
    assert scanner.failed


def test_a_large_array_in_one_line_is_split_by_whole_windows_too() -> None:
    rows = [{"id": i, "tags": ["a,", {"b": i}], "text": "},{" * (i % 5)} for i in range(30_000)]
    for text in (
        json.dumps(rows).encode(),
        json.dumps(rows, separators=(",", ":")).encode(),
        json.dumps(rows, indent=1).encode(),
    ):
        scanner, records = scan(text, list(range(100_000, len(text), 100_000)))
        assert scanner.complete and len(records) == 30_000
        assert [json.loads(record) for record in records[::1000]] == rows[::1000]


def test_lines_are_records_only_where_there_are_fewer_lines_than_records() -> None:
    rows = [{"id": i} for i in range(10_000)]
    one_line = json.dumps(rows).encode()
    assert by_record(one_line)
    assert by_record(b"[1,2]")
    assert not by_record(json.dumps(rows, indent=1).encode())
    assert not by_record(one_line.replace(b"}, ", b"},\n"))
    assert not by_record(b'{"a": [1, 2, 3]}')
    assert not by_record(b"[1]")
    assert not by_record(b"[warning] no array, but text\n" * 5000)


def test_one_record_longer_than_the_head_counts_as_a_record_in_one_line() -> None:
    assert by_record(b'[{"text": "' + b"x" * HEAD_BYTES)
    assert not by_record(b'[\n{"text": "' + b"x" * HEAD_BYTES)
