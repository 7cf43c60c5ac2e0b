"""A content masked as it comes, block by block: cut where no value is torn, whole where there is no
such place. Pure."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Mapping
from typing import Final

from callslip.errors import SettingsError
from callslip.handle import Source
from callslip.stacks.hiding.fields import Fields, Said
from callslip.stacks.hiding.headers import Headers
from callslip.stacks.hiding.scan import HIDDEN
from callslip.stacks.hiding.tables import Columns, mark_of, shown_table
from callslip.stacks.hiding.wide import decoder_of
from callslip.stacks.recognise import LOOKED_INTO_BYTES, recognise
from callslip.stacks.recognise.base import Recogniser
from callslip.stacks.recognise.tables import Table
from callslip.stacks.sniff import sniff

__all__ = ["HELD_MOST", "Mask", "Masker", "mask_of"]

logger = logging.getLogger("callslip")

Mask = Fields | Callable[[str], str]
"""Fields by name, or a function of text."""

HELD_MOST: Final = LOOKED_INTO_BYTES
"""Bytes that are held for want of a place to cut; what is longer is hidden from there on."""

_LINE_MOST: Final = 8 * 1024 * 1024
_TEXT_MOST: Final = 4 * 1024 * 1024
"""How much of a text is held for the end of an object that began in it."""

_NOTE: Final = f"{HIDDEN}: what follows cannot be shown with its fields masked\n".encode()
_DOCUMENTS = ("application/json", "application/x-ndjson")


def mask_of(given: Mapping[str, Said] | Callable[[str], str] | None) -> Mask | None:
    """The mask of a store's `mask=`. Raises SettingsError for what cannot be one."""
    if given is None or (callable(given) and not isinstance(given, Mapping)):
        return given
    if not isinstance(given, Mapping):
        raise SettingsError(
            f"mask={given!r}: give field names and functions, or a function of text"
        )
    for name, said in given.items():
        if not isinstance(name, str) or not name.strip(". "):
            raise SettingsError(f"mask={{{name!r}: …}}: give the name of a field, or user.name")
        if not callable(said):
            raise SettingsError(f"mask={{{name!r}: {said!r}}}: give a function of the value")
    return Fields(given, shown_table) if given else None


class Masker:
    """One content on its way to a model. `add` every block, then `finish`; both answer what may be
    shown of what came so far. `changed` is True once that is anything else than what came.

    `head` is the beginning of the content, `HEAD_BYTES` of it or all; `whole` all of it where that
    is in memory. With no mask everything is shown as it is.
    """

    def __init__(
        self, mask: Mask | None, head: bytes, source: Source, form: str, whole: bytes | None
    ) -> None:
        self._decoder = None
        if mask is not None and source == "bytes" and sniff(head, source, form)[0] != "media":
            self._decoder = decoder_of(head)
        self.changed = self._decoder is not None
        if self._decoder is not None:
            head = self._narrow(head, final=False)
            self._decoder.reset()
            whole = None if whole is None else self._narrow(whole, final=True)
            self._decoder.reset()
        self._mask = mask
        self._errors = "surrogatepass" if source == "str" else "surrogateescape"
        self._found: Recogniser = recognise(head, source, form, whole)
        self._columns: Columns | None = None
        if isinstance(mask, Fields):
            delimiter = self._found.delimiter if self._found.format == "csv" else ""
            if self._found.kind == "text":
                # A table may be too small to be known as one, or be laid out for a reader.
                delimiter = mark_of(mask, head)
                if delimiter:
                    self._found = Table(head, "text/plain", delimiter)
            if delimiter:
                self._columns = Columns(mask, head, delimiter)
        self._headers = Headers(mask) if isinstance(mask, Fields) else Headers(Fields({}))
        self._json = self._found.mime in _DOCUMENTS
        self._lines = not self._json or self._found.mime == _DOCUMENTS[1]
        self._held = b""
        self._base = 0
        self._cut = 0
        self._spans: array[int] = array("Q")
        self._wait = 0
        self._over = False

    def add(self, block: bytes) -> bytes:
        """Take the next bytes."""
        return self._given(self._narrow(block, final=False), final=False)

    def finish(self) -> bytes:
        """The content is at its end."""
        return self._given(self._narrow(b"", final=True), final=True)

    def _narrow(self, block: bytes, *, final: bool) -> bytes:
        """A text of wide characters as UTF-8, in which a mask is looked for."""
        if self._decoder is None:
            return block
        text = self._decoder.decode(block, final)
        return text.removeprefix("\ufeff").encode("utf-8", "replace")

    def _given(self, block: bytes, *, final: bool) -> bytes:
        mask = self._mask
        if mask is None:
            return block
        if self._over:
            return b""
        self._held += block
        self._note(self._found.finish() if final else self._found.feed(block))
        piece = self._piece(final)
        if not piece:
            return self._too_long() if len(self._held) > HELD_MOST else b""
        shown, used = self._shown(piece, final)
        self.changed = self.changed or shown != piece[:used]
        self._held = self._held[used:]
        self._base += used
        # What waits for its end is not looked at again before there is twice as much of it.
        self._wait = 2 * len(self._held) if used < len(piece) else 0
        if len(self._held) > HELD_MOST:
            return shown + self._too_long()
        return shown

    def _note(self, spans: array[int] | None) -> None:
        if spans:
            self._cut = spans[-1]
            if self._columns is not None:
                self._spans.extend(spans)

    def _piece(self, final: bool) -> bytes:
        """What of the held bytes can be looked at by itself."""
        if final:
            return self._held
        if len(self._held) < self._wait:
            return b""
        if not isinstance(self._mask, Fields):
            end = self._held.rfind(b"\n") + 1
            if not end and len(self._held) > _LINE_MOST:
                # As a redaction does it: a line that never ends is cut where a word does.
                end = max(self._held.rfind(b","), self._held.rfind(b" ")) + 1
            return self._held[:end]
        if self._lines and self._columns is None:
            return self._held[: self._held.rfind(b"\n") + 1]
        return self._held[: max(self._cut - self._base, 0)]

    def _shown(self, piece: bytes, final: bool) -> tuple[bytes, int]:
        mask = self._mask
        if isinstance(mask, Fields):
            if self._columns is not None:
                spans = [at - self._base for at in self._spans]
                self._spans = array("Q")
                return self._columns.rows(piece, spans, first=not self._base), len(piece)
            if not self._json:
                return mask.text(piece, final=final or len(piece) > _TEXT_MOST)
            if self._lines:
                return self._headers.shown(mask.lines(piece)), len(piece)
            shown, used = mask.json(piece, final=final)
            return self._headers.shown(shown), used
        assert mask is not None
        try:
            return mask(piece.decode("utf-8", self._errors)).encode("utf-8", self._errors), len(
                piece
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, these lines are not shown
            logger.error("mask= raised %s; what it was given is hidden", type(error).__name__)
            hides = piece.count(b"\n") + (not piece.endswith(b"\n"))
            return f"{HIDDEN}\n".encode() * hides, len(piece)

    def _too_long(self) -> bytes:
        self._held = b""
        self._over = self.changed = True
        return _NOTE
