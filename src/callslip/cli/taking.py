"""`callslip export` and `callslip rm`: a whole result, out or away."""

from __future__ import annotations

import codecs
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from callslip.cli import out
from callslip.cli.given import agreed, given, id_argument, ids_argument, verb, yes_option
from callslip.cli.progress import meter
from callslip.errors import HandleError
from callslip.limits import STREAM_BLOCK_BYTES
from callslip.stacks.ops import Get, Result, do
from callslip.window.preview.parts import counted

if TYPE_CHECKING:
    from callslip.opened import Stored
    from callslip.session import Session

_PYTHON = "python"


@verb(short_help="Write a result out, byte for byte.")
@id_argument
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write there; a file appears when it is whole. [default: -, stdout]",
)
@click.option(
    "--exact",
    is_flag=True,
    help="Refuse a Python object, of which the bytes are only a view as JSON.",
)
@click.pass_context
def export(ctx: click.Context, id: str, output: str, exact: bool) -> int | None:
    """Write a result out, byte for byte as it was stored.

    Of a Python object that JSON cannot hold (dates, sets, classes) it writes the JSON view and
    says so on stderr; the object itself is what `session.load(id)` gives a program. With --json it
    prints what was written where, and needs -o FILE.
    """
    held = given(ctx)
    if held.json and output == "-":
        raise click.UsageError("--json prints about the export: give -o FILE with it", ctx)
    session = held.open_session()
    handle = session.handle(id)
    is_view = _form(session, id) == _PYTHON
    if is_view and exact:
        return out.complain(f"{id} is a Python object: load it with session.load({id!r})", 2)
    with session.open(id) as stored:
        if output != "-":
            _to_file(stored, output)
        elif out.on_terminal():
            if handle.kind == "media" or handle.shape.marked:
                return out.complain(f"{id} is not text: give -o FILE, or a pipe", 2)
            _to_terminal(stored)
        else:
            for block in _blocks(stored):
                out.raw(block)
    if is_view:
        out.note(
            f"callslip: this is the JSON view of a Python object; session.load({id!r}) gives it exactly"
        )
    if held.json:
        out.json({"id": id, "file": output, "size": handle.size, "exact": not is_view})
    return None


def _form(session: Session, id: str) -> str:
    """What was stored: `bytes`, `str`, `json`, `python` … ; "" if it went this very moment."""
    look = Get(session.scope, id, session.store.now(), action="")  # nothing of it is read by that
    row = session.store.run_flow(do(look))
    return row.payload.form if isinstance(row, Result) else ""


def _blocks(stored: Stored) -> Iterator[bytes]:
    while block := stored.read(STREAM_BLOCK_BYTES):
        yield block


def _to_terminal(stored: Stored) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for block in _blocks(stored):
        out.text(decoder.decode(block), end="")
    out.text(decoder.decode(b"", True), end="\n")


def _to_file(stored: Stored, output: str) -> None:
    """Write beside the file and put it in place when it is whole; a device or a pipe directly."""
    target = os.path.realpath(output)
    mode = 0o666
    with suppress(FileNotFoundError):
        status = os.stat(target)
        mode = stat.S_IMODE(status.st_mode)
        if not stat.S_ISREG(status.st_mode):
            with open(target, "wb") as file:
                _copy(stored, file.write)
            return
    part = f"{target}.{secrets.token_hex(4)}.part"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            _copy(stored, file.write)
        os.replace(part, target)
    except FileNotFoundError:
        folder = os.path.dirname(target)
        raise click.ClickException(f"{output}: there is no folder {folder}") from None
    except OSError as error:  # of the file that was asked for: nobody knows the other
        if error.filename == part:
            error.filename = output
        raise
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


def _copy(stored: Stored, write: Callable[[bytes], int]) -> None:
    with meter("export", stored.size) as progress:
        for block in _blocks(stored):
            write(block)
            progress.add(len(block))


@verb(short_help="Remove results, by id or all of the session.")
@ids_argument
@click.option("--session-all", is_flag=True, help="Remove all the session holds, and close it.")
@yes_option
@click.pass_context
def rm(ctx: click.Context, ids: tuple[str, ...], session_all: bool, yes: bool) -> int:
    """Remove results, by id or all of the session.

    A removed id says for a while what it was. An id that is not here is named on stderr, the others
    are removed, and the exit status is 3.
    """
    held = given(ctx)
    if bool(ids) == session_all:
        raise click.UsageError("give the IDs to remove, or --session-all", ctx)
    session = held.open_session()
    if session_all:
        return _all(ctx, session, yes)
    status = 0
    for id in ids:
        try:
            if not session.delete(id):
                session.handle(id)  # says that it is unknown, or gone
                said = f"{id} is another session's, which shares it: it can remove it"
                status = out.complain(f"rm: {said}", 3)
                continue
        except HandleError as error:
            status = out.complain(f"rm: {error}", 3)
            continue
        if held.json:
            out.json({"id": id, "removed": True})
    return status


def _all(ctx: click.Context, session: Session, yes: bool) -> int:
    held = given(ctx)
    name = out.harmless(session.scope.session)
    count = session.list(limit=1).total
    results = counted(count, "result")
    question = f"Remove {results}, all of session {name}?"
    if not (yes or agreed(ctx, question, f"this removes {results} of {name}")):
        return 1
    removed = session.close()
    if held.json:
        out.json({"session": session.scope.session, "removed": removed})
    else:
        out.note(f"removed {counted(removed, 'result')}")
    return 0
