"""A member's question goes up through the leader's interrupt, and the answer down again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langgraph.types import Interrupt, interrupt

from callslip.errors import SettingsError
from callslip.team.output import Pause

_MEMBER, _QUESTIONS = "callslip_member", "questions"


def ask(member: str, questions: Any) -> Any:
    """Wait, as the leader's tool, with what the member waits with; the answer for the member.

    Must be called once for each pause that a member had, in their order: LangGraph runs a tool
    from its beginning again, and gives the answers to its interrupts in the order of the calls.
    """
    pairs = [{"id": id, "value": value} for id, value in questions]
    return interrupt({_MEMBER: member, _QUESTIONS: pairs})


def answered(interrupts: Sequence[Interrupt], answer: Any) -> Any:
    """The answer as LangGraph takes it. Raises `SettingsError` for one answer to several questions.

    LangGraph writes a bare answer down before it goes on, and takes None for none, an empty mapping
    for answers to nobody: these two go by the id of what waits. Cut off then, a run asks again.
    """
    ids = [each.id for each in interrupts]
    by_id = isinstance(answer, Mapping) and answer and answer.keys() <= set(ids)
    if len(ids) == 1 and not by_id:
        return {ids[0]: answer} if answer in (None, {}) else answer
    if by_id:
        return answer
    raise SettingsError(
        f"answer={answer!r}: this run waits with {len(ids)} questions; give a mapping of their "
        f"pauses' ids to the answers: {', '.join(ids)}"
    )


def pauses_of(interrupts: Iterable[Interrupt]) -> list[Pause]:
    """What a caller is asked: a member's question as the member put it."""
    return [pause for each in interrupts for pause in _unfolded(each.id, each.value, ())]


def _unfolded(id: str, value: Any, path: tuple[str, ...]) -> Iterator[Pause]:
    if not (isinstance(value, dict) and _MEMBER in value):
        yield Pause(id, value, "/".join(path))
        return
    path = (*path, value[_MEMBER])
    pairs = value[_QUESTIONS]
    if len(pairs) == 1:
        yield from _unfolded(id, pairs[0]["value"], path)
    else:
        # Answered together, by the member's own ids: {"<id>": answer, …}.
        yield Pause(id, {pair["id"]: pair["value"] for pair in pairs}, "/".join(path))
