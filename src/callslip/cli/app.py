"""The tree of commands, and the one place where errors become a line and an exit status."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

from callslip.cli import out
from callslip.cli.given import common, in_options
from callslip.errors import (
    CallslipError,
    HandleError,
    LegalHold,
    PatternError,
    SettingsError,
    StoreError,
)

# In the order of use; each module is imported when one of its commands, or a help text, is wanted.
_COMMANDS = {
    "run": "running",
    "put": "putting",
    "read": "looking",
    "search": "looking",
    "query": "asking",
    "get": "asking",
    "sql": "asking",
    "ls": "listing",
    "show": "listing",
    "export": "taking",
    "rm": "taking",
    "memory": "memory",
    "sessions": "listing",
    "audit": "governing",
    "hold": "governing",
    "holds": "governing",
    "release": "governing",
    "erase": "governing",
    "stats": "upkeep",
    "gc": "upkeep",
    "verify": "upkeep",
    "doctor": "operating",
    "migrate": "operating",
    "backup": "operating",
    "keys": "keys",
    "completion": "completion",
}

OK = 0
NOTHING = 1
USAGE = 2
NO_HANDLE = 3
NO_STORE = 4
HELD = 5
INTERRUPTED = 128 + signal.SIGINT
PIPE_CLOSED = 128 + signal.SIGPIPE


class Callslip(click.Group):
    """The group of all commands. `main` ends the process; a test's runner calls it the same way."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command = getattr(import_module(f"callslip.cli.{_COMMANDS[name]}"), name)
        assert isinstance(command, click.Command)
        return command

    def main(  # type: ignore[override]
        self, args: Any = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        extra["standalone_mode"] = False
        sys.exit(
            _status(lambda: super(Callslip, self).main(args, prog_name or "callslip", **extra))
        )


def _status(run: Callable[[], Any]) -> int:
    """Run a command; its errors become one line on stderr and a status."""
    try:
        status = _told(run)
        out.flush()
    except out.PipeClosed:
        out.drop()
        status = PIPE_CLOSED
    except out.CannotWrite as error:
        out.drop()
        status = out.complain(str(error), USAGE)
    return status


def _told(run: Callable[[], Any]) -> int:
    try:
        status = run()
        return status if isinstance(status, int) else OK
    except click.exceptions.NoArgsIsHelpError as error:  # `callslip memory`: as `callslip` alone
        out.text(error.format_message())
        return OK
    except click.UsageError as error:
        message = error.format_message().rstrip(".")
        where = f"{error.ctx.command_path} --help" if error.ctx else "callslip --help"
        return out.complain(f"{message} (see: {where})", USAGE)
    except click.ClickException as error:
        return out.complain(error.format_message(), USAGE)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (SettingsError, PatternError) as error:
        return out.complain(in_options(str(error)), USAGE)
    except HandleError as error:
        return out.complain(f"{str(error).rstrip('.')}; see: callslip ls", NO_HANDLE)
    except StoreError as error:
        return out.complain(str(error), NO_STORE)
    except LegalHold as error:  # how it is lifted is said in Python
        return out.complain(f"{str(error).partition('; to lift it')[0]}; see: callslip holds", HELD)
    except CallslipError as error:
        return out.complain(str(error), USAGE)
    except OSError as error:
        return out.complain(out.os_reason(error), USAGE)


def _ended(number: int, frame: FrameType | None) -> NoReturn:
    # As an exception, so that a put in progress takes its unfinished file away.
    raise SystemExit(128 + number)


@click.command(
    "callslip",
    cls=Callslip,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
    epilog="Exit status: 0 done; 1 nothing found, or findings; 2 wrong usage, or a file that "
    "cannot be read or written; 3 unknown or gone result; 4 the store could not answer; "
    "5 a legal hold keeps it. "
    "`run` exits with the command's own status.",
)
@common
@click.version_option(
    None, "-V", "--version", package_name="callslip", message="callslip %(version)s"
)
@click.pass_context
def cli(ctx: click.Context) -> int | None:
    """Keep large outputs out of the way, and read any slice of them back.

    A result is stored once and gets a short id; read, search, query, get, show and export take it.
    """
    if ctx.invoked_subcommand is None:
        out.text(ctx.get_help())
        return OK
    if ctx.invoked_subcommand != "run":
        with suppress(ValueError):  # not the main thread: whoever embeds this has its own handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, _ended)
    return None
