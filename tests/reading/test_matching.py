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
from callslip.limits import MATCH_BYTES
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
    small = mock.patch.multiple(matching, SHORT_BYTES=64, SPAN_BYTES=16, LOOK_AROUND=8)
    with small:
        assert _search(text, pattern, cuts, case) == expected


@settings(max_examples=300, deadline=None)
@given(TEXTS, PATTERNS, st.lists(st.integers(0, 600), max_size=6))
def test_a_match_that_is_too_long_ends_the_search_at_the_same_place_wherever_the_text_is_cut(
    text: str, pattern: str, cuts: list[int]
) -> None:
    assume(not re.search(r"x\*[*+?{]", pattern))
    with mock.patch.multiple(matching, SHORT_BYTES=64, SPAN_BYTES=16, LOOK_AROUND=8, MATCH_STEPS=0):
        found = _search(text, pattern, cuts, match_bytes=12)
        assert found == _search(text, pattern, [], match_bytes=12)
        scan = Scan(pattern, match_bytes=12)
        scan.feed([text.encode()], last=True)
    if not scan.limited:
        assert found == _expected(text, pattern)
    if scan.overlong:
        assert found[-1][1] - found[-1][0] > 12


LINE = "x1 " + "lorem ipsum " * 25_000 + "quota reached, over"
LINES = "Traceback\n" + "".join(f"l {i}\n" for i in range(30_000))


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (LINE, ".*quota"),
        (LINE, "x1.*quota"),
        (LINE, "[^z]*q"),
        (LINE, r"(?:\n|.)*q"),
        (LINE, "i.*?quota"),
        (LINE, "x1.*never"),
        (LINE + "\nquota\n", ".*quota"),
        (LINES, "(?s)Traceback.*l 29999"),
        (LINES, r"Traceback[\s\S]*?l 29999"),
        (LINES, "(?s)l 7.*nothing"),
    ],
)
def test_a_long_match_is_found_and_nothing_is_searched_twice(text: str, pattern: str) -> None:
    # A step for each byte of these would take minutes.
    raw = text.encode()
    cuts = list(range(0, len(raw), 100_000))
    assert _search(text, pattern, cuts, match_bytes=MATCH_BYTES) == _expected(text, pattern)


def test_what_is_longer_than_is_looked_for_is_never_a_flat_zero() -> None:
    text = (b"x1 " + b"lorem ipsum " * 50_000 + b"quota") * 2
    scan = Scan("x1.*quota", match_bytes=100_000)
    scan.feed([text], last=True)
    assert scan.limited
    assert (scan.total, scan.overlong) == (0, False)
    scan = Scan("x1.*", match_bytes=100_000)
    scan.feed([text], last=True)
    assert (scan.total, scan.overlong, scan.stopped) == (1, True, True)


@settings(max_examples=200, deadline=None)
@given(
    TEXTS,
    st.text(st.sampled_from("ab\n é.*"), min_size=1, max_size=3),
    st.lists(st.integers(0, 600)),
)
def test_a_literal_is_counted_as_re_counts_it(text: str, word: str, cuts: list[int]) -> None:
    pattern = re.escape(word)
    assert literal_of(pattern) == word
    with mock.patch.multiple(matching, SHORT_BYTES=64, SPAN_BYTES=16, LOOK_AROUND=8):
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


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", 'missing ) in "("'),
        ("a)b", 'unexpected ) in "a)b"'),
        ("x(?m)(y", 'missing ) in "x(?m)(y"'),
        ("*a", 'no argument for repetition operator in "*"'),
        ("a\\", "trailing \\"),
    ],
)
def test_the_reason_is_told_of_the_pattern_as_it_was_written(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError) as caught:
        compiled(pattern)
    assert f"expression, {reason}. Search" in caught.value.for_model


@pytest.mark.parametrize("pattern", [5, None, b"a", ["a"], re.compile("a")])
def test_a_pattern_that_is_no_text_is_told_in_one_sentence(pattern: object) -> None:
    with pytest.raises(PatternError, match="it is no str but"):
        Scan(pattern)  # type: ignore[arg-type]


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
