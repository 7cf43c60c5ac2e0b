"""What the parts of the compiler know of each other."""

from __future__ import annotations

from typing import Any, Final

from callslip.errors import QueryError
from callslip.reading.query.typed import Typed, literal, number_of, text_of, timed

__all__ = ["Nodes"]

_HELD_BYTES: Final = 128 * 1024 * 1024
"""What the texts that an expression makes may take at once, in one step of the engine."""

_LEAST: Final = 256 * 1024


class Nodes:
    """The base of the compiler's parts."""

    totals: bool
    """Whether a total over many records may stand here."""

    def __init__(self) -> None:
        self.totals = False
        self.parameters: list[Any] = []
        self.compared: list[tuple[Typed, str, Any]] = []
        self._held = 0

    def typed(self, node: Any) -> Typed:
        """Compile any node."""
        raise NotImplementedError

    def truth(self, side: Typed) -> Typed:
        """It as a condition."""
        raise NotImplementedError

    def bind(self, value: Any) -> str:
        """A value as a parameter: the mark that stands for it."""
        self.parameters.append(value)
        return f"${len(self.parameters)}"

    def sql(self, side: Typed) -> str:
        """The SQL of it, its value bound as a parameter where it is one."""
        if not side.is_literal:
            return side.sql
        mark = self.bind(side.literal)
        return f"TRY_CAST({mark} AS TIMESTAMP)" if side.type == "time" else mark

    def note(self, left: Typed, word: str, right: Typed) -> None:
        """Remember what a field is compared with, for a way on where nothing matches."""
        if left.column is not None and right.is_literal:
            self.compared.append((left, word, right.literal))
        elif right.column is not None and left.is_literal:
            self.compared.append((right, word, left.literal))

    def number(self, side: Typed) -> Typed:
        """It as a number. Raises QueryError."""
        if side.type == "null":
            return Typed("CAST(NULL AS DOUBLE)", "number")
        found = number_of(side)
        if found is None:
            raise QueryError(f"{side.described()}: a number is needed here.")
        return found

    def text(self, side: Typed, *, broad: bool = False) -> Typed:
        """It as text; with `broad` any value as it is written. Raises QueryError."""
        if side.type == "null":
            return Typed("CAST(NULL AS VARCHAR)", "text")
        if side.type == "mixed" and broad:
            sql = f"coalesce({side.where}s, {side.where})"
            return Typed(sql, "text", copies=1, longest=side.longest)
        found = text_of(side)
        if found is not None:
            return found
        if not broad:
            raise QueryError(f"{side.described()}: text is needed here.")
        if side.is_literal:
            return literal(str(side.literal))
        return Typed(f"CAST({side.sql} AS VARCHAR)", "text", copies=1, longest=40)

    def time(self, side: Typed) -> Typed:
        """It as a moment; a text that is none is null. Raises QueryError."""
        if side.type not in ("text", "time", "null"):
            raise QueryError(f"{side.described()}: a date is needed here.")
        return timed(side)

    def hold(self, side: Typed, copies: int) -> None:
        """Count `copies` of a text that an expression makes. Raises QueryError if it is too much.

        The engine works on a batch of records at a time, so no more than its text is there twice.
        """
        self._held += copies * max(side.longest, _LEAST)
        if self._held > _HELD_BYTES:
            raise QueryError("This makes too much text; compare the fields as they are.")
