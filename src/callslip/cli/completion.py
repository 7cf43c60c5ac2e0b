"""`callslip completion`: what a shell needs to complete commands, options and ids."""

from __future__ import annotations

import click

from callslip.cli import out
from callslip.cli.given import Verb


@click.command(cls=Verb, short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash   eval "$(callslip completion bash)"     in ~/.bashrc
    zsh    eval "$(callslip completion zsh)"      in ~/.zshrc
    fish   callslip completion fish | source      in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # the choice is among those that click has
    out.text(made(ctx.find_root().command, {}, "callslip", "_CALLSLIP_COMPLETE").source())
