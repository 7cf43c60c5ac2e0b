"""Whose results a LangGraph run's are, and whom they are about: read from its config, and from where
in a graph it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from callslip.errors import SettingsError
from callslip.governing import subjects_of
from callslip.handle import Scope

ScopeOf = Callable[[RunnableConfig], Scope]
"""From a run's config to whose results they are. An empty `session` means: take the transcript."""

SubjectOf = Callable[[RunnableConfig], str | Sequence[str] | None]
"""From a run's config to whom all that it stores is about."""


def scope_of(config: RunnableConfig) -> Scope:
    """The scope of a run: `thread_id` as the session, `user_id` and `tenant_id` where given.

    All are read from ``config["configurable"]``; LangGraph Platform's authenticated user stands in
    for a missing `user_id`.
    """
    given: Mapping[str, Any] = config.get("configurable") or {}
    user = given.get("user_id") or given.get("langgraph_auth_user_id")
    return Scope(
        session=_word(given.get("thread_id")),
        user=_word(user),
        tenant=_word(given.get("tenant_id")),
    )


def subject_of(config: RunnableConfig) -> tuple[str, ...]:
    """Whom a run is about: `subject_id` in ``config["configurable"]``, a name or a list of names.

    Raises `SettingsError` for anything else: what is stored without it, no deletion would find.
    """
    return subjects_of((config.get("configurable") or {}).get("subject_id"), "subject_id")


def subject_here() -> tuple[str, ...]:
    """Whom the run that calls this is about; nobody outside of one."""
    return subject_of(var_child_runnable_config.get() or {})


def located(
    scope: Scope, config: RunnableConfig, state: object, *, shared: bool, parent: bool = False
) -> Scope:
    """The scope at this place of a graph: a sub-graph has a session of its own, unless `shared`.

    Its name is built of the names of the nodes that it runs under, so it is the same in every run
    of the thread and after a resume. `parent` asks for the graph above. A run without a thread is
    told from others by its first message's id, which LangGraph makes once and at random.
    """
    session = scope.session or first_id(messages_of(state))
    if not session:
        raise SettingsError(
            "this run has no thread_id and no messages to know it by: invoke the graph with "
            '{"configurable": {"thread_id": …}}, or give Offload a scope= function'
        )
    path = () if shared else namespace(config)
    if parent:
        path = path[:-1]
    return replace(scope, session="|".join((session, *path)))


def namespace(config: RunnableConfig) -> tuple[str, ...]:
    """The names of the nodes that the running graph is nested under, outermost first."""
    whole = _word((config.get("configurable") or {}).get("checkpoint_ns"))
    # "tools:<task>|model:<task>": the last part is the running node, a bare number is a counter.
    names = [part.split(":", 1)[0] for part in whole.split("|")[:-1]]
    return tuple(name for name in names if not name.isdigit())


def messages_of(state: object) -> Sequence[Any]:
    """The messages of a graph's state, whatever the state is; none if it has none."""
    if isinstance(state, list):
        return state
    found = state.get("messages") if isinstance(state, Mapping) else None
    if found is None:
        found = getattr(state, "messages", None)
    return found if isinstance(found, list | tuple) else ()


def first_id(messages: Sequence[Any]) -> str:
    """The id of the first message that has one."""
    for message in messages:
        found = message.get("id") if isinstance(message, dict) else getattr(message, "id", None)
        if found:
            return str(found)
    return ""


def _word(value: object) -> str:
    return "" if value is None else str(value)


def in_view(state: object) -> Callable[[str], bool]:
    """Whether the envelope of a handle is among the messages of a state.

    Not whether it was ever shown: a summary, an edit of the context or another branch may have
    taken it away. Results of one turn do not see each other, so that their order decides nothing.
    """

    def seen(id: str) -> bool:
        mark = f'<result id="{id}"'
        return any(mark in message.text for message in messages_of(state))

    return seen
