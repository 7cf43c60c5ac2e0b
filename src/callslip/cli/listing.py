"""`callslip ls`, `show` and `sessions`: what is here, for a person or for a pipe."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

import click

from callslip.cli import out, tables
from callslip.cli.given import COUNT, given, id_argument, verb
from callslip.handle import Handle, Scope
from callslip.window.envelope import human_size
from callslip.window.preview.parts import counted

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from callslip.session import Session

_PAGE = 200
_TOOL = 16
_CALLED_WITH = 10
_CELL = 24
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


@verb(short_help="List what the session holds.")
@click.option("--after", type=COUNT, default=0, metavar="N", help="Skip the first N results.")
@click.option("-n", "--limit", type=COUNT, metavar="N", help="List N at the most. [default: all]")
@click.option("-q", "--quiet", is_flag=True, help="Print the ids only.")
@click.pass_context
def ls(ctx: click.Context, after: int, limit: int | None, quiet: bool) -> None:
    """List what the session holds, oldest first.

    A table on a terminal; in a pipe one line for each result, its fields parted by tabs: id, tool,
    kind, lines, bytes, time, arguments.
    """
    held = given(ctx)
    session = held.open_session()
    found = islice(_walk(session, max(after, 0)), limit if limit is None else max(limit, 0))
    if held.json:
        for handle in found:
            out.json(out.of_handle(handle))
    elif quiet:
        for handle in found:
            out.text(handle.id)
    elif out.on_terminal():
        handles = list(found)
        if handles:
            tables.draw(_results(handles, session.store.now()))
        else:
            out.note(f"nothing is stored in session {held.session_name}; see: callslip sessions")
    else:
        for handle in found:
            out.text(_line(handle))


def _walk(session: Session, after: int) -> Iterator[Handle]:
    while True:
        listed = session.list(after, _PAGE)
        yield from listed.handles
        if listed.next is None:
            return
        after = listed.next["after"]


def _line(handle: Handle) -> str:
    made = out.stamp(handle.created_at)
    size = (str(handle.lines), str(handle.size))
    texts = [out.one_line(text) for text in (handle.tool, handle.args)]
    return "\t".join((handle.id, texts[0], handle.kind, *size, made, texts[1]))


def _results(handles: Sequence[Handle], now: float) -> Table:
    cells: dict[str, list[Text]] = {
        "id": [tables.plain(each.id, "cyan") for each in handles],
        "tool": [_marked(out.one_line(each.tool), each.status) for each in handles],
        "lines": [tables.plain(f"{each.lines:,}") for each in handles],
        "size": [tables.plain(human_size(each.size)) for each in handles],
        "age": [tables.plain(_age(now - each.created_at), "dim") for each in handles],
        "called with": [tables.plain(_called_with(each), "dim") for each in handles],
    }
    most = {"tool": _TOOL, "called with": _CALLED_WITH}
    least = {
        name: tables.widest(name, [cell.plain for cell in column], most.get(name, _CELL))
        for name, column in cells.items()
    }
    table = tables.table(expand=True)
    shown = tables.roomy(least, ("age", "lines", "size", "called with", "tool"))
    for name in shown:
        table.add_column(
            name,
            justify="right" if name in ("lines", "size", "age") else "left",
            no_wrap=True,
            max_width=most["tool"] if name == "tool" else None,
            ratio=1 if name == "called with" else None,
        )
    for row in zip(*(cells[name] for name in shown), strict=True):
        table.add_row(*row)
    return table


def _called_with(handle: Handle) -> str:
    if handle.same_as:
        return f"same as {handle.same_as}"
    return out.one_line(_said(handle.args))


def _said(args: str) -> str:
    """Arguments for a person: without the braces of JSON, and of one argument only its value."""
    try:
        given = json.loads(args)
    except ValueError:
        return args  # none, or cut short
    if not isinstance(given, dict):
        return str(given)
    if len(given) == 1:
        return str(next(iter(given.values())))
    return ", ".join(f"{name}={value}" for name, value in given.items())


def _marked(tool: str, status: str) -> Text:
    from rich.text import Text

    text = Text(tool, no_wrap=True, overflow="ellipsis")
    return text if not status else Text.assemble(("! ", "red"), text)


def _age(seconds: float) -> str:
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{int(seconds // unit)}{name}"
    return "now"


@verb(short_help="Describe one result, with its preview.")
@id_argument
@click.pass_context
def show(ctx: click.Context, id: str) -> None:
    """Describe one stored result, with its preview, for a person."""
    held = given(ctx)
    session = held.open_session()
    handle = session.handle(id)
    if held.json:
        out.json(out.of_handle(handle, envelope=True))
        return
    label, body = _preview(session.handle(handle.same_as) if handle.same_as else handle)
    out.styled(f"{out.style(handle.id, bold=True, fg='cyan')}  {out.one_line(handle.tool)}\n")
    out.styled(out.columns(_facts(handle, session)))
    if body:
        bar = out.style("│", dim=True)
        out.styled(f"\n  {out.style(label, dim=True)}")
        lines = out.harmless(body).split("\n")
        as_rows = handle.kind == "rows" and out.on_terminal()
        for part in tables.sections(lines) if as_rows else lines:
            if isinstance(part, str):
                out.styled(f"  {bar} {out.fitting(part, beside=4)}".rstrip())
            else:
                tables.of_records([row for _, row in part], [n for n, _ in part], indent=2)
    out.styled("")
    ask = (("query", id, "WHERE"),) if handle.kind == "rows" else ()
    ways = (("read", id), ("search", id, "PATTERN"), *ask, ("export", id, "-o", "FILE"))
    for words in ways:
        out.styled("  " + out.style(out.harmless(held.again(*words)), dim=True))


def _facts(handle: Handle, session: Session) -> list[tuple[str, str]]:
    shape = handle.shape
    size = [human_size(shape.size), counted(shape.chars, "character"), counted(shape.lines, "line")]
    if shape.records is not None:
        size.append(counted(shape.records, "record"))
    if shape.marked:
        size.append(f"{shape.marked:,} not valid UTF-8")
    made = datetime.fromtimestamp(handle.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    ago = _age(session.store.now() - handle.created_at)
    owner = [session.scope.session, session.scope.user, session.scope.tenant]
    facts = [
        ("kind", f"{shape.kind}, {shape.mime}"),
        ("size", ", ".join(size)),
        ("stored", made + (f", {ago} ago" if ago != "now" else ", just now")),
        ("session", " / ".join(out.one_line(name) for name in owner if name)),
        ("called with", out.one_line(handle.args)),
        ("status", out.one_line(handle.status)),
        ("same as", handle.same_as),
    ]
    return [(name, value) for name, value in facts if value]


def _preview(handle: Handle) -> tuple[str, str]:
    """The preview and how much it shows, out of the envelope: what is inside cannot forge it."""
    opening, _, rest = handle.envelope.partition("\n")
    body, closed, _ = rest.rpartition("</result>\n")
    label = re.search(r'\bshown="([^"]*)"', opening)
    return (label[1] if label else "preview"), body.removesuffix("\n") if closed else ""


@verb(short_help="List the sessions of the store.")
@click.option("-n", "--limit", type=COUNT, default=50, metavar="N", help="How many. [default: 50]")
@click.pass_context
def sessions(ctx: click.Context, limit: int) -> None:
    """List the store's sessions, latest activity first; with --tenant those of one tenant.

    A table on a terminal; in a pipe one line for each, parted by tabs: session, user, tenant,
    results, time of the last activity.
    """
    from callslip.stacks.ops import Sessions, do

    held = given(ctx)
    store = held.open_store()
    found = store.run_flow(do(Sessions(max(limit, 0), tenant=held.tenant)))
    if held.json:
        for scope, active, results in found:
            out.json(
                {
                    "session": scope.session,
                    "user": scope.user,
                    "tenant": scope.tenant,
                    "results": results,
                    "active_at": active,
                }
            )
    elif out.on_terminal():
        if found:
            tables.draw(_sessions(found, store.now()))
        else:
            out.note("no session has anything stored")
    else:
        for scope, active, results in found:
            made = out.stamp(active)
            texts = [out.one_line(n) for n in (scope.session, scope.user, scope.tenant)]
            out.text("\t".join((*texts, str(results), made)))


def _sessions(found: Sequence[tuple[Scope, float, int]], now: float) -> Table:
    ages = [_age(now - active) for _, active, _ in found]
    cells = {
        name: [out.one_line(getattr(scope, name)) for scope, _, _ in found]
        for name in ("session", "user", "tenant")
        if name == "session" or any(getattr(scope, name) for scope, _, _ in found)
    }
    cells["results"] = [f"{results:,}" for _, _, results in found]
    cells["last used"] = [ago if ago == "now" else f"{ago} ago" for ago in ages]
    least = {name: tables.widest(name, column) for name, column in cells.items()}
    spare = [name for name in ("last used", "results", "tenant", "user") if name in cells]
    table = tables.table()
    shown = tables.roomy(least, spare)
    for name in shown:
        right = name in ("results", "last used")
        style = "cyan" if name == "session" else ""
        table.add_column(name, justify="right" if right else "left", style=style, no_wrap=True)
    for row in zip(*(cells[name] for name in shown), strict=True):
        table.add_row(*map(tables.plain, row))
    return table
