"""The frozen values that everything else passes around. Standard library only.

What may live here: values without behaviour beyond their own formatting. No I/O, no framework.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Self

Kind = Literal["text", "rows", "document", "media"]
Source = Literal["str", "bytes"]
"""Where a content's bytes come from: `str` bytes are UTF-8 with lone surrogates passed through
(`surrogatepass`), `bytes` are anything and are viewed as UTF-8 with each bad byte marked."""

Why = Literal["expired", "evicted", "closed", "deleted"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose result it is. Every look-up carries one; equal strings in other places never mix."""

    session: str
    user: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a content is like, known without reading it.

    `size` is in bytes, `chars` in characters of the text view, `lines` in lines of the text view
    (records where a line is a record), `records` the number of records or None where there are
    none, `fields` the names of the first record's fields, `marked` how many characters of the
    text view stand for bytes or surrogates that are not valid Unicode.
    """

    kind: Kind = "text"
    mime: str = "text/plain"
    size: int = 0
    chars: int = 0
    lines: int = 0
    records: int | None = None
    fields: tuple[str, ...] = ()
    marked: int = 0
    by_record: bool = False
    """True where a line of the text view is a record rather than what ends in a newline."""
    table: str = ""
    """Where the list stands whose elements are the records: empty for the whole, else its path."""
    format: str = ""
    """How the records stand in the text: `json`, `ndjson`, `csv`, or `columns` (lists by field)."""
    inside: str = ""
    """The path of the one string whose text is what readers see in the content's stead, as of the
    output in `{"output": "…", "exit_code": 0}`; `$` where the whole content is such a string. Then
    `chars`, `lines`, `records` and `fields` are of that text."""
    base64: bool = False
    """True where the text holds files as base64: a window shows 64 characters of them at most."""
    masked: bool = False
    """True where fields are masked for a model: all but `size` is then of what it sees."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Caps on what is kept; the oldest results go first. None means no cap. Sizes in bytes of
    content; a payload that several results share counts once for each of them."""

    session_results: int | None = None
    session_bytes: int | None = None
    tenant_results: int | None = None
    tenant_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Handle:
    """The small stand-in for a stored result. `str(handle)` is the envelope a model sees."""

    id: str
    tool: str
    shape: Shape
    created_at: float
    """Seconds since the epoch, on the store's clock. Never rendered: envelopes carry no clock."""
    args: str = ""
    """The call's arguments as JSON, cut at `limits.ARGS_CHARS`."""
    status: str = ""
    same_as: str = ""
    """The id of the first handle of this session with the very same content, if not this one."""
    envelope: str = field(default="", repr=False)
    shared: bool = False
    """True where it is another session's result, which that one shares with this."""
    saved_to: str = ""
    """The path of the plain file with the exact content, where the store keeps such
    (``payloads="file:///folder?plain"``)."""

    @property
    def kind(self) -> Kind:
        """`text`, `rows`, `document` or `media`."""
        return self.shape.kind

    @property
    def size(self) -> int:
        """Bytes of the stored content."""
        return self.shape.size

    @property
    def lines(self) -> int:
        """Lines of the content's text view."""
        return self.shape.lines

    def __str__(self) -> str:
        return self.envelope


@dataclass(frozen=True, slots=True)
class Shared:
    """One share of a result: who may read it, and until when. Times in seconds since the epoch."""

    name: str
    """What `Session.revoke` takes: `shr_…`, random."""
    id: str
    """The id of the result, the same for its owner and for who it is shared with."""
    user: str
    session: str | None
    """The session that may read it; None for every session of that user."""
    made_at: float
    until: float


@dataclass(frozen=True, slots=True)
class Page:
    """One capped reply of `read`. `str(page)` is what a model sees; `text` is the content alone.

    The `text` of all pages of a walk, joined, is the content's text view: every character once.
    """

    text: str
    start: int
    """The first line shown, from 1."""
    end: int
    """The last line shown; its rest may be on the next page."""
    total: int
    """Lines of the whole content."""
    next: dict[str, int] | None
    """The keyword arguments that continue, or None at the end."""
    rendered: str = field(repr=False)

    def __str__(self) -> str:
        return self.rendered


@dataclass(frozen=True, slots=True)
class Record:
    """One capped reply of `get`: a record, or a value inside a document.

    `str(record)` is what a model sees; `value` the value itself (the bytes, where base64 stood;
    None where nothing was found), `text` its exact text: JSON, a CSV row, a string with its real
    line ends.
    """

    value: Any
    text: str
    path: str
    """Where the value stands: `info.version`, or `$` for the whole of a record."""
    number: int | None
    """The record's number, from 1; None for a value of a document."""
    total: int
    """How many records have the key that was asked for; 0 where nothing was found."""
    next: dict[str, int] | None
    """The keyword arguments that continue a long text, or None at its end."""
    rendered: str = field(repr=False)

    def __str__(self) -> str:
        return self.rendered


@dataclass(frozen=True, slots=True)
class Hit:
    """One match of a search: where it is, and a window of the text around it."""

    line: int
    """From 1."""
    column: int
    """Characters of the line before the match: what `read(id, start=line, column=column)` takes."""
    match: str
    text: str
    """The window: the match and what stands around it in its line or lines."""


@dataclass(frozen=True, slots=True)
class Hits:
    """One capped reply of `search`: how many matches there are in all, and the next few of them."""

    hits: tuple[Hit, ...]
    text: str
    """The windows alone, one a line."""
    total: int
    next: dict[str, int] | None
    rendered: str = field(repr=False)
    exact: bool = True
    """False if the search ended early: there are `total` at least."""

    def __str__(self) -> str:
        return self.rendered


@dataclass(frozen=True, slots=True)
class Rows:
    """One capped reply of a query: how many records match in all, and the next few of them."""

    records: tuple[str, ...]
    """Each as JSON: the exact text of a record, or the fields that were asked for."""
    text: str
    """The records alone, one a line, as far as the reply shows them."""
    total: int
    next: dict[str, int] | None
    rendered: str = field(repr=False)

    def __str__(self) -> str:
        return self.rendered


@dataclass(frozen=True, slots=True)
class Listing:
    """One capped reply of `list`: the handles of a session, oldest first."""

    handles: tuple[Handle, ...]
    text: str
    total: int
    next: dict[str, int] | None
    rendered: str = field(repr=False)

    def __str__(self) -> str:
        return self.rendered


class Envelope(str):
    """The envelope that stands in for a value, with the handle it shows (None if not stored).

    A `str` in every respect; the type is how the offloader knows its own work again.
    """

    __slots__ = ("handle",)
    handle: Handle | None

    def __new__(cls, text: str, handle: Handle | None = None) -> Self:
        self = super().__new__(cls, text)
        self.handle = handle
        return self


class Reply(str):
    """What a read-back tool answers. Never offloaded, whatever its size: exempt by this type."""

    __slots__ = ()
