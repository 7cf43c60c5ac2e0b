"""What stands in the window for a tool's result, in whatever shape LangChain gives it. Flows.

A message keeps every field but `content` (and an `artifact` that is itself too large), a list of
content blocks stays a list, and a `Command` keeps all but the messages in its `update`. Where
nothing changes, the very same object comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command, Overwrite

from callslip.adapters.langchain_blocks import encoded, is_media, joined, text_in, with_text
from callslip.adapters.langchain_desk import MASKED, Desk, mark_of, placed, shown
from callslip.stacks.ops import Flow

_OVERWRITE = "__overwrite__"


def arrived(desk: Desk, result: Any) -> Flow[Any]:
    """The result of a tool call: a message, a `Command`, or a list of them."""
    if isinstance(result, ToolMessage) or _is_plain_message(result):
        return (yield from message(desk, result))
    if isinstance(result, Command):
        there = replace(desk, session=desk.parent) if result.graph == Command.PARENT else desk
        update = yield from _update(there, result.update)
        return result if update is result.update else replace(result, update=update)
    if type(result) is list:
        return (yield from _each(desk, result, arrived))
    return result


def message(desk: Desk, given: Any) -> Flow[Any]:
    """A tool message, with its content and its artifact small enough for a window."""
    if not isinstance(given, ToolMessage):
        said = given.get("response_metadata") or {}
        changes = yield from _content(desk, given["content"], str(given.get("status") or ""), said)
        return {**given, **changes} if changes else given
    status = "error" if given.status == "error" else ""
    changes = yield from _content(desk, given.content, status, given.response_metadata)
    artifact = yield from placed(desk, given.artifact)
    if artifact is not given.artifact:
        changes["artifact"] = artifact
    return given.model_copy(update=changes) if changes else given


def _content(desk: Desk, given: Any, status: str, said: dict[str, Any]) -> Flow[dict[str, Any]]:
    """What changes of a message: its content, and where that was masked, a mark that it was."""
    there = replace(desk, masked=MASKED in said and said[MASKED] == mark_of(given))
    content = yield from content_of(there, given, status)
    if content is given:
        return {}
    if desk.store.mask is None:
        return {"content": content}
    return {"content": content, "response_metadata": {**said, MASKED: mark_of(content)}}


def content_of(desk: Desk, content: Any, status: str) -> Flow[Any]:
    """The content of a tool message: text, or a list of content blocks."""
    if isinstance(content, str):
        if desk.stays(content):
            return desk.inline(content)
        return (yield from shown(desk, content, status))
    if not isinstance(content, list):
        return content
    single = replace(desk, force=False)
    blocks = yield from _each(single, content, lambda at, block: _block(at, block, status))
    # Many blocks that are each below the threshold: what is left of them goes together.
    left = [at for at, block in enumerate(content) if block is blocks[at]]
    texts = {at: text for at in left if (text := text_in(content[at])) is not None}
    if not texts or (len(texts) == 1 and not desk.force):
        return blocks
    together = joined(list(texts.values()))
    if desk.stays(together):
        return blocks
    stand_in = yield from shown(desk, together, status)
    if stand_in is together or stand_in == together:
        return blocks
    first, *rest = texts
    put = {first: with_text(content[first], str(stand_in))}
    return [put.get(at, block) for at, block in enumerate(blocks) if at not in rest]


def _block(desk: Desk, block: Any, status: str) -> Flow[Any]:
    text = text_in(block)
    if text is not None:
        found = desk.inline(text) if desk.stays(text) else (yield from shown(desk, text, status))
        return block if found is text else with_text(block, str(found))
    if is_media(block):
        media = encoded(block)
        raw = media.raw() if media and len(media.data) > (desk.media_chars or 0) else None
        if raw is None or desk.media_chars is None:
            return block
        found = yield from shown(replace(desk, force=True), raw, status)
        return {"type": "text", "text": found} if isinstance(found, str) else block
    if desk.stays(block):
        return desk.inline(block)
    value = block["json"] if block.get("type") == "json" and "json" in block else block
    found = yield from shown(desk, value, status)
    return {"type": "text", "text": found} if isinstance(found, str) else block


def _update(desk: Desk, update: Any) -> Flow[Any]:
    """A state update: a mapping, pairs, or bare messages. Of its fields only those with messages."""
    if isinstance(update, dict) and not _is_plain_message(update):
        found = {}
        for key, value in update.items():
            found[key] = yield from _field(desk, value)
        return found if any(found[key] is not update[key] for key in found) else update
    if type(update) in (list, tuple) and all(type(i) is tuple and len(i) == 2 for i in update):
        pairs = yield from _update(desk, dict(update))
        same = all(pairs[key] is value for key, value in update)
        return update if same else type(update)((key, pairs[key]) for key, _ in update)
    return (yield from _field(desk, update))


def _field(desk: Desk, value: Any) -> Flow[Any]:
    if isinstance(value, Overwrite):
        inner = yield from _field(desk, value.value)
        return value if inner is value.value else replace(value, value=inner)
    if isinstance(value, dict) and set(value) == {_OVERWRITE}:
        inner = yield from _field(desk, value[_OVERWRITE])
        return value if inner is value[_OVERWRITE] else {_OVERWRITE: inner}
    if isinstance(value, ToolMessage) or _is_plain_message(value):
        return (yield from message(desk, value))
    if type(value) in (list, tuple):
        return (yield from _each(desk, value, _only_messages))
    return value


def _only_messages(desk: Desk, value: Any) -> Flow[Any]:
    if isinstance(value, ToolMessage) or _is_plain_message(value):
        return (yield from message(desk, value))
    return value


def _each(desk: Desk, items: Any, one: Callable[[Desk, Any], Flow[Any]]) -> Flow[Any]:
    made = []
    for item in items:
        made.append((yield from one(desk, item)))
    same = all(new is old for new, old in zip(made, items, strict=True))
    return items if same else type(items)(made)


def _is_plain_message(value: Any) -> bool:
    return isinstance(value, dict) and "tool_call_id" in value and "content" in value
