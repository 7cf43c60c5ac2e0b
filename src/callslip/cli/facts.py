"""What the commands of `callslip memory` share: whose facts, and how a fact is told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from callslip.cli import out
from callslip.cli.given import Given, verb
from callslip.errors import SettingsError

if TYPE_CHECKING:
    from callslip.patterns.memory import Fact, Memory, Remembered

F = TypeVar("F", bound=Callable[..., Any])

NO_FACT = 3
_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_EXPIRES = re.compile(rf"(\d+(?:\.\d+)?)\s*([{''.join(_UNITS)}])")


def fact_verb(**attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with the options of every command, and the one of these."""

    def made(function: Callable[..., Any]) -> click.Command:
        return verb(**attributes)(_whose(function))

    return made


def _whose(function: F) -> F:
    return click.option(
        "-N",
        "--namespace",
        metavar="A/B",
        envvar="CALLSLIP_NAMESPACE",
        help="Whose facts, as a path. [env CALLSLIP_NAMESPACE]",
    )(function)


def kind_option(function: F) -> F:
    """The option of a command that may look at one kind only."""
    return click.option("--kind", metavar="WORD", help="Only facts of that kind.")(function)


def opened(held: Given, namespace: str | None, *, must_exist: bool = True) -> Memory:
    """The memory that a command is about."""
    from callslip.patterns.memory import Memory

    store = held.open_store(must_exist=must_exist)
    if namespace:
        return Memory(store, tuple(namespace.split("/")))
    if held.user:
        return Memory(store, (held.tenant or "-", held.user))
    return Memory(store, held.tenant or "cli")


def as_json(fact: Fact) -> dict[str, Any]:
    """A fact for a program; what `import` takes."""
    return {
        "id": fact.id,
        "text": fact.text,
        "key": fact.key,
        "kind": fact.kind,
        "source": fact.source,
        "metadata": dict(fact.metadata),
        "count": fact.count,
        "version": fact.version,
        "created_at": out.stamp(fact.created_at),
        "updated_at": out.stamp(fact.updated_at),
        "expires_at": None if fact.expires_at is None else out.stamp(fact.expires_at),
    }


def day(at: float) -> str:
    """A moment, to the day."""
    return out.stamp(at)[:10]


def tell(held: Given, told: Remembered) -> None:
    """Print the id of a fact, and what became of it."""
    if held.json:
        out.json(as_json(told.fact) | {"outcome": told.outcome})
        return
    out.text(told.fact.id)
    if told.outcome == "repeated":
        out.note(f"known already; told {told.fact.count:,} times")
    elif told.before is not None:
        out.note(f"in place of: {out.one_line(told.before.text)}")


def unknown(id: str) -> int:
    """Say that an id is not here; answers the exit status."""
    return out.complain(f"no fact {id} in this namespace; see: callslip memory list", NO_FACT)


def expiry(said: str | None) -> float | datetime | None:
    """What an option like `7d` or `2027-01-31` means."""
    if said is None:
        return None
    match = _EXPIRES.fullmatch(said.strip())
    if match:
        return float(match[1]) * _UNITS[match[2]]
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        raise SettingsError(f"--expires {said!r}: give 90m, 12h, 7d, 2w, 1y, or a date") from None
    return at if at.tzinfo else at.astimezone()


def json_object(said: str | None, option: str) -> dict[str, Any]:
    """The JSON object that an option gives; an empty one if it is not given."""
    try:
        value = json.loads(said) if said else {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise SettingsError(f"{option} {said!r}: give a JSON object")
    return value
