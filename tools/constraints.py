"""Write constraints.txt: names and versions of what the package and its groups need, no more.

python tools/constraints.py constraints.txt

Run in the project's environment. Follows the requirements of the base package, its extras and its
groups through what is installed, so that a package somebody tried out is not locked by accident.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

HEAD = """\
# Exact versions that the tests run with: names and versions only. `make constraints` rewrites it.
"""
OWN_ENVIRONMENT = ("bench",)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    return asked(requirement)[0]


def asked(requirement: str) -> tuple[str, frozenset[str]]:
    """The name of a requirement, and the extras it asks for."""
    found = re.match(r"([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?", requirement.strip())
    if found is None:
        raise SystemExit(f"cannot read the requirement {requirement!r}")
    extras = (normal(name.strip()) for name in (found[2] or "").split(","))
    return normal(found[1]), frozenset(filter(None, extras))


def wanted(pyproject: Path) -> list[str]:
    data = tomllib.loads(pyproject.read_text())
    project = data["project"]
    lines = list(project["dependencies"])
    for extra in project.get("optional-dependencies", {}).values():
        lines += extra
    for group, members in data.get("dependency-groups", {}).items():
        if group not in OWN_ENVIRONMENT:
            lines += [line for line in members if isinstance(line, str)]
    return lines


def closure(requirements: list[str]) -> dict[str, str]:
    versions: dict[str, str] = {}
    followed: set[tuple[str, str]] = set()  # a package, and which of its extras ("": none)
    waiting = [asked(line) for line in requirements]
    while waiting:
        name, extras = waiting.pop()
        new = {extra for extra in ("", *extras) if (name, extra) not in followed}
        if not new:
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:
            # Needed only on another system or an older Python: nothing to lock from here.
            continue
        versions[name] = found.version
        followed |= {(name, extra) for extra in new}
        for requirement in found.requires or ():
            of = re.search(r"""extra\s*==\s*["']([^"']+)["']""", requirement)
            if (normal(of[1]) if of else "") in new:
                waiting.append(asked(requirement))
    return versions


def main() -> None:
    out = Path(sys.argv[1])
    versions = closure(wanted(Path(__file__).parent.parent / "pyproject.toml"))
    out.write_text(HEAD + "".join(f"{n}=={v}\n" for n, v in sorted(versions.items())))
    print(f"{out}: {len(versions)} packages")


if __name__ == "__main__":
    main()
