"""`callslip memory recall`, `list`, `show` and `export`: facts out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from callslip.cli import out
from callslip.cli.facts import (
    as_json,
    day,
    fact_verb,
    json_object,
    kind_option,
    opened,
    unknown,
)
from callslip.cli.given import given
from callslip.limits import RECALL_DEFAULT

if TYPE_CHECKING:
    from callslip.patterns.memory import Fact, Memory


@fact_verb(name="recall", short_help="Find the facts that answer a query.")
@click.argument("query", nargs=-1, required=True)
@click.option(
    "-n", "--limit", type=int, default=RECALL_DEFAULT, metavar="N", help="How many. [default: 5]"
)
@kind_option
@click.option("--where", metavar="JSON", help='Conditions on metadata: {"year": {"$gte": 2026}}.')
@click.pass_context
def recall(
    ctx: click.Context,
    query: tuple[str, ...],
    namespace: str | None,
    limit: int,
    kind: str | None,
    where: str | None,
) -> int:
    """Print the facts that answer a query best, as a model is shown them.

    Any text is a query. The exit status is 1 if nothing is found.
    """
    held = given(ctx)
    found = opened(held, namespace).recall(
        " ".join(query), limit, kind, json_object(where, "--where") or None
    )
    if held.json:
        for fact in found:
            out.json(as_json(fact) | {"score": fact.score})
    else:
        out.text(str(found))
    return 0 if found.facts else 1


@fact_verb(name="list", short_help="Review what is remembered, the last told first.")
@click.option("-n", "--limit", type=int, default=50, metavar="N", help="How many. [default: 50]")
@click.option("--after", type=int, default=0, metavar="N", help="How many to skip.")
@kind_option
@click.pass_context
def list_facts(
    ctx: click.Context, namespace: str | None, limit: int, after: int, kind: str | None
) -> None:
    """List facts, the last told first, one a line.

    In a pipe the fields are parted by tabs: id, date, times told, kind, key, source, text.
    """
    held = given(ctx)
    facts = opened(held, namespace)
    page = facts.list(kind, None, after, limit)
    if not page and out.on_terminal() and not held.json:
        out.note(f"no fact in namespace {'/'.join(facts.namespace)}")
    for fact in page:
        if held.json:
            out.json(as_json(fact))
        elif out.on_terminal():
            about = out.one_line(" · ".join(part for part in (fact.kind, fact.key or "") if part))
            line = f"{day(fact.updated_at)}  {out.one_line(fact.text)}"
            tail = out.style(f"  {about}", dim=True) if about else ""
            beside = len(fact.id) + 2 + (len(about) + 2 if about else 0)
            out.styled(f"{out.style(fact.id, fg='cyan')}  {out.fitting(line, beside=beside)}{tail}")
        else:
            named = (fact.kind, fact.key or "", fact.source, fact.text)
            cells = [
                fact.id,
                out.stamp(fact.updated_at),
                str(fact.count),
                *map(out.one_line, named),
            ]
            out.text("\t".join(cells))
    if page.next is not None and not held.json:
        out.note(f"{page.total - page.next['after']:,} more: --after {page.next['after']}")


@fact_verb(name="show", short_help="One fact, and what it said before.")
@click.argument("id", metavar="ID")
@click.pass_context
def show(ctx: click.Context, id: str, namespace: str | None) -> int | None:
    """Show one fact with all that is known of it, and what it said before."""
    held = given(ctx)
    facts = opened(held, namespace)
    fact = facts.get(id)
    if fact is None:
        return unknown(id)
    past = facts.history(id)
    if held.json:
        told = [
            {"version": p.version, "text": p.text, "source": p.source, "why": p.why}
            | {"since": out.stamp(p.since), "until": out.stamp(p.until)}
            for p in past
        ]
        out.json(as_json(fact) | {"history": told})
        return None
    times = f", {fact.count} times" if fact.count > 1 else ""
    about = [
        ("key", fact.key or ""),
        ("kind", fact.kind),
        ("source", fact.source),
        ("told", f"{out.stamp(fact.updated_at)}{times}"),
        ("expires", "" if fact.expires_at is None else out.stamp(fact.expires_at)),
        ("metadata", json.dumps(fact.metadata, ensure_ascii=False) if fact.metadata else ""),
    ]
    out.text(f"{fact.id}\n{fact.text}\n")
    out.styled(out.columns([(name, out.one_line(said)) for name, said in about if said]))
    for before in past:
        said = f"{day(before.since)} to {day(before.until)} ({before.why}): {before.text}"
        out.text(out.fitting(out.one_line(said)))
    return None


@fact_verb(name="export", short_help="Write every fact out, one JSON object a line.")
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write there. [default: -, stdout]",
)
@click.pass_context
def export(ctx: click.Context, namespace: str | None, output: str) -> None:
    """Write every fact of the namespace out, one JSON object a line, as `import` takes it.

    What a fact said before is not written.
    """
    lines = (
        json.dumps(as_json(f), ensure_ascii=False) for f in _all(opened(given(ctx), namespace))
    )
    if output == "-":
        for line in lines:
            out.text(line)
        return
    # Facts may be personal: a new file is for its owner alone.
    with open(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        count = 0
        for line in lines:
            file.write(line.encode("utf-8", "replace") + b"\n")
            count += 1
    out.note(f"wrote {count:,} facts to {output}")


def _all(facts: Memory) -> Iterable[Fact]:
    after: int | None = 0
    while after is not None:
        page = facts.list(after=after, limit=500)
        yield from page
        after = None if page.next is None else page.next["after"]
