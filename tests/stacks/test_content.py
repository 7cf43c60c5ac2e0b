from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.errors import NotRestorable
from callslip.stacks.content import Content, canonical, is_stream, restore, settle, sniff
from callslip.stacks.plain import PLAIN_DEPTH, dump, dump_deep, dump_line, is_plain
from callslip.stacks.records import HEAD_BYTES
from tests.corpus import FOLDER, corpus_paths, needs_corpus

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ROOT / "tests" / "cases" / "inputs"

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | ANY_TEXT
PLAIN = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=15,
)


def back(content: Content) -> Any:
    return restore(content.form, content.body, content.twin)


@given(ANY_TEXT)
def test_text_comes_back_whatever_is_in_it(text: str) -> None:
    content = canonical(text)
    assert content.form == "str" and back(content) == text
    assert content.body == text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    "text", ["a\r\nb\r\n", "\0", "\ufeffx", "\ud800", "\ud83d\ude00", "", "1E400"]
)
def test_text_is_never_normalised(text: str) -> None:
    assert back(canonical(text)) == text


@pytest.mark.parametrize("cls", [bytes, bytearray, memoryview])
def test_bytes_come_back_in_their_own_type(cls: Any) -> None:
    value = cls((INPUTS / "55_non_utf8.bin").read_bytes())
    content = canonical(value)
    assert content.source == "bytes" and content.body == bytes(value)
    assert type(back(content)) is cls and back(content) == value


def test_a_view_of_numbers_keeps_its_format_and_shape() -> None:
    value = memoryview(bytes(range(24))).cast("h", [3, 4])
    again = back(canonical(value))
    assert (again.format, again.shape, again.tolist()) == ("h", (3, 4), value.tolist())


@given(PLAIN)
def test_plain_values_come_back_equal_from_strict_json(value: Any) -> None:
    content = canonical(value)
    assert content.twin is None and content.form in ("json", "str")
    assert same(back(content), value)
    if content.form == "json":
        text = content.body.decode("utf-8", "surrogatepass")
        assert same(json.loads(text, parse_constant=pytest.fail), value)


def same(a: Any, b: Any) -> bool:
    """Equal, and of the same types all the way down, with the keys in the same order."""
    if type(a) is not type(b):
        return False
    if type(a) is dict:
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if type(a) is list:
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b)


@given(PLAIN)
def test_the_ways_to_write_plain_json_agree(value: Any) -> None:
    assert json.loads(dump_line(value).decode("utf-8", "surrogatepass")) == value
    assert b"\n" not in dump_line(value)
    text = dump(value).decode("utf-8", "surrogatepass")
    deep = dump_deep(value).decode("utf-8", "surrogatepass")
    assert json.loads(text) == json.loads(deep) == value
    assert text.count("\n") == deep.count("\n")


def test_json_is_laid_out_one_record_a_line_and_one_key_a_line() -> None:
    assert canonical([{"a": 1}, {"b": [1, 2]}]).body == b'[{"a":1},\n{"b":[1,2]}]'
    value = {"total": 2, "items": [{"a": 1}, [2]], "tags": ["x", "y"], "empty": []}
    assert canonical(value).body == (
        b'{"total":2,\n"items":[{"a":1},\n[2]],\n"tags":["x","y"],\n"empty":[]}'
    )


def test_integers_stay_exact_at_any_size() -> None:
    for value in (2**53 + 1, -(2**63), 2**64, 10**400, -(10**4000), 10**9000):
        content = canonical([value, "é"])
        assert back(content) == [value, "é"]
        json.loads(content.body)


def test_a_deep_or_cyclic_value_is_not_plain() -> None:
    deep: Any = 0
    for _ in range(PLAIN_DEPTH):
        deep = [deep]
    assert is_plain(deep) and not is_plain([deep])
    cycle: list[Any] = []
    cycle.append(cycle)
    assert not is_plain(cycle)


def test_a_value_that_repeats_itself_a_billion_times_is_stored_small() -> None:
    value: Any = ["x"]
    for _ in range(60):
        value = [value, value]
    content = canonical(value)
    assert len(content.body) < 20_000_000
    again = back(content)
    for _ in range(60):
        assert again[0] is again[1]
        again = again[0]
    assert again == ["x"]


