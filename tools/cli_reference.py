"""Write docs/cli.md from what the commands say of themselves.

python tools/cli_reference.py docs/cli.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from click.testing import CliRunner

from callslip.cli.app import cli

HEAD = """\
# The command line

`callslip` does in a shell what the library does in a program, with the same words. This page is
what each command says of itself (`callslip COMMAND --help`); `make cli-reference` writes it.
"""


def help_of(*command: str) -> str:
    """The help text of a command, 88 columns less the two that click leaves free, without colour."""
    given = {"prog_name": "callslip", "terminal_width": 86}
    done = CliRunner(env={"NO_COLOR": "1"}).invoke(cli, [*command, "--help"], **given)
    if done.exit_code:
        raise SystemExit(f"{' '.join(command)} --help exits with {done.exit_code}: {done.output}")
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def commands_in(text: str) -> list[str]:
    """The names under "Commands:", in the order that the help gives them."""
    _, found, listing = text.partition("Commands:\n")
    return re.findall(r"^  ([a-z][a-z-]*)(?:  |$)", listing, re.MULTILINE) if found else []


def reference() -> str:
    parts = [HEAD]
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        command = waiting.pop(0)
        text = help_of(*command)
        parts.append(f"## `{' '.join(('callslip', *command))}`\n\n```text\n{text}\n```\n")
        waiting[:0] = [(*command, name) for name in commands_in(text)]
    return "\n".join(parts)


def main() -> None:
    out = Path(sys.argv[1])
    out.write_text(reference(), encoding="utf-8")
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
