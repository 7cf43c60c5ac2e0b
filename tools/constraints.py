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
    found = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
    if found is None:
        raise SystemExit(f"cannot read the requirement {requirement!r}")
    return normal(found[0])


def wanted(pyproject: Path) -> list[str]:
    data = tomllib.loads(pyproject.read_text())
    project = data["project"]
    names = [name_of(line) for line in project["dependencies"]]
    for extra in project.get("optional-dependencies", {}).values():
        names += [name_of(line) for line in extra]
    for group, lines in data.get("dependency-groups", {}).items():
        if group not in OWN_ENVIRONMENT:
            names += [name_of(line) for line in lines if isinstance(line, str)]
    return names


def closure(names: list[str]) -> dict[str, str]:
    versions: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in versions:
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:
            # Needed only on another system or an older Python: nothing to lock from here.
            continue
        versions[name] = found.version
        for requirement in found.requires or ():
            if "extra ==" not in requirement:
                waiting.append(name_of(requirement))
    return versions


def main() -> None:
    out = Path(sys.argv[1])
    versions = closure(wanted(Path(__file__).parent.parent / "pyproject.toml"))
    out.write_text(HEAD + "".join(f"{n}=={v}\n" for n, v in sorted(versions.items())))
    print(f"{out}: {len(versions)} packages")


if __name__ == "__main__":
    main()
