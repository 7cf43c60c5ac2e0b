"""Fields found and replaced where they stand, held against a plain walk over the parsed value."""

from __future__ import annotations

import csv
import io
import json
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip import SettingsError
from callslip.masks import hashed, hidden, last4
from callslip.stacks.content import canonical
from callslip.stacks.hiding import Masker, mask_of
from callslip.stacks.hiding.fields import Fields
from callslip.stacks.hiding.scan import HIDDEN
from callslip.stacks.recognise import recognise
from callslip.stacks.records import HEAD_BYTES

MARK = "·"


def mark(value: object) -> str:
    return MARK


FIELDS: dict[str, Any] = {"ssn": mark, "user.mail": mark, "Straße": mark, "a.b.c": mark}


def shown(text: str, fields: dict[str, Any] | None = None, *, blocks: int = 1 << 20) -> str:
    """A text through a masker: at once, and block by block; both must say the same."""
    mask = mask_of(fields or FIELDS)
    content = canonical(text)
    body = content.body
    whole = Masker(mask, body, "str", "str", body)
    at_once = whole.add(body) + whole.finish()
    assert whole.changed == (at_once != body)
    stream = Masker(mask, body[:HEAD_BYTES], "str", "str", None)
    pieces = [stream.add(body[at : at + blocks]) for at in range(0, len(body), blocks)]
    streamed = b"".join([*pieces, stream.finish()])
    if recognise(body[:HEAD_BYTES], "str", "str", body).mime == recognise(body, "str", "str").mime:
        assert streamed == at_once
    return at_once.decode("utf-8", "surrogatepass")


def walked(value: Any, path: tuple[str, ...] = ()) -> Any:
    """What is to be seen of a parsed value: a field by its name, or by the names above it."""
    if isinstance(value, list):
        return [walked(item, path) for item in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, item in value.items():
        here = (*path, key.lower())
        names = [name.lower() for name in FIELDS]
        if key.lower() in names or any(
            "." in name and here[-name.count(".") - 1 :] == tuple(name.split(".")) for name in names
        ):
            found[key] = marked(item)
        else:
            found[key] = walked(item, here)
    return found


def marked(item: Any) -> Any:
    return [marked(each) for each in item] if isinstance(item, list) else MARK


KEYS = st.sampled_from(
    [
        "ssn",
        "SSN",
        "user",
        "mail",
        "a",
        "b",
        "c",
        "x",
        "user.mail",
        "ssn2",
        "Straße",
        'q"ssn',
        "ss\\n",
    ]
)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet='abcs"\\n}], \n·\u00e9', max_size=12).filter(
        # What begins as JSON does and is none is hidden when a name may be in it: see below.
        lambda text: text.lstrip()[:1] != '"'
    )
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(KEYS, below, max_size=4),
    max_leaves=25,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5), st.booleans(), st.booleans())
def test_what_is_shown_of_json_is_what_a_walk_over_its_values_would_show(
    value: dict[str, Any], ascii_only: bool, laid_out: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=2 if laid_out else None)
    raw, used = Fields(FIELDS).json(text.encode())
    assert used == len(text.encode())
    assert json.loads(raw) == walked(value)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), min_size=2, max_size=9),
    st.integers(1, 400),
)
def test_a_list_of_records_is_shown_alike_however_it_comes(
    records: list[dict[str, Any]], blocks: int
) -> None:
    wanted = [walked(record) for record in records]
    assert json.loads(shown(json.dumps(records), blocks=blocks)) == wanted
    lines = "".join(json.dumps(record) + "\n" for record in records)
    found = shown(lines, blocks=blocks).splitlines()
    if recognise(lines.encode(), "str", "str").mime == "application/x-ndjson":
        assert [json.loads(line) for line in found] == wanted


