"""`callslip memory …`: facts that outlive a session, from a shell."""

from __future__ import annotations

from importlib import import_module

import click

# In the order of use: the name, the module, and what it is called there.
_COMMANDS = {
    "add": ("remembering", "add"),
    "recall": ("recalling", "recall"),
    "list": ("recalling", "list_facts"),
    "show": ("recalling", "show"),
    "edit": ("remembering", "edit"),
    "forget": ("remembering", "forget"),
    "export": ("recalling", "export"),
    "import": ("remembering", "import_facts"),
}


class Facts(click.Group):
    """The group of the commands about facts, each imported when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[name]
        command = getattr(import_module(f"callslip.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Facts, short_help="Durable facts: add, recall, review, forget.")
def memory() -> None:
    """Facts that outlive a session, looked up by query.

    Whose facts: --namespace, or else --tenant and --user as for results, or else "cli". Nothing of
    another namespace is ever seen.

    \b
    callslip memory add "Ana wants conflicts side by side" --key "conflict view"
    callslip memory recall "how to show conflicts"
    """
