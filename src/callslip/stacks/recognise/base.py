"""What every recogniser answers. A plain one finds nothing: a text, a document, a picture."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from callslip.handle import Kind
from callslip.stacks.paths import members_of

__all__ = ["Recogniser", "names_of"]

_NAMES = 100
_NAME_CHARS = 200
_LOOKED_AT = 20


class Recogniser:
    """Finds the records of one content while its bytes stream by, and says what it is.

    ``feed(block)`` answers the flat absolute (start, end) offsets of the records that are complete
    by now, or None where no more will come; so does `finish` at the end. `by_record` holds from the
    start; the rest is settled by `finish`:

    - `kind`, `mime`, `format` ("json", "ndjson", "csv", "columns" or "");
    - `records`: how many, or None where the content has none;
    - `fields`: names of the first records' fields, bounded; `table`: the path of their list;
    - `inside`: the path of the one string that is read in the content's stead (`Shape.inside`).
    """

    by_record = False

    def __init__(self, kind: Kind, mime: str) -> None:
        self.kind: Kind = kind
        self.mime = mime
        self.format = ""
        self.records: int | None = None
        self.fields: tuple[str, ...] = ()
        self.table = ""
        self.inside = ""
        self.delimiter = ","

    def feed(self, block: bytes) -> array[int] | None:
        """Take the next bytes."""
        return None

    def finish(self) -> array[int] | None:
        """The content is at its end."""
        return None


def names_of(records: Iterable[bytes]) -> tuple[str, ...]:
    """The names of the fields of the first few of these JSON objects, in the order they occur."""
    names: dict[str, None] = {}
    for at, record in enumerate(records):
        if at == _LOOKED_AT or len(names) >= _NAMES:
            break
        found = members_of(record)
        names.update(dict.fromkeys(_valid(name) for name in found or ()))
    return bounded_names(names)


def bounded_names(names: Iterable[str]) -> tuple[str, ...]:
    """So many names, of so many characters each; a longer one is left out, not cut."""
    return tuple(name for name in names if len(name) <= _NAME_CHARS)[:_NAMES]


def _valid(name: str) -> str:
    """A name as a query gives it: with half of a surrogate pair as the bytes that are no UTF-8."""
    return name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
