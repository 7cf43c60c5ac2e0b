"""Ours: the embedded default, SQLite and a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from bench.peers import PAGE_LINES
from callslip import ResultStore


class Callslip:
    label = f"callslip {version('callslip')}"
    notes = (
        (
            "put is durable when it returns (fsync of payload and folder, SQLite synchronous=FULL), "
            "compressed, checksummed, and has made the preview."
        ),
        "search counts every match before it answers with the first eight.",
    )

    def __init__(self, where: Path) -> None:
        self.session = ResultStore(where / "store").session("bench")

    def put(self, text: str) -> str:
        return self.session.put(text, tool="bench").id

    def put_stream(self, path: Path, round_line: bytes) -> str:
        """The same bytes from an iterator of blocks, as a download or a pipe would give them."""

        def blocks() -> Iterator[str]:
            with path.open("rb") as file:
                file.seek(len(round_line))
                yield round_line.decode()
                while block := file.read(256 * 1024):
                    yield block.decode("ascii")

        return self.session.put(blocks(), tool="bench").id

    def page(self, id: str, line: int) -> str:
        return str(self.session.read(id, start=line, limit=PAGE_LINES))

    def search(self, id: str, pattern: str, *, regex: bool) -> str:
        return str(self.session.search(id, pattern if regex else re.escape(pattern)))


def open_peer(where: Path) -> Callslip:
    return Callslip(where)
