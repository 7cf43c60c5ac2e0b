"""The names that the package promises, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import callslip

PUBLIC = [
    "CallslipError",
    "Envelope",
    "Event",
    "Handle",
    "HandleError",
    "HandleGone",
    "Hit",
    "Hits",
    "LegalHold",
    "Listing",
    "NotRestorable",
    "Opaque",
    "Page",
    "PatternError",
    "PayloadDamaged",
    "Policy",
    "QueryError",
    "Quota",
    "Record",
    "Reply",
    "Resolved",
    "ResultStore",
    "Retention",
    "Rows",
    "Scope",
    "Session",
    "SettingsError",
    "Shape",
    "Shared",
    "StoreError",
    "StoreUnavailable",
    "Tool",
    "UnknownHandle",
    "top",
]
"""Taking a name away, or adding one, is a decision: change this list together with CHANGELOG.md."""

HEAVY = [
    "asyncio",
    "click",
    "concurrent.futures.thread",
    "cryptography",
    "duckdb",
    "numpy",
    "obstore",
    "pandas",
    "pydantic",
    "re2",
    "rich",
    "sqlglot",
    "zstandard",
]
"""What `import callslip` must not bring in: each of them costs more than the package itself."""


def test_the_exported_names_are_the_promised_ones() -> None:
    assert sorted(callslip.__all__) == PUBLIC


def test_every_exported_name_is_there_and_documented() -> None:
    for exported in callslip.__all__:
        value = getattr(callslip, exported)
        assert value.__doc__, f"{exported} has no docstring"


def test_a_star_import_and_dir_give_the_same_names() -> None:
    assert set(callslip.__all__) <= set(dir(callslip))


def test_importing_callslip_brings_nothing_heavy_in() -> None:
    # In a process of its own: this one has imported half of these for the tests.
    code = f"import sys, callslip; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_store_is_imported_without_what_only_its_verbs_need() -> None:
    late = [
        f"callslip.stacks.{name}"
        for name in ("content", "hiding", "upkeep", "governing", "checking", "auditops", "keyops")
    ]
    code = (
        "import sys; from callslip import ResultStore; ResultStore('nowhere')\n"
        f"print([name for name in {late!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_is_typed() -> None:
    from importlib.resources import files

    assert files("callslip").joinpath("py.typed").is_file()
