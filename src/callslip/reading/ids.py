"""Which records hold a value, and which field is the records' own id.

What may live here: looking for values among records. What is said of them is of `record`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from callslip.reading.records import Records
from callslip.stacks.ops import Flow
from callslip.stacks.paths import members_of, string_of

__all__ = ["ID_LIKE", "fields_with", "holders", "needles", "own_id"]

ID_LIKE = re.compile(r".*(?:_id|Id|ID|_key|_code|_name)")
_OWN_IDS = ("id", "_id", "uuid", "guid", "key")


def own_id(fields: Sequence[str]) -> str:
    """The field that is the records' own id: by its name, or the first where it is like one."""
    for name in fields:
        if name.lower() in _OWN_IDS:
            return name
    return fields[0] if fields and ID_LIKE.fullmatch(fields[0]) else ""


def holders(table: Records, name: str, digits: str) -> Flow[list[tuple[int, bytes]]]:
    """The records whose field `name` is this number, or a string of it, with their numbers."""
    mark = json.dumps(name)
    marks = [f"{mark}:{gap}{q}{digits}".encode() for gap in ("", " ") for q in ("", '"')]
    found: list[tuple[int, bytes]] = []
    for group in table.holding([digits.encode()] if table.texts else marks):
        for number, raw in (yield from group):
            if name in fields_with(table.as_json([raw])[0], digits):
                found.append((number, raw))
    return found


def needles(wanted: str) -> list[bytes]:
    """What a record's bytes must hold for one of its values to be `wanted`."""
    texts = {
        json.dumps(wanted)[1:-1],
        json.dumps(wanted, ensure_ascii=False)[1:-1],
        wanted,
        wanted.replace("/", "\\/"),
    }
    found = [text.encode("utf-8", "surrogatepass") for text in texts]
    # A letter may be written as an escape: then the text tells nothing, and the record is read.
    return found if wanted.isascii() and wanted.isalnum() else [*found, b"\\u"]


def fields_with(record: bytes, wanted: str) -> list[str]:
    found = []
    for name, raw in (members_of(record) or {}).items():
        text = bytes(raw)
        if text[:1] in (b"{", b"["):
            continue
        if (string_of(text) if text[:1] == b'"' else text.decode("utf-8", "replace")) == wanted:
            found.append(name)
    return found
