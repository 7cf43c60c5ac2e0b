"""Records decoded where they lie are those that are cut out one by one, whatever their size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callslip import ResultStore
from callslip.reading.together import Together, bytes_of, joined, united

SIZES = [10, 200, 60_000, 300_000, 1_500_000]


def rows(longest: int, many: int) -> list[dict[str, Any]]:
    return [
        {"n": n, "text": "é\n\u2028" + "x" * (longest if n % 7 == 3 else n % 50), "odd": n % 2 == 1}
        for n in range(many)
    ]


@pytest.mark.parametrize("longest", SIZES)
@pytest.mark.parametrize("form", ["one line", "lines", "indented", "NDJSON", "CRLF", "inside"])
def test_groups_are_the_records_in_order(longest: int, form: str, tmp_path: Path) -> None:
    values = rows(longest, max(20, min(20_000, 30_000_000 // (longest + 100))))
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    whole = {
        "one line": "[" + ", ".join(texts) + "]",
        "lines": "[\n" + ",\n".join(texts) + "\n]",
        "indented": json.dumps(values, indent=1),
        "NDJSON": "\n".join(texts) + "\n",
        "CRLF": "\r\n".join(texts),
        "inside": '{"total": 3, "items": [' + ",".join(texts) + '], "next": null}',
    }[form]
    store = ResultStore(tmp_path / "s")
    session = store.session("s")
    id = session.put(whole, tool="t").id
    source = store.run_flow(session._source(id, ""))[1]
    groups = [store.run_flow(flow) for flow in source.groups()]
    assert [json.loads(record) for group in groups for record in group] == values
    assert sum(map(len, groups)) == source.count == len(values)
    assert [json.loads(joined(group)) for group in groups if len(group)] == [
        [json.loads(record) for record in group] for group in groups if len(group)
    ]
    assert json.loads(joined(united([group for group in groups if len(group)]))) == values
    if form != "indented":
        exact = [store.run_flow(source.exact(n)) for n in range(1, source.count + 1)]
        assert [record.decode() for record in exact] == texts
    alone = store.run_flow(list(source.groups())[-1])
    assert list(alone) == list(groups[-1]), "the groups before it were passed over"
    assert session.query(id, "odd", limit=0).total == sum(value["odd"] for value in values)
    long = session.query(id, fields="max(len(text)) as most")
    assert json.loads(long.records[0]) == {"most": max(len(value["text"]) for value in values)}
    store.close()


def test_what_does_not_lie_together_is_a_list() -> None:
    lying = Together([b"1, 2", b"3"], 3, lambda: [b"1", b"2", b"3"])
    assert list(united([lying, [b"4"]])) == [b"1", b"2", b"3", b"4"]
    assert united([lying]) is lying
    both = united([lying, lying])
    assert (len(both), both[4], list(both[1:3])) == (6, b"2", [b"2", b"3"])
    assert joined([b"1", b"2"]) == b"[1,2]"
    assert bytes_of(lying) == 5 and bytes_of([b"12", b"3"]) == 3
