"""Where packed payloads lie: a folder, or whatever obstore opens (memory, S3, GCS, Azure).

What may live here: payload stores, each running the four operations of `ops.PayloadOp`. No policy,
no look into what is packed.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar, cast
from urllib.parse import unquote, urlsplit

from callslip.errors import PayloadDamaged, SettingsError
from callslip.stacks.layout import KEY_SUFFIX
from callslip.stacks.ops import (
    DeleteObjects,
    IsRemote,
    ListObjects,
    Op,
    PutObject,
    ReadObject,
)
from callslip.stacks.savedops import MovePlain

__all__ = ["Payloads", "check_place", "open_payloads"]

T = TypeVar("T")
Listed: TypeAlias = Sequence[tuple[str, int, float]]

# No empty, hidden or ".." segment, so that a key never leads out of the folder; and the name of an
# upload under way, as a folder has it.
_SEGMENT = r"[a-z0-9_-][a-z0-9_.-]*"
_KEY = re.compile(
    rf"(?:{_SEGMENT}/)*{_SEGMENT}{re.escape(KEY_SUFFIX)}(?P<part>\.[0-9a-f]{{16}}\.part)?"
)
_FOLDER = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_SCHEMES = ("memory", "s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss")


_MISTYPED = re.compile(
    rf"({'|'.join((*_SCHEMES, 'file', 'sqlite', 'postgresql', 'postgres', 'https?'))})(:(?!//)|//)",
    re.IGNORECASE,
)
"""How a URL begins that lacks a slash or a colon, and would be a folder here of that name."""


def mistyped(where: str) -> str:
    """The scheme of a URL without its `://`; "" for any other text."""
    found = _MISTYPED.match(where)
    return found[1] if found else ""


def check_place(where: str) -> None:
    """Raises SettingsError for a text that names no payload store, whatever stands there."""
    if scheme := mistyped(where):
        raise SettingsError(
            f"payloads='{scheme}…': write {scheme}://…, or for a folder of such a name ./…"
        )
    if "://" not in where:
        return
    url = urlsplit(where)
    if url.scheme not in (*_SCHEMES, "file"):
        raise SettingsError(
            f"payloads={url.scheme}://… is not known; give a folder, file://, "
            + ", ".join(f"{scheme}://" for scheme in _SCHEMES)
        )
    if not url.netloc and url.scheme not in ("memory", "file"):
        raise SettingsError(
            f"payloads='{url.scheme}://' names no bucket: give {url.scheme}://bucket/prefix"
        )


def open_payloads(where: str | Path) -> Payloads:
    """The payload store at a folder path, `file:///…`, `memory://`, `s3://bucket/prefix`, `gs://…`
    or `az://…`. Nothing is opened or made before the first operation.

    Credentials come from the environment's standard chain. Raises SettingsError for what is none
    of these. Each `memory://` is a store of its own.
    """
    if isinstance(where, Path) or "://" not in where:
        if not str(where):
            raise SettingsError("payloads='' names no folder")
        return _folder(Path(where))
    check_place(where)
    url = urlsplit(where)
    if url.scheme == "file":
        plain = url.query == "plain"
        wrong = url.netloc not in ("", "localhost") or (url.query and not plain)
        if wrong or not url.path.strip("/"):
            raise SettingsError(
                "a file:// payload store must read file:///some/folder, or with plain files "
                "file:///some/folder?plain"
            )
        return _folder(Path(unquote(url.path)), plain)
    from callslip.stacks.payloads.objects import ObjectPayloads

    return ObjectPayloads(where)


def _folder(root: Path, plain: bool = False) -> Payloads:
    if plain:
        from callslip.stacks.payloads.plain import PlainPayloads

        return PlainPayloads(root)
    from callslip.stacks.payloads.folder import FolderPayloads

    return FolderPayloads(root)


class Payloads(ABC):
    """A payload store: runs the four operations of `ops.PayloadOp`. Safe to share by threads.

    A new kind of store implements the four methods; `callslip.testing.payloads.PayloadsContract`
    says whether it does so rightly.
    """

    remote = False
    """Whether a read goes over a network."""

    def run(self, op: Op[T], /) -> T:
        """Run one operation. Raises StoreUnavailable and PayloadDamaged as `ops` says, ValueError
        for a key that is not one of ours, and whatever the parts of a PutObject raise."""
        match op:
            case ReadObject(key, start, length):
                if start < 0 or length < 0:
                    raise ValueError(f"cannot read {length} bytes from {start}")
                data = self._read(_checked(key), start, length)
                if data is None:
                    raise PayloadDamaged(f"payload {key} is missing from the store", missing=True)
                if len(data) != length:
                    raise PayloadDamaged(
                        f"payload {key} is cut short: {len(data)} of {length} bytes from {start}"
                    )
                return cast("T", data)
            case PutObject(key, parts):
                if not key.endswith(KEY_SUFFIX):
                    raise ValueError(f"a payload's key must end in {KEY_SUFFIX}: {key!r}")
                return cast("T", self._put(_checked(key), filter(None, parts)))
            case DeleteObjects(keys):
                return cast("T", self._delete([_checked(key) for key in keys]))
            case ListObjects(after, limit, under):
                if under and not _FOLDER.fullmatch(under):
                    raise ValueError(f"not a folder of payloads: {under!r}")
                return cast("T", self._list(after, limit, under))
            case IsRemote():
                return cast("T", self.remote)
            case MovePlain():
                return cast("T", None)  # who has no plain files has none to move
        raise TypeError(f"a payload store does not run {type(op).__name__}")

    @abstractmethod
    def _put(self, key: str, parts: Iterator[bytes]) -> int:
        """Write `parts`, none of them empty, and answer the size, as `ops.PutObject` says."""

    @abstractmethod
    def _read(self, key: str, start: int, length: int) -> bytes | None:
        """Up to `length` bytes, fewer at the object's end; None if there is no such object."""

    @abstractmethod
    def _delete(self, keys: list[str]) -> None: ...

    @abstractmethod
    def _list(self, after: str | None, limit: int, under: str) -> Listed:
        """Ours in key order, behind `after`; only those in the folder `under`, unless it is ""."""


def is_ours(key: str) -> bool:
    """Whether a name is a payload's key, or that of an upload under way."""
    return _KEY.fullmatch(key) is not None


def _checked(key: str) -> str:
    if not is_ours(key):
        raise ValueError(f"not a payload's key: {key!r}")
    return key
