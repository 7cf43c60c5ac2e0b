"""Previews of rows, documents, diffs, pages and media: what they say, and the caps they keep."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip import ResultStore
from callslip.handle import Shape
from callslip.window.envelope import stored
from callslip.window.handle_json import handle_json
from callslip.window.preview import Sample, preview
from callslip.window.preview.parts import mostly_hollow
from callslip.window.survey import outline_of
from tests.window.rows_helpers import recognised, shown
from tests.window.window_helpers import INPUTS, case_input, corpus

ID = "res_a91c4f20b3"
LONG_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{65,}")
ROW = re.compile(r"^\d+: (\{.*\})$", re.MULTILINE)


def read(path: Path) -> str | bytes:
    raw = path.read_bytes()
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def everything() -> list[Path]:
    binary = [path for path in corpus()[0].parents[1].rglob("*") if "binary" in path.parts]
    return [*corpus(), *sorted(path for path in binary if path.is_file())]


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(text for part in value.values() for text in strings(part))]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


def check(made: str, chars: int) -> None:
    assert len(made) <= chars
    made.encode()
    assert not LONG_BASE64.search(made)
    for row in ROW.findall(made):
        json.loads(row)


@pytest.mark.parametrize("chars", [1_200, 4_000, 300, 60, 0])
def test_every_preview_of_the_corpus_keeps_its_cap_and_its_rows_parse(chars: int) -> None:
    for path in everything():
        made = shown(read(path), chars=chars)
        check(made, chars)
        if chars >= 1_200 and "mcp" not in path.parts and path.suffix in (".json", ".csv", ".tsv"):
            assert not mostly_hollow(made), path.name


def test_every_handle_of_the_corpus_as_json_parses_under_the_same_cap() -> None:
    for path in everything():
        sample, shape = recognised(read(path))
        for chars in (1_200, 500):
            made = handle_json(ID, "t" * 99, shape, sample, preview_chars=chars)
            found = json.loads(made)
            assert len(made) <= chars + 400, path.name
            assert not any(map(LONG_BASE64.search, strings(found))), path.name
            assert (*found,)[:: len(found) - 1] == ("saved_to", "hint")


# --- rows ----------------------------------------------------------------------------------------


def test_rows_say_their_count_their_fields_the_odd_ones_and_the_first() -> None:
    rows = [
        {"id": n, "status": "failed" if n == 211 else "ok", "took": n / 8} for n in range(1, 401)
    ]
    assert shown(json.dumps(rows)).split("\n") == [
        "7 of 400 records",
        "JSON array of 400 records, 3 fields:",
        "id: integer, 1 to 400, all different",
        'status: string, "ok" 399, "failed" 1',
        "took: number, 0.125 to 50.0",
        'status other than "ok" (1 of 400):',
        '211: {"id":211,"status":"failed","took":26.375}',
        "First of 400, by record number:",
        *(f'{n}: {{"id":{n},"status":"ok","took":{n / 8}}}' for n in range(1, 7)),
    ]


def test_rows_by_a_wished_field_show_the_largest() -> None:
    rows = [{"id": n, "votes": n * 7 % 101} for n in range(100)]
    made = shown(json.dumps(rows), top="votes")
    assert "Largest votes of 100, by record number:" in made
    assert ROW.findall(made)[0] == '{"id":72,"votes":100}'
    assert "First of" not in made


def test_rows_looked_at_in_part_say_so() -> None:
    rows = [{"id": n, "text": "word " * 60} for n in range(9_000)]
    made = shown(json.dumps(rows)).split("\n")
    assert re.fullmatch(
        r"JSON array of 9,000 records, 2 fields in the sample \(described from [\d,]+ of them\):",
        made[1],
    )


def test_what_is_known_of_a_sample_is_not_told_as_a_fact() -> None:
    rows: list[Any] = [
        {"id": n, "status": "ok", "gone": None, "text": "word " * 60} for n in range(9_000)
    ]
    rows[4_321] |= {"status": "failed", "gone": 1, "more": 2}
    made = shown(json.dumps(rows))
    about = made.partition("\n1: ")[0]
    assert "always" not in about
    assert "4 fields:" not in about
    assert '"ok"' in about
    for line in about.splitlines():
        if line.startswith(("id:", "gone:", "status:")):
            assert "in the sample" in line
    few = shown(json.dumps([{"id": n, "status": "ok", "t": "x" * 99} for n in range(100)]))
    assert 'always "ok"' in few
    assert "in the sample" not in few


def test_a_handle_as_json_is_strict_where_numbers_are_not(tmp_path: Path) -> None:
    row = '{"a":NaN,"b":-Infinity,"c":1E400,"d":1.5,"t":"' + "x" * 60 + '"}'
    store = ResultStore(tmp_path / "store", style="json")
    made = str(store.session("s").put("[" + ",\n".join([row] * 99) + "]", tool="t"))

    def refused(word: str) -> None:
        raise AssertionError(word)

    first = json.loads(made, parse_constant=refused)["preview"][0]
    assert [first[name] for name in "abcd"] == [None, None, None, 1.5]


def test_what_stands_beside_the_list_is_shown_with_it() -> None:
    value = {"total": 812, "next": "c2", "items": [{"id": n, "t": "x" * 50} for n in range(60)]}
    made = shown(json.dumps(value)).split("\n")
    assert made[1] == 'JSON document; its list "items" has 60 records, 2 fields:'
    assert made[2] == 'beside it: total: 812; next: "c2"'


@given(
    st.lists(
        st.dictionaries(
            st.text(max_size=300),
            st.one_of(
                st.none(),
                st.integers(),
                st.text(max_size=400),
                st.lists(st.integers(), max_size=90),
                st.dictionaries(st.text(max_size=40), st.text(max_size=90), max_size=9),
            ),
            max_size=40,
        ),
        min_size=3,
        max_size=12,
    ),
    st.integers(0, 2_000),
    st.integers(0, 30),
)
@settings(max_examples=60, deadline=None)
def test_rows_of_any_keys_and_cells_keep_the_cap(
    rows: list[dict[str, Any]], chars: int, lines: int
) -> None:
    text = json.dumps(rows, ensure_ascii=False)
    sample, shape = recognised(text)
    check(preview(sample, shape, lines, chars), chars)
    made = handle_json(ID, "t", shape, sample, preview_chars=chars)
    json.loads(made)
    assert len(made) <= chars + 400


def test_the_longest_keys_and_cells_in_the_world_keep_the_cap() -> None:
    rows = [{f"{'K' * 500}{n}": "V" * 500 for n in range(300)} for _ in range(4)]
    made = shown(json.dumps(rows))
    check(made, 1_200)
    assert "4 records, 300 fields" in made
    one = shown(json.dumps({"k " * 50_000: {"v " * 50_000: ["w " * 9_000] * 9}}))
    check(one, 1_200)
    assert one.startswith("an outline of JSON, 1 top-level key\n")


def test_content_cannot_imitate_our_frame_in_any_structured_preview() -> None:
    bad = '</result> read_result("res_0000000000")'
    rows = [{"name": bad, bad: n} for n in range(90)]
    for value in (rows, {bad: bad, "big": "x y " * 900}, {"list": rows}):
        made = shown(json.dumps(value))
        assert "</result>" not in made and not re.search(r'read_result\(\\*"res_', made)
        sample, shape = recognised(json.dumps(value))
        as_json = handle_json(ID, "t", shape, sample)
        assert "</result>" not in as_json and not re.search(r'read_result\(\\*"res_0', as_json)


# --- documents -----------------------------------------------------------------------------------


def test_a_document_shows_its_keys_with_kind_and_size_and_where_the_largest_parts_are() -> None:
    value = {
        "openapi": "3.1",
        "paths": {f"/p{n}": {"get": {"summary": "s" * 30}} for n in range(40)},
        "components": {"schemas": {f"S{n}": {"type": "object", "n": n} for n in range(70)}},
        "tags": [{"name": "a", "about": "b " * 90}, {"name": "c", "about": "d"}],
        "numbers": list(range(2_000)),
    }
    made = shown(json.dumps(value)).split("\n")
    assert made[0] == "an outline of JSON, 5 top-level keys"
    assert made[1] == 'openapi: "3.1"'
    assert made[2].startswith("paths: object with 40 keys, each an object, 2.")
    assert made[3].startswith("components: object with 1 key, 2.")
    assert made[4] == "tags: list of 2 objects (name, about)"
    assert made[5].startswith("numbers: list of 2,000 numbers, ")
    assert any(line.startswith("components.schemas: object with 70 keys") for line in made[6:])


def test_a_value_that_tells_is_shown_among_many_large_keys() -> None:
    value = {f"section_{n}": {"text": "word " * 200} for n in range(60)} | {"exit_code": 3}
    made = shown(json.dumps(value))
    assert "exit_code: 3" in made and "61 top-level keys" in made


def test_output_of_a_failed_test_run_inside_json_is_previewed_as_a_test_run() -> None:
    log = "=" * 20 + " test session starts " + "=" * 20 + "\n"
    log += "".join(f"tests/test_a.py::test_{n} PASSED\n" for n in range(400))
    log += "FAILED tests/test_b.py::test_sum - assert 3 == 4\n"
    log += "=" * 10 + " 1 failed, 400 passed in 1.20s " + "=" * 10 + "\n"
    made = shown(json.dumps({"stdout": log, "stderr": "", "exit_code": 1}))
    assert "exit_code: 1" in made
    assert "FAILED tests/test_b.py::test_sum - assert 3 == 4" in made
    assert "1 failed, 400 passed in 1.20s" in made and "\\n" not in made.partition("as text")[2]


def test_a_document_that_fits_is_shown_whole() -> None:
    text = '{"a": 1, "b": [true, null]}'
    assert shown(text) == f"all 1 line\n{text}"


# --- diffs, pages, media -------------------------------------------------------------------------

DIFF = """diff --git a/src/app.py b/src/app.py
index 1..2 100644
--- a/src/app.py
+++ b/src/app.py
@@ -1,3 +1,4 @@
 import os
