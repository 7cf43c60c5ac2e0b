from __future__ import annotations

import json
import random
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.window.columns import describe, typed
from callslip.window.preview.rows import field_line
from callslip.window.profile import Cut, Format, Profile, Profiler, Top, top


def dumped(rows: list[Any], **kw: Any) -> list[bytes]:
    return [json.dumps(row, **kw).encode() for row in rows]


def profile_of(records: list[bytes], step: int = 0, **kw: Any) -> Profile:
    profiler = Profiler(**kw)
    for at in range(0, len(records), step or len(records) or 1):
        profiler.add(records[at : at + (step or len(records))])
    return profiler.finish()


def lines_of(profile: Profile) -> dict[str, str]:
    return {field.name: field_line(field) for field in profile.fields}


def jobs(count: int, failed: set[int], pad: int = 0) -> list[dict[str, Any]]:
    return [
        {"id": n, "status": "failed" if n in failed else "ok", "score": n % 97, "pad": "x" * pad}
        for n in range(1, count + 1)
    ]


def test_fields_are_told_with_types_nulls_ranges_and_common_values() -> None:
    rows = [
        {
            "id": n,
            "kind": "a" if n % 3 else "b",
            "ratio": n / 4 if n % 2 else None,
            "day": f"2026-01-{n:02d}",
            "flag": n == 7,
            "where": {"row": n, "column": 1},
            "tags": ["x"] * (n % 3),
            "nothing": None,
            "only": "same",
        }
        for n in range(1, 13)
    ]
    rows[3]["extra"] = 5
    found = lines_of(profile_of(dumped(rows)))
    assert found == {
        "id": "id: integer, 1 to 12, all different",
        "kind": 'kind: string, "a" 8, "b" 4',
        "ratio": "ratio: number, 0.25 to 2.75, 6 null",
        "day": 'day: string, "2026-01-01" to "2026-01-12", all different',
        "flag": "flag: boolean, false 11, true 1",
        "where": "where: object (row, column)",
        "tags": "tags: list of string, 0 to 2 long",
        "nothing": "nothing: always null",
        "only": 'only: string, always "same"',
        "extra": "extra: integer, always 5, 11 null",
    }


@given(
    st.lists(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=60)),
        max_size=60,
    ),
    st.integers(0, 5),
)
def test_counts_of_a_field_add_up_whatever_its_values(values: list[Any], absent: int) -> None:
    field = describe("x", values, len(values) + absent)
    given_ = [value for value in values if value is not None]
    assert field.count == len(given_)
    assert field.nulls == len(values) + absent - len(given_)
    assert len(field_line(field)) < 600


def test_numbers_in_csv_are_found_and_codes_with_leading_zeros_stay_words() -> None:
    assert typed(["1", "", "-3"]) == [1, None, -3]
    assert typed(["1.5", ".097", "NA"]) == [1.5, 0.097, None]
    assert typed(["00501", "10001"]) == ["00501", "10001"]
    assert typed(["NA", "DE", ""]) == ["NA", "DE", None]


def test_csv_rows_are_read_with_quotes_newlines_and_another_delimiter() -> None:
    raws = [b'1;"a;b"\r\n', b'2;"two\nlines"\r\n', b"3;\r\n"]
    profile = profile_of(raws, format="csv", fields=("n", "text"), delimiter=";")
    assert [row.cells for row in profile.first] == [
        (("n", "1"), ("text", '"a;b"')),
        (("n", "2"), ("text", '"two\\nlines"')),
        (("n", "3"), ("text", "null")),
    ]
    assert lines_of(profile)["n"] == "n: integer, 1 to 3, all different"


def test_two_columns_of_one_name_are_both_told() -> None:
    profile = profile_of([b"1,2", b"3,4"], format="csv", fields=("x", "x"))
    assert [field.name for field in profile.fields] == ["x", "x_2"]


def test_a_shown_record_is_the_exact_text_of_its_cells() -> None:
    raw = b'{"big": 123456789012345678901234567890, "odd": 1E400, "f": 40.922325999999998201}'
    cells = dict(profile_of([raw]).first[0].cells)
    assert cells == {
        "big": "123456789012345678901234567890",
        "odd": "1E400",
        "f": "40.922325999999998201",
    }


def test_what_is_not_quite_json_costs_only_itself() -> None:
    raws = [b'{"a": 1E400}', b'{"a": "\\ud800"}', b'{"a": 3}', b"[1]", b'{"a": \xff}', b'{"a": 5}']
    profile = profile_of(raws)
    assert profile.records == 6 and profile.looked == 4
    assert {name for name, _ in profile.fields[0].types} == {"integer", "number", "string"}


def test_a_few_failed_among_many_ok_are_the_odd_ones() -> None:
    profile = profile_of(dumped(jobs(300, {17, 250})))
    assert [row.number for row in profile.odd] == [17, 250]
    assert (profile.odd_field, profile.odd_usual, profile.odd_count) == ("status", ('"ok"',), 2)
    assert profile.exact


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        ({"exit_code": 0}, {"exit_code": 2}),
        ({"ok": True}, {"ok": False}),
        ({"error": None}, {"error": "disk full"}),
        ({"level": "info"}, {"level": "ERROR"}),
        ({"conclusion": "success"}, {"conclusion": "timed_out"}),
    ],
)
def test_failures_are_known_by_their_fields(usual: dict[str, Any], odd: dict[str, Any]) -> None:
    rows = [dict(usual, n=n) for n in range(60)]
    rows[41] = dict(odd, n=41)
    assert [row.number for row in profile_of(dumped(rows)).odd] == [42]


