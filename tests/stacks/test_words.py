from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.stacks.ranking import fused, holds, rarity
from callslip.stacks.stems import stem
from callslip.stacks.words import asked, field_word, filter_words, forms, near, sameness, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SRC-4471", ["src4471", "src", "4471"]),
        ("getUserById", ["getuserbyid", "get", "user", "by", "id"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("snake_case", ["snakecase", "snak", "case"]),
        ("foo/bar.py", ["foobarpy", "foo", "bar", "py"]),
        ("C++ C# F#", ["cplusplus", "c", "csharp", "c", "fsharp", "f"]),
        ("東京都", ["東", "京", "都", "東京", "京都"]),
        ("ＡＢＣ", ["abc"]),
        ("Ünïcödé Größe", ["unicod", "gross"]),
        ("it's Ana's", ["it", "ana"]),
        ("\0 \ud800 … 🙂", []),
        ("", []),
    ],
)
def test_a_text_is_found_by_its_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    "kin",
    [
        "prefer prefers preferred preferring preference preferences",
        "approve approves approved approval",
        "deploy deploys deployed deploying deployment deployments",
        "configure configured configuration configurations",
        "policy policies",
        "box boxes",
        "database databases",
        "run runs running",
    ],
)
def test_kin_have_one_stem(kin: str) -> None:
    assert len({stem(word) for word in kin.split()}) == 1


@given(st.text(max_size=200))
def test_any_text_has_words_that_an_index_can_hold(text: str) -> None:
    for word in (*words_of(text), *asked(text).words, *asked(text).joined):
        assert word
        assert not word.startswith("_")
        assert "_" not in word
        assert len(word.split()) == 1
        assert not any(ord(char) < 128 and not char.isalnum() for char in word)
    assert len(sameness(text)) == 16
    assert sameness(f"  {text} ") == sameness(text) or not text.strip()


@given(st.text("abcdefgh", min_size=4, max_size=12), st.data())
def test_words_a_slip_apart_share_a_form(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(word) - 2))
    slips = [
        word[:at] + word[at + 1 :],
        word[:at] + "x" + word[at:],
        word[:at] + "x" + word[at + 1 :],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    ]
    for slip in slips:
        assert near(word, slip) <= 1
        if len(slip) >= 4:
            assert set(forms(word)) & set(forms(slip))


def test_numbers_that_are_equal_in_json_are_found_by_one_word() -> None:
    assert field_word("n", 1) == field_word("n", 1.0)
    assert len({field_word("n", value) for value in (1, True, "1", None, 1.5)}) == 5
    assert field_word("n", [1]) is None
    assert len(filter_words("kind", {"a": 1, "b": {}})) == 2


def test_a_rarer_word_counts_more() -> None:
    values = [rarity(1000, having) for having in (1, 10, 100, 1000, 2000)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 0


def test_fusion_keeps_what_both_rankings_like_first() -> None:
    both = fused([(1.0, ["a", "b", "c"]), (0.5, ["b", "d"])], lambda each: each)
    assert [each for each, _ in both] == ["b", "a", "c", "d"]


def test_an_operator_that_is_not_known_is_no_condition() -> None:
    with pytest.raises(ValueError, match="regex"):
        holds({"a": {"$regex": "x"}}, {"a": "x"})
    assert holds({"a": {"x": 1}}, {"a": {"x": 1}})
