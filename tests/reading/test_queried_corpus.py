"""Every table of the corpus: what queries say of its fields is what json, csv and duckdb say."""

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
from callslip.stacks.paths import Found, find
from tests.corpus import corpus_params, corpus_paths

_FOLDERS = ("csv", "json", "mcp", "sql")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    store = ResultStore(tmp_path_factory.mktemp("corpus"))
    yield store.session("s")
    store.close()


def expected(path: Path, table: str, inside: str) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The rows as the standard library reads them, and the exact texts of JSON rows."""
    raw = path.read_bytes()
    if path.suffix in (".csv", ".tsv"):
        mark = "\t" if path.suffix == ".tsv" else ","
        rows = list(csv.DictReader(io.StringIO(raw.decode(), newline=""), delimiter=mark))
        return [{name: cell or None for name, cell in row.items()} for row in rows], []
    if inside:
        value = json.loads(raw)
        for step in inside.replace("]", "").replace("[", ".").split("."):
            value = value[int(step) if step.isdecimal() else step]
        raw = value.encode()
    place = find(raw, table or "$")
    assert isinstance(place, Found)
    texts = [bytes(part) for part in msgspec.json.decode(place.raw, type=list[msgspec.Raw])]
    return json.loads(place.raw), texts


@pytest.mark.parametrize("path", corpus_params(*_FOLDERS))
def test_rows_and_fields_are_what_others_say(path: Path, session: Session, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    if path.suffix not in (".json", ".csv", ".tsv"):
        return
    handle = session.put(path.read_text(encoding="utf-8"), tool=path.stem)
    shape, id = handle.shape, handle.id
    if shape.kind != "rows":
        assert shape.records is None
        return
    rows, texts = expected(path, shape.table, shape.inside)
    names = list(dict.fromkeys(name for row in rows for name in row))
    assert session.query(id, limit=0).total == len(rows) == shape.records

    source = session.store.run_flow(session._source(id, ""))[1]
    for number, text in enumerate(texts, 1):
        assert session.store.run_flow(source.record(number)) == text, "byte for byte"

    star = json.loads(session.sql(f"select * from {id}", limit=1).records[0])
    assert list(star) == names

    file = tmp_path / ("rows.json" if texts else f"rows{path.suffix}")
    file.write_bytes(b"\n".join(texts).replace(b"\r", b"") if texts else path.read_bytes())
    if texts:
        file.write_text("\n".join(json.dumps(row) for row in rows))
        theirs = duckdb.read_json(str(file), format="newline_delimited", sample_size=-1)
    else:
        theirs = duckdb.read_csv(str(file), all_varchar=True)
    assert list(theirs.columns) == names
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    for start in range(0, len(names), 20):
        part = quoted[start : start + 20]
        counts = ", ".join(f"count({name}) as n{at}" for at, name in enumerate(part))
        ours = json.loads(session.query(id, fields=counts).records[0])
        held = [
            sum(row.get(name) is not None for row in rows) for name in names[start : start + 20]
        ]
        assert list(ours.values()) == held
        assert list(theirs.aggregate(counts).fetchall()[0]) == held
    for name, called in zip(names, quoted, strict=True):
        values = [row.get(name) for row in rows if row.get(name) is not None]
        kinds = set(map(type, values))
        if kinds and (kinds <= {int, float} or kinds == {str}):
            asked = f"min({called}) as low, max({called}) as high, count(distinct {called}) as n"
            ours = json.loads(session.query(id, fields=asked).records[0])
            if texts:
                assert ours == {"low": min(values), "high": max(values), "n": len(set(values))}
                least = min(values)
                same = session.query(id, {name: least}, limit=1)
                assert same.total == values.count(least)
                assert json.loads(same.records[0]) == next(r for r in rows if r.get(name) == least)


def test_there_are_tables_to_look_at() -> None:
    assert not corpus_paths() or len(corpus_paths("json")) > 10
