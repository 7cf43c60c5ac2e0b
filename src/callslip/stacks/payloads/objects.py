"""Payloads as objects of whatever obstore opens: memory, S3 and compatible, GCS, Azure."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from callslip.errors import SettingsError, StoreUnavailable
from callslip.limits import PART_BYTES
from callslip.stacks.payloads import Listed, Payloads, is_ours, library
from callslip.stacks.payloads.credentials import given, options

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

PARTS_AT_ONCE = 2
_MACHINES = ("/latest/api/token", "/computeMetadata/", "/metadata/identity/")
"""Where AWS, Google and Azure tell a machine its credentials."""
_REFUSED = ("AccessDenied", "ExpiredToken", "InvalidToken", "TokenRefreshRequired")
_WORDS = {
    "NoSuchBucket": "there is no such bucket",
    "ContainerNotFound": "there is no such container",
    "ExpiredToken": "the credentials of this process are no longer good",
    "RequestTimeTooSkewed": "the clock of this machine is not the store's",
}
"""What a person does about some codes."""


class ObjectPayloads(Payloads):
    """Payloads as objects of a bucket, or in memory. Large ones go up in parts, as they come."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store: ObjectStore | None = None
        self._generation = library.generation()
        self._lock = threading.Lock()
        self._left: list[object] = []
        self._given: object = None
        self._conditional = True
        """Whether the store knows a put on a condition; not all that speak S3 do."""
        self.remote = not url.startswith("memory:")

    def __repr__(self) -> str:
        return f"ObjectPayloads({urlsplit(self._url).scheme}://…)"  # a URL may carry a secret

    def _opened(self) -> tuple[Any, ObjectStore]:
        """The library and the store, as this process can use them."""
        if self._generation != library.generation():
            self._left.append(self._store)  # the parent's: to drop it would call for its threads
            if self._store is not None and not self.remote:
                raise StoreUnavailable(
                    "a store in memory was filled before this process was forked, and is not "
                    "shared with it; give payloads= a folder or a bucket",
                    reason="failed",
                )
            self._store, self._lock = None, threading.Lock()
            self._generation = library.generation()
        obstore = library.obstore()
        with self._lock:
            if self._store is None:
                self._given = given()
                self._store = _open(obstore, self._url)
            return obstore, self._store

    def _asked(self, request: Callable[[Any, ObjectStore], T]) -> T:
        """The answer to a request; made once more where it was refused and there are other
        credentials by now: a profile's, or the environment's, are exchanged while a worker runs."""
        obstore, store = self._opened()
        try:
            with _named(obstore):
                return request(obstore, store)
        except StoreUnavailable as error:
            # What ran out is a 400, and without a code where the answer has no body.
            refused = error.reason in ("permission denied", "failed")
            if not refused or not self._opened_anew(obstore, store):
                raise
        obstore, store = self._opened()
        with _named(obstore):
            return request(obstore, store)

    def _opened_anew(self, obstore: Any, refused: ObjectStore) -> bool:
        with self._lock:
            if self._store is not refused:  # another thread has
                return True
            found = given()
            if found == self._given:
                return False
            try:
                self._store, self._given = _open(obstore, self._url), found
            except (SettingsError, StoreUnavailable):  # it is just being written
                return False
            return True

    def _put(self, key: str, parts: Iterator[bytes]) -> int:
        head: list[bytes] = []
        size = 0
        for block in parts:
            head.append(block)
            size += len(block)
            if size > PART_BYTES:
                break
        if size > PART_BYTES:
            return self._put_in_parts(key, chain(head, parts))
        body = b"".join(head)

        def put(obstore: Any, store: ObjectStore) -> None:
            try:
                self._create(obstore, store, key, body)
            except obstore.exceptions.AlreadyExistsError:
                # Keys are random. What stands there is ours if it is the same: a try whose answer
                # was lost. Azurite refuses where an upload in parts was given up, too.
                there = self._read(key, 0, size + 1)
                if there is None:
                    obstore.put(store, key, body, use_multipart=False)
                elif not body or there != body:
                    text = "a payload of that key exists"
                    raise StoreUnavailable(text, reason="failed") from None

        self._asked(put)
        return size

    def _create(self, obstore: Any, store: ObjectStore, key: str, body: bytes) -> None:
        """Write an object where none stands."""
        if self._conditional:
            try:
                obstore.put(store, key, body, mode="create", use_multipart=False)
            except (obstore.exceptions.BaseError, NotImplementedError) as error:
                if not _not_known(error):
                    raise
            else:
                return
        # As with parts, it is asked for before; the key is random.
        if self._size(key) is not None:
            raise obstore.exceptions.AlreadyExistsError
        obstore.put(store, key, body, use_multipart=False)
        self._conditional = False  # not before: who knows none of both has another trouble

    def _put_in_parts(self, key: str, blocks: Iterator[bytes]) -> int:
        if self._size(key) is not None:  # there is no conditional upload in parts
            raise StoreUnavailable("a payload of that key exists", reason="failed")
        obstore, store = self._opened()  # behind that, which may have found other credentials
        size = 0
        with _named(obstore):
            out = obstore.open_writer(
                store, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
            )
        try:
            # Written from this thread: the parts may come out of obstore themselves, and it does
            # not run inside itself. Not closed, nothing of it becomes visible.
            for block in blocks:
                size += len(block)
                with _named(obstore):
                    out.write(block)
            with _named(obstore):
                out.close()
        except BaseException as error:
            away = isinstance(error, StoreUnavailable) and error.reason != "failed"
            if not away:  # else it would only wait as long again; the bucket's rule removes them
                with suppress(Exception):
                    out.__exit__(type(error), error, None)  # gives the parts up
            raise
        return size

    def _size(self, key: str) -> int | None:
        def head(obstore: Any, store: ObjectStore) -> int | None:
            try:
                return int(obstore.head(store, key)["size"])
            except FileNotFoundError as error:
                _bucket_is_there(error)
                return None

        return self._asked(head)

    def _read(self, key: str, start: int, length: int) -> bytes | None:
        if not length:  # no request asks for nothing
            return None if self._size(key) is None else b""

        def get(obstore: Any, store: ObjectStore) -> bytes | None:
            try:
                return bytes(obstore.get_range(store, key, start=start, length=length))
            except FileNotFoundError as error:
                _bucket_is_there(error)
                return None
            except obstore.exceptions.GenericError as error:
                # A range that starts behind the end is refused, in memory in words of its own.
                if _status(error) == "416":
                    return b""
                if not self.remote:
                    size = self._size(key)
                    if size is not None and start >= size:
                        return b""
                raise

        return self._asked(get)

    def _delete(self, keys: list[str]) -> None:
        def delete(obstore: Any, store: ObjectStore) -> None:
            try:
                obstore.delete(store, keys)  # S3 takes a thousand in one request
            except FileNotFoundError as error:
                _bucket_is_there(error)
                # Of several Azure does not say which, nor by a code whether it was the container:
                # what was not there to be deleted from must not be told as erased.
                next(iter(obstore.list(store, chunk_size=1)), None)
                for key in keys:
                    with suppress(FileNotFoundError):
                        obstore.delete(store, key)

        if keys:
            self._asked(delete)

    def _list(self, after: str | None, limit: int, under: str) -> Listed:
        def listed(obstore: Any, store: ObjectStore) -> Listed:
            pages = obstore.list(store, under or None, offset=after, chunk_size=1000)
            ours = (
                (entry["path"], entry["size"], entry["last_modified"].timestamp())
                for page in pages
                for entry in page
                # Not every server heeds where to start.
                if (after is None or entry["path"] > after) and is_ours(entry["path"])
            )
            return list(islice(ours, limit))

        return self._asked(listed)


