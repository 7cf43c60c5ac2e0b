"""What is said where a handle leads to nothing: unknown, or gone. Never the same words for both."""

from __future__ import annotations

from datetime import UTC, datetime

from callslip.errors import HandleGone, UnknownHandle
from callslip.limits import TOOL_NAME_CHARS
from callslip.stacks.ops import Tombstone
from callslip.window.inert import plain

_WAYS = {
    "expired": "it expired",
    "evicted": "it was evicted to make room",
    "closed": "its session was closed",
    "deleted": "it was deleted",
}
_UNKNOWN = "No stored result has this id here; list_results() shows those there are."


def unknown(id: object) -> UnknownHandle:
    """For an id that leads to nothing here: invented, mistyped, or somebody else's."""
    return UnknownHandle(f"no result {id!r:.80} in this session", for_model=_UNKNOWN)


def gone(stone: Tombstone) -> HandleGone:
    """For an id that led to a result: what it was, when it went, which call would make it again."""
    when = datetime.fromtimestamp(stone.gone_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    tool, args = plain(stone.tool, TOOL_NAME_CHARS), plain(stone.args, 200)
    lines = f"{stone.shape.lines:,} line{'' if stone.shape.lines == 1 else 's'}"
    what = f"{stone.id} ({lines} from {tool}) is gone: {_WAYS[stone.why]}"
    again = f"call {tool} again with {args}" if args else f"call {tool} again"
    text = f"{what} on {when}. To have it anew, {again}."
    return HandleGone(text, why=stone.why, for_model=text)
