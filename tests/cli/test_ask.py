from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from callslip import ResultStore
from callslip.cli import tables
from callslip.session import Session
from tests.cli.shell import here
from tests.cli.test_processes import on_terminal

ROWS = [
    {"id": n, "status": ["ok", "failed"][n % 9 == 0], "amount": n * 1.5, "who": {"city": "Oslo"}}
    for n in range(3_000)
]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return ResultStore(tmp_path / ".callslip").session("cli")


def test_query_gives_a_pipe_every_record_that_matches_exactly(
    tmp_path: Path, session: Session
) -> None:
    id = session.put("[" + ", ".join(f'{{"n": {n}.50}}' for n in range(900)) + "]", tool="t").id
    done = here(tmp_path, "query", id, "n >= 100")
    assert done.stdout == "".join(f'{{"n": {n}.50}}\n' for n in range(100, 900))
    part = here(tmp_path, "query", id, "n >= 100", "--after", "5", "-n", "2")
    assert part.stdout == '{"n": 105.50}\n{"n": 106.50}\n'
    assert here(tmp_path, "query", id, "-c", "n >= 100").stdout == "800\n"
    assert here(tmp_path, "query", id, "n >= 100", "--json", "-n", "1").stdout == '{"n": 100.5}\n'
    assert here(tmp_path, "query", id, "n < 0").exit_code == 1
    assert here(tmp_path, "query", id, "n < 0", "-c").stdout == "0\n"
    plain = here(tmp_path, "query", id, "n >= 100", "--plain").stdout
    assert plain == str(session.query(id, "n >= 100")) + "\n"


def test_query_groups_orders_and_keeps(tmp_path: Path, session: Session) -> None:
    id = session.put(ROWS, tool="t").id
    counted = here(tmp_path, "query", id, "-f", "status, count(*) as n", "--group-by", "status")
    assert [json.loads(line) for line in counted.stdout.splitlines()] == [
        {"status": "ok", "n": 2_666},
        {"status": "failed", "n": 334},
    ]
    kept = here(tmp_path, "query", id, "status = 'failed'", "--save-as", "failed", "--json")
    assert json.loads(kept.stdout)["records"] == 334
    best = here(tmp_path, "query", id, "--order-by", "amount desc", "-f", "id", "-n", "1")
    assert best.stdout == '{"id": 2999}\n'


def test_sql_joins_results_by_their_ids(tmp_path: Path, session: Session) -> None:
    a, b = session.put(ROWS, tool="a").id, session.put([{"k": 9}, {"k": 10}], tool="b").id
    done = here(tmp_path, "sql", f"select a.id, a.status from {a} a join {b} b on a.id = b.k")
    assert done.stdout == '{"id": 9, "status": "failed"}\n{"id": 10, "status": "ok"}\n'
    assert here(tmp_path, "sql", f"select id from {a}", "-c").stdout == "3000\n"
    kept = here(tmp_path, "sql", f"select id from {a}", "--save-as", "ids")
    assert 'tool="ids"' in kept.stdout and "3,000 records" in kept.stdout


def test_get_prints_a_record_a_value_or_the_file_itself(tmp_path: Path, session: Session) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 30
    document = {"info": {"text": "a\nb\n"}, "data": base64.b64encode(picture).decode()}
    id, rows = session.put(document, tool="d").id, session.put(ROWS, tool="t").id
    # What is typed is a text, and a text is an id first.
    assert json.loads(here(tmp_path, "get", rows, "17").stdout) == ROWS[17]
    assert here(tmp_path, "get", rows, "#17", "who.city").stdout == "Oslo\n"
    assert json.loads(here(tmp_path, "get", rows, "id=40", "--json").stdout)["record"] == 41
    assert here(tmp_path, "get", id, "info.text").stdout == "a\nb\n"
    assert here(tmp_path, "get", id, "data").stdout_bytes == picture
    missing = here(tmp_path, "get", id, "info.txet")
    assert missing.exit_code == 1 and "text" in missing.stderr and missing.stdout == ""


def test_what_is_wrong_is_one_line_and_a_status(tmp_path: Path, session: Session) -> None:
    id = session.put(ROWS, tool="t").id
    for words, status in (
        (("query", id, "state = 1"), 2),
        (("query", "res_0123456789", "id = 1"), 3),
        (("sql", "drop table x"), 2),
        (("get", "res_0123456789", "1"), 3),
    ):
        done = here(tmp_path, *words)
        assert done.exit_code == status
        assert done.stderr.count("\n") == 1 and done.stdout == ""


def test_a_terminal_gets_tables_that_fit(tmp_path: Path, session: Session) -> None:
    wide = [{**row, "evil\x1b[2J": "\x1b]0;x\x07" * 9, **{f"field_{n}": "x" * 50 for n in range(30)}} for row in ROWS]  # fmt: skip
    ids = session.put(ROWS, tool="t").id, session.put(wide, tool="t").id
    for id in ids:
        for words in (("query", id, "status = 'failed'"), ("show", id), ("query", id, "id < 0")):
            shown = on_terminal(tmp_path, *words)
            assert "\x1b]0" not in shown and "\x1b[2J" not in shown
    shown = on_terminal(tmp_path, "query", ids[0], "status = 'failed'", "-n", "3")
    assert "1 to 3 of 334; more: callslip query" in shown
    assert "--after=3 --limit=3" in shown
    assert '{"city": "Oslo"}' in shown
    assert "more: " in on_terminal(tmp_path, "query", ids[1])
    assert "First of 3,000" in on_terminal(tmp_path, "show", ids[0])


def test_columns_share_the_room() -> None:
    assert tables.fitted([3, 6, 10], 80) == [3, 6, 10]
    assert tables.fitted([3, 300, 30], 43) == [3, 17, 17]
    assert sum(tables.fitted([50] * 40, 80)) <= 80 and len(tables.fitted([50] * 40, 80)) == 6
    for room in (-5, 0, 1, 7):
        assert len(tables.fitted([50, 4], room)) == 1