@needs_corpus
def test_the_corpus_comes_back_byte_for_byte() -> None:
    for path in corpus_paths():
        raw = path.read_bytes()
        content = canonical(raw)
        assert content.body == raw and back(content) == raw
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            continue
        content = canonical(text)
        assert content.body == raw and back(content) == text


@needs_corpus
def test_every_json_document_of_the_corpus_comes_back_as_a_value() -> None:
    for path in corpus_paths("json"):
        value = json.loads(path.read_bytes())
        content = canonical(value)
        assert content.form == "json" and same(back(content), value)
        if content.kind == "rows":
            assert content.body.count(b"\n") + 1 == len(value)


def test_an_unknown_form_is_an_error_that_says_so() -> None:
    with pytest.raises(NotRestorable, match="form 'arrow'"):
        restore("arrow", b"", None)


# --- what kind it is -----------------------------------------------------------------------------


@needs_corpus
@pytest.mark.parametrize(
    ("name", "kind", "mime"),
    [
        ("binary/gimp.png", "media", "image/png"),
        ("csv/vega_airports.csv", "rows", "text/csv"),
        ("csv/palmer_penguins-raw.csv", "rows", "text/csv"),
        ("csv/vega_unemployment.tsv", "rows", "text/tab-separated-values"),
        ("html/py_functions.html", "text", "text/html"),
        ("json/vega_movies.json", "rows", "application/json"),
        ("json/vega_us-10m_topojson.json", "document", "application/json"),
        ("json/package_lock.json", "document", "application/json"),
        ("mcp/playwright.snapshot_genindex_all.wire.json", "document", "application/json"),
        ("text/crlf_readme.md", "text", "text/markdown"),
        ("text/git_log_p_click.txt", "text", "text/x-diff"),
        ("text/git_diff_numstat.txt", "text", "text/plain"),
        ("text/unicode_emoji_test.txt", "text", "text/plain"),
        ("text/charmap_latin1.txt", "text", "text/plain"),
    ],
)
def test_real_outputs_are_recognised(name: str, kind: str, mime: str) -> None:
    raw = (FOLDER / name).read_bytes()
    content = canonical(raw)
    assert sniff(raw[:HEAD_BYTES], "bytes", "bytes") == (kind, mime)
    assert settle(content.kind, content.mime, raw) == (kind, mime)


@pytest.mark.parametrize(
    ("text", "kind", "mime"),
    [
        ("", "text", "text/plain"),
        ('[{"a": 1}]', "rows", "application/json"),
        ('[{"a": 1}, 2]', "document", "application/json"),
        ("[1, 2]", "document", "application/json"),
        ('{"a": 1}', "document", "application/json"),
        ('{"a": 1}\n{"a": 2}\n', "rows", "application/x-ndjson"),
        ('{"a": 1}\nand more', "text", "text/plain"),
        ("[warning] disk full", "text", "text/plain"),
        ("{not json}", "text", "text/plain"),
        ("2026-01-02 10:00:00 up\n2026-01-02 10:00:01 down\n", "text", "text/x-log"),
        ("a, b\nc, d, e\nf, g\n", "text", "text/plain"),
    ],
)
def test_text_is_recognised_by_what_it_is(text: str, kind: str, mime: str) -> None:
    content = canonical(text)
    assert (content.kind, content.mime) == (kind, mime)


def test_json_that_breaks_after_the_head_is_text_once_the_whole_is_known() -> None:
    text = "[" + '{"a": 1},' * 20_000 + "oops"
    assert sniff(text.encode()[:HEAD_BYTES], "str", "str") == ("rows", "application/json")
    assert canonical(text).kind == "text"


def test_rows_that_end_in_something_else_are_a_document_once_the_whole_is_known() -> None:
    text = "[" + '{"a": 1},' * 20_000 + "7]"
    assert canonical(text).kind == "document"


def test_nested_json_text_of_any_depth_is_stored() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert back(canonical(text)) == text


# --- streams -------------------------------------------------------------------------------------


def test_what_is_read_is_a_stream_and_what_is_had_is_not(tmp_path: Path) -> None:
    async def asynchronous() -> Any:
        yield 1

    agen = asynchronous()
    assert all(map(is_stream, [iter([]), (i for i in []), io.BytesIO(), io.StringIO(), agen]))
    assert all(map(is_stream, [map(str, []), zip([])]))
    assert not any(
        map(is_stream, ["", b"", [], {}, (), set(), range(3), memoryview(b""), io.BytesIO])
    )
