from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.window.measure import estimate_tokens, features, size_of, text_of
from tests.window.window_helpers import corpus

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text("abc xyz", max_size=20),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text("kf", max_size=5), inner, max_size=6)
    ),
    max_leaves=30,
)


@given(PLAIN)
def test_the_size_of_a_plain_value_is_about_that_of_its_json(value: Any) -> None:
    exact = len(value) if isinstance(value, str) else len(json.dumps(value, separators=(",", ":")))
    size = size_of(value, 10**9)
    assert size is not None
    assert exact * 0.8 - 4 <= size <= exact * 1.6 + 4


def test_text_and_bytes_are_their_own_length() -> None:
    assert size_of("é" * 10, 5) == 10
    assert size_of(b"abc", 100) == 3
    assert size_of(memoryview(b"abcd"), 100) == 4


def test_it_stops_as_soon_as_it_knows_enough() -> None:
    class Trap(list[int]):
        def __iter__(self) -> Any:
            raise AssertionError("looked at more than it had to")

    size = size_of({"looked at last": Trap([1, 2]), "first": "x" * 100}, 50)
    assert size is not None and size > 50


def test_a_cycle_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)
    size = size_of(loop, 16_000)
    assert size is not None and size > 16_000


def test_ten_thousand_levels_do_not_recurse() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    assert size_of(deep, 10**9) == 20_001


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    label: str


@pytest.mark.parametrize(
    ("value", "about"),
    [
        (Colour.RED, 5),
        (Point(1, "here"), 22),
        (decimal.Decimal("1.50"), 6),
        (datetime.datetime(2026, 1, 2, 3, 4, 5), 21),
        (uuid.UUID(int=5), 38),
        ({1: {2, 3}}, 14),
        pytest.param(10**5000, 5000, id="5,001 digits"),
        (ValueError("bad"), 38),
    ],
)
def test_what_json_lacks_has_a_size_too(value: object, about: int) -> None:
    size = size_of(value, 10**9)
    assert size is not None and abs(size - about) <= 4 + about // 50


def test_a_pydantic_model_is_as_large_as_its_fields() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", name=(str, ...), rows=(list[int], ...))
    size = size_of(model(name="abc", rows=[1, 2, 3]), 1000)
    assert size is not None and 20 <= size <= 40


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.mark.parametrize(
    "value",
    [iter([1]), (n for n in [1]), object(), Hostile(), [object()], open],
    ids=["iterator", "generator", "object", "hostile", "list of objects", "function"],
)
def test_a_stream_or_an_opaque_object_has_no_known_size(value: object) -> None:
    assert size_of(value, 1000) is None
    assert text_of(value, 1000) is None


def test_a_stream_is_not_consumed_by_measuring_it() -> None:
    stream = iter([1, 2])
    size_of(stream, 10)
    assert list(stream) == [1, 2]


def test_a_dataclass_whose_field_raises_has_no_known_size() -> None:
    @dataclasses.dataclass
    class Broken:
        x: int

        def __getattribute__(self, name: str) -> Any:
            if name == "x":
                raise RuntimeError("no")
            return super().__getattribute__(name)

    assert size_of(Broken(1), 100) is None


def test_text_of_a_cyclic_value_and_of_a_cut_one() -> None:
    assert text_of("abcdef", 3) == "abc"
    assert text_of({"a": [1, 2]}, 100) == '{"a":[1,2]}'
    assert text_of(b"ab\xff", 100) == "ab\ufffd"
    loop: list[Any] = []
    loop.append(loop)
    assert text_of(loop, 10) == "[[...]]"


# --- tokens -------------------------------------------------------------------------------------


def truth(texts: list[str]) -> list[int]:
    toktok = pytest.importorskip("toktok")
    counts: list[int] = toktok.batch_count(texts, "o200k_base")
    return counts


def test_no_text_of_the_corpus_is_undercounted_by_more_than_a_quarter() -> None:
    texts = [path.read_bytes().decode("utf-8", "replace")[:20_000] for path in corpus()]
    for path, text, true in zip(corpus(), texts, truth(texts), strict=True):
        if true > 50:
            assert 0.75 <= estimate_tokens(text) / true <= 1.45, path.name


def test_english_prose_is_within_a_quarter() -> None:
    prose = (
        "The window holds what the model needs to decide the next step. Everything else gets an "
        "address. A call slip is the paper you hand over in a library with closed stacks: it "
        "brings one item to your desk, not the stacks. That is the product, and nothing more.\n"
    ) * 20
    (true,) = truth([prose])
    assert 0.75 <= estimate_tokens(prose) / true <= 1.25


def test_a_long_text_is_judged_by_samples_of_all_of_it() -> None:
    # All of the digits are in the second half: a head alone would mislead.
    text = "some plain words " * 20_000 + "8427 9915 " * 34_000
    (true,) = truth([text])
    assert 0.8 <= estimate_tokens(text) / true <= 1.3


def test_an_empty_text_has_no_tokens_and_one_letter_has_some() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") >= 1


@given(st.text())
def test_any_text_has_an_estimate(text: str) -> None:
    assert estimate_tokens(text) >= (1 if text else 0)
    assert len(features(text)) == len(features(""))


def test_a_lone_surrogate_counts_as_something() -> None:
    assert estimate_tokens("\ud800" * 10) > 0
