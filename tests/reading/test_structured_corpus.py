"""Every JSON, NDJSON, CSV and MCP file of the corpus: what we find in it is what others find."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callslip import ResultStore, Session
from callslip.limits import ENVELOPE_CHARS, PAGE_CAP_CHARS, PREVIEW_CHARS
from callslip.stacks.paths import Found, find, string_of
from tests.corpus import FOLDER, corpus_params

JSON_FILES = ("json/*.json", "sql/*.json", "mcp/*.json")
CSV_FILES = ("csv/*.csv", "csv/*.tsv")


def each(*patterns: str) -> Any:
    """One test a file of the corpus; none, and the reason, where there is no corpus."""
    found = sorted(path for pattern in patterns for path in FOLDER.glob(pattern))
    if not found:
        return pytest.mark.parametrize("path", corpus_params("json"))
    return pytest.mark.parametrize("path", found, ids=lambda path: path.name)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    store = ResultStore(tmp_path_factory.mktemp("corpus"))
    yield store.session("s")
    store.close()


def pages(session: Session, id: str) -> str:
    where: dict[str, int] | None = {"start": 1}
    texts = []
    while where is not None:
        page = session.read(id, limit=10_000, **where)
        assert len(str(page)) <= PAGE_CAP_CHARS
        texts.append(page.text)
        where = page.next
    return "".join(texts)


@each(*JSON_FILES)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_a_json_file_is_rows_or_a_document_and_every_record_is_exact(
    path: Path, streamed: bool, session: Session
) -> None:
    text = path.read_text(encoding="utf-8")
    raw = text.encode()
    handle = session.put(iter([text]) if streamed else text, tool=path.stem)
    shape = handle.shape
    assert len(str(handle)) <= PREVIEW_CHARS + ENVELOPE_CHARS
    assert shape.kind in ("rows", "document") or shape.inside
    assert session.load(handle.id) == text
    if shape.inside:
        place = find(raw, shape.inside)
        assert isinstance(place, Found)
        assert pages(session, handle.id) == string_of(place.raw)
        raw = string_of(place.raw).encode()
    else:
        assert pages(session, handle.id) == text
    if shape.kind != "rows":
        return
    place = find(raw, shape.table or "$")
    assert isinstance(place, Found)
    elements = [bytes(part) for part in msgspec.json.decode(place.raw, type=list[msgspec.Raw])]
    assert shape.records == len(elements)
    values = json.loads(place.raw)
    assert list(session.records(handle.id)) == values
    assert list(shape.fields[:1]) == list(values[0])[:1]
    for number in {1, 2, len(elements) // 2 or 1, len(elements)} & set(range(1, len(elements) + 1)):
        record = session.get(handle.id, number)
        assert record.text.encode() == elements[number - 1]
        assert record.value == values[number - 1]
        assert len(str(record)) <= PAGE_CAP_CHARS


@each(*CSV_FILES)
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("as_bytes", [False, True], ids=["str", "bytes"])
def test_a_table_has_the_rows_that_csv_sees(
    path: Path, ending: str, as_bytes: bool, session: Session
) -> None:
    text = "\n".join(path.read_text(encoding="utf-8").splitlines()).replace("\n", ending) + ending
    rows = list(csv.reader(io.StringIO(text), delimiter="\t" if path.suffix == ".tsv" else ","))
    value = ("\ufeff" + text).encode() if as_bytes else text
    handle = session.put(value, tool=path.stem)
    shape = handle.shape
    if (
        all(cell.replace(".", "").replace("-", "").isdigit() for cell in rows[0])
        or len({len(row) for row in rows}) > 1
    ):
        # Without a header there are no fields, and what has its own columns is no table.
        assert shape.kind == "text"
        return
    assert shape.kind == "rows"
    assert list(shape.fields) == rows[0][: len(shape.fields)]
    assert shape.records == len(rows) - 1
    assert [list(record.values()) for record in session.records(handle.id)] == rows[1:]
    middle = shape.records // 2
    record = session.get(handle.id, middle)
    delimiter = "\t" if path.suffix == ".tsv" else ","
    assert next(csv.reader([record.text], delimiter=delimiter)) == rows[middle]
    assert session.load(handle.id) == value


@each("csv/vega_airports.csv", "csv/palmer_penguins-raw.csv", "json/iso_639-3.json")
def test_duckdb_counts_the_same_records_and_fields(
    path: Path, session: Session, tmp_path: Path
) -> None:
    duckdb = pytest.importorskip("duckdb")
    text = path.read_text(encoding="utf-8")
    id = session.put(text, tool=path.stem).id
    shape = session.handle(id).shape
    source = path
    if path.suffix == ".json":
        source = tmp_path / "rows.json"
        source.write_text(json.dumps(json.loads(text)[shape.table]))
    table = duckdb.sql(f"select * from '{source}'")
    assert shape.records == len(table)
    assert set(table.columns) >= set(shape.fields)


@each("json/vega_movies.json", "json/iso_3166-2.json")
@pytest.mark.parametrize("block", [1_000, 100_000])
def test_a_json_file_as_ndjson_is_the_same_rows(path: Path, block: int, session: Session) -> None:
    value = json.loads(path.read_bytes())
    rows = value if isinstance(value, list) else next(iter(value.values()))
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    text = "\n".join(lines)
    cut = [text[at : at + block] for at in range(0, len(text), block)]
    handle = session.put(iter(cut), tool="t")
    assert (handle.kind, handle.shape.records) == ("rows", len(rows))
    assert list(session.records(handle.id)) == rows
    assert session.get(handle.id, len(rows)).text == lines[-1]
