"""The operations on scratch files, beside those of `callslip.stacks.ops`: files have versions.

Every write makes one new version, numbered through the session whatever its path: one number names
a state of all files. A write goes on from a version, so the versions are a tree: two runs that go
on from one checkpoint each see their own files.

What may live here: operations, the rows they carry, nothing that acts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from callslip.handle import Quota, Scope, Shape
from callslip.stacks.ops import IndexOp, Payload

Outcome = Literal["written", "same", "stale", "replayed"]


@dataclass(frozen=True, slots=True)
class View:
    """Which state of the files is meant: that of a version and all versions which led to it.

    `version` None is the latest write of all; 0 is the state before the first. `line` is a name for
    one run of an agent, and `step` for one turn of it. With a line, the view goes on from `version`
    over every later version that others wrote, or this line in this very step: so what others add
    is seen and two writes of one turn follow each other, while what this line itself wrote after
    that point, in a run that was since abandoned, is not. A version that is not there any more means
    the latest with a line, and nothing without one.
    """

    version: int | None = None
    line: str = ""
    step: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """One version of one file. `payload` is None if its text was evicted by a quota."""

    path: str
    version: int
    shape: Shape
    payload: Payload | None
    written_at: float


@dataclass(frozen=True, slots=True)
class Wrote:
    """What `WriteFile` did: a new version is `written`; the path holds this very content already
    (`same`); it is at another version than the writer had seen (`stale`, nothing is written, `file`
    is what is there, or None); or this very call was made before (`replayed`).

    `adopted` says whether the index took the given payload, as in `ops.Inserted`.
    """

    outcome: Outcome
    file: File | None
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class WriteFile(IndexOp["Wrote | None"]):
    """Write a new version of a path, its payload and its session in one transaction.

    - Opens the session if it is new, or was closed; counts as activity.
    - `expect`, if not None, is the version of the path that the writer has seen in the view, 0 for
      none at all.
    - `call`, if not empty, tells a replay of a write from a second write. 16 bytes.
    - The payload as in `ops.Insert`: with neither `key` nor `data` it means "the one I saw", and if
      that is gone the answer is None.
    - With a quota, the oldest results go, then the texts of versions that a later one follows; the
      files as they stand never do. If that is not enough: StoreUnavailable, reason "over quota".
    - `subjects` as in `ops.Insert`, of this version, or of the one that is the same.
    """

    scope: Scope
    path: str
    shape: Shape
    payload: Payload
    view: View
    expect: int | None
    call: bytes
    ttl: float | None
    quota: Quota
    now: float
    subjects: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReadFile(IndexOp["File | None"]):
    """A path as it stands in a view, with its payload. Counts as activity."""

    scope: Scope
    path: str
    view: View
    now: float


@dataclass(frozen=True, slots=True)
class ListFiles(IndexOp["tuple[Sequence[File], int | None]"]):
    """The files of a view by path, payload `data` left out; and the version that the view came to,
    None if there is no such view. Counts as activity."""

    scope: Scope
    view: View
    now: float


@dataclass(frozen=True, slots=True)
class FindWrite(IndexOp["File | None"]):
    """The version that this very call wrote, if it did. Counts as activity."""

    scope: Scope
    call: bytes
    now: float
