"""The words by which a fact is found, and what makes two facts the same. Pure.

No model and no dictionary: identifiers are kept whole and in parts (`SRC-4471`, `getUserById`), what
is written without blanks (Chinese, Japanese, Korean, Thai …) becomes overlapping pairs of
characters, other words lose their ending and their accents. A word is never empty, holds no blank,
and `_` only where it is no word of a text: `kind_word` and `field_word`.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from callslip.stacks.stems import stem

__all__ = [
    "Asked",
    "asked",
    "field_word",
    "filter_words",
    "forms",
    "kind_word",
    "near",
    "sameness",
    "words_of",
]

_WORDS_MOST = 2_000
_QUERY_WORDS_MOST = 48
_WORD_CHARS = 64

# Scripts that part no words by blanks, and the marks that belong to them.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_DENSE}]+|[^\\W_{_DENSE}]+(?:[-_.:/#@+&'’]+[^\\W_{_DENSE}]+)*(?:\\+\\+|#)?")
_IS_DENSE = re.compile(f"[{_DENSE}]")
_PARTS = re.compile(
    "[^\\W\\d_]+?(?=[A-Z][a-z])|[A-Z]+(?![a-z])|[^\\W\\d_](?:(?![A-Z])[^\\W\\d_])*|\\d+"
)
_SPOKEN = {"++": "plusplus", "#": "sharp"}
_APOSTROPHE = re.compile("['’](?:s|t|re|ve|ll|d|m)?$", re.IGNORECASE)

_COMMON = """
a about after all also am an and any are as at be been but by can could did do does for from get
give had has have he her his how i if in into is it its just like me my no not of on one or our
out please she should so some tell than that the their them then there these they this to up us
use was we were what when where which who why will with would you your
"""
COMMON = frozenset(_COMMON.split())
"""Words that say little: they count for little in a query, however rare they are among few facts."""


def words_of(text: str) -> list[str]:
    """The words of a text, in order, repeated as they are repeated in it."""
    found: list[str] = []
    for run in _RUN.findall(_plain(text)):
        if _IS_DENSE.match(run):
            found.extend(_pairs(run))
        else:
            found.extend(_of_run(run))
        if len(found) >= _WORDS_MOST:
            break
    return found[:_WORDS_MOST]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as words. Any text at all is a query; one without words asks for nothing."""

    words: tuple[str, ...]
    """Each once, in the order of the text."""
    joined: tuple[str, ...]
    """Neighbours written as one word: `time zone` also asks for `timezone`. Less sure."""
    halves: tuple[tuple[str, str], ...] = ()
    """The two words that each of `joined` is made of."""
    text: str = ""
    """The query as it was given."""

    def weight(self, word: str) -> float:
        """How much a word of the query counts, beside how rare it is."""
        if word in COMMON:
            return 0.1
        return 0.5 if word in self.joined else 1.0


def asked(query: str) -> Asked:
    """A query as words."""
    words = tuple(dict.fromkeys(words_of(query)))[:_QUERY_WORDS_MOST]
    plain = [word.casefold() for word in re.findall(r"[^\W_]+", _plain(query))][:_QUERY_WORDS_MOST]
    joined = {
        stem(one + two): (stem(one), stem(two))
        for one, two in pairwise(plain)
        if not _IS_DENSE.search(one + two) and one not in COMMON and two not in COMMON
    }
    fresh = {word: halves for word, halves in joined.items() if word not in words}
    return Asked(words, tuple(fresh), tuple(fresh.values()), query)


