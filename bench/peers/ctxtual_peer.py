"""ctxtual with its SQLite store and its tools for text."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxtual import Ctx, SQLiteStore
from ctxtual.utils import text_content

from bench.peers import PAGE_CHARS, NotOffered, Refused


class Ctxtual:
    label = f"ctxtual {version('ctxtual')} SQLiteStore, text_content"
    notes = (
        (
            "put stores the text as one JSON string in SQLite (WAL, default synchronous=FULL: an "
            "fsync at the commit)."
        ),
        (
            "page and search load and decode the whole text; a page is by characters, so the page of "
            "a line has to be guessed (here: the middle page of 4,000 characters); search is literal, "
            "case-insensitive, 10 matches, no total."
        ),
    )

    def __init__(self, where: Path) -> None:
        self.ctx = Ctx(store=SQLiteStore(where / "ctxtual.db"))
        self.tools = text_content(self.ctx, name="doc")

    def put(self, text: str) -> str:
        return str(self.ctx.store_workspace(text, workspace_type="doc").workspace_id)

    def _call(self, tool: str, **arguments: Any) -> Any:
        answer = self.ctx.dispatch_tool_call(f"doc_{tool}", arguments)
        if isinstance(answer, dict) and "error" in answer:
            raise Refused(str(answer["error"]))
        return answer

    def page(self, id: str, line: int) -> str:
        # Lines of the text are some 106 characters long.
        page = line * 106 // PAGE_CHARS
        return json.dumps(
            self._call("read_page", workspace_id=id, page=page, chars_per_page=PAGE_CHARS)
        )

    def search(self, id: str, pattern: str, *, regex: bool) -> str:
        if regex:
            raise NotOffered("literal only")
        return json.dumps(self._call("search_in_text", workspace_id=id, query=pattern))


def open_peer(where: Path) -> Ctxtual:
    return Ctxtual(where)
