"""Strands' ContextOffloader over its file storage."""

from __future__ import annotations

import asyncio
import re
from importlib.metadata import version
from itertools import count
from pathlib import Path

from strands.storage import LocalFileStorage
from strands.vended_plugins.context_offloader.plugin import _retrieve_content, _store_content
from strands.vended_plugins.context_offloader.search import _search_content

from bench.peers import PAGE_LINES


class Strands:
    label = f"Strands {version('strands-agents')} LocalFileStorage"
    notes = (
        (
            "put writes a plain file (temporary name, then rename), without fsync, compression, "
            "checksum or index; the preview, made by its plugin, is not in the figure."
        ),
        (
            "page and search load the whole file and split it into lines; measured through the "
            "functions its tool calls (the tool itself wants an agent), context_lines=0."
        ),
        (
            "search counts matching lines, builds the reply of all of them, then cuts it at 10,000 "
            "characters; `re`, with nested quantifiers refused."
        ),
    )

    def __init__(self, where: Path) -> None:
        self.storage = LocalFileStorage(str(where / "strands"))
        self.calls = count(1)
        # One loop for all calls, as in an agent; starting one is not what is measured. Not an
        # asyncio.Runner: its signal handling formats the whole result of a task once it is done.
        self.loop = asyncio.new_event_loop()

    def put(self, text: str) -> str:
        key = f"call-{next(self.calls)}"
        return self.loop.run_until_complete(
            _store_content(self.storage, key, text.encode(), "text/plain")
        )

    def _text(self, id: str) -> str:
        raw, _ = self.loop.run_until_complete(_retrieve_content(self.storage, id))
        return raw.decode("utf-8")

    def page(self, id: str, line: int) -> str:
        return _search_content(self._text(id), line_range=(line, line + PAGE_LINES - 1))

    def search(self, id: str, pattern: str, *, regex: bool) -> str:
        wanted = pattern if regex else re.escape(pattern)
        return _search_content(self._text(id), pattern=wanted, context_lines=0)


def open_peer(where: Path) -> Strands:
    return Strands(where)
