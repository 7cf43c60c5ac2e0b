"""Who may import whom, and who may touch the world (the design's §5, held by reading the source)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "callslip"
MODULES = sorted(PACKAGE.rglob("*.py"))

MAX_LINES = 400
MAX_ADAPTER_LINES = 150

# Where the world may be touched, as paths under src/callslip.
MAY_DO_IO = ("stacks/index/", "stacks/payloads.py", "stacks/payloads/", "cli/", "web/", "testing/")
# Besides: the driver knows threads and event loops, the façade bridges async iterators to threads.
# What a model reads never changes afterwards, so what renders or packs it is pure. `reading/` may
# look at a monotonic clock: a search that would take too long stops and says how far it came.
PURE = (
    "errors.py",
    "limits.py",
    "handle.py",
    "window/",
    "stacks/content.py",
    "stacks/exact.py",
    "stacks/records.py",
    "stacks/payload.py",
    "stacks/flows.py",
    "stacks/ops.py",
)
IO_MODULES = {
    "fcntl",
    "ftplib",
    "glob",
    "http",
    "httpx",
    "mmap",
    "obstore",
    "psycopg",
    "requests",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "urllib.request",
}
IO_OS_CALLS = {
    "chmod",
    "fsync",
    "link",
    "listdir",
    "makedirs",
    "mkdir",
    "open",
    "popen",
    "remove",
    "rename",
    "replace",
    "scandir",
    "stat",
    "system",
    "unlink",
    "write",
}
IO_PATH_METHODS = {"read_bytes", "read_text", "touch", "write_bytes", "write_text"}
# What makes two runs differ. Types (datetime.datetime, uuid.UUID) are no clock.
IMPURE_MODULES = {"asyncio", "random", "secrets", "time"}
IMPURE_CALLS = {"now", "today", "utcnow", "uuid1", "uuid4", "urandom"}

FRAMEWORKS = {
    "agents": "openai_agents",
    "agno": "agno",
    "autogen": "autogen",
    "crewai": "crewai",
    "fastmcp": "mcp",
    "haystack": "haystack",
    "langchain": "langchain",
    "langchain_core": "langchain",
    "langgraph": "lang",  # langchain….py and langgraph….py
    "llama_index": "llama_index",
    "mcp": "mcp",
    "openai": "openai_agents",
    "pydantic_ai": "pydantic_ai",
    "strands": "strands",
}
MAY_IMPORT_ADAPTERS = ("adapters/", "team/", "cli/", "web/")


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def under(path: Path, places: tuple[str, ...]) -> bool:
    return any(name(path) == place or name(path).startswith(place) for place in places)


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that the source imports, lazily or not, by its absolute name, with the line."""
    parts = ["callslip", *path.relative_to(PACKAGE).with_suffix("").parts]
    package = parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, node.lineno
            for alias in node.names:
                # `from callslip.stacks import payloads` imports a module too.
                yield f"{module}.{alias.name}", node.lineno


def is_in(module: str, wanted: str) -> bool:
    return module == wanted or module.startswith(wanted + ".")


def each(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=name)


@each([path for path in MODULES if not under(path, MAY_DO_IO)])
def test_only_the_index_the_payload_store_and_the_terminal_do_io(path: Path) -> None:
    found = [
        f"line {line}: import {module}"
        for module, line in imported(path)
        if any(is_in(module, io) for io in IO_MODULES)
    ]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id == "open":
            found.append(f"line {node.lineno}: open(…)")
        if isinstance(function, ast.Attribute):
            of_os = isinstance(function.value, ast.Name) and function.value.id == "os"
            if (of_os and function.attr in IO_OS_CALLS) or function.attr in IO_PATH_METHODS:
                found.append(f"line {node.lineno}: {ast.unparse(function)}(…)")
    assert not found, f"{name(path)} does I/O; only {', '.join(MAY_DO_IO)} may"


