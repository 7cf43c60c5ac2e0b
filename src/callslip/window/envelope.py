"""The handle, rendered for the model. Every form is a pure function of its arguments.

The same arguments give the same bytes for ever: no clock, no counter, no chance. The opening tag
names the handle, the tool that reads it and how small a part is shown; then the preview, inert;
then, outside and last, the notice with the calls that come next.
"""

from __future__ import annotations

from typing import Literal

from callslip.handle import Shape
from callslip.limits import ENVELOPE_CHARS, PREVIEW_CHARS, REFUSED_CHARS, TOOL_NAME_CHARS
from callslip.window.inert import attr, inert, shown
from callslip.window.policy import bounded, ends, omission

__all__ = [
    "MEDIA",
    "NOT_STORED",
    "NO_READER",
    "Vocabulary",
    "human_size",
    "next_calls",
    "no_reader",
    "refused",
    "same_as",
    "stored",
]

Vocabulary = Literal["results", "files"]

_READ = {"results": "read_result", "files": "read_slice"}
_SEARCH = {"results": "search_result", "files": "grep_file"}
_GET = {"results": "get_record", "files": "get_by_id"}
_QUERY = {"results": "query_result", "files": "query_file"}
_REASON_CHARS = 40
_TYPE_CHARS = 32
_SHOWN_CHARS = 64
PATH_CHARS = 1_000
"""A path that is longer is cut, and `Handle.saved_to` has the whole."""


def human_size(size: int) -> str:
    """`812B`, `142.9KB`, `7.5MB`: bytes as people write them, 1,024 to the KB."""
    if size < 1024:
        return f"{size}B"
    amount = float(size)
    for unit in ("KB", "MB", "GB", "TB"):
        amount /= 1024
        if amount < 1023.95 or unit == "TB":
            break
    return f"{amount:.1f}{unit}"


def stored(
    id: str,
    tool: str,
    shape: Shape,
    preview: str,
    *,
    status: str = "",
    error_type: str = "",
    vocabulary: Vocabulary = "results",
    preview_chars: int = PREVIEW_CHARS,
    saved_to: str = "",
) -> str:
    """The envelope of a stored result: `preview_chars` + `ENVELOPE_CHARS` at the most, and the path
    of its plain file, where it has one.

    `preview` is what `callslip.window.preview` made: its first line says how much is shown and
    goes into the opening tag. `status` is `error` for a failed call, with its `error_type`.
    """
    label, _, body = preview.partition("\n")
    read = "" if shape.kind == "media" else _READ[vocabulary]
    opening = _opening(id, tool, shape, status, error_type, label, read, saved_to)
    calls = next_calls(id, shape, vocabulary)
    notice = f"Full result stored; {calls}." if calls else MEDIA
    longer = len(_attributes(saved_to=_path(saved_to))) + 1 if saved_to else 0
    return _frame(opening, body, notice, preview_chars + ENVELOPE_CHARS + longer)


def no_reader(
    id: str,
    tool: str,
    shape: Shape,
    preview: str,
    *,
    status: str = "",
    error_type: str = "",
    preview_chars: int = PREVIEW_CHARS,
) -> str:
    """The same where no read-back tool is bound: it promises no call that cannot be made."""
    label, _, body = preview.partition("\n")
    opening = _opening(id, tool, shape, status, error_type, label, "")
    return _frame(opening, body, NO_READER, preview_chars + ENVELOPE_CHARS)


NOT_STORED = (
    "Not stored: the part left out cannot be read back. "
    "Ask the tool for a smaller part if you need it."
)


def next_calls(id: str, shape: Shape, vocabulary: Vocabulary = "results") -> str:
    """The calls that lead on from a result of this shape, in words; empty where none does.

    Rows are asked by field, a document by path, a text by line and word.
    """
    read, get = f'{_READ[vocabulary]}("{id}")', f'{_GET[vocabulary]}("{id}"'
    if shape.kind == "media":
        return ""
    if shape.kind == "rows":
        return f'ask it with {_QUERY[vocabulary]}("{id}", where), {get}, number) or {read}'
    if shape.kind == "document" and not shape.inside:
        inner = "path" if vocabulary == "results" else "inside"
        ask = f'{_QUERY[vocabulary]}("{id}", where, {inner})'
        return f"get a part with {get}, path), ask a list in it with {ask}, or {read}"
    return f'read with {read} or {_SEARCH[vocabulary]}("{id}", pattern)'


