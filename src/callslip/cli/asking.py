"""`callslip query`, `get` and `sql`: records by condition, by number, by path, joined."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from callslip import limits
from callslip.cli import out, tables
from callslip.cli.given import COUNT, Given, given, id_argument, verb

if TYPE_CHECKING:
    from callslip.handle import Handle, Rows
    from callslip.session import Session

F = TypeVar("F", bound=Callable[..., Any])

_SHOWN = 20


def _part(function: F) -> F:
    """The options of what is shown of an outcome."""
    function = click.option("--plain", is_flag=True, help="Print the reply that a model gets.")(
        function
    )
    function = click.option("-c", "--count", is_flag=True, help="Print only how many there are.")(
        function
    )
    function = click.option(
        "--save-as", metavar="NAME", help="Store all of it as a new result; print its envelope."
    )(function)
    function = click.option(
        "--after", type=COUNT, default=0, metavar="N", help="Skip the first N."
    )(function)
    return click.option(
        "-n",
        "--limit",
        type=COUNT,
        metavar="N",
        help=f"Show N at the most. [default: {_SHOWN} on a terminal, all in a pipe]",
    )(function)


@verb(short_help="Ask for records by a condition.")
@id_argument
@click.argument("where", required=False)
@click.option("-f", "--fields", metavar="LIST", help="Names, count(*), sum(x) as y. [default: all]")
@click.option("--order-by", metavar="LIST", help="'amount desc, name'.")
@click.option("--group-by", metavar="LIST", help="One row comes out for each group.")
@click.option("--path", default="", metavar="PATH", help="Another list in a document.")
@_part
@click.pass_context
def query(
    ctx: click.Context,
    id: str,
    where: str | None,
    fields: str | None,
    order_by: str | None,
    group_by: str | None,
    path: str,
    limit: int | None,
    after: int,
    save_as: str | None,
    count: bool,
    plain: bool,
) -> int:
    """Print the records of a stored result that match WHERE, an SQL condition over its fields.

    A table on a terminal; in a pipe one JSON text a line, each record exactly as it is stored.
    Exits with 1 if none matches.

    \b
    callslip query res_a91c4f20b3 "status = 'failed' and amount > 100"
    callslip query res_a91c4f20b3 -f 'status, count(*) as n' --group-by status
    """
    held = given(ctx)
    session = held.open_session()
    asked = (id, where, fields, order_by, group_by)
    skip = max(after, 0)
    if save_as:
        kept = session.query(*asked, limit=limit, after=skip, path=path, save_as=save_as)
        return _saved(held, kept)
    words = ["query", id, *([where] if where else [])]
    flags = {"--fields": fields, "--order-by": order_by, "--group-by": group_by, "--path": path}
    for name, value in flags.items():
        words += [name, value] if value else []

    def page(limit: int, after: int) -> Rows:
        return session.query(*asked, limit=limit, after=after, path=path)

    def all_of_it() -> Iterator[bytes]:
        from callslip.reading.query import export

        source = session.store.run_flow(session._source(id, path))[1]
        yield from _lines(
            session, export(source, session.store.tables, where, fields, order_by, group_by)
        )

    return _show(held, page, all_of_it, words, limit, skip, count, plain)


@verb(short_help="Ask several results by one SQL select.")
@click.argument("select")
@_part
@click.pass_context
def sql(
    ctx: click.Context,
    select: str,
    limit: int | None,
    after: int,
    save_as: str | None,
    count: bool,
    plain: bool,
) -> int:
    """Print what an SQL SELECT over results of the session gives, each by its id as a table.

    A table on a terminal; in a pipe one JSON object a line. Exits with 1 if no row comes out.

    \b
    callslip sql 'select a.name, b.total from res_a91c4f20b3 a join res_0b1e55c2d9 b on a.id = b.id'
    """
    held = given(ctx)
    session = held.open_session()
    skip = max(after, 0)
    if save_as:
        return _saved(held, session.sql(select, limit=limit, after=skip, save_as=save_as))

    def page(limit: int, after: int) -> Rows:
        return session.sql(select, limit=limit, after=after)

    def all_of_it() -> Iterator[bytes]:
        from callslip.reading.query import Select, export_select

        asked = Select.of(select)
        _, sources = session.store.run_flow(session._sources(asked))
        yield from _lines(session, export_select(asked, sources, session.store.tables))

    return _show(held, page, all_of_it, ["sql", select], limit, skip, count, plain)


@verb(short_help="Print one record, or one value of a document.")
@id_argument
@click.argument("key")
@click.argument("field", required=False)
@click.option("--start", type=int, default=1, metavar="N", help="First line of a long text.")
@click.option("--limit", type=int, metavar="N", help="How many lines of it.")
@click.option("--plain", is_flag=True, help="Print the value alone and whole, as it is stored.")
@click.pass_context
def get(
    ctx: click.Context,
    id: str,
    key: str,
    field: str | None,
    start: int,
    limit: int | None,
    plain: bool,
) -> int:
    """Print one record of a stored result, or one value of a document.

    KEY is a record number from 1, the value of an id-like field, field=value, or a path such as
    info.version or items[3].name; FIELD is a path inside what was found. In a pipe the value is
    printed alone and whole: a file in base64 as the file itself. Exits with 1 if nothing is there.

    \b
    callslip get res_a91c4f20b3 17
    callslip get res_a91c4f20b3 content[0].data > picture.png
    """
    held = given(ctx)
    record = held.open_session().get(id, key, field, start=start, limit=limit)
    if not record.total:
        said = str(record)
        if key.isdecimal() and said.startswith("Line "):  # a tool is named, which no shell has
            said = f"this result has no records; line {key}: {held.again('read', id, f'--start={key}')}"
        return out.complain(said, 1)
    if held.json:
        value = record.value
        if isinstance(value, bytes):
            value = {"bytes": len(value)}
        out.json({"id": id, "path": record.path, "record": record.number, "value": value})
    elif plain or not out.on_terminal():
        if isinstance(record.value, bytes):
            out.raw(record.value)
        else:
            out.text(record.text, end="\n")
    else:
        out.text(str(record))
    return 0


def _lines(session: Session, flow: Any) -> Iterator[bytes]:
    for group in session.store.run_flow(flow):
        yield from session.store.run_flow(group)


def _saved(held: Given, kept: Handle) -> int:
    if held.json:
        out.json(out.of_handle(kept, envelope=True))
    else:
        out.text(str(kept))
    return 0


def _show(
    held: Given,
    page: Callable[[int, int], Rows],
    all_of_it: Callable[[], Iterator[bytes]],
    words: list[str],
    limit: int | None,
    after: int,
    count: bool,
    plain: bool,
) -> int:
    if count:
        total = page(0, 0).total
        if held.json:
            out.json({"total": total})
        else:
            out.text(str(total))
        return 0 if total else 1
    if plain:
        found = page(limits.ROWS_DEFAULT if limit is None else limit, after)
        out.text(str(found))
        return 0 if found.total else 1
    if out.on_terminal() and not held.json:
        return _drawn(held, page(_SHOWN if limit is None else limit, after), words, limit, after)
    printed = 0
    for place, line in enumerate(all_of_it()):
        if place < after:
            continue
        if limit is not None and printed >= limit:
            break
        printed += 1
        if held.json:
            out.json(json.loads(line.decode("utf-8", "replace")))
        else:
            out.raw(line + b"\n")
    return 0 if printed else 1


def _drawn(held: Given, found: Rows, words: list[str], limit: int | None, after: int) -> int:
    if not found.records:
        out.note(str(found))
        return 0 if found.total else 1
    tables.of_records([json.loads(record) for record in found.records])
    said = f"{after + 1:,} to {after + len(found.records):,} of {found.total:,}"
    if found.next is not None:
        words = [*words, f"--after={found.next['after']}"]
        words += [f"--limit={limit}"] * (limit is not None)
        again = held.again(*words)
        said += f"; more: {again}"
    out.note(said)
    return 0