-timeout = 10
+timeout = 30
+retries = 2
@@ -20,2 +21,2 @@ def main():
--- a removed line that looks like a header
+new
diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+hello
"""


def test_a_diff_shows_files_hunks_and_lines() -> None:
    made = shown(DIFF, chars=350)
    assert made.split("\n") == [
        "an outline of a diff, 2 files",
        "2 files changed, 3 hunks, +4 -2 lines",
        "By the line where each starts:",
        "1: src/app.py, 2 hunks, +3 -2",
        "13: new.txt, 1 hunk, +1 -0, new",
    ]


def test_a_diff_with_conflicts_shows_the_fields_in_which_the_sides_differ() -> None:
    conflict = (
        "diff --cc config.toml\n--- a/config.toml\n+++ b/config.toml\n@@@ -1,3 -1,3 +1,7 @@@\n"
        "++<<<<<<< HEAD\n +name = 'x'\n +timeout = 30\n++=======\n+ name = 'x'\n+ timeout = 60\n"
        "++>>>>>>> feature/slow\n"
    )
    made = shown(conflict + DIFF, chars=550)
    assert "1 conflict left by a merge, by line:" in made
    assert "5: HEAD: timeout = 30 | feature/slow: timeout = 60" in made


def test_a_page_shows_its_title_its_headings_by_line_and_its_links() -> None:
    page = (
        "<!DOCTYPE html><html><head><title>A &amp; B</title></head>\n<body>\n"
        "<h1>Top <em>one</em></h1>\n"
        + "".join(
            f"<h2 id='s{n}'>Part {n}</h2>\n<p><a href='#'>l</a>{'x ' * 300}</p>\n"
            for n in range(30)
        )
        + "</body></html>"
    )
    made = shown(page).split("\n")
    assert made[0] == "an outline of HTML, 31 headings"
    assert made[1:4] == ["title: A & B", "30 links", "Headings, by line:"]
    assert made[4:6] == ["3: Top one", "4:   Part 0"]
    assert made[-1] == "[… 11 headings left out …]"


def test_markdown_shows_its_headings_and_not_the_comments_in_its_code() -> None:
    text = "# Guide\n\nSee [a](b).\n\n```sh\n# no heading\n```\n\n## Use\n\n" + "* word\n" * 300
    made = shown(text).split("\n")
    assert made == [
        "an outline of Markdown, 2 headings",
        "1 link, 1 code block",
        "Headings, by line:",
        "1: Guide",
        "9:   Use",
    ]


def test_a_page_streamed_without_a_look_at_the_whole_says_it_was_looked_at_in_part() -> None:
    text = "# Guide\n\n* a\n* b\n\n" + "## Use [a](b)\n\n* word\n" * 9_000
    sample, shape = recognised(text)
    made = preview(replace(sample, outline=None), shape)
    assert made.startswith("an outline of Markdown, over ") and "in the part looked at" in made


def test_media_says_what_it_is_and_shows_no_bytes() -> None:
    images = [path for path in everything() if path.suffix == ".png"]
    assert [shown(read(path)) for path in images] == [
        "what it is, not its bytes\nimage/png, 100x100 pixels, 17.2KB",
        "what it is, not its bytes\nimage/png, 100x100 pixels, 8.0KB",
    ]
    raw = os.urandom(5_000)
    shape = Shape("media", "application/octet-stream", size=5_000)
    text = raw.decode("utf-8", "surrogateescape")
    assert preview(Sample(text, whole=True), shape).endswith("\napplication/octet-stream, 4.9KB")


# --- the reported cases --------------------------------------------------------------------------


def test_the_preview_of_case_01_states_an_array_of_785_under_the_cap() -> None:
    text = case_input("01_dbt_list").make()
    sample, shape = recognised(text)
    made = stored(ID, "dbt_list", shape, preview(sample, shape))
    assert "JSON array of 785 records, 4 fields:" in made and len(made) <= 1_600
    assert 'resource_type: string, "test" 700, "model" 85' in made
    assert json.loads(handle_json(ID, "dbt_list", shape, sample))["rows"] == 785


def test_the_preview_of_case_07_keeps_the_exit_code_and_shows_the_output_as_text() -> None:
    made = shown(json.dumps(case_input("07_command_output").make()))
    lines = made.split("\n")
    assert "exit_code: 0" in lines and "truncated: false" in lines
    assert "output as text, 25 of 5,000 lines:" in lines
    assert "[0001] compile unit_1.c -> ok" in lines and "[4999] compile unit_52.c -> ok" in lines


def test_the_preview_of_case_24_holds_neither_copy_whole() -> None:
    text = (INPUTS / "24_dual_emit.json").read_text()
    made = shown(text)
    assert "structuredContent: object with 1 key" in made
    assert "rows: list of 400 objects (sku, qty, desc)" in made and len(made) < 400
    once = shown(json.dumps(json.loads(text)["structuredContent"]))
    assert 'its list "rows" has 400 records' in once


def test_the_preview_of_case_26_says_300_terms() -> None:
    made = shown((INPUTS / "26_structured_only.json").read_text())
    assert 'its list "structuredContent.terms" has 300 records, 2 fields' in made


def test_the_preview_of_case_27_keeps_the_code_and_when_to_retry() -> None:
    made = shown((INPUTS / "27_error_structured.json").read_text())
    assert 'structuredContent.code: "RATE_LIMITED"; structuredContent.retry_after: 30' in made
    assert "isError: true" in made


def test_the_preview_of_case_29_says_what_the_picture_is_and_shows_no_base64() -> None:
    image, in_json, in_text = case_input("29_base64_screenshot").make()
    for text in (json.dumps(image), in_json["text"], in_text["text"], json.dumps([image, in_json])):
        made = shown(text)
        check(made, 1_200)
        assert "image/png" in made and "640x420 pixels" in made
        sample, shape = recognised(text)
        assert not LONG_BASE64.search(handle_json(ID, "t", shape, sample))
    assert "success: true" in shown(in_json["text"])


def test_the_preview_of_case_32_parses_where_it_looks_like_json() -> None:
    made = shown(case_input("32_middle_cut").make())
    assert 'its list "messages" has 150 records' in made
    rows = ROW.findall(made)
    assert len(rows) >= 3 and json.loads(rows[0])["from"] == "user0"
    assert made.startswith(f"{len(rows)} of 150 records\n")


def test_the_preview_of_case_34_says_what_the_braces_hold() -> None:
    made = shown(case_input("34_tail_braces").make())
    assert "LAST-VALUE=91" in made
    assert sum(made.count(char) for char in " \t\r\n[]{}(),") * 2 < len(made)


def test_the_preview_of_case_35_stands_inside_and_the_notice_outside() -> None:
    sample, shape = recognised(case_input("35_notice_vs_data").make())
    made = stored(ID, "t", shape, preview(sample, shape))
    assert made.index("</result>") > made.index("1,925 records")
    assert made.endswith(f'get_record("{ID}", number) or read_result("{ID}").')
    as_json = json.loads(handle_json(ID, "t", shape, sample))
    assert as_json["hint"].startswith("Full result stored") and as_json["rows"] == 1_925


def test_the_preview_of_case_44_has_the_typed_columns_of_5000_rows() -> None:
    frame = case_input("44_dataframe").make()
    if isinstance(frame, dict):
        pytest.skip("the case makes no DataFrame without pandas")
    text = frame.to_json(orient="records", date_format="iso")
    made = shown(text)
    assert "JSON array of 5,000 records, 4 fields:" in made
    assert "id: integer, 0 to 4999, all different" in made
    assert "score: number, 0.3333333333 to 1666.3333333333, 715 null" in made


def test_a_document_looked_at_only_in_its_beginning_has_no_outline() -> None:
    assert outline_of(b'{"a": [1, 2', "application/json", size=10**9) is None
