"""Every code block of the README and of docs/ is run, in order, in an empty folder per page.

- ```python blocks share one namespace per page; `await` may stand at the top level.
- ```output right after one is what it must have printed; `…` stands for anything.
- ```console: each line that begins with `$ ` and calls `callslip` is run by a shell and must
  succeed; lines below it are its output, `…` for anything. `# exits 3` at its end expects that.
- ```bash and ```sh blocks that call `callslip` are run whole.
- A page that names DATABASE_URL has an empty PostgreSQL database in that variable.
- `<!-- not run: reason -->` on the line before a block exempts it, and says why.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
EXEMPT = re.compile(r"<!-- not run: (?P<reason>[^>]+?) -->\s*\Z")
INSTALLERS = ("pip ", "pipx ", "uv ", "uvx ", "brew ", "git clone", "make ")
LIMIT_SECONDS = 60


@dataclass(frozen=True)
class Block:
    language: str
    body: str
    line: int
    exempt: str


def blocks_of(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        before = EXEMPT.search(text, 0, found.start())
        indent = found["indent"]
        body = re.sub(rf"^{indent}", "", found["body"], flags=re.MULTILINE)
        line = text.count("\n", 0, found.start()) + 2
        yield Block(found["language"], body, line, before["reason"] if before else "")


def assert_output(expected: str, got: str, where: str) -> None:
    """Compare line by line at the ends, with `…` for anything, also over lines."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    assert re.fullmatch(pattern, got.strip(), re.DOTALL), f"{where} printed:\n{got}"


def run_python(block: Block, page: Path, names: dict[str, Any]) -> None:
    # Blank lines in front, so that a traceback names the line of the page.
    source = "\n" * (block.line - 1) + block.body
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(source, str(page), "exec", flags=flags, dont_inherit=True)
    started = eval(code, names)
    if inspect.iscoroutine(started):
        asyncio.run(started)


def run_shell(command: str, status: int, where: str) -> str:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-ec", command],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    said = f"{where}: `{command}` ended with {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.returncode == status, said
    return done.stdout


def run_console(block: Block, where: str) -> int:
    ran = 0
    for piece in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, expected = piece.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more.removeprefix("> ")
        if "callslip" not in command or command.startswith(INSTALLERS):
            continue
        wanted = re.search(r"# exits (\d+)\s*$", command)
        got = run_shell(command, int(wanted[1]) if wanted else 0, where)
        if expected.strip():
            assert_output(expected, got, where)
        ran += 1
    return ran


def run_page(page: Path, text: str, capsys: pytest.CaptureFixture[str]) -> int:
    """Run the blocks of a page here, in the working folder; answer how many did something."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    ran = 0
    for block in blocks_of(text):
        where = f"{page.name}, line {block.line}"
        if block.exempt:
            printed = None
            continue
        if block.language in ("python", "py"):
            capsys.readouterr()
            run_python(block, page, names)
            printed = capsys.readouterr().out
            ran += 1
        elif block.language == "output":
            assert printed is not None, f"{where}: an output block follows a python block"
            assert_output(block.body, printed, where)
        elif block.language in ("console", "shell"):
            ran += run_console(block, where)
        elif block.language in ("bash", "sh"):
            lines = [line.strip() for line in block.body.splitlines()]
            if any("callslip" in x and not x.startswith((*INSTALLERS, "#")) for x in lines):
                run_shell(block.body, 0, where)
                ran += 1
    return ran


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as home and working folder, with this environment's `callslip` first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name in [name for name in os.environ if name.startswith("CALLSLIP_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_a_page_runs(
    page: Path,
    elsewhere: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    text = page.read_text(encoding="utf-8")
    if "DATABASE_URL" in text:
        # A real server, and a role in it that is no superuser.
        postgres = request.getfixturevalue("postgres")
        monkeypatch.setenv("DATABASE_URL", postgres.new_database(postgres.new_role()))
    run_page(page, text, capsys)


def test_the_readme_shows_something_that_runs() -> None:
    languages = [block.language for block in blocks_of((ROOT / "README.md").read_text())]
    assert "python" in languages


def test_the_runner_runs_compares_and_exempts(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path("page.md")
    fence = "```"
    good = (
        f"{fence}python\nimport asyncio\nx = await asyncio.sleep(0, 2)\n{fence}\n"
        f"{fence}python\nprint('a', x, 'c')\n{fence}\n{fence}output\na … c\n{fence}\n"
        f"<!-- not run: needs a key -->\n{fence}python\n1 / 0\n{fence}\n"
        f"{fence}console\n$ echo callslip; exit 3  # exits 3\ncallslip\n$ false\n{fence}\n"
    )
    assert run_page(page, good, capsys) == 3
    with pytest.raises(AssertionError, match="printed"):
        run_page(page, good.replace("a … c", "b … c"), capsys)
    with pytest.raises(AssertionError, match="ended with 3"):
        run_page(page, good.replace("# exits 3", ""), capsys)
    with pytest.raises(ZeroDivisionError):
        run_page(page, good.replace("<!-- not run: needs a key -->", ""), capsys)


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench" / "README.md"]:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken
