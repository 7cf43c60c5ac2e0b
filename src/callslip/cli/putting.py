"""`callslip put`: files, or what comes down a pipe, as stored results."""

from __future__ import annotations

import os
import stat
import sys
from typing import IO, TYPE_CHECKING

import click

from callslip.cli import out
from callslip.cli.given import Given, given, verb
from callslip.cli.progress import Meter, meter
from callslip.errors import StoreError
from callslip.handle import Handle

if TYPE_CHECKING:
    from callslip.session import Session


class Metered:
    """A file that tells a meter how far it was read."""

    def __init__(self, file: IO[bytes], progress: Meter) -> None:
        self._file = file
        self._progress = progress

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self._progress.add(len(block))
        return block


@verb(short_help="Store files or stdin, and print their envelopes.")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(allow_dash=True))
@click.option("--tool", default="put", metavar="NAME", help="Which tool made it. [default: put]")
@click.option("-q", "--quiet", is_flag=True, help="Print the ids only, and show no progress.")
@click.pass_context
def put(ctx: click.Context, files: tuple[str, ...], tool: str, quiet: bool) -> int:
    """Store files, or stdin, and print the envelope of each.

    With no FILE, or with -, it stores what comes down the pipe. The content streams: its size does
    not matter. A file that cannot be read is named on stderr, and the others are stored.

    \b
    callslip put build.log
    gh run view --log | callslip put --tool gh
    """
    if not files and sys.stdin.isatty():
        raise click.UsageError("nothing to store: give a FILE, or pipe something in", ctx)
    session = given(ctx).open_session(must_exist=False)
    status = 0
    for name in files or ("-",):
        try:
            handle = _put(session, name, tool, quiet)
        except OSError as error:
            status = out.complain(f"put: {out.os_reason(error)}; it was not stored", 2)
            continue
        except StoreError as error:
            what = "what came down the pipe" if name == "-" else name
            return out.complain(f"put: {what} was not stored: {error}", 4)
        _tell(given(ctx), handle, quiet)
    return status


def _put(session: Session, name: str, tool: str, quiet: bool) -> Handle:
    if name == "-":
        with meter("stdin", quiet=quiet) as progress:
            return session.put(Metered(sys.stdin.buffer, progress), tool=tool)
    with open(name, "rb") as file:
        status = os.fstat(file.fileno())
        total = status.st_size if stat.S_ISREG(status.st_mode) else None
        with meter(os.path.basename(name), total, quiet=quiet) as progress:
            return session.put(Metered(file, progress), tool=tool, args={"file": name})


def _tell(held: Given, handle: Handle, quiet: bool) -> None:
    if held.json:
        out.json(out.of_handle(handle, envelope=True))
    elif quiet:
        out.text(handle.id)
    else:
        out.text(str(handle))
        out.text(ways_on(held, handle))


def ways_on(held: Given, handle: Handle) -> str:
    """The commands that come next, for who has a shell and no tools."""
    last = (
        ("query", handle.id, "WHERE") if handle.kind == "rows" else ("search", handle.id, "PATTERN")
    )
    return f"Shell: {held.again('read', handle.id)} or {held.again(*last)}"
