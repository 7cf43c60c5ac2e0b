"""What a session holds, as one capped reply."""

from __future__ import annotations

from collections.abc import Sequence

from callslip import limits
from callslip.handle import Handle, Listing
from callslip.window.envelope import human_size
from callslip.window.inert import plain

_ARGS_SHOWN = 80


def listing(handles: Sequence[Handle], *, after: int, total: int) -> Listing:
    """One page of `list`: a line for each handle, the total first, how to continue last."""
    room = limits.PAGE_CAP_CHARS - limits.FRAME_CHARS
    lines: list[str] = []
    for handle in handles:
        line = _line(handle)
        if room < len(line) + 1 and lines:
            break
        lines.append(line)
        room -= len(line) + 1
    shown = tuple(handles[: len(lines)])
    seen = after + len(shown)
    following = {"after": seen} if seen < total and shown else None
    text = "\n".join(lines)
    results = f"{total:,} stored result{'' if total == 1 else 's'}"
    if not total:
        rendered = "This session holds no stored results."
    elif not shown:
        rendered = f"This session holds {results}; none comes after {after:,}."
    else:
        head = f"{results}, oldest first; {after + 1:,}-{seen:,} shown."
        tail = f"\nContinue: list_results(after={seen})" if following else ""
        rendered = f"{head}\n{text}{tail}"
    return Listing(handles=shown, text=text, total=total, next=following, rendered=rendered)


def _line(handle: Handle) -> str:
    called = f"{plain(handle.tool, limits.TOOL_NAME_CHARS)}({plain(handle.args, _ARGS_SHOWN)})"
    parts = [
        handle.id,
        called,
        handle.kind,
        f"{handle.lines:,} line{'' if handle.lines == 1 else 's'}",
        human_size(handle.size),
    ]
    if handle.status:
        parts.append(f"status {plain(handle.status, limits.TOOL_NAME_CHARS)}")
    if handle.same_as:
        parts.append(f"same as {handle.same_as}")
    if handle.shared:
        parts.append("shared with this session")
    return "  ".join(parts)
