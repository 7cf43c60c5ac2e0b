"""A diff: which files, how many hunks and lines, and the fields in which two sides conflict."""

from __future__ import annotations

from callslip.handle import Shape
from callslip.window.preview.parts import counted, cut, fits, quiet
from callslip.window.preview.sample import Sample
from callslip.window.survey import DiffOutline
from callslip.window.survey.diff import Conflict, DiffFile, diff_of

__all__ = ["render"]

_NAME = 100


def render(sample: Sample, shape: Shape, lines: int, chars: int) -> str | None:
    """None for what is no diff, or is short enough to be shown as it is."""
    if shape.mime != "text/x-diff":
        return None
    if fits(sample.whole, shape, lines, chars):
        return None
    known = sample.outline
    if known is None:
        known = diff_of(sample.head.encode("utf-8", "surrogatepass"), sample.whole)
    if not isinstance(known, DiffOutline):
        return None
    label = f"an outline of a diff, {counted(known.count, 'file')}"
    room = chars - len(label) - 1
    part = "" if known.whole else " in the part looked at"
    commits = f"{counted(known.commits, 'commit')}, " if known.commits else ""
    head = (
        f"{commits}{counted(known.count, 'file')} changed, {counted(known.hunks, 'hunk')}, "
        f"+{known.added:,} -{known.removed:,} lines{part}"
    )
    made = [head]
    room -= len(head) + 1
    for line in _conflicts(known, room // 2):
        made.append(line)
        room -= len(line) + 1
    title = "Most changed, by the line where each starts first:"
    # The most changed of them, in the order of the diff.
    files = sorted(known.files, key=lambda file: -(file.added + file.removed))
    if len(known.files) == known.count <= max(lines, 1):
        title = "By the line where each starts:"
    chosen: list[DiffFile] = []
    room -= len(title) + 1
    for file in files[: max(lines, 0)]:
        cost = len(_file(file)) + 1
        if cost > room:
            break
        room -= cost
        chosen.append(file)
    if chosen:
        made.append(title)
        made += [_file(file) for file in sorted(chosen, key=lambda file: file.line)]
    return "\n".join([label, *(quiet(line) for line in made)])


def _file(file: DiffFile) -> str:
    what = f", {file.what}" if file.what else ""
    return (
        f"{file.line}: {cut(file.name, _NAME)}, {counted(file.hunks, 'hunk')}, "
        f"+{file.added:,} -{file.removed:,}{what}"
    )


def _conflicts(known: DiffOutline, room: int) -> list[str]:
    if not known.conflicts:
        return []
    made = [f"{counted(known.conflict_count, 'conflict')} left by a merge, by line:"]
    room -= len(made[0]) + 1
    for conflict in known.conflicts:
        line = _conflict(conflict, max(room // 2, 60))
        if len(line) + 1 > room:
            break
        made.append(line)
        room -= len(line) + 1
    return made


def _conflict(found: Conflict, width: int) -> str:
    ours, theirs = found.ours or "ours", found.theirs or "theirs"
    side = max((width - 40) // 2, 30)
    mine, other = cut(found.mine, side) or "nothing", cut(found.other, side) or "nothing"
    return f"{found.line}: {ours}: {mine} | {theirs}: {other}"
