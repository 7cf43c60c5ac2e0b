"""`callslip keys …`: key files made and added to, a store's keys wrapped anew or destroyed."""

from __future__ import annotations

from pathlib import Path

import click

from callslip.cli import out
from callslip.cli.given import agreed, given, verb, yes_option
from callslip.errors import SettingsError
from callslip.window.preview.parts import counted


@click.group(short_help="Key files, and what is sealed with them: new, add, rotate, shred.")
def keys() -> None:
    """Encryption at rest: make a key file, and give it to every command with --keys.

    \b
    callslip keys new ~/callslip.key
    export CALLSLIP_KEYS=~/callslip.key
    callslip put report.json

    Keep the file apart from the store and its backups, and keep a copy of it: what is sealed with a
    key that is lost is lost.
    """


@keys.command(short_help="Make a key file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_context
def new(ctx: click.Context, file: Path) -> None:
    """Make a key FILE with one new key, for you alone (0600). It is never written over."""
    from callslip.stacks.index.sealed.master import new_key_file

    try:
        made = new_key_file(file)
    except FileExistsError:
        raise SettingsError(
            f"{file} exists; `callslip keys add {file}` puts a new key in front of those it holds"
        ) from None
    except FileNotFoundError:
        raise SettingsError(f"{file}: there is no folder {file.parent}") from None
    _tell(ctx, made, file)


@keys.command(short_help="Put a new key in front of those of a key file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_context
def add(ctx: click.Context, file: Path) -> None:
    """Put a new key in front of those of a key FILE: it seals from now on, the others still open.

    Then `callslip keys rotate`, on every store that the file is for; then the older keys can go.
    """
    from callslip.stacks.index.sealed.master import add_key

    _tell(ctx, add_key(file), file)


def _tell(ctx: click.Context, made: str, file: Path) -> None:
    if given(ctx).json:
        out.json({"key": made, "file": str(file)})
    else:
        out.styled(f"{made}  {out.harmless(str(file))}")


@verb(name="rotate", short_help="Wrap a store's keys with the newest one.")
@click.option("--sessions", is_flag=True, help="Give each tenant a new key for its sessions', too.")
@click.pass_context
def rotate(ctx: click.Context, sessions: bool) -> None:
    """Wrap the keys of the store with the first key of the file. No payload is written again."""
    held = given(ctx)
    done = held.open_store().rotate_keys(sessions=sessions)
    if held.json:
        out.json({"wrapped": done})
        return
    out.styled(f"{counted(done, 'key')} wrapped anew")


@verb(name="shred", short_help="Delete for good, and destroy the keys.")
@yes_option
@click.pass_context
def shred(ctx: click.Context, yes: bool) -> int:
    """Delete what --tenant holds, or its --user, or that user's --session, and destroy the keys of
    it: copies and backups of it can be opened by nobody any more.
    """
    held = given(ctx)
    if held.tenant is None:
        raise click.UsageError("give --tenant, and with it --user, and with that --session", ctx)
    store = held.open_store()
    where = [held.tenant, *(each for each in (held.user, held.session) if each is not None)]
    name = out.harmless(" / ".join(where))
    question = f"Destroy the keys of {name}, and all it holds?"
    if not (yes or agreed(ctx, question, f"this destroys the keys of {name}")):
        return 1
    removed = store.shred(tenant=held.tenant, user=held.user, session=held.session)
    if held.json:
        out.json({"removed": removed})
    else:
        out.styled(f"{counted(removed, 'result')} gone, and their keys")
    return 0


keys.add_command(rotate)
keys.add_command(shred)
