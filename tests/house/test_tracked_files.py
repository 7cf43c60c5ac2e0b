"""What the repository must not carry: somebody's machine, somebody's registry, a lock of hosts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tracked() -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("not a git checkout: there are no tracked files to look at")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


# Written in pieces, so that this file does not find itself.
MACHINE_PATHS = [f"/{top}/" for top in ("root", "work", "Users")] + ["/home" + "/", "C:" + "\\"]
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("python" + "hosted", "org"),
        ("registry", "npmjs", "org"),
        ("npmjs", "com"),
        ("deb", "debian", "org"),
    )
]
# Stored inputs and outputs of real tools may show paths of the machine they were made on.
RAW_INPUTS = ("tests/cases/inputs/", "tests/cases/cases.json")


def texts() -> list[tuple[str, str]]:
    found = []
    for path in tracked():
        relative = path.relative_to(ROOT).as_posix()
        if relative.startswith(RAW_INPUTS):
            continue
        raw = path.read_bytes()
        if b"\0" not in raw:
            found.append((relative, raw.decode("utf-8", "replace")))
    return found


def test_no_tracked_file_names_a_machine_path() -> None:
    pattern = re.compile(r"(?<![\w./-])(?:" + "|".join(map(re.escape, MACHINE_PATHS)) + r")\w")
    found = [f"{name}: {hit[0]}" for name, text in texts() for hit in pattern.finditer(text)]
    assert not found


def test_no_tracked_file_names_a_registry_host() -> None:
    found = [f"{name}: {host}" for name, text in texts() for host in REGISTRY_HOSTS if host in text]
    assert not found


@pytest.mark.parametrize("name", ["constraints.txt", "bench/constraints.txt"])
def test_constraints_are_names_and_versions_only(name: str) -> None:
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    assert lines
    pins = [re.fullmatch(r"([A-Za-z0-9._-]+)==[A-Za-z0-9.+!-]+", line) for line in lines]
    assert all(pins), [line for line, pin in zip(lines, pins, strict=True) if pin is None]
    names = [pin[1].lower().replace("_", "-") for pin in pins if pin]
    assert len(names) == len(set(names))


def test_what_the_package_needs_is_locked() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    locked = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    wanted = list(project["project"]["dependencies"])
    for group in ("test", "lint"):
        wanted += project["dependency-groups"][group]
    names = {re.split(r"[<>=!~\[; ]", line)[0].lower().replace("_", "-") for line in wanted}
    assert not names - locked, "run `make constraints`"


def test_no_lock_file_is_tracked_and_the_ignored_ones_are_listed() -> None:
    assert not [path for path in tracked() if path.name == "uv.lock"]
    assert "uv.lock" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_licence_is_the_whole_text() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
