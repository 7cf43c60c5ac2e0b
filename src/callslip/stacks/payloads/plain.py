"""Payloads in a folder, and beside them each result's exact content as a file to open.

::

    /scratch/run-42-3f9a…/search-res_1c….txt      for grep, jq, a spreadsheet
    /scratch/.callslip/…                          what is read: packed, checked, with a directory

The plain file is a copy. Whoever edits or removes it changes no result.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar, cast

from callslip.errors import PayloadDamaged, StoreUnavailable
from callslip.stacks.ops import DeleteObjects, Op
from callslip.stacks.payloads.folder import FolderPayloads, named
from callslip.stacks.savedops import (
    NAME,
    AppendPlain,
    BeginPlain,
    DropPlain,
    EndPlain,
    MovePlain,
)

T = TypeVar("T")

PACKED = ".callslip"
NAMES = ".names"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class PlainPayloads(FolderPayloads):
    """A folder of payloads, and of plain files by session.

    Beside each payload stands a list of its plain files (`….names`), written before they are: so
    none is left when the payload goes. No name that stands there or is given leads out of the
    folder, and no link in it is followed.
    """

    _beside = NAMES

    def __init__(self, root: Path) -> None:
        super().__init__(root / PACKED)
        self._top = str(root.absolute())

    def __repr__(self) -> str:
        return f"PlainPayloads({self._top!r})"

    def run(self, op: Op[T], /) -> T:
        match op:
            case BeginPlain(key, name, size):
                return cast("T", self._begin(key, name, size))
            case AppendPlain(key, name, part, block):
                with self._kept(key):
                    return cast("T", self._append(key, name, part, block))
            case EndPlain(key, name, part):
                with self._kept(key):
                    return cast("T", self._end(key, name, part))
            case DropPlain(key, name, kept):
                return cast("T", self._drop(key, name, kept))
            case MovePlain(key, new):
                return cast("T", self._move(key, new))
            case DeleteObjects(keys):
                self._unlinked()
                # First what it is a copy of: who writes one meanwhile sees that, and takes it back.
                done = super().run(op)
                for each in keys:
                    self._drop(each, "", frozenset())
                return done
        self._unlinked()
        return super().run(op)

    def _unlinked(self) -> None:
        """Raises where the payloads' own folder is a link: it would lead out of this one."""
        if os.path.islink(self.root):
            raise StoreUnavailable(f"{self.root} is a link", reason="failed")

    def _begin(self, key: str, name: str, size: int) -> bool:
        folder, file = _parts(name)
        self._checked(key)
        with named():
            if name not in self._names(key):
                self._note(key, [name])
            with self._opened(folder, make=True) as at, suppress(FileNotFoundError):
                found = os.stat(file, dir_fd=at, follow_symlinks=False)
                return stat.S_ISREG(found.st_mode) and found.st_size == size
        return False

    def _append(self, key: str, name: str, part: str, block: bytes) -> None:
        folder, file = _parts(name)
        if not block:
            self._checked(key)
        flags = os.O_WRONLY | os.O_APPEND | _NO_LINK
        # The first block is empty and makes the file; it was never there, `part` is random.
        flags |= 0 if block else os.O_CREAT | os.O_EXCL
        with named(), self._opened(folder, make=not block) as at:
            descriptor = os.open(f".{file}.{part}", flags, 0o600, dir_fd=at)
            try:
                view = memoryview(block)
                while view:
                    view = view[os.write(descriptor, view) :]
            finally:
                os.close(descriptor)

    def _end(self, key: str, name: str, part: str) -> None:
        folder, file = _parts(name)
        with named(), self._opened(folder) as at:
            descriptor = os.open(f".{file}.{part}", os.O_RDONLY | _NO_LINK, dir_fd=at)
            try:
                os.fchmod(descriptor, 0o600)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            # A link of that name is replaced, not followed.
            os.replace(f".{file}.{part}", file, src_dir_fd=at, dst_dir_fd=at)
            os.fsync(at)
            if not os.path.exists(f"{self.root}/{key}"):  # deleted meanwhile: no copy may stay
                os.unlink(file, dir_fd=at)
            elif name not in self._names(key):  # dropped meanwhile, by who took it for an old one
                self._note(key, [name])
        self._checked(key)

    def _checked(self, key: str) -> None:
        """Raises PayloadDamaged where a payload is gone: then nothing may be beside it."""
        if not os.path.exists(f"{self.root}/{key}"):
            raise PayloadDamaged(f"payload {key} is missing from the store", missing=True)

    @contextmanager
    def _kept(self, key: str) -> Iterator[None]:
        """Inside, what is not there any more is not there because the payload is gone, if it is."""
        try:
            yield
        except StoreUnavailable:
            self._checked(key)
            raise

    def _drop(self, key: str, name: str, kept: frozenset[str] | None) -> None:
        with named():
            names = self._names(key)
            if kept is not None:
                gone = [each for each in names if _id(each) not in kept]
            else:
                gone = [name]  # also where it was begun only
            for each in gone:
                self._remove(*_parts(each))
            if gone and names:
                self._note(key, [f"-{each}" for each in gone])
            if not os.path.exists(f"{self.root}/{key}"):
                with suppress(FileNotFoundError, NotADirectoryError):
                    os.unlink(f"{self.root}/{key}{NAMES}")
                self._rid_of_folders(f"{self.root}/{key}")

    def _move(self, key: str, new: str) -> None:
        with named():
            if names := self._names(key):
                self._note(new, names)
                self._note(key, [f"-{each}" for each in names])

    def _remove(self, folder: str, file: str) -> None:
        try:
            with self._opened(folder) as at:
                # With what was never finished of it.
                for entry in os.listdir(at):
                    if entry == file or entry.startswith(f".{file}."):
                        with suppress(FileNotFoundError):
                            os.unlink(entry, dir_fd=at)
        except (FileNotFoundError, NotADirectoryError):
            return
        with suppress(OSError):  # others are in it
            os.rmdir(f"{self._top}/{folder}")

    # --- which plain files a payload has ---

    def _names(self, key: str) -> list[str]:
        try:
            with open(f"{self.root}/{key}{NAMES}", encoding="ascii", errors="replace") as listed:
                lines = listed.read().split("\n")
        except (FileNotFoundError, NotADirectoryError):
            return []
        found: dict[str, None] = {}
        for line in lines:
            if NAME.fullmatch(line):
                found[line] = None
            elif line.startswith("-"):
                found.pop(line[1:], None)
        return list(found)

    def _note(self, key: str, lines: list[str]) -> None:
        # Only ever written on: two processes that change it at once do not lose each other's.
        path = f"{self.root}/{key}{NAMES}"
        self._make(os.path.dirname(path))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NO_LINK, 0o600)
        try:
            os.write(descriptor, "".join(f"{line}\n" for line in lines).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _opened(self, folder: str, *, make: bool = False) -> Iterator[int]:
        """A session's folder. A link in its place is refused."""
        if make:
            os.makedirs(self._top, 0o700, exist_ok=True)
        top = os.open(self._top, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for last in (False, False, True):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(folder, 0o700, dir_fd=top)
                try:
                    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=top)
                    break
                except FileNotFoundError:
                    # Empty, and taken away in between.
                    if last or not make:
                        raise
        finally:
            os.close(top)
        try:
            yield at
        finally:
            os.close(at)


def _parts(name: str) -> tuple[str, str]:
    found = NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"not a plain file's name: {name!r}")
    return found["folder"], found["file"]


def _id(name: str) -> str:
    found = NAME.fullmatch(name)
    return found["id"] if found else ""
