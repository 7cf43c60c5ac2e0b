"""Python's `re` is the oracle: another engine, the whole text at once."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from unittest import mock

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from callslip.errors import PatternError
from callslip.reading import matching
from callslip.reading.matching import Scan, compiled, literal_of


def _search(
    text: str, pattern: str, cuts: list[int], case: bool = True, match_bytes: int = 64
) -> list[tuple[int, int]]:
    raw = text.encode()
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    found: list[tuple[int, int]] = []
    counted = Scan(pattern, case, match_bytes=match_bytes)

    def tell(start: int, end: int) -> bool:
        assert listing.peek(start, end) == raw[start:end]
        found.append((start, end))
        return True

    listing = Scan(pattern, case, tell, match_bytes=match_bytes)
    for scan in (listing, counted):
        for a, b in pairwise(edges):
            scan.feed([raw[a:b]], last=False)
        scan.feed([], last=True)
    assert listing.total == counted.total == len(found)
    return found


def _expected(text: str, pattern: str, case: bool = True) -> list[tuple[int, int]]:
    regex = re.compile(pattern, re.MULTILINE | re.ASCII | (0 if case else re.IGNORECASE))
    found: list[tuple[int, int]] = []
    at, last = 0, -1
    while at <= len(text) and (match := regex.search(text, at)):
        start, end = match.span()
        if end > start:
            at = last = end
        else:
            at = start + 1
            if start == last or (start == len(text) and (not text or text[-1] == "\n")):
                continue
            last = start
        found.append((len(text[:start].encode()), len(text[:end].encode())))
    return found


ATOMS = st.sampled_from(
    ["a", "b", "ab", "é", "€", ".", "[ab]", "[^a]", r"\n", r"\s", r"\w", r"\b", r"\B", "^", "$"]
    + ["(?:a|ab)", "(?:b|)", "x*", "(?:^a|b$)", r"[a-c]", r"\W", "(?s:.)", r"\A", "😀", " "]
)
PARTS = st.builds(
    lambda atom, repeat: (
        atom if atom in "^$" or atom[:2] in (r"\b", r"\B", r"\A") else atom + repeat
    ),
    ATOMS,
    st.sampled_from(["", "", "", "?", "*", "+", "{2}", "{1,3}", "*?", "+?"]).filter(
        lambda repeat: True
    ),
)
PATTERNS = st.builds(
    lambda parts, join: join.join(parts),
    st.lists(PARTS, min_size=1, max_size=4),
    st.sampled_from(["", "", "|"]),
)
TEXTS = st.text(st.sampled_from("aaabbc \n\r\0é€😀x"), max_size=300)


@settings(max_examples=600, deadline=None)
@given(TEXTS, PATTERNS, st.lists(st.integers(0, 600), max_size=6), st.booleans())
@example("a" * 300, "aa", [100, 101, 102], True)
@example("ab\nab\n" * 40, "^ab$", [7, 50, 51], True)
@example("a\n" * 100, "a\na", [99, 100, 101], True)
@example("ab cd", r"\b", [], True)
@example("a\nb\n", "^", [2], True)
def test_every_match_is_the_one_that_re_finds_wherever_the_text_is_cut(
    text: str, pattern: str, cuts: list[int], case: bool
) -> None:
    assume(not re.search(r"x\*[*+?{]", pattern))
    expected = _expected(text, pattern, case)
    assume(all(end - start <= 64 for start, end in expected))
    small = mock.patch.multiple(matching, SPAN_BYTES=16, LOOK_AROUND=8)
    with small:
        assert _search(text, pattern, cuts, case) == expected


@settings(max_examples=200, deadline=None)
@given(TEXTS, PATTERNS, st.lists(st.integers(0, 600), max_size=6))
def test_a_match_that_is_too_long_is_cut_at_the_same_place_wherever_the_text_is_cut(
    text: str, pattern: str, cuts: list[int]
) -> None:
    assume(not re.search(r"x\*[*+?{]", pattern))
    with mock.patch.multiple(matching, SPAN_BYTES=16, LOOK_AROUND=8):
        found = _search(text, pattern, cuts, match_bytes=12)
    assert found == _search(text, pattern, [], match_bytes=12)
    assert all(end - start <= 12 for start, end in found)


@settings(max_examples=200, deadline=None)
@given(
    TEXTS,
    st.text(st.sampled_from("ab\n é.*"), min_size=1, max_size=3),
    st.lists(st.integers(0, 600)),
)
def test_a_literal_is_counted_as_re_counts_it(text: str, word: str, cuts: list[int]) -> None:
    pattern = re.escape(word)
    assert literal_of(pattern) == word
    with mock.patch.multiple(matching, SPAN_BYTES=16, LOOK_AROUND=8):
        assert _search(text, pattern, cuts) == _expected(text, pattern)


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("quota exceeded", "quota exceeded"),
        (r"foo\.bar\(\)", "foo.bar()"),
        ('{"id": 5}', '{"id": 5}'),
        ("a{2}", None),
        ("a|b", None),
        (r"\d", None),
        ("foo\\", None),
        ("a]", "a]"),
    ],
)
def test_a_pattern_without_operators_is_searched_as_text(pattern: str, literal: str | None) -> None:
    assert literal_of(pattern) == literal


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        ("a(?=b)", "look-ahead"),
        ("a(?!b)", "look-ahead"),
        (r"(a)\1", "back-reference"),
        ("(?P<n>a)(?P=n)", "back-reference"),
        ("(?>a)b", "atomic"),
        ("a++", "possessive"),
        ("(a", "missing )"),
        ("[a", "missing ]"),
        ("*a", "not a valid"),
        ("", "empty"),
        ("a" * 5000, "4,000"),
        ("(" * 1_000_000, "4,000"),
        (r"\pL{1000}", "too large"),
        (r"(?:\pL{20}){40}", "too large"),
        ("[" + "(" * 3000, "not a valid"),
        ("(?x) a", "not a valid"),
    ],
)
def test_a_pattern_that_is_not_taken_is_told_in_one_short_sentence(pattern: str, word: str) -> None:
    with pytest.raises(PatternError, match=re.escape(word)) as caught:
        compiled(pattern)
    assert len(caught.value.for_model) < 250
    assert "\n" not in caught.value.for_model


def test_the_end_of_the_text_can_be_written_as_python_does() -> None:
    assert _search("ab\nab", r"ab\Z", [2]) == [(3, 5)]
    assert _search("a\\Zb", r"a\\Zb", []) == [(0, 4)]


def test_a_lone_surrogate_in_a_pattern_means_the_mark_that_is_shown_for_it() -> None:
    assert _search("a\ufffdb", "\ud83d", []) == [(1, 4)]
    assert _search("a\ufffdb", "[x\udc80]", []) == [(1, 4)]


def test_a_search_that_takes_too_long_stops_and_says_how_far_it_came() -> None:
    scan = Scan("(?s)a.*b|a", deadline=time.monotonic() - 1)
    scan.feed([b"a" * 300_000], last=True)
    assert scan.stopped
    assert 0 < scan.total <= 64
    assert 0 < scan.reached < 300_000
