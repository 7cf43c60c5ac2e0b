"""`mask=` on what was written by nobody who wished for it: names in other letters, torn lines, tables
where none is expected. Each form here once showed a value that should have been hidden."""

from __future__ import annotations

import json
import pprint
from pathlib import Path
from typing import Any

import pytest

from callslip import ResultStore
from callslip.masks import hidden
from callslip.stacks.hiding import Masker, mask_of

VALUE = "VALUE-7"
MASK = {"ssn": hidden, "user.email": hidden, "teléfono": hidden, "a/b": hidden, "Straße": hidden}
LOG = "".join(f"2026-01-01 line {n} of the log\n" for n in range(20))
ROWS = [{"id": n, "ssn": VALUE} for n in range(30)]
TABLE = "id,ssn\n" + "".join(f"{n},{VALUE}\n" for n in range(30))


def _frame() -> Any:
    import pandas

    return pandas.DataFrame({("a", "ssn"): [VALUE] * 30, ("a", "id"): range(30)})


FORMS: dict[str, Any] = {
    "a name in capitals": lambda: json.dumps([{"TELÉFONO": VALUE}] * 30, ensure_ascii=False),
    "a name with a combining accent": lambda: [{"tele\u0301fono": VALUE}] * 30,
    "an escaped name in a log": lambda: LOG + f"got {json.dumps({'teléfono': VALUE})}\n",
    "an escaped name in a header": lambda: json.dumps(
        {"columns": ["id", "teléfono"], "data": [[n, VALUE] for n in range(30)]}
    ),
    "a sharp s": lambda: [{"STRASSE": VALUE, "strasse": VALUE, "Stra\u1e9ee": VALUE}] * 30,
    "a sharp s in a log": lambda: LOG + f"{{'Straße': '{VALUE}'}}\n",
    "an escaped slash": lambda: json.dumps([{"a/b": VALUE}] * 30).replace("/", "\\/"),
    "a row that holds the name": lambda: {
        "columns": ["id", "ssn", "note"],
        "data": [[str(n), VALUE, "ssn"] for n in range(30)],
    },
    "a path in a column of JSON": lambda: (
        "id,user\n" + "".join(f'{n},"{{""email"":""{VALUE}""}}"\n' for n in range(30))
    ),
    "a path under a header": lambda: {
        "columns": ["id", "user"],
        "data": [[n, {"email": VALUE}] for n in range(30)],
    },
    "cells that are objects": lambda: {
        "fields": [{"name": "id"}, {"name": "ssn"}],
        "rows": [{"f": [{"v": n}, {"v": VALUE}]} for n in range(30)],
    },
    "columns under a header": lambda: {"columns": ["id", "ssn"], "data": [[1, 2, 3], [VALUE] * 3]},
    "a tuple": lambda: repr([{"id": n, "ssn": ("a", VALUE)} for n in range(30)]),
    "bytes": lambda: repr([{"id": n, "ssn": b"12," + VALUE.encode()} for n in range(30)]),
    "a call": lambda: LOG + f"{{'ssn': Number(1, '{VALUE}')}}\n",
    "a brace in a string": lambda: LOG + f"{{'ssn': {{'a': '}}', 'b': '{VALUE}'}}}}\n",
    "strings side by side": lambda: pprint.pformat([{"n": 1, "ssn": "word " * 20 + VALUE}] * 9),
    "a torn line before": lambda: LOG + f'log {{"ssn": "abc\n{{"ssn": "{VALUE}"}}\n',
    "a torn record before": lambda: (
        '{"id": 1, "ssn": ""}\n' * 30
        + '{"ssn": "abc\n'
        + f'{{"ssn": "{VALUE}", "id": 1}}\n'
        + '{"id": 1, "ssn": ""}\n' * 30
    ),
    "a long list laid out": lambda: (
        LOG + json.dumps({"ssn": [f"{n:020d}" for n in range(2_000)] + [VALUE]}, indent=1) + "\nend"
    ),
    "many without an end": lambda: (
        LOG
        + 'x "ssn": {"a\n' * 25
        + "z\n" * 20_000
        + f'"ssn": {json.dumps({"q": "w" * 90, "v": VALUE}, indent=1)}\n'
    ),
    "a table in a JSON string": lambda: {"stdout": TABLE},
    "a table in a content block": lambda: [{"type": "text", "text": TABLE}],
    "a table below a title": lambda: "# export\n\n" + TABLE,
    "a table below its separator": lambda: "sep=;\n" + TABLE.replace(",", ";"),
    "a table behind a table": lambda: "id,name\n" + "1,x\n" * 30 + "\n" + TABLE,
    "carriage returns": lambda: TABLE.replace("\n", "\r"),
    "Python's own in a JSON string": lambda: {"log": f"{ROWS[0]}", "more": "y" * 500},
    "an error": lambda: ValueError({"ssn": VALUE, "more": "y" * 500}),
    "JSON as a key": lambda: {json.dumps(ROWS[0]): 1, "more": "y" * 500},
    "media that holds text": lambda: b"%PDF-1.4\n" + json.dumps(ROWS).encode(),
    "a frame with two rows of names": _frame,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_hostile_form_shows_no_masked_value(tmp_path: Path, form: str) -> None:
    value = FORMS[form]()
    session = ResultStore(tmp_path / "s", mask=MASK, threshold_chars=300).session("s")
    assert VALUE not in str(session.offload(value, tool="t"))
    id = session.put(value, tool="t").id
    replies = [session.search(id, "VALUE").text, session.search(id, "2026|id|ssn").text]
    page = session.read(id, limit=10_000)
    while True:
        replies.append(page.text)
        if page.next is None:
            break
        page = session.read(id, limit=10_000, **page.next)
    assert not [reply for reply in replies if VALUE in reply]


def test_an_argument_in_pythons_own_form_is_masked(tmp_path: Path) -> None:
    session = ResultStore(tmp_path / "s", mask=MASK).session("s")
    session.put("text", tool="t", args={"q": str(ROWS[0])})
    assert "ssn" in session.list().text
    assert VALUE not in session.list().text


@pytest.mark.parametrize("size", [1, 7, 64])
def test_strings_side_by_side_are_one_wherever_a_stream_is_cut(size: int) -> None:
    raw = f"{LOG}{{'ssn': 'abc'\n  '{VALUE}'\n  'xyz'}}\nend\n".encode()
    masker = Masker(mask_of(MASK), raw, "str", "str", None)
    blocks = [raw[at : at + size] for at in range(0, len(raw), size)]
    shown = b"".join([*map(masker.add, blocks), masker.finish()])
    assert VALUE.encode() not in shown
    assert shown.endswith(b"end\n")


def test_what_stands_around_a_torn_value_is_still_seen(tmp_path: Path) -> None:
    session = ResultStore(tmp_path / "s", mask=MASK).session("s")
    text = LOG + '{"ssn": "abc\n2026-01-02 started\n{"ssn": "1"}\n2026-01-02 ended\n'
    page = session.read(session.put(text, tool="t").id).text
    assert "line 19" in page
    assert "2026-01-02 ended" in page
