"""Operations on plain files: a result's exact content beside its payload, for a person's own tools.

What may live here: operations, and what a plain file is called. Nothing that acts.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from callslip.handle import Scope, Shape
from callslip.stacks.ops import PayloadOp

__all__ = [
    "NAME",
    "AppendPlain",
    "BeginPlain",
    "DropPlain",
    "EndPlain",
    "MovePlain",
    "id_in",
    "saved_name",
]

_SLUG_CHARS = 32
_ENDINGS: Final = {
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "text/csv": "csv",
}
_SLUG = rf"[a-z0-9]{{1,{_SLUG_CHARS}}}(?:-[a-z0-9]{{1,{_SLUG_CHARS}}})*"
_FILE = rf"{_SLUG}-(?P<id>res_[0-9a-f]{{10,40}})\.(?:txt|jsonl|json|csv|bin)"
NAME: Final = re.compile(rf"(?P<folder>{_SLUG}-[0-9a-f]{{12}})/(?P<file>{_FILE})")
"""A plain file's name: a session's folder, and a file in it. Made by `saved_name` alone."""


def saved_name(scope: Scope, id: str, tool: str, shape: Shape) -> str:
    """What the plain file of a result is called, below the folder of them all.

    A function of the row alone, so that it need not be recorded. Of session and tool only letters
    and digits are in it; what tells one from another are the hash and the id.
    """
    names = (scope.tenant, scope.user, scope.session)
    whole = hashlib.sha256()
    for name in names:
        raw = name.encode("utf-8", "surrogatepass")
        whole.update(len(raw).to_bytes(8, "little") + raw)
    folder = f"{_slug(scope.session, 'session')}-{whole.hexdigest()[:12]}"
    ending = "bin" if shape.kind == "media" else _ENDINGS.get(shape.mime, "txt")
    return f"{folder}/{_slug(tool, 'result')}-{id}.{ending}"


def _slug(name: str, otherwise: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", name[:200].lower()).strip("-")
    return words[:_SLUG_CHARS].strip("-") or otherwise


def id_in(path: str) -> str:
    """The id that a plain file's path names; "" where it is none."""
    found = NAME.fullmatch("/".join(path.rsplit("/", 2)[-2:]))
    return found["id"] if found else ""


@dataclass(frozen=True, slots=True)
class BeginPlain(PayloadOp[bool]):
    """A plain file of the payload `key` is to be written; True if it is there with that many bytes.
    From here on it goes when the payload does."""

    key: str
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class AppendPlain(PayloadOp[None]):
    """A block of a plain file, behind those before it. `part` tells one writing from another."""

    key: str
    name: str
    part: str
    block: bytes


@dataclass(frozen=True, slots=True)
class EndPlain(PayloadOp[None]):
    """All blocks were given: the file is shown under its name, whole."""

    key: str
    name: str
    part: str


@dataclass(frozen=True, slots=True)
class DropPlain(PayloadOp[None]):
    """Remove plain files of a payload: that of one result, or all but those of `kept` ids."""

    key: str
    name: str = ""
    kept: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class MovePlain(PayloadOp[None]):
    """The payload `key` is kept as `new` from now on: its plain files stay."""

    key: str
    new: str
