"""docs/cli.md is what the commands say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.cli_reference import commands_in, reference

ROOT = Path(__file__).parents[2]
VERBS = {"put", "run", "read", "search", "ls", "show", "export", "rm", "gc", "verify", "stats"}


def cli_exists() -> bool:
    import callslip.cli

    return hasattr(callslip.cli, "main")


def test_the_cli_reference_is_what_the_commands_say() -> None:
    if not cli_exists():
        pytest.skip("callslip.cli has no main yet: nothing to generate the reference from")
    text = reference()
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == text, (
        "run `make cli-reference`"
    )
    assert set(commands_in(text)) >= VERBS


def test_command_names_are_read_from_a_help_text() -> None:
    text = "Usage: x\n\nOptions:\n  --json  Yes.\n\nCommands:\n  put        Store.\n  ls         List,\n             or so.\n  run-it\n"
    assert commands_in(text) == ["put", "ls", "run-it"]
    assert commands_in("Usage: x\n\nOptions:\n  --json  Yes.\n") == []
