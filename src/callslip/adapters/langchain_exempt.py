"""Other middleware of LangChain's, told to leave the read-back tools and envelopes alone."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from langchain.agents.middleware import (
    AgentMiddleware,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ToolCallLimitMiddleware,
)
from langchain_core.messages import ToolMessage

from callslip.adapters.langchain_tools import NAMES, is_own
from callslip.errors import SettingsError

M = TypeVar("M", bound=AgentMiddleware[Any, Any, Any])


def exempt(middleware: M) -> M:
    """A copy of a middleware of LangChain's that leaves the read-back tools alone.

    `ToolCallLimitMiddleware` counts and blocks only other calls, `ContextEditingMiddleware` clears
    neither a page nor an envelope, `HumanInTheLoopMiddleware` asks nobody for leave to read.
    Raises `SettingsError` for any other.
    """
    made = copy.copy(middleware)
    if isinstance(made, ToolCallLimitMiddleware):
        kind = type(made)
        matches = kind._matches_tool_filter
        own = {"_matches_tool_filter": lambda self, c: c["name"] not in NAMES and matches(self, c)}
        made.__class__ = type(kind.__name__, (kind,), own)
    elif isinstance(made, HumanInTheLoopMiddleware):
        made.interrupt_on = {k: v for k, v in made.interrupt_on.items() if k not in NAMES}
    elif isinstance(made, ContextEditingMiddleware):
        made.edits = [_Sparing(edit) for edit in made.edits]
    else:
        raise SettingsError(f"exempt({type(middleware).__name__}): this one needs no exemption")
    return made


class _Sparing:
    """A context edit that puts back what must stay: pages, and the envelopes of stored results."""

    def __init__(self, edit: Any) -> None:
        self._edit = edit

    def apply(self, messages: list[Any], *, count_tokens: Callable[[Sequence[Any]], int]) -> None:
        before = list(messages)
        self._edit.apply(messages, count_tokens=count_tokens)
        if len(messages) == len(before):
            spared = [at for at, message in enumerate(before) if _is_ours(message)]
            for at in spared:
                messages[at] = before[at]


def _is_ours(message: Any) -> bool:
    if not isinstance(message, ToolMessage):
        return False
    return is_own(message) or message.text.startswith('<result id="res_')