def kind_word(kind: str) -> str:
    """The word by which the facts of a kind are found."""
    return "_k" + hashlib.blake2b(kind.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def field_word(name: str, value: object) -> str | None:
    """The word by which the facts are found whose field of that name has that value; None for a
    list or an object, which are not found in this way."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # for JSON, and for Python, 1.0 is 1
    if value is not None and not isinstance(value, str | bool | int | float):
        return None
    told = json.dumps([name, value], ensure_ascii=False).encode("utf-8", "surrogatepass")
    return "_m" + hashlib.blake2b(told, digest_size=8).hexdigest()


def filter_words(kind: str, fields: Mapping[str, object]) -> list[str]:
    """Those of a fact: its kind, and each of its fields."""
    found = [kind_word(kind)] if kind else []
    return found + [w for name, value in fields.items() if (w := field_word(name, value))]


# --- misspelt words -------------------------------------------------------------------------------


def forms(word: str) -> tuple[str, ...]:
    """A word as it is with each one of its letters left out: two words a slip apart share a form.

    None for what is not spelt from memory: short words, and what has digits.
    """
    if not 4 <= len(word) <= 20 or not word.isalpha() or _IS_DENSE.search(word):
        return ()
    return tuple(dict.fromkeys([word, *(word[:at] + word[at + 1 :] for at in range(len(word)))]))


def near(one: str, two: str) -> int:
    """How many slips lie between two words: a letter more, less, or other, or two exchanged."""
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(two, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]


# --- the same fact --------------------------------------------------------------------------------

_FILLERS = frozenset({"a", "an", "the", "is", "are", "am", "was", "were", "be", "been", "please"})
_EDGES = ".,;:!?\"'“”‘’«»()。、，！？；：「」『』（）…·"
_BETWEEN = re.compile(r"(?<=[^\W\d_])[-‐‑](?=[^\W\d_])")
_ORDINARY = re.compile(r"[^\W\d_]+")


def sameness(text: str) -> bytes:
    """16 bytes, equal for two texts that say the same in the same words.

    Case, blanks, punctuation at a word's edge, articles and a plural's `s` make no difference;
    numbers, signs, the order of words and what stands inside of an identifier do.
    """
    told: list[str] = []
    for at, word in enumerate(_BETWEEN.sub(" ", unicodedata.normalize("NFKC", text)).split()):
        word = word.strip(_EDGES) or word
        if not _ORDINARY.fullmatch(word):
            told.append(word)
            continue
        low = word.casefold()
        cased = word not in (low, low.capitalize(), word.upper())
        # "grade A" is not "grade": only at a text's start is an article written large.
        if low in _FILLERS and (word == low or at == 0):
            continue
        if cased:
            told.append(word)
        elif len(low) > 3 and low.endswith("s") and not low.endswith(("ss", "us", "is")):
            told.append(low[:-1])
        else:
            told.append(low)
    plain = "\0".join(told) if told else " ".join(text.split())
    if _IS_DENSE.search(plain):
        plain = re.sub(f"(?<=[{_DENSE}])[\\s\0{re.escape(_EDGES)}]+(?=[{_DENSE}])", "", plain)
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# --- the parts ------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """One way to write a character, and Latin letters without accents."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    return "".join(_bare(char) if "\u00c0" <= char <= "\u1eff" else char for char in text)


@lru_cache(maxsize=2048)
def _bare(char: str) -> str:
    first = unicodedata.normalize("NFKD", char)[0]
    return first if first.isascii() else char


def _pairs(run: str) -> Iterable[str]:
    # Single characters too: many a Chinese word is one.
    yield from run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


def _of_run(run: str) -> Iterable[str]:
    if run.isalpha() and (run.islower() or run[1:].islower()):
        yield stem(run.casefold()[:_WORD_CHARS])
        return
    for mark, spoken in _SPOKEN.items():
        if run.endswith(mark):
            run = run[: -len(mark)]
            yield (run.casefold() + spoken)[:_WORD_CHARS]
    run = _APOSTROPHE.sub("", run)
    parts = [part.casefold() for part in _PARTS.findall(run)]
    whole = "".join(char for char in run.casefold() if char.isalnum())
    if len(parts) != 1 and whole:
        yield whole[:_WORD_CHARS]
    for part in parts:
        yield stem(part[:_WORD_CHARS])
