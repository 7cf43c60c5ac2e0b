"""The same verbs for a terminal and for a coding agent in a shell.

What may live here: commands (one module per group of verbs), and what they print. No policy of
its own: every verb is a call of `callslip.store` or `callslip.session`. click is imported by the
first command, rich only where a table or a progress line is drawn on a terminal.
"""

from __future__ import annotations

from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """What `callslip` and `python -m callslip` run. Ends the process with the command's status."""
    from callslip.cli import out
    from callslip.cli.app import cli

    out.listen()
    cli.main(prog_name="callslip")
