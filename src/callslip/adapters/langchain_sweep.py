"""What a model is about to see, made small: strays by their size, and a turn by its budget. Flows.

Idempotent, and the same in any order of arrival: what was replaced is too small to be replaced
again, and the choice depends on sizes and call ids alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from callslip import access
from callslip.adapters.langchain_blocks import text_in
from callslip.adapters.langchain_desk import Desk
from callslip.adapters.langchain_results import message
from callslip.adapters.langchain_tools import is_own
from callslip.errors import StoreUnavailable
from callslip.limits import ENVELOPE_CHARS, LIST_ITEMS
from callslip.stacks.ops import Flow
from callslip.window.envelope import human_size
from callslip.window.inert import attr
from callslip.window.outcome import outcome
from callslip.window.policy import turn_budget

_MARK = "callslip_named"


def swept(desk: Desk, messages: Sequence[Any], budget: int | None) -> Flow[dict[int, Any]]:
    """Which messages change, by their place. `desk` knows the scope; the calls are found here."""
    calls = _calls(messages)
    changed: dict[int, Any] = {}
    for at, given in enumerate(messages):
        if isinstance(given, ToolMessage):
            new = yield from message(_for(desk, given, calls), given)
            if new is not given:
                changed[at] = new
    if budget is None:
        return changed
    turn = _last_turn(messages)
    sizes: dict[str, int] = {}
    places: dict[str, int] = {}
    for at in turn:
        now = changed.get(at, messages[at])
        key = f"{now.tool_call_id}\0{at:09d}"  # ids need not be unique, nor given
        size = _size(now.content)
        if is_own(now) or _stays(desk, now):
            budget -= size
        else:
            sizes[key], places[key] = size, at
    envelope = desk.store.settings.preview_chars + ENVELOPE_CHARS
    for key in sorted(turn_budget(sizes, max(budget, 0), envelope)):
        at = places[key]
        now = changed.get(at, messages[at])
        forced = replace(_for(desk, now, calls), force=True)
        new = yield from message(forced, now)
        if new is not now:
            changed[at] = new
    return changed


def summarised(desk: Desk, messages: Sequence[Any]) -> Flow[dict[int, Any]]:
    """A summary that took envelopes out of the window says which results are still there.

    Once for each summary, at first sight; the mark that it was done is never sent to a model.
    """
    first = messages[0]
    said = first.additional_kwargs if isinstance(first, HumanMessage) else {}
    if said.get("lc_source") != "summarization" or _MARK in said:
        return {}
    try:
        rows, total = yield from access.listed(desk.store, desk.scope, 0, LIST_ITEMS)
    except StoreUnavailable:
        return {}
    seen = "\n".join(given.text for given in messages)
    lost = [row for row in rows if row.id not in seen]
    named = ", ".join(
        f"{row.id} ({attr(row.tool, 64)}, {human_size(row.shape.size)})" for row in lost
    )
    more = f", and {total - len(rows)} more" if total > len(rows) else ""
    content = first.content
    if lost and isinstance(content, str):
        content += f"\n\nResults stored before this summary, still there to read: {named}{more}."
    marked = {**said, _MARK: True}
    return {0: first.model_copy(update={"content": content, "additional_kwargs": marked})}


def _for(desk: Desk, given: ToolMessage, calls: Mapping[str, Mapping[str, Any]]) -> Desk:
    call = calls.get(given.tool_call_id, {})
    name = given.name or call.get("name") or "tool"
    if is_own(given):
        # Never stored again, whatever the threshold; only the hard cap holds for them.
        return replace(desk, tool=name, call_id=given.tool_call_id, exempt=True)
    return replace(desk, tool=name, args=call.get("args"), call_id=given.tool_call_id)


def _calls(messages: Sequence[Any]) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for given in messages:
        if isinstance(given, AIMessage):
            found.update({call["id"]: call for call in given.tool_calls if call["id"]})
    return found


def _last_turn(messages: Sequence[Any]) -> list[int]:
    """The places of the tool messages that no model has answered yet."""
    found: list[int] = []
    for at in range(len(messages) - 1, -1, -1):
        if isinstance(messages[at], AIMessage):
            break
        if isinstance(messages[at], ToolMessage):
            found.append(at)
    return found[::-1]


def _stays(desk: Desk, given: ToolMessage) -> bool:
    """What no budget may touch: what a rule keeps inline, and what waits for a person."""
    policy, name = desk.store.settings.policy, given.name or "tool"
    kept = policy.keep is not None and policy.keep(given.content, name)
    if kept or policy.tools.get(name) == "never" or desk.is_stand_in(given.content):
        return True
    return isinstance(given.content, str) and outcome(given.content) == "waiting"


def _size(content: Any) -> int:
    if isinstance(content, str):
        return len(content)
    return sum(len(text_in(block) or "") for block in content)
