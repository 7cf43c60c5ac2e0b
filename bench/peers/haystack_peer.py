"""Haystack's tool result offloading: a store that writes and reads whole files."""

from __future__ import annotations

from importlib.metadata import version
from itertools import count
from pathlib import Path

from haystack.hooks.tool_result_offloading import FileSystemToolResultStore

from bench.peers import NotOffered


class Haystack:
    label = f"Haystack {version('haystack-ai')} FileSystemToolResultStore"
    notes = (
        "put writes a plain file in place (no temporary name, no fsync, no checksum).",
        (
            "It has no page and no search: its documentation has the user write a tool that returns "
            "the whole text to the model."
        ),
    )

    def __init__(self, where: Path) -> None:
        self.store = FileSystemToolResultStore(root=where / "haystack")
        self.calls = count(1)

    def put(self, text: str) -> str:
        return self.store.write(key=f"call-{next(self.calls)}.txt", content=text)

    def page(self, id: str, line: int) -> str:
        raise NotOffered("whole text only")

    def search(self, id: str, pattern: str, *, regex: bool) -> str:
        raise NotOffered("no search")


def open_peer(where: Path) -> Haystack:
    return Haystack(where)
