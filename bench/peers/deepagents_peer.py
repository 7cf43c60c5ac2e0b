"""deepagents' FilesystemBackend, where its middleware puts large tool results."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import version
from itertools import count
from pathlib import Path

from deepagents.backends import FilesystemBackend

from bench.peers import PAGE_LINES, NotOffered, Refused


class DeepAgents:
    label = f"deepagents {version('deepagents')} FilesystemBackend"
    notes = (
        "put writes a plain file in place (no temporary name, no fsync, no checksum).",
        (
            "page loads the whole file; search is literal only, with ripgrep where it is installed "
            f"(here: {'yes' if shutil.which('rg') else 'no, its Python fallback'}) and gives every "
            "matching line unless a maximum is asked for (here: 100)."
        ),
    )

    def __init__(self, where: Path) -> None:
        self.where = where / "deepagents"
        self.where.mkdir(exist_ok=True)
        self.backend = FilesystemBackend(root_dir=str(self.where), virtual_mode=True)
        self.calls = count(1)

    def put(self, text: str) -> str:
        path = f"/large_tool_results/call-{os.getpid()}-{next(self.calls)}.txt"
        done = self.backend.write(path, text)
        if done.error:
            raise Refused(done.error)
        return path

    def page(self, id: str, line: int) -> str:
        got = self.backend.read(id, offset=line - 1, limit=PAGE_LINES)
        if got.error or got.file_data is None:
            raise Refused(got.error or "no data")
        return str(got.file_data["content"])

    def search(self, id: str, pattern: str, *, regex: bool) -> str:
        if regex:
            raise NotOffered("literal only")
        got = self.backend.grep(pattern, id, max_count=100)
        if got.error:
            raise Refused(got.error)
        return "\n".join(f"{match['line']}: {match['text']}" for match in got.matches or [])


def open_peer(where: Path) -> DeepAgents:
    return DeepAgents(where)
