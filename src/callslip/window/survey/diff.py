"""What a diff changes: its files, hunks and lines, and where it holds conflicts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

__all__ = ["Conflict", "DiffFile", "DiffOutline", "diff_of", "looks_like_diff"]

_LISTED: Final = 40
_PLACES: Final = 50_000
_CONFLICTS: Final = 12
_TEXT: Final = 120

_LOOKS = re.compile(
    rb"^(?:diff --(?:git|cc|combined) \S|Index: \S|--- [^\n]+\n\+\+\+ [^\n]+\n@@ )", re.MULTILINE
)
# Only the beginning of a line: the rest of it is read where it is wanted.
_PLACE = rb"\n(?:diff --|--- |@@ |@@@ |commit [0-9a-f]|[ +-]{0,2}<<<<<<< )"
_CONFLICT = re.compile(
    r"^[ +-]{0,2}<{7} ?(?P<ours>[^\n]*)\n(?P<mine>.*?)^[ +-]{0,2}={7}\r?\n(?P<other>.*?)"
    r"^[ +-]{0,2}>{7} ?(?P<theirs>[^\n]*)",
    re.MULTILINE | re.DOTALL,
)
# What a diff of three puts before a line.
_SIDE = re.compile(r"^[ +-]{1,2}", re.MULTILINE)
_GIT = re.compile(rb'diff --git (?:"?a/(?P<old>.+?)"?) "?b/(?P<new>.+?)"?\s*$')


@dataclass(frozen=True, slots=True)
class DiffFile:
    """One file: `line` is where it first starts in the diff, from 1; `added`, `removed` count
    lines, of all the commits of a log."""

    name: str
    line: int
    hunks: int = 0
    added: int = 0
    removed: int = 0
    what: str = ""
    """`new`, `deleted`, `renamed` or `binary`, if it is one of those."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sides that a merge left: the line, the names of the sides and the first line of each."""

    line: int
    ours: str
    theirs: str
    mine: str
    other: str


@dataclass(frozen=True, slots=True)
class DiffOutline:
    """`files` are the most changed ones, at most 40, in the order of the diff; `count` is of all.

    `whole` is False where only a part of the diff was looked at.
    """

    files: tuple[DiffFile, ...]
    count: int
    hunks: int
    added: int
    removed: int
    commits: int = 0
    conflicts: tuple[Conflict, ...] = ()
    conflict_count: int = 0
    whole: bool = True


def looks_like_diff(head: bytes) -> bool:
    """Whether a text is a diff, by its beginning."""
    return _LOOKS.search(head[: 16 * 1024]) is not None


def diff_of(body: bytes, whole: bool = True) -> DiffOutline | None:
    """The outline of a diff; None where there is none in it."""
    import re2  # type: ignore[import-untyped,unused-ignore]

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    pattern: Any = re2.compile(_PLACE, options)
    # Every place is a line's beginning, so the first line gets one, too.
    text = b"\n" + body
    files: list[DiffFile] = []
    marks: list[int] = []
    start, header, hunks, commits = -1, b"", 0, 0
    for number, match in enumerate(pattern.finditer(text)):
        at = match.start()
        sort = text[at + 1 : at + 4]
        if number == _PLACES:
            whole = False
            text = text[:at]
            break
        if sort[:2] == b"@@":
            hunks += 1
        elif b"<" in match[0]:
            marks.append(at + 1)
        elif sort == b"com":
            commits += 1
            if start >= 0:
                files.append(_file(header, text, start, at, hunks))
            start = -1
        elif sort == b"dif" or _names_a_file(text, at, header[:4] == b"diff", hunks):
            if start >= 0:
                files.append(_file(header, text, start, at, hunks))
            end = text.find(b"\n", at + 1)
            if sort == b"---":
                end = text.find(b"\n", end + 1)
            start, header, hunks = at, text[at + 1 : end if end >= 0 else len(text)], 0
    if start >= 0:
        files.append(_file(header, text, start, len(text), hunks))
    if not files:
        return None
    files, hunks_in_all = _by_name(files), sum(file.hunks for file in files)
    ranked = sorted(range(len(files)), key=lambda i: -(files[i].added + files[i].removed))
    listed: list[DiffFile] = []
    line, before = 1, 1
    for i in sorted(ranked[:_LISTED]):
        line += text.count(b"\n", before, files[i].line + 1)
        before = files[i].line + 1
        listed.append(replace(files[i], line=line))
    conflicts = _conflicts(text, marks)
    return DiffOutline(
        files=tuple(listed),
        count=len(files),
        hunks=hunks_in_all,
        added=sum(file.added for file in files),
        removed=sum(file.removed for file in files),
        commits=commits,
        conflicts=conflicts,
        conflict_count=len(marks) if conflicts else 0,
        whole=whole,
    )


