"""Write docs/cli.md from what the commands say of themselves.

python tools/cli_reference.py docs/cli.md
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HEAD = """\
# The command line

`callslip` does in a shell what the library does in a program, with the same words. This page is
what each command says of itself (`callslip COMMAND --help`); `make cli-reference` writes it.
"""
RUN = "import sys; sys.argv[0] = 'callslip'; from callslip.cli import main; sys.exit(main())"


def help_of(*command: str) -> str:
    """The help text of a command, as wide as a page and without colour."""
    env = dict(os.environ, COLUMNS="88", NO_COLOR="1", TERM="dumb", PYTHONUTF8="1")
    done = subprocess.run(
        [sys.executable, "-c", RUN, *command, "--help"],
        capture_output=True,
        text=True,
        env=env,
        check=True,
    )
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
