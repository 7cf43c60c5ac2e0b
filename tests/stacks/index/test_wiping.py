"""What is deleted for good is in none of the files any more: read raw, as a thief of the disk would."""

from __future__ import annotations

from pathlib import Path

import pytest

from callslip import ResultStore
from callslip.patterns.memory import Memory
from callslip.patterns.scratchpad import Scratchpad

SECRET = "zimtschnecke"
"""One word that is in nothing of ours; lower case, as the index of words has it."""


def _filled(folder: Path, *, audit: bool = False) -> ResultStore:
    store = ResultStore(folder, spool="", audit=audit)
    session = store.session("run", user="ana", tenant="acme", subject="patient-17")
    session.put(f"inline {SECRET}", tool=f"tool-{SECRET}", args={"q": SECRET}, status=SECRET)
    session.put([{"name": SECRET, "n": n} for n in range(9000)], tool="rows")
    gone = session.put(f"gone before {SECRET}", args={"q": SECRET})
    session.delete(gone.id)
    Scratchpad(session).write_file(f"notes/{SECRET}.md", f"# {SECRET}\n")
    facts = Memory(store, ("acme", "ana"))
    facts.remember(f"likes {SECRET}", kind=SECRET, subject="patient-17")
    facts.remember("likes tea")
    other = store.session("run", user="bob", tenant="acme")
    other.put("what stays\n" * 900, tool="other")
    return store


def _found(folder: Path) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    return [file.name for file in files if SECRET.encode() in file.read_bytes().lower()]


@pytest.mark.parametrize("audit", [False, True])
@pytest.mark.parametrize("how", ["subject", "user", "tenant", "session"])
def test_nothing_readable_is_left_of_what_was_deleted(
    tmp_path: Path, how: str, audit: bool
) -> None:
    store = _filled(tmp_path, audit=audit)
    assert _found(tmp_path), "or this would find nothing whatever was left"
    if how == "session":
        Memory(store, ("acme", "ana")).clear()  # memory outlives a session
        store.delete(tenant="acme", user="ana", session="run")
    elif how == "user":
        store.delete(tenant="acme", user="ana")
    elif how == "tenant":
        store.delete(tenant="acme")
    else:
        assert store.delete(tenant="acme", subject="patient-17") == 4
    left = _found(tmp_path)
    if audit:
        # A tool's name is what the audit keeps; it says nothing else of the content.
        told = {entry.tool for entry in store.audit(limit=999)}
        assert f"tool-{SECRET}" in told
        assert left in (["index.db"], [])
    else:
        assert left == []
    if how != "tenant":
        (handle,) = store.session("run", user="bob", tenant="acme").list().handles
        assert handle.tool == "other"
    assert store.verify().ok


def test_closing_and_gc_leave_nothing_but_the_tombstones(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, spool="")
    session = store.session("run")
    session.put(f"inline {SECRET}\n" * 20)
    assert _found(tmp_path)
    session.close()
    store.gc()
    assert _found(tmp_path) == []
