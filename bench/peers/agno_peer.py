"""Agno's ResultStore with SqliteDb, called as its own read-back tools call it."""

from __future__ import annotations

import os
import re
from importlib.metadata import version
from itertools import count
from pathlib import Path

from agno.db.sqlite import SqliteDb
from agno.fs.errors import QuotaExceededError
from agno.offload.store import ResultStore, render_stored_envelope

from bench.peers import PAGE_LINES, Refused


class Agno:
    label = f"Agno {version('agno')} ResultStore, SqliteDb"
    notes = (
        (
            "put is two transactions (payload, then index row) in SQLite with WAL and the default "
            "synchronous=FULL, so each is an fsync; the text goes in as one TEXT value."
        ),
        (
            "put asks first whether the text is JSON, and builds the preview twice, as its model layer "
            "does."
        ),
        "A text over 8,000,000 bytes is refused, whole.",
        (
            "page and search load the whole text; search stops after 20 matches and knows no total; "
            "a pattern with a repetition runs in a new Python process."
        ),
    )

    def __init__(self, where: Path) -> None:
        self.store = ResultStore(db=SqliteDb(db_file=str(where / "agno.db")))
        self.calls = count(1)

    def put(self, text: str) -> str:
        try:
            ref = self.store.offload(
                session_id="bench",
                run_id=f"run-{os.getpid()}",
                tool_call_id=f"call-{next(self.calls)}",
                tool_name="bench",
                tool_args={},
                output=text,
            )
        except QuotaExceededError as error:
            raise Refused(f"over its cap of {error.limit:,} bytes") from error
        # What `offload_for_model` does after the write, so that the model gets its envelope.
        from agno.offload.store import _preview_block

        render_stored_envelope(ref, _preview_block(text, 20, 1200))
        return ref.result_id

    def page(self, id: str, line: int) -> str:
        return self.store.read(id, line, line + PAGE_LINES - 1).text

    def search(self, id: str, pattern: str, *, regex: bool) -> str:
        found = self.store.search(id, pattern if regex else re.escape(pattern))
        return "\n".join(f"{match.line_number}: {match.line}" for match in found)


def open_peer(where: Path) -> Agno:
    return Agno(where)
