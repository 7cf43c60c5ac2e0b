"""Stored content is data: it cannot close, open or imitate anything of ours in a window.

Every change is one character for one character, so columns, lines and caps do not move, and a
second pass changes nothing. Pure.
"""

from __future__ import annotations

import re

__all__ = ["attr", "inert", "plain", "shown", "untagged"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# What a reader of tokens sees through, inside words too: control characters that are no blanks,
# and what has no width. Full-width marks and letters are read as plain ones.
_UNSEEN = [
    *(*range(0x09), *range(0x0E, 0x1C), *range(0x7F, 0x85), *range(0x86, 0xA0), 0xAD, 0x34F),
    *(0x61C, *range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F)),
    *(*range(0x2060, 0x2070), *range(0xFE00, 0xFE10), 0xFEFF, *range(0xFFF9, 0xFFFC)),
    *(*range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0)),
]
_WIDE = "＜＞／＝＿［" + "".join(chr(0xFEE0 + ord(c)) for c in _LETTERS + _LETTERS.upper())
_FOLD: dict[int, int | None] = dict.fromkeys(_UNSEEN) | {
    ord(char): ord(char) - 0xFEE0 for char in _WIDE
}
# Two sets: one with a character above U+FFFF in it is looked through item by item.
_ODD = re.compile("[" + "".join(re.escape(chr(code)) for code in _FOLD if code < 0x10000) + "]")
_ODD_HIGH = re.compile("[\U000e0000-\U000e01ef]")
_ODD_ASCII = [chr(code) for code in _UNSEEN if code < 0x80]

_GAP = "\\s{0,8}"
_BLANKS = "[^\\S\\r\\n]"
_NAMES = "(?:result|page|hits|list|rows|facts?)"
_ATTRIBUTES = (
    "(?:id|tool|lines|size|shown|read|status|stored|reason|same_as|records|of|total|pattern|start"
    "|matched|where)"
)

# An opening tag is ours only with an attribute of ours (or as the bare <result>): `Vec<Result<T>>`
# and a JSX `<List>` stay as they are. A closing tag is taken in any shape.
_TAG = re.compile(
    f"<(?={_GAP}/{_GAP}{_NAMES}{_GAP}/?(?:>|\\Z|\\s)"
    f"|{_GAP}{_NAMES}\\s[^<>]{{0,200}}?\\b{_ATTRIBUTES}{_GAP}="
    f"|{_GAP}result{_GAP}/?>)",
    re.IGNORECASE,
)
# The parenthesis is looked for first: a pattern that starts with a fixed character is fast.
_CALL = re.compile(
    "\\((?=\\s{0,4}(?:[a-z_]{1,12}\\s{0,2}[=:]\\s{0,2})?\\\\{0,3}[\"'`\u201c\u2018]?\\s{0,4}res_)",
    re.IGNORECASE,
)
_CALLED = re.compile(
    "(?:read_result|search_result|query_results?|get_record|list_results|read_slice|grep_file"
    "|query_file|get_by_id)\\s{0,4}\\Z",
    re.IGNORECASE,
)
# A select names its handles inside of a text: whatever it selects, it is a call of ours.
_SELECT = re.compile("(query_(?:results|files)\\s{0,4})\\(", re.IGNORECASE)
_NOTICES = [
    words.split()
    for words in (
        "full result stored",
        "not stored",
        "stored data",
        "the very same content",
        "you made this very call just now",
        "no stored result has this id here",
    )
]
_NOTICE = re.compile(
    f"^(?:{_BLANKS}|[>*]){{0,16}}"
    f"(?:{'|'.join(f'{_BLANKS}{{1,16}}'.join(words) for words in _NOTICES)})\\b",
    re.IGNORECASE | re.MULTILINE,
)
_NOTE = re.compile(
    "\\[(?=\\s{0,4}(?:\u2026|\\.\\.\\.)\\s{0,4}"
    "(?:\\]|[\\d,.]{1,20}\\s{1,4}(?:lines?|characters?|records?|bytes?|rows?)\\b))",
    re.IGNORECASE,
)

