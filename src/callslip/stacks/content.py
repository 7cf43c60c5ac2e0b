"""Value to content, and content to value, exactly.

::

    str                       form "str"         the text, surrogates passed through
    bytes                     form "bytes"       the bytes (also "bytearray", "memoryview")
    plain JSON values         form "json"        strict JSON, laid out in lines; no twin
    any other value           form "python"      the JSON view, and its exact form as the twin
    a table (pandas, …)       form "pandas"      its rows as JSON, and its exact form as the twin
    a stream of other items   form "items"       one JSON text a line

The table of types is docs/decisions/0002-exact-values.md. What may live here: the choice of form.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from callslip.errors import NotRestorable
from callslip.handle import Kind, Source
from callslip.stacks import exact
from callslip.stacks.frames import FORMS, is_frame, restored, taken
from callslip.stacks.kinds import is_stream, take_apart, type_name
from callslip.stacks.pieces import Pieces, join_items
from callslip.stacks.plain import dump, dump_deep, is_plain
from callslip.stacks.records import HEAD_BYTES
from callslip.stacks.scalars import SCALARS
from callslip.stacks.shown import shown
from callslip.stacks.sniff import settle, sniff

__all__ = [
    "HEAD_BYTES",
    "Content",
    "Pieces",
    "canonical",
    "is_stream",
    "restore",
    "settle",
    "sniff",
]


@dataclass(frozen=True, slots=True)
class Content:
    """A value in its canonical form: what is stored, and what it is.

    `body` is what readers read: text or JSON. `twin`, where there is one, is the exact form that
    `restore` rebuilds the value from. `types` names the types in the value that JSON does not have.
    """

    form: str
    source: Source
    body: bytes
    twin: bytes | None = None
    types: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The body as text, with a lone surrogate for what is not valid Unicode."""
        errors = "surrogatepass" if self.source == "str" else "surrogateescape"
        return self.body.decode("utf-8", errors)

    @property
    def kind(self) -> Kind:
        """What the body is by its looks. Looked for anew each time: `Packing` finds more."""
        return self._looks()[0]

    @property
    def mime(self) -> str:
        """The MIME type of the body by its looks."""
        return self._looks()[1]

    def _looks(self) -> tuple[Kind, str]:
        kind, mime = sniff(self.body[:HEAD_BYTES], self.source, self.form)
        return settle(kind, mime, self.body) if self.form != "items" else (kind, mime)


def canonical(value: object) -> Content:
    """The canonical form of a value.

    Never raises on a value, never waits, and consumes no iterator: a stream given here, rather than
    to `Pieces`, is an opaque object. Equal values of equal types give equal contents, in every
    process (sets and other hash-ordered things are put in order).
    """
    cls = type(value)
    if issubclass(cls, str):
        body = str.encode(value, "utf-8", "surrogatepass")  # type: ignore[arg-type]
        if cls is str:
            return Content("str", "str", body)
        return Content("str", "str", body, exact.encode(value), shown(value).types)
    if cls is bytes or cls is bytearray:
        return Content(cls.__name__, "bytes", bytes(value))  # type: ignore[call-overload]
    if cls is memoryview:
        found = _memory(value)
        if found is not None:
            return found
    if is_frame(value):
        table = taken(value)
        if table is not None:
            form, body, twin = table
            return Content(form, "str", body, twin, (type_name(cls),))
    if is_plain(value):
        try:
            return Content("json", "str", dump(value))
        except ValueError:
            pass  # an integer of more digits than Python writes: shown in hexadecimal, kept exactly
    view = shown(value)
    if take_apart(value).tag == "opaque" and cls not in SCALARS:
        # Whoever reads this is to know that there is no more of it than what a repr says.
        only = {"only the repr is kept of": type_name(cls), "repr": view.tree}
        return Content("python", "str", dump(only), exact.encode(value, view.types), view.types)
    body = dump(view.tree) if is_plain(view.tree) else dump_deep(view.tree)
    twin = exact.encode(value, view.types)
    return Content("python", "str", body, twin, view.types)


def _memory(value: Any) -> Content | None:
    try:
        body = value.tobytes()
        flat = value.format == "B" and value.ndim == 1
        twin = None if flat else msgspec.msgpack.encode([value.format, list(value.shape)])
        if twin is not None:
            memoryview(body).cast(value.format, value.shape)
    except (ValueError, TypeError, NotImplementedError):
        return None  # released, or of a format that cannot be made again: an opaque object
    return Content("memoryview", "bytes", body, twin)


def restore(form: str, body: bytes, twin: bytes | None) -> Any:
    """The value again: the same value, of the same type.

    Raises NotRestorable where a class is not loaded in this process; it says what to import.
    """
    if form == "bytes":
        return body
    if form == "bytearray":
        return bytearray(body)
    if form == "memoryview":
        view = memoryview(body)
        return view if twin is None else view.cast(*msgspec.msgpack.decode(twin))
    if form in FORMS and twin is not None:
        return restored(form, twin)
    if form == "items":
        return join_items(body, twin)
    if twin is not None:
        return exact.decode(twin)
    if form == "str":
        return body.decode("utf-8", "surrogatepass")
    if form == "json":
        return json.loads(body.decode("utf-8", "surrogatepass"))
    raise NotRestorable(f"this result has the form {form!r}, which this callslip does not know")
