"""Contents on their way into the store, as blocks of bytes: in memory, redacted, or taken up again.

What may live here: what gives blocks of a content. No store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from callslip import limits
from callslip.handle import Source
from callslip.stacks.content import Content
from callslip.stacks.pieces import Pieces
from callslip.stacks.writing import Blocks

__all__ = ["Redacted", "Resumed", "Whole"]

_REDACTED_LINE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Whole:
    """A content in memory, as blocks."""

    content: Content

    @property
    def whole(self) -> bytes:
        """All of it: what is in memory can be looked into."""
        return self.content.body

    @property
    def form(self) -> str:
        return self.content.form

    @property
    def source(self) -> Source:
        return self.content.source

    @property
    def twin(self) -> bytes | None:
        return self.content.twin

    def __iter__(self) -> Iterator[bytes]:
        body = self.content.body
        for start in range(0, len(body), limits.STREAM_BLOCK_BYTES):
            yield body[start : start + limits.STREAM_BLOCK_BYTES]


class Redacted:
    """Blocks with a redaction applied, cut at line ends so that nothing hides across a cut.

    Where it changed something the exact Python form is dropped: `load` then gives the redacted text.
    """

    def __init__(self, blocks: Blocks, redact: Callable[[str], str]) -> None:
        self._blocks = blocks
        self._redact = redact
        self._changed = False

    @property
    def form(self) -> str:
        return "str" if self._changed and self.source == "str" else self._blocks.form

    @property
    def source(self) -> Source:
        return self._blocks.source

    @property
    def twin(self) -> bytes | None:
        return None if self._changed else self._blocks.twin

    def __iter__(self) -> Iterator[bytes]:
        held = b""
        for block in self._blocks:
            held += block
            end = held.rfind(b"\n") + 1
            if not end and len(held) > _REDACTED_LINE_BYTES:
                # A line that never ends: cut where a word does, rather than hold all of it.
                end = max(held.rfind(b","), held.rfind(b" ")) + 1
            if end:
                yield self._applied(held[:end])
                held = held[end:]
        if held:
            yield self._applied(held)

    def _applied(self, block: bytes) -> bytes:
        errors = "surrogatepass" if self.source == "str" else "surrogateescape"
        text = block.decode("utf-8", errors)
        redacted = self._redact(text)
        if redacted == text:
            return block
        self._changed = True
        return redacted.encode("utf-8", errors)


class Resumed:
    """A stream whose first blocks were already taken: they come first once more."""

    def __init__(self, pieces: Pieces, blocks: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._blocks = blocks

    @property
    def form(self) -> str:
        return self._pieces.form

    @property
    def source(self) -> Source:
        return self._pieces.source

    @property
    def twin(self) -> bytes | None:
        return self._pieces.twin

    def __iter__(self) -> Iterator[bytes]:
        return self._blocks