_SHORT = 256
"""Characters up to which one search for all that is unseen is quicker than a look for each."""
_TAG_WORDS = ("result", "page", "hits", "list", "rows", "fact")
_CALL_WORDS = ("_result", "get_record", "read_slice", "grep_file", "query_file", "get_by_id")


def shown(text: str) -> str:
    """`text` as it may be shown: each lone surrogate (a bad byte or half a pair) as U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\ufffd", text)
    return text


def inert(text: str, *, notes: bool = True) -> str:
    """`text` with every imitation of our tags, calls and notices defused.

    The `<` of a tag becomes `‹`, the `(` of a call that names a handle becomes `❨`, the blanks of a
    notice become `_`, and with `notes` the `[` of an omission note becomes `⟦`. The length stays.
    """
    if text.isascii() and len(text) > _SHORT:
        odd = any(map(text.__contains__, _ODD_ASCII))
    else:
        odd = bool(_ODD.search(text) or _ODD_HIGH.search(text))
    if not odd:
        return _defused(text, notes)
    seen = text.translate(_FOLD)
    made = _defused(seen, notes)
    if made == seen:
        return text
    chars = list(text)
    places = (place for place, char in enumerate(text) if _FOLD.get(ord(char), 0) is not None)
    for place, before, after in zip(places, seen, made, strict=True):
        if before != after:
            chars[place] = after
    return "".join(chars)


def untagged(text: str) -> str:
    """A sentence of ours with a name of another's in it: its calls are ours and stay, tags go."""
    seen = text.translate(_FOLD)
    return _TAG.sub("‹", seen if _TAG.search(seen) else text)


def _defused(text: str, notes: bool) -> str:
    # Plain substring tests first: most text holds none of this, and each pattern costs more.
    low = text.lower()
    if "<" in text and any(name in low for name in _TAG_WORDS):
        text = _TAG.sub("‹", text)
    if "res_" in low and any(name in low for name in _CALL_WORDS):
        text = _CALL.sub(_uncalled, text)
        if "query_results" in low or "query_files" in low:
            text = _SELECT.sub("\\1❨", text)
    if ("stored" in low or "very" in low) and _is_noticed(low):
        text = _NOTICE.sub(lambda match: re.sub(_BLANKS, "_", match[0]), text)
    if notes and "[" in text and ("…" in text or "..." in text):
        text = _NOTE.sub("⟦", text)
    return text


def _is_noticed(low: str) -> bool:
    # Asked only where a word stands of which every notice has one.
    return any(all(word in low for word in words) for words in _NOTICES)


def _uncalled(found: re.Match[str]) -> str:
    before = found.string[max(found.start() - 24, 0) : found.start()]
    return "❨" if _CALLED.search(before) else "("


_ESCAPES = {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;"}
_VISIBLE = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Control characters, line separators, and what reorders or hides text.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


_SPECIAL = re.compile(f'[&"<>{_HIDDEN.pattern[1:]}')


def attr(value: object, cap: int) -> str:
    """`value` as the text of one attribute, `cap` characters at the most, escapes included.

    Markup is escaped, control characters and line ends are made visible, and what is cut ends in
    `…`. An escape is never cut in two.
    """
    text = str(value)
    # A cap's worth of input always fills the cap: longer input need not be looked at.
    text, longer = text[: cap + 1], len(text) > cap
    if not longer and _SPECIAL.search(text) is None:
        return text
    pieces: list[str] = []
    room = cap
    for char in text:
        if _HIDDEN.match(char):
            code = ord(char)
            piece = _VISIBLE.get(char) or (
                "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"
            )
        else:
            piece = _ESCAPES.get(char, char)
        room -= len(piece)
        if room < 0:
            longer = True
            break
        pieces.append(piece)
    if longer and cap > 0:
        while pieces and sum(map(len, pieces)) > cap - 1:
            pieces.pop()
        pieces.append("…")
    return "".join(pieces)


def plain(value: object, cap: int) -> str:
    """`value` within a line of ours, `cap` characters at the most: inert, on one line, its quotes
    as they are. What is cut ends in `…`."""
    text = str(value)
    line = inert(_HIDDEN.sub(lambda found: _VISIBLE.get(found[0], "\ufffd"), text[: cap + 1]))
    return line if len(line) <= cap and len(text) <= cap else line[: cap - 1] + "…"
