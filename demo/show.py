"""What the demo prints: 80 columns, with colour or without, in any encoding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import ASCII, SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from callslip.testing.model import Call, Message, Run
from callslip.window.measure import estimate_tokens
from demo.questions import Question

WIDTH = 80
BAR = 34


@dataclass(frozen=True)
class Part:
    """What one question cost: characters in the window, with callslip and without."""

    question: Question
    without: int
    envelope: int
    read_backs: int
    replies: int
    """Characters of the read-back calls and what they came back with."""

    @property
    def held(self) -> int:
        return self.envelope + self.replies


def parts_of(questions: Sequence[Question], offloaded: Run, plain: Run) -> list[Part]:
    """The two runs, cut at the questions. Each call is one message, and its reply the next."""
    start = next(n for n, message in enumerate(plain.messages) if message.role == "assistant")
    messages, bare = offloaded.messages[start:], plain.messages[start:]
    parts = []
    for question, whole in zip(questions, bare[1::2], strict=False):
        count = len(question.calls)
        own, messages = messages[: 2 * count], messages[2 * count :]
        chars = [message.chars for message in own]
        parts.append(Part(question, whole.chars, sum(chars[:2]), count - 1, sum(chars[2:])))
    return parts


class Screen:
    """A console of at most 80 columns, and the signs that its encoding has."""

    def __init__(self, console: Console) -> None:
        self.console = console
        console.width = min(console.width, WIDTH)
        self.plain = not console.encoding.lower().startswith("utf")

    def sign(self, sign: str, plain: str) -> str:
        return plain if self.plain else sign

    def say(self, text: str | Text = "", style: str = "") -> None:
        self.console.print(text, style=style, highlight=False, markup=False)

    def title(self, text: str) -> None:
        self.console.rule(
            Text(text, "bold"), align="left", characters=self.sign("─", "-"), style="dim"
        )

    def opening(self) -> None:
        self.title("callslip: four long outputs, one small window")
        self.say(
            "The tools run now, on this machine, with no network. The model is a script: it "
            "calls them, reads back what it needs, and answers from the replies alone.",
            "dim",
        )

    def end(self, right: bool, seconds: float) -> None:
        self.say()
        if not right:
            self.say(" An answer is wrong.", "bold red")
        self.say(f" {seconds:.0f} seconds in all.", "dim")

    def question(self, number: int, question: Question) -> None:
        self.say()
        self.say(Text.assemble((f" {number}  ", "bold cyan"), (question.title, "bold")))
        self.say(Text(f"    {question.text}"))

    def call(self, call: Call, reply: Message, chars: int) -> None:
        """One call and its reply, in a line; `chars` is what both take in the window."""
        opening = re.match(r'<result id="\w+" .*?lines="(\d+)" size="([^"]+)"', reply.text)
        if opening:
            whole = f"{opening[2]} in {int(opening[1]):,} lines"
            self.step(f"{call.tool}()  {whole} {self.sign('→', '->')} envelope", chars)
            return
        given = [
            (f"'{word}'" if '"' in word else f'"{word}"') if name == "pattern" else f"{name}={word}"
            for name, word in call.arguments.items()
            if name != "result_id"
        ]
        self.step(f"{call.tool}({', '.join(given)})", chars)

    def step(self, text: str, chars: int) -> None:
        line = Text("    ")
        line.append(self.sign("· ", "- "), "dim")
        line.append(text)
        line.truncate(self.console.width - 14, overflow="ellipsis")
        line.pad_right(max(self.console.width - 14 - len(line), 0))
        line.append(f"{chars:>8,} chars"[:14], "dim")
        self.say(line)

    def verdict(self, question: Question, got: str, truth: str) -> None:
        right = got == truth
        sign = self.sign("✓", "+") if right else self.sign("✗", "X")
        line = Text.assemble(("    ", ""), (f"{sign} ", "green" if right else "bold red"))
        line.append(got, "bold")
        line.truncate(self.console.width, overflow="ellipsis")
        self.say(line)
        if right:
            self.say(f"      checked with {question.checked}", "dim")
        else:
            self.say(f"      WRONG: with {question.checked} it is {truth}", "bold red")

    def seen_by_a_model(self, run: Run, part: Part) -> None:
        name = part.question.tool.__name__
        envelope = next(reply.text for reply in run.replies if reply.tool == name)
        self.say()
        self.title(f"what the model saw of {name}(), to the letter")
        self.say(Text(envelope, "cyan"))

    def table(self, parts: Sequence[Part]) -> None:
        self.say()
        self.title("characters of each result, and what it took of the window")
        table = Table(box=ASCII if self.plain else SIMPLE_HEAD, show_footer=True, padding=(0, 1))
        sums = [
            f"{sum(part.without for part in parts):,}",
            f"{sum(part.envelope for part in parts):,}",
            f"{sum(part.read_backs for part in parts):,}",
            f"{sum(part.replies for part in parts):,}",
            f"{sum(part.held for part in parts):,}",
        ]
        heads = ["result", "envelope", "read-backs", "replies", "in the window"]
        styles = ["red", "", "", "", "green"]
        table.add_column("", "together")
        for head, foot, style in zip(heads, sums, styles, strict=True):
            table.add_column(head, foot, justify="right", style=style, footer_style=style)
        for part in parts:
            table.add_row(
                part.question.tool.__name__,
                f"{part.without:,}",
                f"{part.envelope:,}",
                f"{part.read_backs}",
                f"{part.replies:,}",
                f"{part.held:,}",
            )
        self.console.print(table)

    def chart(self, parts: Sequence[Part], offloaded: Run, plain: Run) -> None:
        """Two bars for each question: what the request held that followed its last call."""
        self.title("the request after each question: without callslip, and with it")
        ends: list[int] = [0]
        for part in parts:
            ends.append(ends[-1] + len(part.question.calls))
        most = plain.largest
        names = max(len(part.question.tool.__name__) for part in parts)
        for part, end, size in zip(parts, ends[1:], plain.sizes[1:], strict=False):
            name = f" {part.question.tool.__name__:<{names}}  "
            self.bar(f"{name}without ", size, most, "red")
            self.bar(" " * len(name) + "with    ", offloaded.sizes[end], most, "green")

    def bar(self, label: str, size: int, most: int, style: str) -> None:
        eighths = max(round(size / most * BAR * 8), 1)
        if self.plain:
            bar = "#" * max(round(eighths / 8), 1)
        else:
            bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
        line = Text(label)
        line.append(f"{bar:<{BAR}}", style)
        line.append(f" {size:>11,}")
        self.say(line)

    def sums(self, parts: Sequence[Part], offloaded: Run, plain: Run) -> None:
        """The figures in words, the price among them."""
        self.say()
        self.title("the whole run")
        tokens = [_tokens(run.messages) for run in (plain, offloaded)]
        overhead = offloaded.tool_chars - plain.tool_chars
        read_backs = sum(part.read_backs for part in parts)
        share = offloaded.largest / plain.largest
        lines = [
            ("largest request", f"{plain.largest:,}", f"{offloaded.largest:,} characters"),
            ("about", f"{tokens[0]:,}", f"{tokens[1]:,} tokens (estimated)"),
            ("all requests together", f"{plain.sent:,}", f"{offloaded.sent:,} characters"),
            ("requests", f"{len(plain.requests)}", f"{len(offloaded.requests)}"),
        ]
        arrow = self.sign("→", "->")
        for what, before, after in lines:
            self.say(f" {what:<22} {before:>11} {arrow} {after}")
        self.say()
        self.say(f" The window held {share:.1%} of what it would have held. The price:")
        self.say(
            f" {read_backs} read-backs, each a round trip, and {overhead:,} characters of tool "
            "descriptions"
        )
        self.say(" in every request, which the figures above include.")


def _tokens(messages: Sequence[Message]) -> int:
    return sum(estimate_tokens(message.text) for message in messages)
