"""The four tools of the demo. Each one really runs, here and now, and prints far too much."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FEW_COMMITS = 5

EUR = '''\
"""Prices as people write them."""


def euros(cents: int) -> str:
    """1234 -> '12.34'"""
    return f"{cents // 100}.{cents % 100}"
'''
TEST_EUR = """\
import pytest
from eur import euros


@pytest.mark.parametrize("cents", range(0, 3000, 7))
def test_it(cents):
    assert euros(cents) == f"{cents / 100:.2f}"
"""


@dataclass(frozen=True)
class Outputs:
    """What an agent may call. `repository` and `project` are folders."""

    repository: Path
    head: str
    project: Path

    def git_log(self) -> str:
        """The history of the repository, newest first, with every change that was made."""
        return git(self.repository, "log", "-p", "--no-color", "--no-ext-diff", self.head)

    def pip_list(self) -> str:
        """The installed packages, as JSON."""
        return ran(
            [sys.executable, "-m", "pip", "--disable-pip-version-check", "list"]
            + ["--format", "json", "--verbose"]
        )

    def sbom(self) -> Any:
        """Every component that was compiled into an installed package (CycloneDX)."""
        return sbom()

    def run_tests(self) -> str:
        """Run the tests of the project."""
        # Tests that fail are what is asked for here: pytest says so with status 1.
        return ran([sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"], self.project)


def made(folder: Path) -> Outputs:
    """The tools, with what they need set up in `folder`."""
    project = folder / "eur"
    project.mkdir()
    (project / "eur.py").write_text(EUR)
    (project / "test_eur.py").write_text(TEST_EUR)
    (project / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    repository = ROOT
    if not (ROOT / ".git").exists() or len(commits(ROOT)) < FEW_COMMITS:
        repository = history(folder / "history")
    return Outputs(repository, git(repository, "rev-parse", "HEAD").strip(), project)


def commits(repository: Path, head: str = "HEAD") -> list[str]:
    """The commits up to `head`, newest first; none where git cannot read the folder."""
    try:
        return git(repository, "rev-list", head).split()
    except subprocess.CalledProcessError:
        return []


def history(folder: Path) -> Path:
    """A repository made on the spot: the modules of an installed package, one a commit."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    sources = [path for path in metadata.files("rich") or [] if path.suffix == ".py"]
    for source in sorted(sources, key=str)[:60]:
        (folder / source.name).write_bytes(Path(str(source.locate())).read_bytes())
        git(folder, "add", source.name)
        git(folder, "commit", "--quiet", "--no-verify", "-m", f"Add {source.name}")
    return folder


def sbom() -> Any:
    """The largest CycloneDX document of obstore, or where it ships none, one of this environment."""
    paths = [
        Path(str(file.locate()))
        for file in metadata.files("obstore") or []
        if file.name.endswith(".cyclonedx.json")
    ]
    if paths:
        largest = max(paths, key=lambda path: path.stat().st_size)
        return json.loads(largest.read_text(encoding="utf-8"))
    return {
        "bomFormat": "CycloneDX",
        "components": [
            {
                "name": dist.name,
                "version": dist.version,
                "licenses": [
                    {"expression": dist.metadata.json.get("license_expression", "unknown")}
                ],
                "description": dist.metadata.json.get("summary", ""),
                "files": [str(file) for file in dist.files or []],
            }
            for dist in sorted(metadata.distributions(), key=lambda dist: dist.name.lower())
        ],
    }


def git(folder: Path, *words: str) -> str:
    """What git says, whatever this machine's settings are. Raises CalledProcessError."""
    settings = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "demo",
        "GIT_AUTHOR_EMAIL": "demo@example.org",
        "GIT_COMMITTER_NAME": "demo",
        "GIT_COMMITTER_EMAIL": "demo@example.org",
    }
    kept = {name: word for name, word in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        # The folder is ours to read, whoever unpacked it.
        ["git", "-c", f"safe.directory={folder.resolve()}", "--no-pager", *words],
        cwd=folder,
        env=kept | settings,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode("utf-8", "replace")


def ran(command: list[str], folder: Path | None = None) -> str:
    """What a command prints, its errors too. Status 1 is an answer; any other is an error."""
    kept = {name: word for name, word in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=kept | {"PYTHONUTF8": "1", "COLUMNS": "74", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{text[-2000:]}")
    return text
