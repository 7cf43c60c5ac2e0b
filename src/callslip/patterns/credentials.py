"""What must not be remembered: obvious credentials, told by their form. Pure.

The default of `Memory(screen=…)`. It knows keys and tokens by their marks and what stands behind the
word "password"; it is no guard against who wants to hide one.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter

__all__ = ["refuse_credentials"]

_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY")),
    ("an AWS key", re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b")),
    ("a GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{16,})")),
    ("a GitLab token", re.compile(r"\bglpat-[\w-]{18,}")),
    ("a Slack token", re.compile(r"\bxox[abeoprs]-[\w-]{10,}|hooks\.slack\.com/services/\S{20,}")),
    ("a Google key", re.compile(r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}")),
    ("a Stripe key", re.compile(r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    ("an API key", re.compile(r"\bsk-(?:ant-|proj-|or-|svcacct-)?[\w-]{20,}")),
    ("an API key", re.compile(r"\b(?:hf|npm|pypi|dop_v1|SG|key|pat)[_.-][A-Za-z0-9_.-]{30,}")),
    ("a signed token", re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+")),
    ("a password in an address", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:(?!//)[^\s/@]{3,}@")),
    (
        "an authorization header",
        re.compile(r"\b(?:bearer|basic)\s+(?=\S*\d)[\w+/.~-]{16,}=*", re.IGNORECASE),
    ),
)
# Fillers and joiners that are drawn as nothing, though Unicode does not class them as formats.
_UNSEEN = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0" + "".join(map(chr, range(0xFE00, 0xFE10)))
)
_NAMED = re.compile(
    r"(?P<name>pass(?:word|wd|code|phrase)|passwort|mot de passe|contraseña|senha|密码|口令|パスワード"
    r"|secret(?:[_ -]?key)?|client[_ -]?secret|api[_ -]?key|access[_ -]?(?:key|token)"
    r"|auth[_ -]?token|private[_ -]?key|\bpin|\btoken"
    r"|(?P<short>(?<![a-z0-9])pwd|(?<=[a-z0-9]_)pass))"
    r"[\"']?\s*(?P<link>[:=＝：]+|\bis\b|\blautet\b|\bist\b|是|は)"
    r"\s*[\"'`]?(?P<value>[^\s\"'`,;]{4,})(?P<end>\s*(?:[\"'`,;]|$))?",
    re.IGNORECASE | re.MULTILINE,
)
# `passwd hunter2!`: nothing between, so only what no word looks like.
_BARE = re.compile(
    r"(?<![\w/])(?P<name>passwd|pwd)\s+[\"'`]?(?P<value>[^\s\"'`,;]{4,})", re.IGNORECASE
)
# What people say about a password without saying it.
_TALK = re.compile(
    r"(?:\W*(?:reset|required|needed|not?|set|stored|kept|changed|expired|in|on|never|managed|the|a"
    r"|an|of|by|from|with|for|at|to|rotated|redacted|\*+|x{3,}|none|null|true|false|optional|wrong"
    r"|missing|invalid|unknown|empty|env(?:ironment)?|vault|shared|same|too|only|always|handled)"
    r"\b|<|\[|\{|\$|%|\*{3})",
    re.IGNORECASE,
)


def refuse_credentials(text: str) -> str:
    """The text as it is. Raises `ValueError`, with what it looks like, for one that holds an obvious
    credential."""
    _refuse(text)
    # Both, since such a character may also stand between a word and a key.
    if not text.isascii() and (seen := _unseen(text)) != text:
        _refuse(seen)
    return text


def _refuse(seen: str) -> None:
    for what, pattern in _KINDS:
        if pattern.search(seen):
            raise ValueError(what)
    for found in _BARE.finditer(seen):
        value = found["value"].rstrip(".:!?)")
        if not _TALK.match(value) and _letters_and_digits(value):
            raise ValueError(f"a credential ({found['name'].lower()})")
    for found in _NAMED.finditer(seen):
        value = found["value"].rstrip(".:!?)")
        told = found["link"].strip(":=＝：") == "" and found["end"] is not None
        if found["short"]:  # a first_pass has a word, a number or a date; PWD=/srv is a folder
            if value[:1] in "/~." or not any(char.isalpha() for char in value):
                continue
            told = False
        if not _TALK.match(value) and (told or _unlike_a_word(value)):
            raise ValueError(f"a credential ({' '.join(found['name'].lower().split())})")


def _unseen(text: str) -> str:
    """A text without the characters that nobody sees, which would hide a word from a pattern."""
    return "".join(
        char for char in text if unicodedata.category(char) != "Cf" and char not in _UNSEEN
    )


def _letters_and_digits(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


def _unlike_a_word(value: str) -> bool:
    """Whether it has digits or signs among letters, or is as random as a key."""
    mixed = any(char.isdigit() for char in value) or re.search(r"[^\w.-]", value) is not None
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return mixed or (len(value) >= 20 and bits > 3.5)
