"""What a content is taken for, however its blocks are cut."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.stacks.recognise import Recogniser, inner_of, recognise
from callslip.stacks.recognise.media import decoded, holds_base64, is_base64


def look(
    body: bytes, cuts: Sequence[int] = (), whole: bool = True, form: str = "str"
) -> tuple[Recogniser, list[bytes]]:
    found = recognise(body, "str", form, body if whole else None)
    spans: list[int] = []
    for start, end in pairwise([0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]):
        spans += found.feed(body[start:end]) or []
    spans += found.finish() or []
    return found, [body[a:b] for a, b in zip(spans[::2], spans[1::2], strict=True)]


CELL = st.text("ab ,;\"'\n\r\t1é", max_size=6)


@given(
    st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=3, max_size=12),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
    st.data(),
)
def test_a_table_has_the_rows_that_csv_sees(
    rows: list[list[str]], mark: str, end: str, data: st.DataObject
) -> None:
    rows = [[cell.replace("\r", "") for cell in row] for row in rows]
    rows = [row for row in rows if any(row)]
    out = io.StringIO()
    writer = csv.writer(out, delimiter=mark, lineterminator=end)
    writer.writerows([["first", "second", "third"], *rows])
    body = out.getvalue().encode()
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=5))
    found, records = look(body, cuts)
    if found.format != "csv":
        return  # its head looks like another kind of text: then no rows are promised
    assert found.fields == ("first", "second", "third")
    assert found.records == len(rows) == len(records)
    read = [next(csv.reader(io.StringIO(r.decode(), newline=""), delimiter=mark)) for r in records]
    assert read == rows


def test_quoted_line_ends_are_part_of_their_row_across_windows() -> None:
    row = '"a ""q"" ' + "x\n" * 50_000 + '",2\n'
    body = ("name,n\n" + "b,1\n" * 50_010 + row * 9 + "c,3\n" * 100_000).encode()
    found, records = look(body, list(range(0, len(body), 50_000)))
    assert found.records == len(records) == 150_019
    assert records[50_010:50_019] == [row.strip("\n").encode()] * 9


def test_a_quote_inside_a_cell_opens_nothing() -> None:
    body = b'name,price\n5" disk,1\n6" disk,2\nx,3\n'
    assert look(body)[1] == [b'5" disk,1', b'6" disk,2', b"x,3"]


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=5), max_size=3),
                min_size=2, max_size=9), st.data())  # fmt: skip
def test_ndjson_is_a_record_a_line(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    lines = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
    body = data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n"])).join(lines)
    body += data.draw(st.sampled_from([b"", b"\n"]))
    found, records = look(body, data.draw(st.lists(st.integers(0, len(body)), max_size=5)))
    assert (found.kind, found.format) == ("rows", "ndjson")
    assert records == lines


def test_a_few_lines_that_are_no_json_do_not_make_ndjson_text() -> None:
    lines = [json.dumps({"n": n}).encode() for n in range(500)]
    found, records = look(b"\n".join([*lines[:300], b"WARNING: retried", *lines[300:]]))
    assert (found.kind, found.records, records) == ("rows", 500, lines)
    found, _ = look(b"\n".join([*lines[:30], *[b"some words"] * 20]))
    assert (found.kind, found.records) == ("text", None)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_that_a_document_is_about_is_its_rows(whole: bool, indent: int | None) -> None:
    rows = [{"n": n, "s": "}, {" * (n % 3), "deep": [{"a": 1}, {"b": 2}]} for n in range(4_000)]
    for value in (
        {"total": 9, "items": rows, "next": {"items": [{"n": 1}]}},
        {"result": {"meta": {"a": [1, 2]}, "items": rows}, "jsonrpc": "2.0"},
    ):
        body = json.dumps(value, indent=indent).encode()
        for size in (7_919, len(body)):
            found, records = look(body, list(range(0, len(body), size)), whole)
            assert found.table in ("items", "result.items")
            assert (found.kind, found.records) == ("rows", len(rows))
            assert found.fields == ("n", "s", "deep")
            assert found.by_record == (indent is None)
            assert list(map(json.loads, records)) == rows


def test_a_document_about_two_things_is_a_document() -> None:
    rows = [{"n": n} for n in range(5_000)]
    body = json.dumps({"a": rows, "b": rows}).encode()
    for whole in (True, False):
        found, _ = look(body, whole=whole)
        assert (found.kind, found.records, found.table) == ("document", None, "")


def test_a_json_array_that_is_cut_short_is_text() -> None:
    body = json.dumps([{"n": n} for n in range(50_000)]).encode()[:-20]
    found, _ = look(body, list(range(0, len(body), 100_000)))
    assert (found.kind, found.records, found.fields) == ("text", None, ())


def test_json_inside_a_string_is_opened_once() -> None:
    rows = [{"n": n} for n in range(100)]
    for value, path in (
        (json.dumps(rows), "$"),
        ({"result": json.dumps(rows)}, "result"),
        ({"content": [{"type": "text", "text": json.dumps(rows)}]}, "content[0].text"),
        ([{"type": "text", "text": json.dumps({"items": rows})}], "[0].text"),
    ):
        found, _ = look(json.dumps(value).encode(), form="json")
        assert found.inside == path
        # Of JSON that was given as text, only what stands right at the top is read in its stead.
        as_text, _ = look(json.dumps(value).encode())
        assert as_text.inside == ("" if "[" in path else path)
        inner = inner_of(found)
        assert inner is not None
        assert (inner.recognised.kind, inner.recognised.records) == ("rows", 100)
    twice, _ = look(json.dumps(json.dumps(json.dumps(rows))).encode())
    assert twice.inside == ""


@given(st.binary(min_size=400, max_size=900))
def test_base64_is_told_from_words_and_decoded(data: bytes) -> None:
    import base64

    text = base64.b64encode(data)
    if len(set(data)) > 100:
        assert is_base64(text)
    assert decoded(text) == data
    assert decoded(b"data:image/png;base64," + text) == data
    assert not holds_base64(b" ".join([b"word" * 400] * 9))
    assert not is_base64(text[:100] + b" " + text[100:])
