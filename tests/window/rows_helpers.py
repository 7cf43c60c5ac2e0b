"""What the tests of structured previews share: a sample and shape of a content, recognised simply.

Not how the library recognises content: whole values in memory, by the standard library.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import msgspec

from callslip.handle import Shape
from callslip.window.preview import Sample, Sampler, preview
from callslip.window.profile import Profiler
from callslip.window.survey import outline_of, text_mime
from tests.window.window_helpers import raw_of, shape_of


def recognised(text: str | bytes, top: str = "") -> tuple[Sample, Shape]:
    """The sample and the shape that a content of rows, a document, a page or media has."""
    raw, source = raw_of(text)
    sampler = Sampler(source)
    sampler.add(raw)
    sample, shape = sampler.finish(), shape_of(text)
    if mime := text_mime(raw[:65_536]):
        kind = "media" if mime.startswith(("image/", "audio/", "application/pdf")) else "text"
        shape = replace(shape, kind=kind, mime=mime)
        return replace(sample, outline=outline_of(raw, mime)), shape
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    if value is None:
        found = csv_profile(raw, top)
        if found is not None:
            profiler, mime = found
            profile = profiler.finish()
            shape = replace(shape, kind="rows", mime=mime, records=profile.records)
            return replace(sample, profile=profile), shape
        return sample, shape
    records, table = rows_in(raw)
    outline = outline_of(raw, "application/json")
    sample = replace(sample, outline=outline)
    if records is None:
        return sample, replace(shape, kind="document", mime="application/json")
    profiler = Profiler(top=top)
    profiler.add(records)
    shape = replace(shape, kind="rows", mime="application/json", records=len(records), table=table)
    return replace(sample, profile=profiler.finish()), shape


def rows_in(raw: bytes) -> tuple[list[bytes] | None, str]:
    """The records of an array of objects, or of the one list of objects that most of it is."""
    raw = raw.strip()
    if raw[:1] == b"[":
        parts = [bytes(part) for part in msgspec.json.decode(raw, type=list[msgspec.Raw])]
        return (parts if parts and all(p[:1] == b"{" for p in parts) else None), ""
    if raw[:1] != b"{":
        return None, ""
    for key, part in msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).items():
        text = bytes(part)
        if len(text) * 10 >= len(raw) * 6 and text[:1] in b"[{":
            found, inside = rows_in(text)
            return found, f"{key}.{inside}" if inside else key
    return None, ""


def csv_profile(raw: bytes, top: str = "") -> tuple[Profiler, str] | None:
    text = raw.decode("utf-8-sig", "replace")
    first = text.split("\n", 1)[0]
    delimiter = max(",\t;", key=first.count)
    if not first.count(delimiter):
        return None
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error:
        return None
    if len(rows) < 3 or len({len(row) for row in rows}) > 1:
        return None
    profiler = Profiler("csv", rows[0], delimiter, top)
    for row in rows[1:]:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter).writerow(row)
        profiler.add([out.getvalue().encode()])
    return profiler, "text/tab-separated-values" if delimiter == "\t" else "text/csv"


def shown(text: str | bytes, lines: int = 20, chars: int = 1200, top: str = "") -> str:
    return preview(*recognised(text, top), lines, chars)
