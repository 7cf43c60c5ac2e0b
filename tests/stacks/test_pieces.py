from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.stacks.content import Pieces, restore

ITEMS = st.lists(
    st.text(st.characters(codec=None, categories=None), max_size=6)
    | st.binary(max_size=6)
    | st.integers()
    | st.just(dt.date(2026, 1, 2))
    | st.dictionaries(st.text(max_size=2), st.none(), max_size=2),
    max_size=8,
)


def loaded(stream: Any, block: int = 1024) -> tuple[Pieces, Any, list[bytes]]:
    pieces = Pieces(stream, block)
    source = pieces.source
    blocks = list(pieces)
    assert pieces.source == source, "readers rely on it from the first block on"
    assert all(0 < len(b) <= 3 * block for b in blocks)
    return pieces, restore(pieces.form, b"".join(blocks), pieces.twin), blocks


@given(
    st.lists(st.text(st.characters(codec=None, categories=None), max_size=9)), st.integers(4, 20)
)
def test_a_stream_of_text_is_the_text(items: list[str], block: int) -> None:
    _, value, _ = loaded(iter(items), block)
    assert value == ("".join(items) if items else [])


@given(st.lists(st.binary(max_size=9), min_size=1), st.integers(4, 20))
def test_a_stream_of_bytes_is_the_bytes(items: list[bytes], block: int) -> None:
    pieces, value, _ = loaded(iter(items), block)
    assert value == b"".join(items) and pieces.source == "bytes"


@given(ITEMS)
def test_no_item_of_any_stream_is_lost(items: list[Any]) -> None:
    pieces, value, blocks = loaded(iter(items))
    if pieces.source == "str":
        b"".join(blocks).decode("utf-8", "surrogatepass")
    assert value == expected(items)


def expected(items: list[Any]) -> Any:
    """What a list of items is loaded as: text and bytes joined as long as they go together."""
    joined, text = b"", True
    for at, item in enumerate(items):
        if isinstance(item, str):
            joined += item.encode("utf-8", "surrogatepass")
        elif isinstance(item, bytes) and (isinstance(items[0], bytes) or is_utf8(item)):
            joined, text = joined + item, False
        else:
            lead = joined.decode("utf-8", "surrogatepass") if text else joined
            return ([lead] if lead else []) + items[at:]
    return (joined.decode("utf-8", "surrogatepass") if text else joined) if items else []


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_other_items_stand_one_a_line_and_load_gives_their_list() -> None:
    items = [{"a": [1, {"b": 2}]}, "two\nlines", b"\xff", dt.date(2026, 1, 2), None, {3}]
    pieces, value, blocks = loaded(iter(items))
    assert pieces.form == "items" and value == items
    assert b"".join(blocks).count(b"\n") == len(items)


def test_text_that_is_followed_by_objects_becomes_the_first_item() -> None:
    pieces, value, blocks = loaded(iter(["log ", "line", {"a": 1}, "end", b"\xff"]))
    assert pieces.form == "items" and value == ["log line", {"a": 1}, "end", b"\xff"]
    assert b"".join(blocks).startswith(b'log line\n{"a":1}\n')


def test_bytes_that_are_not_text_never_break_a_stream_that_began_as_text() -> None:
    pieces, value, _ = loaded(iter(["a", b"\xff\xfe", "b"]))
    assert pieces.source == "str" and value == ["a", b"\xff\xfe", "b"]
    pieces, value, _ = loaded(iter(["a", b"b"]))
    assert pieces.form == "bytes" and value == b"ab"


def test_file_objects_are_read_in_blocks() -> None:
    _, value, blocks = loaded(io.BytesIO(b"\xff" * 5000), 1000)
    assert value == b"\xff" * 5000 and len(blocks) == 5
    _, value, _ = loaded(io.StringIO("é\r\n" * 1000, newline=""), 1000)
    assert value == "é\r\n" * 1000
    assert loaded(io.BytesIO())[1] == b"" and loaded(io.StringIO())[1] == ""


def test_many_small_items_become_few_blocks() -> None:
    _, _, blocks = loaded(("x" for _ in range(10_000)), 1000)
    assert len(blocks) == 10


def test_an_error_of_the_stream_reaches_the_caller() -> None:
    def broken() -> Iterator[str]:
        yield "a"
        raise RuntimeError("source went away")

    with pytest.raises(RuntimeError, match="went away"):
        list(Pieces(broken()))