CELLS = st.text(alphabet='ab",;\n \u00e9', max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(), CELLS, CELLS), min_size=2, max_size=20), st.integers(1, 99)
)
def test_a_table_has_its_masked_column_replaced_and_no_other(
    rows: list[tuple[int, str, str]], blocks: int
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([["id", "SSN", "note"], *rows])
    text = out.getvalue()
    if recognise(text.encode(), "str", "str").format != "csv":
        return
    found = list(csv.reader(io.StringIO(shown(text, blocks=blocks), newline="")))
    wanted = [[str(n), MARK, note] for n, _, note in rows]
    assert [row for row in found[1:] if row] == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"ssn":"1"}', '{"ssn":"·"}'),
        ('{"ssn" :\n 12.50 , "n":1E400}', '{"ssn" :\n "·" , "n":1E400}'),
        ('{"ssn":["1",["2"],{"x":1}]}', '{"ssn":["·",["·"],"·"]}'),
        ('{"ssn":{"deep":[1,"}"]},"n":1}', '{"ssn":"·","n":1}'),
        (r'{"\u0073sn":"1","b":"\\"}', r'{"\u0073sn":"·","b":"\\"}'),
        (r'{"x":"{\"ssn\": \"1\"}"}', r'{"x":"{\"ssn\": \"·\"}"}'),
        (r'{"x":"a \"ssn\": no field"}', r'{"x":"a \"ssn\": \"·\""}'),
        ('{"users":[{"mail":"m"}],"user":[{"mail":"m"}]}',)
        + ('{"users":[{"mail":"m"}],"user":[{"mail":"·"}]}',),
        ('{"mail":"m","user":"ssn"}', '{"mail":"m","user":"ssn"}'),
        ('{"user.mail":"m"}', '{"user.mail":"·"}'),
        ('{"a":{"b":{"c":1,"d":2},"c":3}}', '{"a":{"b":{"c":"·","d":2},"c":3}}'),
        (r'{"user":"{\"mail\":1}"}', r'{"user":"{\"mail\":\"·\"}"}'),
        ('{"columns":["id","ssn"],"data":[[1,"x"],[2,"y"]]}',)
        + ('{"columns":["id","ssn"],"data":[[1,"·"],[2,"·"]]}',),
        ('{"rows":[[1,"x"]],"fields":[{"name":"id"},{"name":"ssn"}]}',)
        + ('{"rows":[[1,"·"]],"fields":[{"name":"id"},{"name":"ssn"}]}',),
        ('[["ssn","n"],["1",2],["3",4]]', '[["ssn","n"],["·",2],["·",4]]'),
        ('"{\\"ssn\\":\\"1\\"}"', '"{\\"ssn\\":\\"·\\"}"'),
        ("no such field", "no such field"),
        ("id,ssn\n2,1\n", "id,ssn\n2,·\n"),
        ("ssn\n12\n13\n", "ssn\n·\n·\n"),
        ("| id | ssn |\n| 3 | 1 |\n", "| id | ssn |\n| 3 |·|\n"),
        ("id\tssn\tx\n2\t1\t3\n", "id\tssn\tx\n2\t·\t3\n"),
        ('INFO got {"ssn": "1", "n": 2} now', 'INFO got {"ssn": "·", "n": 2} now'),
        ("row {'ssn': '1', 'n': 2}", "row {'ssn': '·', 'n': 2}"),
        (r'INFO body="{\"ssn\": \"1\"}" ok', r'INFO body="{\"ssn\": \"·\"}" ok'),
        ('the "ssn": ', 'the "ssn": '),
    ],
)
def test_a_field_is_replaced_where_it_stands(text: str, wanted: str) -> None:
    assert shown(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        '{"ssn":"1',
        '{"n":1,"ssn":{"a":"1',
        '{"n":"a","x\\n":"2","ssn":["1"',
        r'{"n":"a\"","ssn":"1',
        'INFO {"ssn": {"a": "1"',
        '{"user":{"mail" "1"},"mail":"1"}',
        "got {'user': {'mail': '1'}} now",
        "got {'user': [{'mail': '1'}]} now",
        'id,ssn\n1,"1\n2,1\n',
        "id,ssn\n1,1,1\n2,3\n",
        "id,ssn,x\n0,1\n3,4,5\n",
    ],
)
def test_where_a_value_cannot_be_told_more_is_hidden_and_not_less(text: str) -> None:
    found = shown(text)
    assert HIDDEN in found or MARK in found
    assert "1" not in found.replace('{"n":1', "").replace("\n1,", "").replace('"mail":"1"', "")


def test_a_function_that_raises_hides_the_value_and_the_log_does_not_tell_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(value: str) -> str:
        raise ValueError(f"cannot mask {value}")

    with caplog.at_level(logging.ERROR):
        found = shown('[{"ssn":"123-45"},{"ssn":"678-90"}]', {"ssn": fails, "n": hidden})
    assert found == f'[{{"ssn":"{HIDDEN}"}},{{"ssn":"{HIDDEN}"}}]'
    assert "mask= raised ValueError for a ssn" in caplog.text
    assert "123-45" not in caplog.text
    for odd in (object(), float("nan"), {1, 2}):
        assert HIDDEN in shown('{"ssn":"123-45"}', {"ssn": lambda value, odd=odd: odd})


def test_a_function_of_text_gets_whole_lines_and_hides_those_it_fails_on() -> None:
    lines = [f"line {n} {'secret' if n % 3 else 'plain'}\n" for n in range(999)]

    def without(text: str) -> str:
        assert text.endswith("\n")
        if "line 500 " in text:
            raise RuntimeError
        return text.replace("secret", "······")

    masker = Masker(without, b"".join(line.encode() for line in lines), "str", "str", None)
    body = "".join(lines).encode()
    found = b"".join([masker.add(body[at : at + 100]) for at in range(0, len(body), 100)])
    text = (found + masker.finish()).decode()
    assert "secret" not in text
    assert HIDDEN in text
    assert text.count("\n") == 999
    assert "line 998 ······" in text