def _by_name(files: Sequence[DiffFile]) -> list[DiffFile]:
    """Each file once, though several commits change it; it starts where it is changed first."""
    found: dict[str, DiffFile] = {}
    for file in files:
        known = found.get(file.name)
        found[file.name] = (
            file
            if known is None
            else replace(
                known,
                hunks=known.hunks + file.hunks,
                added=known.added + file.added,
                removed=known.removed + file.removed,
                what=known.what if known.what == file.what else "",
            )
        )
    return list(found.values())


def _names_a_file(text: bytes, at: int, named: bool, hunks: int) -> bool:
    """Whether a `---` line at an offset begins a file: `+++` follows, then a hunk; and it is not
    the header of one that `diff --git` has named. A removed line may look like the first alone."""
    if named and hunks == 0:
        return False
    plus = text.find(b"\n", at + 1)
    hunk = text.find(b"\n", plus + 1)
    return text[plus + 1 : plus + 5] == b"+++ " and text[hunk + 1 : hunk + 4] == b"@@ "


def _file(header: bytes, body: bytes, start: int, end: int, hunks: int) -> DiffFile:
    """A file by its bytes; `line` is its offset until it is known to be listed."""
    # Changed lines are counted behind the first hunk: `---` and `+++` of the header are none.
    first = body.find(b"\n@@", start, end)
    added = removed = 0
    if first >= 0:
        added = body.count(b"\n+", first, end)
        removed = body.count(b"\n-", first, end)
    lead = body[start : first if first >= 0 else min(end, start + 4096)]
    what = ""
    for mark, word in (
        (b"\nnew file mode", "new"),
        (b"\ndeleted file mode", "deleted"),
        (b"\nrename from ", "renamed"),
        (b"\nBinary files ", "binary"),
        (b"\nGIT binary patch", "binary"),
    ):
        if mark in lead:
            what = word
            break
    return DiffFile(_name(header), start, hunks, added, removed, what)


def _name(header: bytes) -> str:
    git = _GIT.match(header)
    if git:
        raw = git["new"]
    elif header[:4] == b"diff":
        raw = header.split(b" ", 2)[2]
    else:
        before, _, after = header.partition(b"\n")
        raw = after[4:] if b"/dev/null" not in after else before[4:]
        raw = raw.split(b"\t", 1)[0].removeprefix(b"b/").removeprefix(b"a/")
    return raw.strip().decode("utf-8", "replace")[:_TEXT]


def _conflicts(text: bytes, marks: Sequence[int]) -> tuple[Conflict, ...]:
    """The first conflicts, from where the marks of their beginnings are."""
    found: list[Conflict] = []
    line, before = 1, 1
    for start in marks[: 4 * _CONFLICTS]:
        part = text[start : start + 16 * 1024].decode("utf-8", "replace")
        match = _CONFLICT.match(part)
        if match is None:
            continue
        line += text.count(b"\n", before, start)
        before = start
        mine, other = _differing(match["mine"], match["other"])
        names = match["ours"][:40].strip(), match["theirs"][:40].strip()
        found.append(Conflict(line, *names, mine, other))
        if len(found) == _CONFLICTS:
            break
    return tuple(found)


def _differing(mine: str, other: str) -> tuple[str, str]:
    """The first lines in which two sides differ."""
    left, right = _SIDE.sub("", mine).splitlines(), _SIDE.sub("", other).splitlines()
    for at in range(max(len(left), len(right))):
        a = left[at] if at < len(left) else ""
        b = right[at] if at < len(right) else ""
        if a != b:
            return a.strip()[:_TEXT], b.strip()[:_TEXT]
    return "", ""