def _open(obstore: Any, url: str) -> ObjectStore:
    scheme = urlsplit(url).scheme
    given = options(scheme)
    try:
        return obstore.store.from_url(url, **given)  # type: ignore[no-any-return]
    except (obstore.exceptions.BaseError, ValueError, TypeError) as error:
        # What it says without what it quotes: that may be the URL, with a token in it.
        said = re.sub(r'"[^"]*"?|\S*(?:://|\?)\S*', "…", str(error).partition("\n")[0])
        raise SettingsError(f"payloads={scheme}://…: {said}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the library's own, and no Exception
            raise
        raise SettingsError(f"payloads={scheme}://…: the object store refuses an option") from None


@contextmanager
def _named(obstore: Any) -> Iterator[None]:
    """What the store refuses inside, in our words: its own may quote keys, tokens and content."""
    exceptions = obstore.exceptions
    try:
        yield
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise StoreUnavailable(_told(error), reason="permission denied") from None
    except (exceptions.BaseError, OSError) as error:
        text, status = str(error), _status(error)
        if status in ("401", "403") or _code(text) in _REFUSED:
            reason = "permission denied"
        elif status == "507" or "QuotaExceeded" in text or "StorageFull" in text:
            reason = "disk full"
        elif status:
            reason = "failed"
        elif "TimedOut" in text or "timed out" in text:
            reason = "timed out"
        elif "Connect" in text or "error sending request" in text:
            reason = "unreachable"
        else:
            reason = "failed"
        raise StoreUnavailable(_told(error), reason=reason) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the library's own, and no Exception
            raise
        said = "the object store: its library cannot do with an option of this environment"
        raise StoreUnavailable(said, reason="failed") from None


def _bucket_is_there(error: FileNotFoundError) -> None:
    """Raises where not the object is missing but all of them."""
    if _code(str(error)) in ("NoSuchBucket", "ContainerNotFound"):
        raise StoreUnavailable(_told(error), reason="failed") from None


def _not_known(error: Exception) -> bool:
    """Whether a store, or its options, may have refused the condition and not the object."""
    if isinstance(error, NotImplementedError):  # by AWS_CONDITIONAL_PUT=disabled
        return True
    return _status(error) in ("400", "501") and _code(str(error)) not in _REFUSED


def _status(error: Exception) -> str:
    found = re.search(r"status code: (\d{3})", str(error))
    return found[1] if found else ""


def _code(text: str) -> str:
    found = re.search(r"<Code>([A-Z][A-Za-z]{2,39})</Code>|\(code: ([A-Z][A-Za-z]{2,39})\)", text)
    return (found[1] or found[2]) if found else ""


def _told(error: Exception) -> str:
    """What is known of a failure without a word that somebody else wrote: the method, the status,
    the store's code for it."""
    text = str(error)
    method = re.search(r"Error performing (GET|PUT|POST|HEAD|DELETE)\b", text)
    # Of a removal of many each key has an answer of its own.
    asked = method[1] if method else "DELETE" if "DeleteObjects request failed" in text else ""
    parts = [asked, _status(error), _code(text)]
    said = " ".join(part for part in parts if part) or type(error).__name__
    if any(path in text for path in _MACHINES):
        said = f"no credentials: the machine was asked for them, {said}"
    if "TimedOut" in text:
        said += ", timed out"
    elif "error sending request" in text:
        said += ", no answer"
    elif "Received redirect" in text:
        said += ", redirected: the bucket is in another region than AWS_REGION says"
    elif words := _WORDS.get(_code(text)):
        said += f": {words}"
    elif "builder error" in text:
        said += ", not sent: a server by http:// wants AWS_ALLOW_HTTP=true"
    return f"the object store: {said}"