def test_a_state_that_is_a_place_has_no_odd_ones() -> None:
    r = random.Random(3)
    rows = [{"state": r.choice(["AK", "TX", "CA", "NY"]), "city": str(n)} for n in range(400)]
    assert not profile_of(dumped(rows)).odd


def test_beyond_the_exact_bytes_a_part_is_looked_at_and_the_profile_says_so() -> None:
    profile = profile_of(dumped(jobs(4_000, {3_777})), exact_bytes=20_000)
    assert not profile.exact and profile.records == 4_000 and 50 <= profile.looked < 2_100
    assert [row.number for row in profile.first] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("kw", [{}, {"separators": (",", ":")}, {"indent": 1}])
def test_odd_ones_are_found_in_every_record_though_a_part_is_looked_at(kw: dict[str, Any]) -> None:
    failed = {3, 401, 2_999, 3_777}
    profile = profile_of(dumped(jobs(4_000, failed), **kw), exact_bytes=20_000)
    assert [row.number for row in profile.odd] == sorted(failed)
    assert profile.odd_everywhere and profile.odd_count == 4


def test_the_same_key_in_a_nested_object_is_not_taken_for_an_odd_one() -> None:
    rows = jobs(3_000, {2_000})
    for row in rows[1_000:1_100]:
        row["inner"] = {"status": "gone"}
    profile = profile_of(dumped(rows), exact_bytes=20_000)
    assert [row.number for row in profile.odd] == [2_000]
    assert profile.odd_count == 1


def test_so_many_odd_ones_that_counting_would_take_long_are_not_counted() -> None:
    rows = jobs(9_000, set(range(3_001, 9_001)))
    profile = profile_of(dumped(rows), exact_bytes=20_000)
    assert [row.number for row in profile.odd[:2]] == [3_001, 3_002]
    assert profile.odd_count == -1


def test_elsewhere_the_odd_ones_of_the_part_are_shown_and_not_counted() -> None:
    rows = dumped(jobs(4_000, set(range(1, 4_001, 32))))
    profile = profile_of(rows, exact_bytes=20_000, everywhere=False)
    assert profile.odd and profile.odd_count == -1 and not profile.odd_everywhere


def test_the_top_ones_by_a_wished_field_are_those_of_every_record() -> None:
    assert top("score") == Top("score")
    rows = jobs(5_000, set())
    rows[4_321]["score"] = 10_000
    rows[12]["score"] = 9_999.5
    for exact in (20_000, 10**9):
        profile = profile_of(dumped(rows), exact_bytes=exact, top="score")
        assert [row.number for row in profile.top] == [4_322, 13, 97, 194, 291][:2] + [
            row.number for row in profile.top[2:]
        ]
        assert all(dict(row.cells)["score"] == "96" for row in profile.top[2:])
        assert [row.number for row in profile.top[2:]] == [97 * k - 1 for k in (1, 2, 3)]


def test_a_score_is_known_by_its_name_and_rows_already_in_that_order_need_no_top() -> None:
    rows = [{"doc": n, "relevance_score": (n * 37 % 100) / 100} for n in range(100)]
    profile = profile_of(dumped(rows))
    assert profile.top_field == "relevance_score" and dict(profile.top[0].cells)["doc"] == "27"
    rows.sort(key=lambda row: -row["relevance_score"])
    assert not profile_of(dumped(rows)).top


def test_a_cut_gives_the_records_it_points_at() -> None:
    block = b'xx[{"a":1}, {"a":22}]'
    spans = array("Q", [103, 110, 112, 120])
    cut = Cut(block, spans, base=100)
    assert len(cut) == 2 and cut[1] == b'{"a":22}' and cut[:] == [b'{"a":1}', b'{"a":22}']


@given(
    st.integers(1, 700),
    st.sets(st.integers(1, 3_000), max_size=8),
    st.booleans(),
    st.sampled_from(["", "score"]),
)
@settings(max_examples=15, deadline=None)
def test_a_profile_does_not_depend_on_how_records_are_handed_in(
    step: int, failed: set[int], as_cut: bool, by: str
) -> None:
    records = dumped(jobs(3_000, failed))
    whole = profile_of(records, exact_bytes=30_000, top=by)
    if not as_cut:
        assert profile_of(records, step, exact_bytes=30_000, top=by) == whole
        return
    block, spans, at = b",".join(records), array("Q"), 0
    for record in records:
        spans.extend((at, at + len(record)))
        at += len(record) + 1
    profiler = Profiler(exact_bytes=30_000, top=by)
    for k in range(0, len(records), step):
        profiler.add(Cut(block, spans[2 * k : 2 * (k + step)]))
    assert profiler.finish() == whole


def test_what_is_held_is_bounded() -> None:
    profiler = Profiler(exact_bytes=100_000)
    for _ in range(40):
        profiler.add([b'{"v":"' + b"y" * 5_000 + b'"}'] * 200)
    assert sum(map(len, profiler._held)) < 2_000_000
    assert profiler.finish().records == 8_000


@pytest.mark.parametrize("format", ["json", "ndjson", "csv"])
def test_no_records_at_all(format: Format) -> None:
    profiler = Profiler(format)
    profiler.add([])
    assert profiler.finish().records == 0


def test_a_shown_cell_is_short_valid_json_whatever_it_holds() -> None:
    row = {
        "k" * 5_000: "v" * 100_000,
        "esc": '\\"\n' * 400,
        "list": list(range(5_000)),
        "nested": {"a": [{"b": 1}] * 30},
        "emoji": "😀" * 300,
    }
    for name, text in profile_of(dumped([row])).first[0].cells:
        assert len(name) <= 200 and len(text) <= 900
        json.loads(text)