@each([path for path in MODULES if under(path, PURE)])
def test_pure_modules_know_no_clock_no_chance_and_no_event_loop(path: Path) -> None:
    found = [
        f"line {line}: import {module}"
        for module, line in imported(path)
        if any(is_in(module, impure) for impure in IMPURE_MODULES)
    ]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in IMPURE_CALLS
        ):
            found.append(f"line {node.lineno}: {ast.unparse(node.func)}(…)")
    assert not found, name(path)


@each([path for path in MODULES if under(path, ("window/",))])
def test_the_window_knows_of_the_stacks_only_their_values(path: Path) -> None:
    allowed = ("callslip.stacks.ops",)
    found = [
        f"line {line}: {module}"
        for module, line in imported(path)
        if is_in(module, "callslip.stacks")
        and module != "callslip.stacks"
        and not any(is_in(module, some) for some in allowed)
    ]
    assert not found, f"{name(path)} reaches into the stacks"


@each([path for path in MODULES if under(path, ("window/", "reading/", "stacks/"))])
def test_the_wings_never_import_the_face_the_tools_or_a_terminal(path: Path) -> None:
    above = ("store", "tools", "cli", "web", "team", "adapters", "patterns", "testing")
    found = [
        f"line {line}: {module}"
        for module, line in imported(path)
        if any(is_in(module, f"callslip.{place}") for place in above)
    ]
    assert not found, f"{name(path)} imports what stands above it"


@each([path for path in MODULES if under(path, ("reading/",))])
def test_reading_never_imports_a_backend(path: Path) -> None:
    backends = ("callslip.stacks.index", "callslip.stacks.payloads", "callslip.stacks.drive")
    found = [module for module, _ in imported(path) if any(is_in(module, b) for b in backends)]
    assert not found, f"{name(path)} imports a backend or a driver; yield an operation instead"


@each(MODULES)
def test_only_its_adapter_imports_a_framework(path: Path) -> None:
    found = []
    for module, line in imported(path):
        framework = FRAMEWORKS.get(module.split(".")[0])
        if framework and not under(path, ("team/", f"adapters/{framework}")):
            found.append(f"line {line}: {module} belongs in adapters/{framework}.py")
        if is_in(module, "opentelemetry") and name(path) != "telemetry.py":
            found.append(f"line {line}: {module} belongs in telemetry.py")
        if is_in(module, "callslip.adapters") and not under(path, MAY_IMPORT_ADAPTERS):
            found.append(f"line {line}: {module} may be imported by {MAY_IMPORT_ADAPTERS} only")
    assert not found, name(path)


@each([path for path in MODULES if not under(path, ("cli/", "web/"))])
def test_click_and_rich_stay_in_the_terminal(path: Path) -> None:
    found = [m for m, _ in imported(path) if is_in(m, "click") or is_in(m, "rich")]
    assert not found, name(path)


@each(MODULES)
def test_a_module_is_readable_in_one_sitting(path: Path) -> None:
    most = MAX_ADAPTER_LINES if under(path, ("adapters/",)) else MAX_LINES
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= most, f"{name(path)} has {lines} lines; {most} is the most"


@each([path for path in MODULES if path.name == "__init__.py" and path.parent != PACKAGE])
def test_a_folder_says_what_may_live_in_it(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert "What may live here" in text, f"{name(path)}: add that sentence to its docstring"


def test_the_rules_are_read_from_the_source_they_are_about() -> None:
    """A rule that names a folder which was moved away would pass for ever."""
    names = [name(path) for path in MODULES]
    for place in ("window/", "reading/", "stacks/index/", "testing/", "cli/"):
        assert any(found.startswith(place) for found in names), place
    own = list(imported(PACKAGE / "stacks" / "drive.py"))
    assert any(module == "callslip.stacks.ops" for module, _ in own)
    assert any(module == "asyncio" for module, _ in own), "lazy imports are seen too"
