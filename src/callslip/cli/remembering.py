"""`callslip memory add`, `edit`, `forget` and `import`: facts in, and away."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from callslip.cli import out
from callslip.cli.facts import expiry, fact_verb, json_object, opened, tell, unknown
from callslip.cli.given import agreed, given, yes_option
from callslip.errors import FactRefused, SettingsError

if TYPE_CHECKING:
    from callslip.patterns.memory import Memory


@fact_verb(name="add", short_help="Remember a fact.")
@click.argument("text", nargs=-1)
@click.option("-k", "--key", metavar="WORDS", help="What it is about: one fact for each key.")
@click.option("--kind", metavar="WORD", help="Such as preference, policy, system.")
@click.option("--source", metavar="WORDS", help="Who said so. [default: cli]")
@click.option("--expires", metavar="TIME", help="After 90m, 12h, 7d, 2w, 1y, or at a date.")
@click.option("--metadata", metavar="JSON", help="An object to keep with it.")
@click.pass_context
def add(
    ctx: click.Context,
    text: tuple[str, ...],
    namespace: str | None,
    key: str | None,
    kind: str | None,
    source: str | None,
    expires: str | None,
    metadata: str | None,
) -> None:
    """Remember a fact: a sentence or a few, from the command line or, without TEXT, from stdin.

    What says the same again is merged and counted. Under a key, a fact that says something else
    replaces the one before, which `show` still tells. Credentials are refused.
    """
    words = " ".join(text) or ("" if sys.stdin.isatty() else sys.stdin.read().strip())
    if not words:
        raise click.UsageError("nothing to remember: give a TEXT, or pipe one in", ctx)
    held = given(ctx)
    told = opened(held, namespace, must_exist=False).remember(
        words, key, kind, source or "cli", expiry(expires), json_object(metadata, "--metadata")
    )
    tell(held, told)


@fact_verb(name="edit", short_help="Change a fact.")
@click.argument("id", metavar="ID")
@click.argument("text", nargs=-1)
@click.option("--kind", metavar="WORD", help="Its kind.")
@click.option("--source", metavar="WORDS", help="Who said so.")
@click.option("--expires", metavar="TIME", help="After 7d, or at a date; `never` keeps it.")
@click.option("--metadata", metavar="JSON", help="An object to keep with it, in place of its own.")
@click.pass_context
def edit(
    ctx: click.Context,
    id: str,
    text: tuple[str, ...],
    namespace: str | None,
    kind: str | None,
    source: str | None,
    expires: str | None,
    metadata: str | None,
) -> int | None:
    """Change a fact; what it said before stays in its history.

    Without TEXT and options, and on a terminal, the text is opened in $EDITOR.
    """
    held = given(ctx)
    facts = opened(held, namespace)
    fact = facts.get(id)
    if fact is None:
        return unknown(id)
    changes: dict[str, Any] = {}
    if text:
        changes["text"] = " ".join(text)
    changes |= {
        name: said for name, said in (("kind", kind), ("source", source)) if said is not None
    }
    if expires is not None:
        changes["expires"] = None if expires == "never" else expiry(expires)
    if metadata is not None:
        changes["metadata"] = json_object(metadata, "--metadata")
    if not changes:
        if not sys.stdin.isatty():
            raise click.UsageError("nothing to change: give a TEXT or an option", ctx)
        edited = click.edit(fact.text)
        if edited is None or not edited.strip():
            out.note("not changed")
            return None
        changes["text"] = edited.strip()
    tell(held, facts.update(id, **changes))
    return None


@fact_verb(name="forget", short_help="Delete facts for good.")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All of the namespace, and below.")
@yes_option
@click.pass_context
def forget(
    ctx: click.Context, ids: tuple[str, ...], namespace: str | None, everything: bool, yes: bool
) -> int:
    """Delete facts for good, by id or all of them, history and all.

    An id that is not here is named on stderr, the others are deleted, and the exit status is 3.
    """
    if bool(ids) == everything:
        raise click.UsageError("give the IDs to forget, or --all", ctx)
    held = given(ctx)
    facts = opened(held, namespace)
    if everything:
        whose = out.harmless("/".join(facts.namespace))
        question = f"Delete every fact of {whose}, and below?"
        if not (yes or agreed(ctx, question, f"this deletes every fact of {whose}")):
            return 1
        gone = facts.clear()
        out.json({"forgotten": gone}) if held.json else out.note(f"forgot {gone:,} facts")
        return 0
    status = 0
    for id in ids:
        forgotten = facts.forget(id)
        if not forgotten:
            status = unknown(id)
        elif held.json:
            out.json({"id": id, "forgotten": True})
    return status


@fact_verb(name="import", short_help="Remember every fact of a file of `export`.")
@click.argument("file", metavar="[FILE]", default="-", type=click.File("rb"))
@click.pass_context
def import_facts(ctx: click.Context, file: Any, namespace: str | None) -> int:
    """Remember every fact of a file, one JSON object a line with "text" and, where it has them,
    "key", "kind", "source", "metadata" and "expires_at".

    They are told as by `add`: what is known is merged, a credential refused, what has run out left
    out. A line that is refused is named on stderr, the others go in, and the exit status is 2.
    """
    held = given(ctx)
    facts = opened(held, namespace, must_exist=False)
    counts = {"new": 0, "repeated": 0, "superseded": 0, "expired": 0, "refused": 0}
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            counts[_told_again(facts, json.loads(line))] += 1
        except (FactRefused, SettingsError, ValueError, AttributeError, KeyError) as error:
            counts["refused"] += 1
            what = str(error) if isinstance(error, FactRefused | SettingsError) else "no fact"
            out.complain(f"line {number}: {what}", 2)
    if held.json:
        out.json(counts)
    else:
        told = [f"{count:,} {name}" for name, count in counts.items() if count]
        out.note(", ".join(told) or "no fact in it")
    return 2 if counts["refused"] else 0


def _told_again(facts: Memory, told: dict[str, Any]) -> str:
    expires = told.get("expires_at")
    at = None if expires is None else datetime.fromisoformat(expires)
    if at is not None and at.timestamp() <= facts.store.now():
        return "expired"
    return facts.remember(
        told["text"],
        told.get("key"),
        told.get("kind") or "",
        told.get("source") or "",
        at,
        told.get("metadata") or {},
    ).outcome
