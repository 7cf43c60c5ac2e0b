"""The two runs: one with callslip, told on the screen as it goes, and one without."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from callslip import Session
from callslip.testing.model import Answer, Call, Message, Run, ScriptedModel, Seen, run_agent
from callslip.tools import SYSTEM_LINE
from demo.questions import Question
from demo.show import Screen

SYSTEM = "Answer the questions, one line for each."


class Told(ScriptedModel):
    """The script of all questions. It tells each call and reply on the screen as they come."""

    def __init__(self, questions: Sequence[Question], screen: Screen) -> None:
        calls = [call for question in questions for call in question.calls]
        super().__init__([*calls, Answer(lambda seen: "\n".join(self.answers))])
        self.answers: list[str] = []
        self.right = True
        self._screen = screen
        self._to_come = _places(questions)
        self._question: Question | None = None
        self._left = 0
        self._replies: list[Message] = []

    def __call__(self, seen: Seen) -> Answer | Sequence[Call]:
        if seen[-1].role == "tool":
            self._told(seen[-2].calls[0], seen[-1])
        if not self._left:
            number, self._question = next(self._to_come, (0, None))
            if self._question is not None:
                self._screen.question(number, self._question)
                self._left, self._replies = len(self._question.calls), []
        return super().__call__(seen)

    def _told(self, call: Call, reply: Message) -> None:
        question = self._question
        assert question is not None
        chars = Message("assistant", calls=(call,)).chars + reply.chars
        self._screen.call(call, reply, chars)
        self._replies.append(reply)
        self._left -= 1
        if not self._left:
            answer, truth = question.answer(self._replies), question.truth()
            self._screen.verdict(question, answer, truth)
            self.answers.append(answer)
            self.right = self.right and answer == truth


def _places(questions: Sequence[Question]) -> Iterator[tuple[int, Question]]:
    yield from enumerate(questions, 1)


def both(questions: Sequence[Question], session: Session, screen: Screen) -> tuple[Run, Run, bool]:
    """The run with callslip, the run without, and whether every answer was right.

    Both see the very same results: each tool runs once.
    """
    tools = [_once(question.tool) for question in questions]
    asked = "\n".join(f"{n}. {question.text}" for n, question in enumerate(questions, 1))
    model = Told(questions, screen)
    offloaded = run_agent(
        model,
        [*(session.offloaded(tool) for tool in tools), *session.tools()],
        asked,
        system=f"{SYSTEM} {SYSTEM_LINE}",
    )
    plain = run_agent(
        ScriptedModel([*(Call(tool.__name__) for tool in tools), Answer(offloaded.answer)]),
        tools,
        asked,
        system=SYSTEM,
    )
    return offloaded, plain, model.right


def _once(tool: Callable[[], Any]) -> Callable[[], Any]:
    kept: list[Any] = []

    @functools.wraps(tool)
    def once() -> Any:
        if not kept:
            kept.append(tool())
        return kept[0]

    return once
