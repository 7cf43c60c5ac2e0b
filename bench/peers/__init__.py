"""One module for each contestant, all with the same three methods.

A peer is used the way its own tools use it; where only its storage is public and the search is not,
the note says so. Nothing here is tuned for or against anyone.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol

NAMES = ("callslip", "agno", "strands", "haystack", "deepagents", "ctxtual", "plain")

PAGE_LINES = 40
PAGE_CHARS = 4_000


class NotOffered(Exception):
    """The peer has no such operation."""


class Refused(Exception):
    """The peer has the operation and would not do it for this text; says why."""


class Peer(Protocol):
    label: str
    """Name and version, as it stands in the table."""
    notes: tuple[str, ...]

    def put(self, text: str) -> str:
        """Store the text and answer what leads back to it."""

    def page(self, id: str, line: int) -> str:
        """Some 40 lines (or 4,000 characters) from that line on, as a model would see them."""

    def search(self, id: str, pattern: str, *, regex: bool) -> str:
        """What a model would see of the matches."""


def open_peer(name: str, where: Path) -> Peer:
    module = import_module(f"bench.peers.{name}_peer")
    peer: Peer = module.open_peer(where)
    return peer
