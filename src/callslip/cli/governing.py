"""`callslip audit`, `hold`, `holds`, `release` and `erase`: who did what, what stays, what goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from callslip.cli import out, tables
from callslip.cli.given import COUNT, agreed, given, verb, yes_option
from callslip.window.preview.parts import counted

if TYPE_CHECKING:
    from rich.table import Table

    from callslip.stacks.auditops import Entry
    from callslip.store import ResultStore

_PAGE = 500


@verb(short_help="Say who did what with which result.")
@click.option("--id", "id", metavar="ID", help="Only what was done with this result.")
@click.option("--action", metavar="WORD", help="Only: stored, read, search, query, deleted …")
@click.option("--actor", metavar="NAME", help="Only what this one did.")
@click.option("--since", metavar="TIME", help="Only from this moment on: 2026-12-31T23:59, in UTC.")
@click.option("--until", metavar="TIME", help="Only before this moment.")
@click.option("--after", type=COUNT, default=0, metavar="N", help="Go on behind entry number N.")
@click.option("-n", "--limit", type=COUNT, metavar="N", help="Print N at the most. [default: all]")
@click.option("--all", "everything", is_flag=True, help="Of all sessions, users and tenants.")
@click.pass_context
def audit(
    ctx: click.Context,
    id: str | None,
    action: str | None,
    actor: str | None,
    since: str | None,
    until: str | None,
    after: int,
    limit: int | None,
    everything: bool,
) -> None:
    """Say who did what with which result, and when: the store's audit, the oldest entry first.

    Of the session, user and tenant that are named; --all for everything. A table on a terminal; in
    a pipe one line for each entry, its fields parted by tabs: number, time, action, outcome, actor,
    tenant, user, session, id, tool, count. With --json one object a line, for an archive.

    There are entries for as long as programs use the store with audit=True. With CALLSLIP_AUDIT=1
    what this command line does is told as well, with the name of who is logged in.
    """
    held = given(ctx)
    named = {"tenant": held.tenant, "user": held.user, "session": held.session}
    filters = {} if everything else {name: value for name, value in named.items() if value}
    times = {"since": _moment(ctx, since), "until": _moment(ctx, until)}
    store = held.open_store()
    entries = _walk(store, after, {**filters, **times, "id": id, "action": action})
    found = islice((each for each in entries if actor in (None, each.actor)), limit)
    if held.json:
        for entry in found:
            out.json(asdict(entry))
    elif out.on_terminal():
        rows = list(found)
        if rows:
            tables.draw(_table(rows))
        else:
            out.note(
                "no entry: there are some of what is done with audit=True, or here with CALLSLIP_AUDIT=1"
            )
    else:
        for entry in found:
            out.text("\t".join(_fields(entry)))


_STYLES = {"#": "dim", "when": "dim", "who": "cyan", "did": "", "what": "", "whose": "dim"}
_LEAST = {"what": 14, "whose": 10}
"""What is cut where the room is short, and what it keeps: an id, whole."""
_MOST = 40


def _walk(store: ResultStore, after: int, filters: dict[str, object]) -> Iterator[Entry]:
    while page := store.audit(after=after, limit=_PAGE, **filters):  # type: ignore[arg-type]
        yield from page
        after = page[-1].n


def _moment(ctx: click.Context, given_time: str | None) -> float | None:
    if given_time is None:
        return None
    try:
        moment = datetime.fromisoformat(given_time)
    except ValueError:
        raise click.UsageError(f"{given_time!r} is no time: give 2026-12-31T23:59", ctx) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _fields(entry: Entry) -> list[str]:
    names = (entry.actor, entry.tenant, entry.user, entry.session, entry.id, entry.tool)
    texts = [out.one_line(name) for name in names]
    return [
        str(entry.n),
        out.stamp(entry.at),
        entry.action,
        entry.outcome,
        *texts,
        str(entry.count),
    ]


def _table(entries: Sequence[Entry]) -> Table:
    rows = [dict(zip(_STYLES, map(out.one_line, _cells(each)), strict=True)) for each in entries]
    least = {
        name: tables.widest(name, [row[name] for row in rows], _LEAST.get(name, _MOST))
        for name in _STYLES
    }
    table = tables.table(expand=True)
    shown = tables.roomy(least, ("whose", "#", "when", "who"))
    for name in shown:
        ratio = 1 if name in _LEAST else None
        table.add_column(name, style=_STYLES[name], no_wrap=True, ratio=ratio)
    for row in rows:
        table.add_row(*(tables.plain(row[name]) for name in shown))
    return table


def _cells(entry: Entry) -> tuple[str, ...]:
    did = entry.action if entry.outcome == "done" else f"{entry.action} ({entry.outcome})"
    what = " ".join(filter(None, (entry.id, entry.tool, entry.detail)))
    if not entry.id and entry.count != 1:
        what = f"{entry.count:,} {what}"
    whose = " / ".join(filter(None, (entry.session, entry.user, entry.tenant)))
    return (
        str(entry.n),
        out.stamp(entry.at)[:16],
        entry.actor or "the store",
        did,
        what,
        whose,
    )


@verb(short_help="Keep all of a tenant, user or session, whatever happens.")
@click.option("--reason", default="", metavar="TEXT", help="Why; it is shown to who is refused.")
@click.pass_context
def hold(ctx: click.Context, reason: str) -> None:
    """Put the --tenant, --user or --session under a legal hold: nothing of it expires or goes.

    What is named is what is held: with --tenant alone all of the tenant. Deleting and closing are
    refused until `callslip release` with the same names.
    """
    held = given(ctx)
    placed = held.open_store().hold(**_reach(ctx), reason=reason)
    if held.json:
        out.json(asdict(placed))
    else:
        out.note(f"held, by hold {placed.n}; to lift it: {out.harmless(held.again('release'))}")


@verb(short_help="Lift a legal hold.")
@click.pass_context
def release(ctx: click.Context) -> int:
    """Lift the holds that were placed with exactly these --tenant, --user and --session."""
    held = given(ctx)
    lifted = held.open_store().release(**_reach(ctx))
    if held.json:
        out.json({"released": lifted})
    else:
        out.note(f"released {counted(lifted, 'hold')}")
    return 0 if lifted else 1


@verb(short_help="List the legal holds.")
@click.pass_context
def holds(ctx: click.Context) -> None:
    """List the legal holds, the oldest first; with --tenant those of one tenant."""
    held = given(ctx)
    placed = held.open_store().holds(tenant=held.tenant)
    if not placed and out.on_terminal() and not held.json:
        out.note("nothing is held")
    for each in placed:
        if held.json:
            out.json(asdict(each))
        else:
            names = [out.one_line(n or "*") for n in (each.tenant, each.user, each.session)]
            out.text(
                "\t".join((str(each.n), out.stamp(each.since), *names, out.one_line(each.reason)))
            )


@verb(short_help="Delete all that is about a subject.")
@click.argument("subject")
@yes_option
@click.pass_context
def erase(ctx: click.Context, subject: str, yes: bool) -> int:
    """Delete all results, scratch file versions and facts about SUBJECT, in all of the --tenant.

    Nothing of them is left but their entries in the audit, if there is one: with CALLSLIP_AUDIT=1
    it proves what was deleted. Exits with 1 if payloads are yet to be deleted (see: callslip gc).
    """
    held = given(ctx)
    question = "Delete all that is about this subject?"
    if not (yes or agreed(ctx, question, "this deletes for good")):
        return 1
    store = held.open_store()
    tenant = held.tenant or ""
    removed = store.delete(tenant=tenant, subject=subject)
    proof = store.proof(tenant=tenant, subject=subject)
    if held.json:
        pending = [entry.id for entry in proof.pending]
        out.json({"removed": removed, "proven": proof.complete, "pending": pending})
    else:
        what = "result, file or fact" if removed == 1 else "results, files and facts"
        nothing = f"nothing is about this subject{' in this tenant' if tenant else ''}"
        out.note(f"deleted {removed:,} {what}" if removed else nothing)
        if proof.pending:
            out.note(f"{counted(len(proof.pending), 'payload')} yet to be deleted: callslip gc")
    return 1 if proof.pending else 0


def _reach(ctx: click.Context) -> dict[str, Any]:
    held = given(ctx)
    if not (held.tenant or held.user or held.session):
        raise click.UsageError("name what is held: --tenant, --user, --session", ctx)
    return {"tenant": held.tenant or "", "user": held.user, "session": held.session}
