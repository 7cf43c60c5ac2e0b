"""English endings, taken off: `preferred`, `prefers` and `preference` are found by `prefer`. Pure.

Rules, no dictionary: what they make need not be a word, it only has to be the same for its kin. Words
with digits or of another script stay as they are.
"""

from __future__ import annotations

import re
from functools import lru_cache

_ENDINGS: tuple[tuple[str, str, int], ...] = (
    # the ending, what stands for it, and how many letters must be left
    ("ational", "", 4),
    ("izations", "", 3),
    ("ization", "", 3),
    ("isations", "", 3),
    ("isation", "", 3),
    ("ations", "", 4),
    ("ation", "", 4),
    ("iveness", "", 4),
    ("fulness", "", 3),
    ("ousness", "", 4),
    ("ability", "", 4),
    ("ibility", "", 4),
    ("ments", "", 4),
    ("ment", "", 4),
    ("ences", "", 4),
    ("ence", "", 4),
    ("ances", "", 4),
    ("ance", "", 4),
    ("able", "", 4),
    ("ible", "", 4),
    ("ions", "", 4),
    ("ion", "", 4),
    ("izes", "", 4),
    ("ized", "", 4),
    ("izing", "", 4),
    ("ize", "", 4),
    ("ises", "", 4),
    ("ised", "", 4),
    ("ising", "", 4),
    ("ise", "", 4),
    ("ness", "", 3),
    ("less", "", 3),
    ("fully", "", 3),
    ("ful", "", 3),
    ("ally", "", 4),
    ("edly", "", 4),
    ("ers", "", 5),
    ("ors", "", 5),
    ("er", "", 5),
    ("or", "", 5),
    ("ings", "", 3),
    ("ing", "", 3),
    ("ed", "", 3),
    ("ly", "", 4),
    ("als", "", 4),
    ("al", "", 4),
    ("ive", "", 4),
)
_PLURALS = (("sses", "ss"), ("ies", "y"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"))
_VOWEL = re.compile("[aeiouy]")
_DOUBLED = re.compile(r"([bdfgmnprt])\1$")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The word without its ending; the word itself where it has none of ours."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _singular(word)
    for ending, instead, least in _ENDINGS:
        if word.endswith(ending):
            start = word[: -len(ending)]
            if len(start) >= least and _VOWEL.search(start):
                word = _DOUBLED.sub(r"\1", start + instead)
                break
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    if word.endswith("y") and len(word) > 3:
        word = word[:-1] + "i"
    return word


def _singular(word: str) -> str:
    for plural, singular in _PLURALS:
        if word.endswith(plural) and len(word) > len(plural) + 1:
            return word[: -len(plural)] + singular
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
