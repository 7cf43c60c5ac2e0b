"""`callslip doctor`, `migrate` and `backup`: for whoever operates a store."""

from __future__ import annotations

import platform
import sqlite3
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

import click

from callslip.cli import out
from callslip.cli.given import given, verb
from callslip.window.envelope import human_size
from callslip.window.preview.parts import counted

_PARTS = ("callslip", "obstore", "zstandard", "google-re2", "duckdb", "psycopg", "cryptography")


@verb(short_help="Say whether everything the store needs works.")
@click.option("--quick", is_flag=True, help="Only look: one request to each part, nothing written.")
@click.pass_context
def doctor(ctx: click.Context, quick: bool) -> int:
    """Say whether index, payloads, clocks, keys and spool work. Exits with 1 if one does not.

    It writes to the index and takes that back, puts an object, reads it and deletes it.
    """
    held = given(ctx)
    store = held.open_store()
    health = store.health() if quick else store.examine()
    versions = _versions()
    if held.json:
        out.json({"store": held.shown, "ok": health.ok, **asdict(health), "versions": versions})
        return 0 if health.ok else 1
    rows = []
    for check in health.checks:
        word = out.style("ok", fg="green") if check.ok else out.style("wrong", fg="red", bold=True)
        rows.append(
            (
                check.part,
                f"{word}{' ' * (5 - len('ok' if check.ok else 'wrong'))}  "
                + out.one_line(check.said),
            )
        )
        if check.advice:
            rows.append(("", f"       {check.advice}"))
    rows.append(("versions", f"       {', '.join(f'{n} {v}' for n, v in versions.items())}"))
    out.styled(out.columns(rows, indent=""))
    return 0 if health.ok else 1


def _versions() -> dict[str, str]:
    found = {}
    for name in _PARTS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # an extra that is not installed
    return {**found, "Python": platform.python_version(), "SQLite": sqlite3.sqlite_version}


@verb(short_help="Bring the index to this version.")
@click.option("--check", is_flag=True, help="Only say whether it needs it; exits with 1 if so.")
@click.pass_context
def migrate(ctx: click.Context, check: bool) -> int:
    """Bring the index to this version's tables, or make them.

    Every store does so at its first use; this is for a deployment that wants it done once, ahead.
    """
    held = given(ctx)
    store = held.open_store(must_exist=False)
    before = store.versions() if check else store.migrate()
    if held.json:
        out.json({"store": held.shown, **asdict(before), "current": before.current})
    elif before.current:
        out.styled(f"the index has the newest tables, version {before.newest}")
    elif check and not before.found:
        out.styled(f"there is no index yet; its tables will have version {before.newest}")
    elif check:
        out.styled(f"the index has version {before.found} of its tables; {before.newest} is newest")
    else:
        out.styled(
            f"the index had version {before.found} of its tables, and has {before.newest} now"
        )
    return 1 if check and not before.current else 0


@verb(short_help="Copy the store into a new folder.")
@click.argument("folder", metavar="FOLDER", type=click.Path())
@click.pass_context
def backup(ctx: click.Context, folder: str) -> int:
    """Copy index and payloads into FOLDER, while others read and write. FOLDER is a store then.

    Exits with 1 if a payload was not there any more. PostgreSQL and buckets have their own ways:
    see docs/operating.md.
    """
    held = given(ctx)
    copied = held.open_store().backup(folder)
    if held.json:
        out.json(asdict(copied))
    else:
        size = human_size(copied.packed_bytes)
        out.styled(f"{counted(copied.payloads, 'payload')}, {size}, in {out.harmless(folder)}")
        for key in copied.missing:
            out.styled(out.style("missing", fg="red", bold=True) + "  " + out.one_line(key))
    return 1 if copied.missing else 0
