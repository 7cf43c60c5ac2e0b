"""Payloads as objects of whatever obstore opens: memory, S3 and compatible, GCS, Azure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from callslip.errors import SettingsError, StoreUnavailable
from callslip.stacks.payloads import Listed, Payloads, is_ours

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PART_BYTES = 8 * 1024 * 1024
"""An object up to this size goes up in one request; a larger one in parts of it."""
PARTS_AT_ONCE = 2
RETRY_SECONDS = 20
"""How long a request is tried again for: a run must not hang on a store that is away. One request
may take 30 seconds, obstore's own bound; options of the client given here would hide those that
come from the environment (AWS_ALLOW_HTTP and its like)."""

_used_in: int | None = None
"""The process that obstore's threads belong to."""


class ObjectPayloads(Payloads):
    """Payloads as objects of a bucket, or in memory. Large ones go up in parts, as they come."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store: ObjectStore | None = None

    def __repr__(self) -> str:
        return f"ObjectPayloads({urlsplit(self._url).scheme}://…)"  # a URL may carry a secret

    def _opened(self) -> ObjectStore:
        global _used_in
        if _used_in is None:
            _used_in = os.getpid()
        elif _used_in != os.getpid():
            # obstore's threads did not survive the fork, and a call would wait for them for ever.
            raise StoreUnavailable(
                "the object store was used before this process was forked, and cannot be used in "
                "it; start workers with spawn or forkserver, or fork before the first use",
                reason="failed",
            )
        if self._store is None:
            self._store = _open(self._url)
        return self._store

    def _put(self, key: str, parts: Iterator[bytes]) -> int:
        import obstore

        store = self._opened()
        head: list[bytes] = []
        size = 0
        for block in parts:
            head.append(block)
            size += len(block)
            if size > PART_BYTES:
                break
        if size <= PART_BYTES:
            with _named():
                obstore.put(store, key, b"".join(head), mode="create")
        else:
            if self._size(key) is not None:  # there is no conditional upload in parts
                raise StoreUnavailable("a payload of that key exists", reason="failed")
            with _named():
                out = obstore.open_writer(
                    store, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
                )
            # Written from this thread: the parts may come out of obstore themselves, and it does
            # not run inside itself. Not closed, nothing of it becomes visible.
            for block in chain(head, parts):
                with _named():
                    out.write(block)
            with _named():
                out.close()
        stored = self._size(key)
        if stored is None:
            raise StoreUnavailable("an object was not there after its put", reason="failed")
        return stored

    def _size(self, key: str) -> int | None:
        import obstore

        with _named():
            try:
                return obstore.head(self._opened(), key)["size"]
            except FileNotFoundError:
                return None

    def _read(self, key: str, start: int, length: int) -> bytes | None:
        import obstore

        store = self._opened()
        if not length:  # no request asks for nothing
            return None if self._size(key) is None else b""
        with _named():
            try:
                return bytes(obstore.get_range(store, key, start=start, length=length))
            except FileNotFoundError:
                return None
            except obstore.exceptions.GenericError:
                # A range that starts behind the end is refused, each store in its own words.
                size = self._size(key)
                if size is not None and start >= size:
                    return b""
                raise

    def _delete(self, keys: list[str]) -> None:
        import obstore

        store = self._opened()
        for key in keys:
            with _named():
                try:
                    obstore.delete(store, key)
                except FileNotFoundError:
                    continue

    def _list(self, after: str | None, limit: int) -> Listed:
        import obstore

        with _named():
            ours = (
                (entry["path"], entry["size"], entry["last_modified"].timestamp())
                for page in obstore.list(self._opened(), offset=after, chunk_size=1000)
                for entry in page
                if is_ours(entry["path"])
            )
            return list(islice(ours, limit))


def _open(url: str) -> ObjectStore:
    from obstore.exceptions import BaseError
    from obstore.store import from_url

    try:
        if url.startswith("memory:"):
            return from_url(url)
        return from_url(
            url,
            retry_config={"retry_timeout": timedelta(seconds=RETRY_SECONDS)},
        )
    except (BaseError, ValueError) as error:
        raise SettingsError(_told(error)) from None


@contextmanager
def _named() -> Iterator[None]:
    """What the store refuses inside, in our words."""
    from obstore import exceptions

    try:
        yield
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise StoreUnavailable(_told(error), reason="permission denied") from None
    except (exceptions.BaseError, OSError) as error:
        text = str(error)
        if "TimedOut" in text or "timed out" in text:
            reason = "timed out"
        elif "kind: Connect" in text or "error sending request" in text:
            reason = "unreachable"
        else:
            reason = "failed"
        raise StoreUnavailable(_told(error), reason=reason) from None


def _told(error: Exception) -> str:
    # The first line, without the query of a URL: that is where a token would stand.
    return "the object store: " + re.sub(r"\?\S*", "", str(error).partition("\n")[0])
