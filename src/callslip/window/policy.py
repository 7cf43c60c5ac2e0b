"""Keep a result in the window, or offload it: by size, by tool, by turn. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from callslip.errors import SettingsError
from callslip.limits import ENVELOPE_CHARS, PREVIEW_CHARS, THRESHOLD_CHARS
from callslip.window.measure import estimate_tokens, size_of, text_of
from callslip.window.outcome import Control, Outcome, control, outcome

__all__ = [
    "Control",
    "Decision",
    "Outcome",
    "Policy",
    "Rule",
    "bounded",
    "control",
    "ends",
    "omission",
    "outcome",
    "turn_budget",
]

Decision = Literal["keep", "offload"]
Rule = Literal["always", "never", "threshold", "preview"] | int
"""What holds for one tool.

`always`: offload whatever it returns (an envelope still replaces a value only if it is smaller).
`never`: keep it in the window. `threshold`: as any other tool. `preview`: offload what is longer
than a preview with its envelope, so that the window holds a preview and never more. A number: this
tool's own threshold in characters, which goes before the store's threshold of either sort.
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """When a result is offloaded. Sizes are characters of its text, `threshold_tokens` is tokens.

    `threshold_tokens`, where given, stands in place of `threshold_chars`; `count_tokens` is then
    any callable from text to a number, by default `estimate_tokens`. `keep(value, tool)` is asked
    first and keeps a value inline by returning true; what it raises, the caller gets.
    """

    threshold_chars: int = THRESHOLD_CHARS
    threshold_tokens: int | None = None
    count_tokens: Callable[[str], int] | None = None
    tools: Mapping[str, Rule] = field(default_factory=dict)
    keep: Callable[[object, str], bool] | None = None
    preview_chars: int = PREVIEW_CHARS

    def __post_init__(self) -> None:
        for name in ("threshold_chars", "threshold_tokens"):
            number = getattr(self, name)
            if number is not None and (type(number) is not int or number < 0):
                raise SettingsError(f"{name}={number!r}: give a whole number, 0 or more")
        for tool, rule in self.tools.items():
            named = rule in ("always", "never", "threshold", "preview")
            if not named and (type(rule) is not int or rule < 0):
                raise SettingsError(
                    f"tools[{tool!r}]={rule!r}: give 'always', 'never', 'threshold', 'preview' "
                    "or a number of characters"
                )

    def decide(self, value: object, tool: str, size: int | None = None) -> Decision:
        """Keep `value` in the window, or offload it. The same answer for the same value, always.

        `size` is the number of characters of its text where the caller knows it. A value whose size
        cannot be told (a stream, an opaque object) is to be offloaded: ask again with `size` once
        it has become content.
        """
        rule = self.tools.get(tool, "threshold")
        if rule == "never" or (self.keep is not None and self.keep(value, tool)):
            return "keep"
        if rule == "always":
            return "offload"
        tokens = None
        if rule == "preview":
            limit = self.preview_chars + ENVELOPE_CHARS
        elif isinstance(rule, int):
            limit = rule
        else:
            limit, tokens = self.threshold_chars, self.threshold_tokens
        if tokens is not None:
            return self._by_tokens(value, size, tokens)
        if size is None:
            size = size_of(value, limit)
        return "offload" if size is None or size > limit else "keep"

    def _by_tokens(self, value: object, size: int | None, limit: int) -> Decision:
        # A token of text is rarely longer than 16 characters; beyond 64 a token no count is needed.
        most = limit * 64
        if size is None:
            size = size_of(value, most)
        if size is None or (size > most and self.count_tokens is None):
            return "offload"
        if size * 4 <= limit and self.count_tokens is None:
            return "keep"
        text = text_of(value, most + 1)
        if text is None:
            return "offload"
        count = self.count_tokens or estimate_tokens
        return "offload" if count(text) > limit else "keep"


def turn_budget(sizes: Mapping[str, int], budget: int, envelope: int) -> frozenset[str]:
    """Which results of one turn to offload so that together they take `budget` characters.

    `sizes` maps a call id to the characters that its result takes as it stands; an offloaded one
    takes `envelope`. The largest go first, equal ones by call id, so the choice is the same in
    whatever order they arrive. Results that an envelope would not shrink stay; so the sum is over
    budget only where `budget` is less than all the envelopes.
    """
    total = sum(sizes.values())
    chosen: list[str] = []
    for call, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        if total <= budget or size <= envelope:
            break
        chosen.append(call)
        total -= size - envelope
    return frozenset(chosen)


def bounded(text: str, cap: int) -> str:
    """`text` in `cap` characters: its head and tail, and between them an exact note.

    The head gets two thirds. Cuts are at a line end where one is near.
    """
    head, tail, left = ends(text, cap)
    return head + omission(left) + tail if left else head


def ends(text: str, cap: int) -> tuple[str, str, int]:
    """The head, the tail and how many characters lie between, so that they and the `omission`
    together take `cap` characters; all of the text in the head if that fits."""
    if len(text) <= cap:
        return text, "", 0
    room = cap - len(omission(len(text)))
    if room < 2:
        # No room for a note, so none that is cut in two: as much of the text as can be.
        return text[: max(cap, 0)], "", 0
    head = text[: room * 2 // 3]
    tail = text[len(text) - (room - room * 2 // 3) :]
    line = head.rfind("\n")
    if line > len(head) * 3 // 4:
        head = head[: line + 1]
    line = tail.find("\n")
    if 0 <= line < len(tail) // 4:
        tail = tail[line + 1 :]
    return head, tail, len(text) - len(head) - len(tail)


def omission(chars: int) -> str:
    """The note of what `bounded` leaves out, on a line of its own."""
    return f"\n[… {chars:,} characters left out …]\n"
