"""What is asked, the calls that find it out, and the same answer worked out another way.

The answers are read from the replies of the read-back tools and from nothing else, as a model
would. `truth` never looks at a reply: it asks git, the installed packages, the code itself.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from callslip.testing.model import Call, Message, Seen, id_shown
from demo.outputs import Outputs, commits, git, sbom

PACKAGE = "msgspec"
PRICE = 2807


@dataclass(frozen=True)
class Question:
    """One question of the demo. `answer` sees the replies to its own calls, in order."""

    title: str
    text: str
    tool: Callable[..., Any]
    finds: tuple[Call, ...]
    answer: Callable[[Sequence[Message]], str]
    truth: Callable[[], str]
    checked: str
    """Where the truth comes from, in a few words."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The call of the tool, then the read-backs."""
        return (Call(self.tool.__name__), *self.finds)


def asked(outputs: Outputs) -> list[Question]:
    """The four questions, about what the four tools say."""
    return [history(outputs), packages(outputs), materials(outputs), tests(outputs)]


def history(outputs: Outputs) -> Question:
    commit = "^commit [0-9a-f]{40}"

    def last(seen: Seen) -> dict[str, Any]:
        return {**here(seen), "pattern": commit, "after": total(seen[-1]) - 1, "limit": 1}

    def around(seen: Seen) -> dict[str, Any]:
        return {**here(seen), "start": line(seen[-1]), "limit": 6}

    def answer(replies: Sequence[Message]) -> str:
        first = found(r"^commit ([0-9a-f]{40})[^\n]*\n(?:\S[^\n]*\n)+\n {4}([^\n]+)", replies[3])
        return f"{total(replies[1])} commits; the first, {first[1][:10]}, says “{first[2]}”"

    def truth() -> str:
        all_of_them = commits(outputs.repository, outputs.head)
        # Its first line as it stands in the message, where %s would join a folded one.
        message = git(outputs.repository, "show", "-s", "--format=%B", all_of_them[-1])
        subject = message.partition("\n")[0]
        return f"{len(all_of_them)} commits; the first, {all_of_them[-1][:10]}, says “{subject}”"

    return Question(
        "git log -p",
        "How many commits are there, and what does the first one say?",
        outputs.git_log,
        (
            Call("search_result", lambda seen: {**here(seen), "pattern": commit, "limit": 0}),
            Call("search_result", last),
            Call("read_result", around),
        ),
        answer,
        truth,
        "git rev-list and git show",
    )


def packages(outputs: Outputs) -> Question:
    pattern = f'"name": "{PACKAGE}"'
    return Question(
        "pip list --format json --verbose",
        f"Which version of {PACKAGE} is installed?",
        outputs.pip_list,
        (
            Call("search_result", lambda seen: {**here(seen), "pattern": pattern}),
            Call("read_result", at_the_hit),
        ),
        lambda replies: found(rf'{pattern}, "version": "([^"]+)"', replies[2])[1],
        lambda: metadata.version(PACKAGE),
        "importlib.metadata",
    )


def materials(outputs: Outputs) -> Question:
    components = sbom()["components"]
    names = [component["name"] for component in components]
    crate = "object_store" if "object_store" in names else names[len(names) // 2]
    pattern = f'"name":"{re.escape(crate)}"'

    def answer(replies: Sequence[Message]) -> str:
        version = found(rf'{pattern},"version":"([^"]+)"', replies[2])[1]
        licence = found(r'"expression":"([^"]+)"', replies[2])[1]
        return f"{version}, {licence}"

    def truth() -> str:
        component = components[names.index(crate)]
        return f"{component['version']}, {component['licenses'][0]['expression']}"

    return Question(
        "a bill of materials, in JSON",
        f"Which version of {crate} is compiled in, and under which licence?",
        outputs.sbom,
        (
            Call("search_result", lambda seen: {**here(seen), "pattern": pattern}),
            Call("read_result", at_the_hit),
        ),
        answer,
        truth,
        "the parsed document",
    )


def tests(outputs: Outputs) -> Question:
    def around(seen: Seen) -> dict[str, Any]:
        return {**here(seen), "start": line(seen[-1]), "limit": 8}

    def answer(replies: Sequence[Message]) -> str:
        got = found(r"^E +AssertionError: assert ('[^']*') ==", replies[3])[1]
        return f"{total(replies[1])} fail; euros({PRICE}) gives {got}"

    def truth() -> str:
        euros = runpy.run_path(str(outputs.project / "eur.py"))["euros"]
        wrong = [n for n in range(0, 3000, 7) if euros(n) != f"{n / 100:.2f}"]
        return f"{len(wrong)} fail; euros({PRICE}) gives {euros(PRICE)!r}"

    return Question(
        "pytest -v, in a project with a bug",
        f"How many tests fail, and what does euros({PRICE}) give?",
        outputs.run_tests,
        (
            Call("search_result", lambda seen: {**here(seen), "pattern": "^FAILED ", "limit": 0}),
            Call(
                "search_result",
                lambda seen: {**here(seen), "pattern": f"^cents = {PRICE}$", "limit": 1},
            ),
            Call("read_result", around),
        ),
        answer,
        truth,
        "the function itself",
    )


# --- what a model reads in a reply ----------------------------------------------------------------


def here(seen: Seen) -> dict[str, Any]:
    return {"result_id": id_shown(seen)}


def at_the_hit(seen: Seen) -> dict[str, Any]:
    return {**here(seen), "start": line(seen[-1]), "limit": 1}


def total(reply: Message) -> int:
    """How many matches a search says there are."""
    said = found(r'^(?:<hits total="|)([\d,]+)(?:"| match)', reply)[1]
    return int(said.replace(",", ""))


def line(reply: Message) -> int:
    """The line of the first match that a search shows."""
    return int(found(r"^> line (\d+)", reply)[1])


def found(pattern: str, reply: Message) -> re.Match[str]:
    """The first match in a reply; a `LookupError` that shows the reply if there is none."""
    match = re.search(pattern, reply.text, re.MULTILINE)
    if match is None:
        raise LookupError(f"no {pattern!r} in the reply of {reply.tool}:\n{reply.text[:500]}")
    return match
