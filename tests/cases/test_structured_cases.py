"""Reported failures of rows, documents, encodings and media, replayed through the public face."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from callslip import Envelope, ResultStore, Session
from callslip.limits import ENVELOPE_CHARS, PAGE_CAP_CHARS, PREVIEW_CHARS
from callslip.window.measure import estimate_tokens

INPUTS = Path(__file__).parent / "inputs"
BASE64_RUN = re.compile(r"[A-Za-z0-9+/]{65,}")


def made(name: str) -> ModuleType:
    """The input module of that name, known to `sys.modules` as an imported one would be."""
    spec = importlib.util.spec_from_file_location(f"case_{name}", INPUTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def walked(session: Session, id: str) -> str:
    where: dict[str, int] | None = {"start": 1}
    pages = []
    while where is not None:
        page = session.read(id, limit=500, **where)
        pages.append(page.text)
        where = page.next
    return "".join(pages)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return ResultStore(tmp_path / "store").session("s", user="u", tenant="t")


def offloaded(session: Session, value: Any) -> Envelope:
    envelope = session.offload(value, tool="t")
    assert isinstance(envelope, Envelope)
    assert envelope.handle is not None
    assert len(envelope) <= PREVIEW_CHARS + ENVELOPE_CHARS
    return envelope


def id_of(envelope: Envelope) -> str:
    assert envelope.handle is not None
    return envelope.handle.id


def test_case_01_a_list_of_785_says_so_and_each_record_has_an_address(session: Session) -> None:
    text = made("01_dbt_list").make()
    source = json.loads(text)
    envelope = offloaded(session, text)
    assert "785 records" in envelope
    assert "array" in envelope
    assert estimate_tokens(envelope) < 1_000
    id = id_of(envelope)
    by_name = session.get(id, "model_084")
    assert by_name.value == source[84]
    assert (by_name.number, by_name.total) == (85, 1)
    assert session.get(id, 784).value == source[783]
    assert session.get(id, "785").value == source[784]
    assert session.get(id, "name=model_084").value == source[84]
    assert len(str(by_name)) <= PAGE_CAP_CHARS


def test_case_04_a_document_in_one_line_is_rows_of_which_each_has_a_number(
    session: Session,
) -> None:
    text = (INPUTS / "04_one_line.json").read_text()
    id = id_of(offloaded(session, text))
    assert walked(session, id) == text
    items = json.loads(text)["items"]
    assert [session.get(id, n).value for n in (1, 200, len(items))] == [
        items[n - 1] for n in (1, 200, len(items))
    ]
    assert list(session.records(id)) == items


def test_case_05_a_hit_in_one_long_line_names_the_record_it_is_in(session: Session) -> None:
    text = (INPUTS / "05_search_one_line.json").read_text()
    id = id_of(offloaded(session, text))
    hit = session.search(id, "quota exceeded").hits[0]
    assert "quota exceeded" in session.get(id, hit.line).value["snippet"]


@pytest.mark.parametrize("as_text", [False, True], ids=["object", "JSON text"])
def test_case_07_a_long_text_inside_json_is_read_as_text(session: Session, as_text: bool) -> None:
    value = made("07_command_output").make()
    stored = json.dumps(value) if as_text else value
    envelope = offloaded(session, stored)
    id = id_of(envelope)
    assert "exit_code: 0" in envelope
    assert "\\n" not in envelope.split("as text", 1)[1]
    handle = session.handle(id)
    assert handle.lines == 5_000
    # From 1, so that the line numbered [2500] is the 2,501st.
    assert session.read(id, start=2501, limit=1).text == "[2500] compile unit_75.c -> ok\n"
    assert walked(session, id) == value["output"]
    assert session.search(id, r"^\[2500\]").hits[0].line == 2501
    assert "\\n" not in str(session.read(id))
    page = session.get(id, "output", start=2501, limit=2)
    assert "[2500] compile unit_75.c -> ok\n[2501] compile" in str(page)
    assert page.next == {"start": 2503}
    assert session.get(id, "output").text == value["output"]
    assert session.get(id, "exit_code").value == 0
    assert session.load(id) == stored


def test_case_24_what_a_tool_says_twice_is_stored_and_shown_once(session: Session) -> None:
    text = (INPUTS / "24_dual_emit.json").read_text()
    answer = json.loads(text)
    for value in (text, answer):
        envelope = offloaded(session, value)
        handle = session.handle(id_of(envelope))
        assert (handle.kind, handle.shape.records) == ("rows", 400)
        assert handle.shape.table == "structuredContent.rows"
        assert "400 records" in envelope
        assert estimate_tokens(envelope) < 1_000
        rows = answer["structuredContent"]["rows"]
        assert session.get(handle.id, "S0007").value == rows[7]
        assert list(session.records(handle.id)) == rows
        assert session.load(handle.id) == value


def test_case_26_an_answer_without_content_is_its_structured_content(session: Session) -> None:
    text = (INPUTS / "26_structured_only.json").read_text()
    answer = json.loads(text)
    for value in (text, answer):
        envelope = offloaded(session, value)
        assert "300 records" in envelope
        found = session.get(id_of(envelope), "T7")
        assert found.value == answer["structuredContent"]["terms"][7]
        assert found.number == 8


def test_case_27_a_failed_answer_keeps_its_code_and_the_rest_has_an_address(
    session: Session,
) -> None:
    text = (INPUTS / "27_error_structured.json").read_text()
    answer = json.loads(text)
    for value in (text, answer):
        envelope = offloaded(session, value)
        id = id_of(envelope)
        assert 'status="error"' in envelope
        assert "RATE_LIMITED" in envelope
        assert "30" in str(session.get(id, "structuredContent.retry_after"))
        assert session.get(id, "isError").value is True
        attempts = answer["structuredContent"]["attempts"]
        assert session.get(id, len(attempts)).value == attempts[-1]


def test_case_29_base64_comes_back_as_bytes_and_never_into_a_window(session: Session) -> None:
    module = made("29_base64_screenshot")
    picture = module.png()
    block, as_json, as_uri = module.make()
    said = f"image/png, 640x420 pixels, {len(picture):,} bytes"
    places: list[tuple[Any, str | int, str | None]] = [
        (block, "data", None),
        (as_json["text"], "base64Data", None),
        (as_uri["text"], 1, None),
        (as_json, "base64Data", None),
        ([block, as_json, as_uri], 1, "data"),
        ([block, as_json, as_uri], 2, "text.base64Data"),
    ]
    for value, key, field in places:
        envelope = offloaded(session, value)
        id = id_of(envelope)
        record = session.get(id, key, field)
        assert record.value == picture
        assert said in str(record)
        page = session.read(id)
        shown = [envelope, str(record), str(page), str(session.search(id, "AAAA|IDAT|data"))]
        assert not [text for text in shown if BASE64_RUN.search(text)]
        assert "image/png" in envelope or "same_as" in envelope
        # What a caller reads is exact all the same.
        assert session.load(id) == value
        assert BASE64_RUN.search(page.text)


def test_case_29_a_picture_in_bytes_says_what_it_is(session: Session) -> None:
    picture = made("29_base64_screenshot").png()
    handle = session.put(picture, tool="shot")
    assert (handle.kind, handle.shape.mime) == ("media", "image/png")
    assert "640x420" in str(handle)
    assert "640x420" in str(session.get(handle.id, "anything"))
    assert session.load(handle.id) == picture


def test_case_29_hashes_and_ordinary_long_words_are_not_taken_for_files(session: Session) -> None:
    digest = base64.b64encode(bytes(range(64))).decode()
    text = f'"integrity": "sha512-{digest}"\n' * 500 + "x" * 5_000
    id = session.put(text, tool="t").id
    assert digest in str(session.read(id))
    assert not session.handle(id).shape.base64


def test_case_43_rows_of_objects_that_json_lacks_are_rows(session: Session) -> None:
    value = made("43_python_objects").make()["rows"]
    handle = session.put(value, tool="t")
    assert (handle.kind, handle.shape.records) == ("rows", 300)
    found = session.get(handle.id, 300).value
    assert found["dec"] == "0.10000000000000000000001"
    assert found["nan"] is None
    assert found["bytes"] == {"$base64": "AP+F"}


def test_case_44_a_table_is_rows_and_comes_back_equal(session: Session) -> None:
    pandas = pytest.importorskip("pandas")
    table = made("44_dataframe").make()
    envelope = offloaded(session, table)
    id = id_of(envelope)
    shape = session.handle(id).shape
    assert (shape.kind, shape.records) == ("rows", 5_000)
    assert shape.fields == ("id", "name", "score", "when")
    assert "5,000 records, 4 fields" in envelope
    for name, type in (("id", "integer"), ("score", "number"), ("name", "string")):
        assert re.search(rf"^{name}: {type}", envelope, re.MULTILINE)
    rows = list(session.records(id))
    assert [row["id"] for row in rows] == list(range(5_000))
    assert rows[0]["score"] is None
    assert rows[3]["when"] is None or rows[2]["when"] is None
    assert rows[10]["when"] == "2026-01-11T00:00:00"
    pandas.testing.assert_frame_equal(session.load(id), table)
    pandas.testing.assert_frame_equal(session.frame(id), table)


def test_case_44_columns_side_by_side_are_rows(session: Session) -> None:
    columns = {"id": list(range(3_000)), "name": [f"row {n}" for n in range(3_000)]}
    wide = {name: {str(n): v for n, v in enumerate(vs)} for name, vs in columns.items()}
    for value in (json.dumps(columns), columns, json.dumps(wide)):
        id = session.put(value, tool="t").id
        shape = session.handle(id).shape
        assert (shape.kind, shape.records, shape.fields) == ("rows", 3_000, ("id", "name"))
        assert session.get(id, 2_000).value == {"id": 1_999, "name": "row 1999"}
        assert session.get(id, "name=row 5").number == 6