MEDIA = "Full result stored; it is no text, and no tool here shows more of it."
NO_READER = "Full result stored; no tool here reads it back, so this excerpt is all there is."


def same_as(
    id: str,
    tool: str,
    shape: Shape,
    first: str,
    *,
    vocabulary: Vocabulary = "results",
    saved_to: str = "",
) -> str:
    """One line for content that this session has already been shown, under the handle `first`."""
    read = {} if shape.kind == "media" else {"read": _READ[vocabulary]}
    file = {"saved_to": _path(saved_to)} if saved_to else {}
    tag = _attributes(id=id, tool=attr(tool, TOOL_NAME_CHARS), same_as=first, **file, **read)
    calls = next_calls(id, shape, vocabulary)  # its own: the first may go before it does
    said = f"<result {tag}>The very same content as {first}, shown before.</result>"
    return f"{said} {calls[0].upper()}{calls[1:]}." if calls else said


def refused(
    reason: str,
    text: str,
    cap: int = REFUSED_CHARS,
    *,
    tool: str = "",
    status: str = "",
    chars: int | None = None,
) -> str:
    """What a model gets of a result that could not be stored: `cap` characters in all.

    The head and tail of `text` with an exact note between them, no handle, and the reason in a few
    words (`StoreUnavailable.reason`). `chars` is the length of the whole where `text` is only its
    two ends, put together and longer than `cap`.
    """
    notice = NOT_STORED
    given = {"tool": attr(tool, TOOL_NAME_CHARS), "status": attr(status, _TYPE_CHARS)}
    given = {name: word for name, word in given.items() if word}
    tag = _attributes(stored="false", reason=attr(reason, _REASON_CHARS), **given)
    # The tag says how much is shown, so the room is taken with the longest such label.
    total = len(text) if chars is None else chars
    longest = len(f' shown="{total:,} of {total:,} characters"')
    frame = len(f"<result {tag}>\n\n</result>\n{notice}") + longest
    head, tail, left = ends(text, max(cap - frame, 0))
    left += total - len(text) if left else 0
    body = inert(shown(head)) + (omission(left) + inert(shown(tail)) if left else "")
    tag += f' shown="{min(len(head) + len(tail), len(text)):,} of {total:,} characters"'
    return f"<result {tag}>\n{body}\n</result>\n{notice}"


def _opening(
    id: str,
    tool: str,
    shape: Shape,
    status: str,
    error_type: str,
    label: str,
    read: str,
    saved_to: str = "",
) -> str:
    given = {
        "id": id,
        "saved_to": _path(saved_to),
        "tool": attr(tool, TOOL_NAME_CHARS),
        "status": attr(status, _TYPE_CHARS),
        "error_type": attr(error_type, _TYPE_CHARS),
        "lines": str(shape.lines),
        "size": human_size(shape.size),
        "shown": attr(label, _SHOWN_CHARS),
        "read": read,
    }
    return f"<result {_attributes(**{name: word for name, word in given.items() if word})}>"


def _path(saved_to: str) -> str:
    return attr(saved_to, PATH_CHARS)


def _attributes(**given: str) -> str:
    return " ".join(f'{name}="{word}"' for name, word in given.items())


def _frame(opening: str, body: str, notice: str, cap: int) -> str:
    body = inert(shown(body), notes=False)
    room = cap - len(opening) - len(notice) - len("\n\n</result>\n")
    if len(body) > room:
        body = bounded(body, max(room, 0))
    end = "" if body.endswith("\n") or not body else "\n"
    return f"{opening}\n{body}{end}</result>\n{notice}"
