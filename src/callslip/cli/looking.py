"""`callslip read` and `callslip search`: a slice of a stored result, as a model would get it."""

from __future__ import annotations

import click

from callslip import limits
from callslip.cli import out
from callslip.cli.given import COUNT, given, id_argument, verb


@verb(short_help="Print a page of a stored result.")
@id_argument
@click.option("--start", type=int, default=1, metavar="N", help="First line. [default: 1]")
@click.option("--limit", type=int, metavar="N", help="How many lines. [default: one short page]")
@click.option("--column", type=int, default=0, metavar="N", help="Where to go on in a long line.")
@click.option("--plain", is_flag=True, help="Print the text alone, without frame and notes.")
@click.pass_context
def read(
    ctx: click.Context, id: str, start: int, limit: int | None, column: int, plain: bool
) -> None:
    """Print lines of a stored result: one page, exactly as a model would see it.

    How to read on is said on stderr.

    \b
    callslip read res_a91c4f20b3 --start 200 --limit 40
    """
    held = given(ctx)
    page = held.open_session().read(id, start, limit, column)
    if held.json:
        out.json(
            {
                "id": id,
                "start": page.start,
                "end": page.end,
                "total": page.total,
                "next": page.next,
                "text": page.text,
            }
        )
    elif plain:
        out.text(page.text, end="\n" if out.on_terminal() and page.text else "")
    else:
        out.text(str(page))
        if page.next is not None:
            words = [f"--{name}={value}" for name, value in page.next.items()]
            if limit is not None and "limit" not in page.next:
                words.append(f"--limit={limit}")
            out.note(f"read on: {held.again('read', id, *words)}")


@verb(short_help="Search a stored result, with the exact count of hits.")
@id_argument
@click.argument("pattern")
@click.option("-C", "--context", type=COUNT, default=0, metavar="N", help="Lines around each hit.")
@click.option("-i", "--ignore-case", is_flag=True, help="Upper and lower case are the same.")
@click.option("-c", "--count", is_flag=True, help="Print only how many hits there are.")
@click.option("--after", type=COUNT, default=0, metavar="N", help="Skip the first N hits.")
@click.option(
    "-n",
    "--limit",
    type=COUNT,
    default=limits.HITS_DEFAULT,
    metavar="N",
    help=f"How many hits to show. [default: {limits.HITS_DEFAULT}]",
)
@click.option("--plain", is_flag=True, help="Print the hits alone, without frame and notes.")
@click.pass_context
def search(
    ctx: click.Context,
    id: str,
    pattern: str,
    context: int,
    ignore_case: bool,
    count: bool,
    after: int,
    limit: int,
    plain: bool,
) -> int:
    """Search a stored result with a regular expression (RE2: linear time, no look-around).

    Says how many hits there are in all and shows the first few. Exits with 1 if there is none, as
    grep does. Write -- before a PATTERN that starts with a dash.

    \b
    callslip search res_a91c4f20b3 'ERROR|FATAL' -C 2
    callslip search res_a91c4f20b3 -c -i timeout
    """
    held = given(ctx)
    hits = held.open_session().search(
        id,
        pattern,
        context,
        max(after, 0) or None,
        limit=0 if count else max(limit, 1),
        ignore_case=ignore_case,
    )
    if held.json:
        out.json(
            {
                "id": id,
                "pattern": pattern,
                "total": hits.total,
                "exact": hits.exact,
                "next": None if count else hits.next,
                "hits": [
                    {"line": hit.line, "column": hit.column, "match": hit.match, "text": hit.text}
                    for hit in hits.hits
                ],
            }
        )
    elif count:
        out.text(str(hits.total))
        if not hits.exact:
            out.note(str(hits))
    elif plain:
        out.text(hits.text, end="\n" if hits.text else "")
    else:
        out.text(str(hits))
        if hits.next is not None:
            words = [f"--{name}={value}" for name, value in hits.next.items() if name == "after"]
            words += [f"--context={context}"] * bool(context) + ["-i"] * ignore_case
            words += [f"--limit={limit}"] * (limit != limits.HITS_DEFAULT)
            out.note(f"more: {held.again('search', *words, id, '--', pattern)}")
    return 0 if hits.total else 1
