"""Payloads as files of a folder. Standard library only.

Not obstore's folder store: that one neither syncs to disk nor sets rights, and nothing of obstore
works in a process that was forked after its first use.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from callslip.errors import StoreUnavailable, in_words
from callslip.stacks.payloads import Listed, Payloads, is_ours


class FolderPayloads(Payloads):
    """Payloads as 0600 files in 0700 folders, synced to disk before they are shown.

    A file is written under a name of its own (`….part`) and linked to its key when it is whole.
    The folder itself is made when missing; if it was there, its rights stay as they are.
    """

    _beside = ""
    """What the name of a file beside a payload ends in, which must not stay without it."""

    def __init__(self, root: Path) -> None:
        self.root = str(root.absolute())

    def __repr__(self) -> str:
        return f"FolderPayloads({self.root!r})"

    def _put(self, key: str, parts: Iterator[bytes]) -> int:
        path = f"{self.root}/{key}"
        folder = os.path.dirname(path)
        part = f"{path}.{secrets.token_hex(8)}.part"
        with named():
            descriptor = self._create(folder, part)
        try:
            try:
                for block in parts:  # the source's own errors pass as they are
                    with named():
                        _write(descriptor, block)
                with named():
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            with named():
                _link(part, path)
        finally:
            # Should this fail, gc finds the file under its name.
            with suppress(OSError):
                os.unlink(part)
        with named():
            _sync_folder(folder)
            return os.stat(path).st_size

    def _create(self, folder: str, part: str) -> int:
        tries = 5
        while True:
            try:
                self._make(folder)
                descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                break
            except FileNotFoundError:
                # A delete took the empty folder away in between.
                tries -= 1
                if not tries:
                    raise
        os.fchmod(descriptor, 0o600)  # a umask may have taken even the owner's rights
        return descriptor

    def _make(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        parent = os.path.dirname(folder)
        if len(folder) > len(self.root):
            self._make(parent)
        else:
            os.makedirs(parent, exist_ok=True)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            return
        os.chmod(folder, 0o700)
        _sync_folder(parent)

    def _read(self, key: str, start: int, length: int) -> bytes | None:
        with named():
            try:
                descriptor = os.open(f"{self.root}/{key}", os.O_RDONLY)
            except (FileNotFoundError, NotADirectoryError):
                return None
            try:
                pieces = [os.pread(descriptor, length, start)]
                got = len(pieces[0])
                while pieces[-1] and got < length:  # one call reads at most 2 GiB
                    pieces.append(os.pread(descriptor, length - got, start + got))
                    got += len(pieces[-1])
            finally:
                os.close(descriptor)
        return b"".join(pieces)

    def _delete(self, keys: list[str]) -> None:
        for key in keys:
            path = f"{self.root}/{key}"
            with named(), suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(path)
            self._rid_of_folders(path)

    def _rid_of_folders(self, path: str) -> None:
        """Remove the folders above what was deleted; the first that is not empty ends it."""
        folder = os.path.dirname(path)
        with suppress(OSError):
            while len(folder) > len(self.root):
                os.rmdir(folder)
                folder = os.path.dirname(folder)

    def _list(self, after: str | None, limit: int, under: str) -> Listed:
        top, prefix = (f"{self.root}/{under}", f"{under}/") if under else (self.root, "")
        with named():
            return list(islice(_walk(top, prefix, after, self._beside), limit))


def _walk(
    folder: str, prefix: str, after: str | None, beside: str
) -> Iterator[tuple[str, int, float]]:
    """Our files below `folder` in key order, behind `after`. What is named `beside` a key, and stands
    there without it, counts as that key."""
    try:
        with os.scandir(folder) as found:
            names = sorted(e.name + "/" * e.is_dir(follow_symlinks=False) for e in found)
    except (FileNotFoundError, NotADirectoryError):
        return
    there = set(names)
    for name in names:
        key = prefix + name
        if name.endswith("/"):
            if after is None or key > after or after.startswith(key):
                yield from _walk(f"{folder}/{name[:-1]}", key, after, beside)
            continue
        if beside and name.endswith(beside) and (stem := name.removesuffix(beside)) not in there:
            key = prefix + stem
        if (after is None or key > after) and is_ours(key):
            with suppress(FileNotFoundError):
                status = os.stat(f"{folder}/{name}", follow_symlinks=False)
                yield key, status.st_size, status.st_mtime


def _write(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view) :]


def _link(part: str, path: str) -> None:
    try:
        os.link(part, path)  # fails if the key exists, as a rename would not
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        # A file system without links: an empty file takes the key, for the time of a rename.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.rename(part, path)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_REASONS = {
    errno.ENOSPC: "disk full",
    errno.EDQUOT: "disk full",
    errno.EFBIG: "disk full",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "permission denied",
    errno.ETIMEDOUT: "timed out",
    errno.ENOTCONN: "unreachable",
    errno.ESTALE: "unreachable",
    errno.EHOSTDOWN: "unreachable",
    errno.ENODEV: "unreachable",
}


@contextmanager
def named() -> Iterator[None]:
    """What the system refuses inside, in our words."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, "failed")
        raise StoreUnavailable(f"the payload folder: {in_words(error)}", reason=reason) from error
