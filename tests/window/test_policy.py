from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.errors import SettingsError
from callslip.window.policy import Policy, bounded, turn_budget


def test_the_threshold_is_strict() -> None:
    policy = Policy()
    assert policy.decide("x" * 16_000, "t") == "keep"
    assert policy.decide("x" * 16_001, "t") == "offload"


def test_each_tool_may_have_its_own_rule() -> None:
    policy = Policy(
        tools={"a": "always", "n": "never", "own": 10, "p": "preview", "t": "threshold"}
    )
    assert policy.decide("", "a") == "offload"
    assert policy.decide("x" * 10**6, "n") == "keep"
    assert policy.decide("x" * 10, "own") == "keep"
    assert policy.decide("x" * 11, "own") == "offload"
    assert policy.decide("x" * 1_600, "p") == "keep"
    assert policy.decide("x" * 1_601, "p") == "offload"
    assert policy.decide("x" * 16_000, "t") == "keep"


def test_keep_is_asked_with_the_value_and_the_tool_and_goes_before_always() -> None:
    asked: list[tuple[object, str]] = []

    def keep(value: object, tool: str) -> bool:
        asked.append((value, tool))
        return tool == "a"

    policy = Policy(tools={"a": "always"}, keep=keep)
    assert policy.decide("v", "a") == "keep"
    assert policy.decide("v" * 20_000, "b") == "offload"
    assert [tool for _, tool in asked] == ["a", "b"]


def test_what_keep_raises_the_caller_gets() -> None:
    def keep(value: object, tool: str) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Policy(keep=keep).decide("v", "t")


def test_a_value_of_unknown_size_is_offloaded_and_judged_again_by_its_known_size() -> None:
    stream = iter(["x"])
    assert Policy().decide(stream, "t") == "offload"
    assert Policy().decide(stream, "t", size=1) == "keep"
    assert Policy().decide(stream, "t", size=16_001) == "offload"


def test_a_token_threshold_stands_in_place_of_the_characters() -> None:
    policy = Policy(threshold_tokens=2000)
    assert policy.decide("word " * 1_900, "t") == "keep"
    assert policy.decide("word " * 2_500, "t") == "offload"
    assert policy.decide("字" * 2_500, "t") == "offload"
    assert policy.decide({"rows": ["word " * 10] * 300}, "t") == "offload"
    assert policy.decide(iter([1]), "t") == "offload"


def test_the_callers_own_counter_is_used() -> None:
    policy = Policy(threshold_tokens=10, count_tokens=lambda text: text.count("x"))
    assert policy.decide("y" * 500 + "x" * 10, "t") == "keep"
    assert policy.decide("y" * 500 + "x" * 11, "t") == "offload"


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold_chars": -1},
        {"threshold_chars": 1.5},
        {"threshold_tokens": "2000"},
        {"tools": {"t": "sometimes"}},
        {"tools": {"t": -3}},
        {"tools": {"t": True}},
    ],
)
def test_a_wrong_setting_is_named_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        Policy(**wrong)


# --- turn budget --------------------------------------------------------------------------------

SIZES = st.dictionaries(st.text("abc", max_size=3), st.integers(0, 60_000), max_size=6)


@given(SIZES, st.integers(0, 100_000))
def test_a_turn_fits_its_budget_wherever_envelopes_do(sizes: dict[str, int], budget: int) -> None:
    envelope = 1_600
    chosen = turn_budget(sizes, budget, envelope)
    total = sum(envelope if call in chosen else size for call, size in sizes.items())
    least = sum(min(envelope, size) for size in sizes.values())
    assert total <= max(budget, least)
    assert all(sizes[call] > envelope for call in chosen)


@given(SIZES, st.integers(0, 100_000))
def test_no_result_is_offloaded_while_a_larger_one_stays(
    sizes: dict[str, int], budget: int
) -> None:
    chosen = turn_budget(sizes, budget, 1_600)
    stays = [size for call, size in sizes.items() if call not in chosen]
    assert all(sizes[call] >= max(stays, default=0) for call in chosen)


def test_equal_results_go_by_call_id_in_whatever_order_they_come() -> None:
    sizes = {"b": 9_000, "a": 9_000, "c": 9_000}
    picks = {
        turn_budget(dict(order), 20_000, 1_600) for order in itertools.permutations(sizes.items())
    }
    assert picks == {frozenset({"a"})}


# --- bounded ------------------------------------------------------------------------------------


@given(st.text("ab\n字", max_size=3_000), st.integers(0, 1_500))
def test_bounded_is_within_the_cap_and_its_note_is_exact(text: str, cap: int) -> None:
    made = bounded(text, cap)
    assert len(made) <= cap or made == text
    if len(text) <= cap:
        assert made == text
    elif "characters left out" in made:
        head, _, rest = made.partition("\n[… ")
        count, _, tail = rest.partition(" characters left out …]\n")
        assert text.startswith(head) and text.endswith(tail)
        assert len(head) + len(tail) + int(count.replace(",", "")) == len(text)
