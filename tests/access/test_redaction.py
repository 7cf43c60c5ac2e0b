"""`redact=`: what it takes out is written nowhere, on whatever way a text comes in."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from callslip import ResultStore, StoreUnavailable
from callslip.patterns.memory import Memory
from callslip.patterns.scratchpad import Scratchpad
from callslip.stacks.ops import Insert
from callslip.testing.faults import FaultyBackend

SECRET = "hunter2"


def redact(text: str) -> str:
    return text.replace(SECRET, "[…]")


def everything(store: ResultStore) -> None:
    """Every way in, each with the secret in every place that takes a text."""
    session = store.session("s", user="u", tenant="t")
    held = session.put(
        [{"n": n, "pw": SECRET, SECRET: 1} for n in range(500)],
        tool=f"tool {SECRET}",
        # Across the place where arguments are cut for display.
        args={"pad": "x" * (300 - len('{"pad":"","a":"hun')), "a": SECRET},
        status=f"error {SECRET}",
        call_id=SECRET,
    )
    session.offload(f"{SECRET}\n" * 3_000, tool="t", preview=lambda value: f"first {SECRET}")
    session.put((f"{SECRET}\n" for _ in range(3_000)), tool="stream")
    session.put(f"bytes {SECRET}".encode(), tool="bytes")
    session.put({"pad": "y" * 100_000 + SECRET}, tool="deep")
    session.offload({"status": "error", "error": f"boom {SECRET} " * 2_000}, tool="failing")
    session.query(held.id, f"pw = '{SECRET}' or n > 3", save_as=f"saved {SECRET}")

    def echo(text: str) -> str:
        return text * 4_000

    session.offloaded(echo)(SECRET)
    pad = Scratchpad(session)
    pad.write_file("notes.md", f"# {SECRET}\nfirst line")
    pad.edit_file("notes.md", "first", f"second {SECRET}")
    pad.write_file(f"about-{SECRET}.md", "x")
    assert "x" in str(pad.read_file(f"about-{SECRET}.md")), "and it is found by its own name"
    Memory(store, ("t", "u"), screen=None).remember(
        f"it is {SECRET}",
        key=f"key {SECRET}",
        kind=f"kind {SECRET}",
        source=f"from {SECRET}",
        metadata={"a": SECRET, SECRET: [SECRET]},
    )


def found(folder: Path) -> list[str]:
    """Where the secret stands in the files of a folder, and in every row of its databases."""
    places = [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    for path in folder.rglob("*.db"):
        database = sqlite3.connect(path)
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            try:
                rows: list[Any] = database.execute(f"SELECT * FROM {table}").fetchall()
            except sqlite3.OperationalError:
                continue  # a table of words that holds no text of its own
            places += [f"{table}: {row}" for row in rows if SECRET in repr(row)]
        database.close()
    return places


def test_what_is_redacted_is_written_nowhere(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "s", redact=redact, audit=True, spool="")
    everything(store)
    session = store.session("s", user="u", tenant="t")
    for handle in session.list(limit=100).handles:
        assert SECRET.encode() not in session.open(handle.id).read()
        assert SECRET not in f"{handle} {handle.args} {handle.tool} {handle.status}"
    assert "hun" not in session.list().text
    store.close()
    assert found(tmp_path) == []


def test_nor_in_the_spool_nor_in_what_a_model_gets_instead(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "s", redact=redact, spool=tmp_path / "spool")
    away = StoreUnavailable("away", reason="unreachable")
    store._backend.index = FaultyBackend(store._backend.index, only=Insert, fault=away)
    session = store.session("s")
    seen = session.offload(f"line {SECRET}\n" * 3_000, tool=f"t {SECRET}", args={"a": SECRET})
    assert 'stored="false"' in seen
    assert SECRET not in seen
    store.close()
    assert found(tmp_path) == []
    assert (tmp_path / "spool" / "index.db").exists()


def test_the_look_itself_finds_what_is_there(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "s", spool="")
    everything(store)
    store.close()
    tables = {place.split(":")[0] for place in found(tmp_path)}
    assert {"results", "files"} <= tables