def test_what_has_no_place_to_cut_is_hidden_rather_than_held_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("callslip.stacks.hiding.masker.HELD_MOST", 10_000)
    head = b'{"a":1,"ssn":"' + b"1" * 20_000
    masker = Masker(mask_of({"ssn": last4}), head, "str", "str", None)
    found = masker.add(head) + masker.add(b'22","n":"333"}') + masker.finish()
    assert b"111" not in found
    assert b"333" not in found
    assert HIDDEN.encode() in found


@pytest.mark.parametrize(
    "given", [3, {"": last4}, {3: last4}, {"ssn": "****"}, ["ssn"], {"..": last4}]
)
def test_what_is_no_mask_is_an_error_that_says_what_to_give(given: Any) -> None:
    with pytest.raises(SettingsError, match="mask="):
        mask_of(given)


def test_the_ready_made_functions() -> None:
    assert last4("123-45-6789") == "***-**-6789"
    assert last4(4111111111111111) == "************1111"
    assert [last4(value) for value in ("1234", "", None, ["1"], True)] == [
        "**34", "", None, HIDDEN, HIDDEN,
    ]  # fmt: skip
    assert hidden("x") == HIDDEN
    one, two = hashed(b"k" * 16), hashed("another key of some length")
    assert one("a") == one("a") != one("b")
    assert one("a") != two("a")
    assert len(str(one("a"))) == 24
    with pytest.raises(SettingsError, match="16 bytes"):
        hashed("short")


def test_the_ready_made_functions_leave_what_they_made_and_nothing_else() -> None:
    one, two = hashed(b"k" * 16), hashed("another key of some length")
    values = [
        "123-45-6789",
        "",
        "a",
        "ab",
        "abc",
        "12345678",
        "geheim-ü_9",
        4111111111111111,
        -5,
        "*",
    ]
    for function in (hidden, last4, one, two):
        for value in values:
            assert function(function(value)) == function(value), value
    for value in values:
        assert one(two(value)) not in (one(value), two(value))
    for value in ("*a", "**ab", "***-**-6789", "****1234"):
        assert last4(value) == value
    assert [last4(value) for value in ("1*", "*ab", "a*b*", "****12345", "1234****")] == [
        "**", "**b", "**b*", "*******45", "**34****",
    ]  # fmt: skip
    token = str(one("a"))
    for forged in (token[:-1] + ("0" if token[-1] != "0" else "1"), token.upper(), f"{token}0"):
        assert one(forged) != forged


@pytest.mark.parametrize(
    "text",
    [
        '{"ssn": "1", "names": ["ssn", "n"], "x": ' + "[" * 10_000,
        '{"names": ["ssn", "n"], "x": ' + "[" * 10_000 + "]" * 10_000 + "}",
        '{"ssn": ' + "[" * 10_000 + '"111"' + "]" * 10_000 + "}",
        '{"user": ' * 1_000 + '{"mail": "111"}' + "}" * 1_000,
        'x "ssn": {\n' * 10_000,
        'x \'"ssn": "\n' * 10_000,
        '{"x": "' + '\\"ssn\\": ' * 10_000 + '"}',
    ],
)
def test_what_is_made_to_be_hard_to_look_through_is_hidden_in_the_time_of_a_look(text: str) -> None:
    # Linear, or this test would not end.
    masker = Masker(mask_of(FIELDS), text.encode(), "str", "str", text.encode())
    found = masker.add(text.encode()) + masker.finish()
    assert b"111" not in found
    assert b'"ssn": "1"' not in found


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("step", [None, 7, 4096])
def test_a_text_of_wide_characters_is_masked_as_what_it_says(
    encoding: str, marked: bool, step: int | None
) -> None:
    said = "id,ssn\r\n" + "".join(f"{n},x-{n} 😀\r\n" for n in range(600))
    raw = (("\ufeff" if marked else "") + said).encode(encoding)
    masker = Masker(
        mask_of({"ssn": hidden}), raw[:HEAD_BYTES], "bytes", "bytes", None if step else raw
    )
    blocks = [raw[at : at + (step or len(raw))] for at in range(0, len(raw), step or len(raw))]
    found = b"".join(map(masker.add, blocks)) + masker.finish()
    assert masker.changed
    assert b"x" not in found
    assert found.decode().splitlines()[500] == f"499,{HIDDEN}"


@pytest.mark.parametrize(
    "raw",
    [
        b"a,ssn\n1,\0\0\0\n",
        b"\0" * 5_000,
        bytes(range(256)) * 40,
        b"\x89PNG\r\n\x1a\n" + b"\0a" * 99,
    ],
)
def test_bytes_with_nul_that_are_no_wide_text_stay_as_they_are(raw: bytes) -> None:
    masker = Masker(mask_of({"other": hidden}), raw, "bytes", "bytes", raw)
    assert masker.add(raw) + masker.finish() == raw
