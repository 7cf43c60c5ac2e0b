"""A run on the terminal: what a caller reads, whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callslip.team.output import RunEvent

if TYPE_CHECKING:
    from callslip.team.owner import Input, Owner


class Printing:
    """The part of `Owner` that prints."""

    def print_response(  # type: ignore[misc]
        self: Owner, input: Input, *, stream: bool = False, **given: Any
    ) -> None:
        """Run and print the answer, whole; with `stream` as it comes."""
        if not stream:
            print(self.run(input, **given).content)
            return
        shown = _Printer(self)
        for event in self.run(input, stream=True, **given):
            shown(event)

    async def aprint_response(  # type: ignore[misc]
        self: Owner, input: Input, *, stream: bool = False, **given: Any
    ) -> None:
        """`print_response` for a task."""
        if not stream:
            print((await self.arun(input, **given)).content)
            return
        shown = _Printer(self)
        async for event in self.arun(input, stream=True, **given):
            shown(event)


class _Printer:
    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._text = ""

    def __call__(self, event: RunEvent) -> None:
        if event.event == "content" and event.agent_id == self._owner.id:
            self._text += event.content
            print(event.content, end="", flush=True)
        elif event.event in ("completed", "paused") and event.agent_id == self._owner.id:
            # An answer that a member gave directly did not come in pieces of the leader's.
            print("" if self._text.endswith(event.content) else event.content)
