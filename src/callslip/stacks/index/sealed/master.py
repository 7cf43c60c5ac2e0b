"""The keys that stand above all others, and that callslip never stores: of a file, of the
environment, or of a KMS.

Each wraps a data key of 32 bytes, and nothing else. A key's id is a part of a hash of it, and safe to
show. A file or a variable may hold several keys: the first wraps, all of them unwrap.
"""

from __future__ import annotations

import base64
import binascii
import contextvars
import hashlib
import logging
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from callslip import limits
from callslip.errors import CallslipError, SettingsError, StoreUnavailable
from callslip.stacks.index.sealed.cipher import KEY_BYTES, Box, Unopened, derived, mac

__all__ = ["KeyFile", "Kms", "Master", "add_key", "master_of", "new_key_file"]

logger = logging.getLogger("callslip")

_ABOUT = b"callslip data key 1"
_ADDING_SECONDS = 5
_HEAD = """# Keys of a callslip store, base64, one a line. The first seals; the others only open.
# Without this file nothing in the store can be read. Keep it apart from the store and its backups.
"""


class Master(Protocol):
    """What wraps data keys."""

    def wrap(self, key: bytes) -> tuple[str, bytes]:
        """The id of the master key that was used, and the wrapped key."""

    def unwrap(self, by: str, wrapped: bytes) -> bytes:
        """The data key. Raises `SettingsError` where the master key of that id is not at hand."""

    def is_current(self, by: str) -> bool:
        """Whether what was wrapped by that key need not be wrapped anew."""

    def seed(self, name: bytes) -> bytes | None:
        """32 bytes that are the same for one name in every store with this current key; None where
        that cannot be known."""


def master_of(keys: Any) -> Master:
    """The master keys that `keys=` means: a file's path, `"env:NAME"`, an object with `wrap` and
    `unwrap`, or a function of an action and bytes.

    Nothing is read yet. Raises `SettingsError`.
    """
    if isinstance(keys, str | os.PathLike):
        given = os.fspath(keys)
        if isinstance(given, str) and given and not _looks_like_a_key(given.removeprefix("env:")):
            env = given.startswith("env:")
            return KeyFile(given.removeprefix("env:"), env=env)
        raise SettingsError(
            "keys= names no file: give the path of a key file, or 'env:NAME' for a variable that "
            "holds the key; never the key itself"
        )
    if callable(getattr(keys, "wrap", None)) and callable(getattr(keys, "unwrap", None)):
        return Kms(keys.wrap, keys.unwrap, keys)
    if callable(keys):
        return Kms(lambda key: keys("wrap", key), lambda key: keys("unwrap", key), keys)
    raise SettingsError(
        f"keys= is of type {type(keys).__name__}: give the path of a key file, 'env:NAME', an object with "
        "wrap(key) and unwrap(wrapped), or a function (action, key)"
    )


def id_of(key: bytes) -> str:
    """The id of a master key: safe to show."""
    return "k" + hashlib.sha256(b"callslip key id" + key).hexdigest()[:10]


# --- of a file, or of the environment -----------------------------------------------------------


class KeyFile:
    """Master keys out of a file or a variable, read when first needed, and again when a key is
    wanted that was not in it: so a rotation needs no restart."""

    def __init__(self, place: str, env: bool = False) -> None:
        self._place = place if env else str(Path(place).expanduser().absolute())
        self._env = env
        self._boxes: dict[str, Box] = {}
        self._seed = b""
        self._warned = False
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"KeyFile({self.where!r})"

    @property
    def where(self) -> str:
        """What a person calls it."""
        return f"env:{self._place}" if self._env else self._place

    def wrap(self, key: bytes) -> tuple[str, bytes]:
        # The file says which is current: asked for a new tenant and a rotation, so seldom.
        boxes = self._read()
        by = next(iter(boxes))
        return by, boxes[by].seal(key, _ABOUT)

    def unwrap(self, by: str, wrapped: bytes) -> bytes:
        box = self._boxes.get(by) or self._read(known=False).get(by)
        if box is None:
            raise SettingsError(
                f"keys={self.where!r}: this store is sealed with the key {by}, and that is not among "
                f"the keys there ({', '.join(self._boxes)}); give the file that holds it"
            )
        try:
            return box.open(wrapped, _ABOUT)
        except Unopened:
            raise SettingsError(
                f"keys={self.where!r}: what the key {by} has sealed does not open: it was changed "
                "since, or damaged"
            ) from None

    def is_current(self, by: str) -> bool:
        return by == next(iter(self._read()))

    def seed(self, name: bytes) -> bytes | None:
        self._read()
        return mac(self._seed, name)

    def _read(self, known: bool = True) -> dict[str, Box]:
        """The keys of the file as it is now; with `known` those of before, where there are any and
        the file cannot be read: one that is being replaced must not stop a worker."""
        try:
            keys = _keys_in(self._text(), self.where)
        except SettingsError as error:
            if not (known and self._boxes):
                raise
            logger.warning("the keys that were read before stay in use: %s", error)
            return self._boxes
        with self._lock:
            self._boxes = {id_of(key): Box(key) for key in keys}
            self._seed = derived(keys[0], "seed")
            return self._boxes

    def _text(self) -> str:
        if self._env:
            text = os.environ.get(self._place, "")
            if not text.strip():
                raise SettingsError(f"keys={self.where!r}: the variable is not set")
            return text
        try:
            with open(self._place, encoding="ascii") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read(64 * 1024)
        except FileNotFoundError:
            raise SettingsError(
                f"keys={self.where!r}: no such file; make one: callslip keys new {self._place}"
            ) from None
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else "it is not a text of ASCII"
            raise SettingsError(f"keys={self.where!r} cannot be read: {said}") from None
        if mode & (stat.S_IRWXG | stat.S_IRWXO) and not self._warned:
            self._warned = True
            logger.warning("the key file %s can be read by others: chmod 600 it", self._place)
        return text


def _keys_in(text: str, where: str) -> list[bytes]:
    keys = []
    for line in text.splitlines():
        for word in line.partition("#")[0].replace(",", " ").split():
            key = _decoded(word)
            if key is None:
                raise SettingsError(
                    f"keys={where!r}: what stands there is no key: {KEY_BYTES} bytes in base64, one "
                    "a line"
                )
            keys.append(key)
    if not keys:
        raise SettingsError(f"keys={where!r} holds no key")
    return keys


def _decoded(word: str) -> bytes | None:
    try:
        key = base64.b64decode(word, validate=True)
    except (ValueError, binascii.Error):
        return None
    return key if len(key) == KEY_BYTES else None


def _looks_like_a_key(given: str) -> bool:
    """Whether a text, or a word of it, is a key in any usual form: no error may show it."""
    if not ("\0" in given or "\n" in given) and os.path.exists(given):
        return False
    words = given.replace(",", " ").split()
    return any(
        _decoded(word.translate(_URL_SAFE).rstrip("=") + "=") is not None or _HEX.fullmatch(word)
        for word in words
    )


_URL_SAFE = str.maketrans("-_", "+/")
_HEX = re.compile(f"[0-9a-fA-F]{{{2 * KEY_BYTES}}}")


def new_key_file(path: str | os.PathLike[str]) -> str:
    """Make a key file with one new key, for this user alone; answer the key's id. Raises
    `FileExistsError`: a key file is never written over."""
    key = secrets.token_bytes(KEY_BYTES)
    _write(Path(path), os.O_EXCL, [key])
    return id_of(key)


def add_key(path: str | os.PathLike[str]) -> str:
    """Put a new key in front of those of a key file: from now on it seals, the others open. Answer
    its id. Raises `SettingsError` for what is no key file."""
    # Through a link: what it points to is the key file.
    given = KeyFile(os.path.realpath(Path(path).expanduser()))
    key, place = secrets.token_bytes(KEY_BYTES), Path(given.where)
    with _alone(place):
        beside = place.with_name(f"{place.name}.{secrets.token_hex(4)}.new")
        _write(beside, os.O_EXCL, [key, *_keys_in(given._text(), given.where)])
        os.replace(beside, place)
    return id_of(key)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Nobody else adds a key to that file: what one added, and has sealed with, another would write
    over."""
    beside = place.with_name(f"{place.name}.adding")
    for _ in range(_ADDING_SECONDS * 20):
        try:
            os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            time.sleep(0.05)
        except OSError as error:
            said = error.strerror
            raise SettingsError(f"keys={str(place)!r} cannot be added to: {said}") from None
    else:
        raise SettingsError(
            f"another key is being added to {place}; if that was cut off, remove {beside}"
        )
    try:
        yield
    finally:
        beside.unlink(missing_ok=True)


def _write(path: Path, flags: int, keys: Sequence[bytes]) -> None:
    lines = [f"{base64.b64encode(key).decode()}  # {id_of(key)}\n" for key in keys]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask
        os.write(descriptor, (_HEAD + "".join(lines)).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- of a KMS -------------------------------------------------------------------------------------


class Kms:
    """Master keys that never leave where they are: `wrap` and `unwrap` of the caller's.

    One that takes longer than `limits.KMS_SECONDS` is away: a run must not hang with it. It is asked
    in a thread, which is left to itself then, in the caller's context.
    """

    def __init__(
        self, wrap: Callable[[bytes], bytes], unwrap: Callable[[bytes], bytes], of: object
    ) -> None:
        self._wrap = wrap
        self._unwrap = unwrap
        self._of = of
        self._away_until = 0.0

    def __repr__(self) -> str:
        return f"Kms({type(self._of).__name__})"

    @property
    def _id(self) -> str:
        given = getattr(self._of, "key_id", "")
        return given if isinstance(given, str) and given else "kms"

    def wrap(self, key: bytes) -> tuple[str, bytes]:
        return self._id, self._asked("wrap", self._wrap, key)

    def unwrap(self, by: str, wrapped: bytes) -> bytes:
        key = self._asked("unwrap", self._unwrap, wrapped)
        if len(key) != KEY_BYTES:
            raise SettingsError(
                f"keys=: unwrap() gave {len(key)} bytes, and not the key it was given"
            )
        return key

    def is_current(self, by: str) -> bool:
        # What it names its key by tells; one without names is asked to wrap everything anew.
        return self._id != "kms" and by == self._id

    def seed(self, name: bytes) -> bytes | None:
        return None

    def _asked(self, name: str, does: Callable[[bytes], bytes], given: bytes) -> bytes:
        if time.monotonic() < self._away_until:
            raise StoreUnavailable(
                "the KMS of keys= took too long a moment ago, and is not asked again yet",
                reason="unreachable",
            )
        answer, error = self._in_time(name, partial(does, given))
        if isinstance(error, CallslipError):
            raise error
        if error is not None:
            # Its message may hold anything: the class alone is told.
            raise StoreUnavailable(
                f"the KMS of keys= did not {name}: {type(error).__name__}", reason="unreachable"
            ) from error
        if not isinstance(answer, bytes | bytearray | memoryview):
            raise SettingsError(f"keys=: {name}() gave a {type(answer).__name__}; give bytes")
        return bytes(answer)

    def _in_time(
        self, name: str, does: Callable[[], object]
    ) -> tuple[object, BaseException | None]:
        got: list[tuple[object, BaseException | None]] = []

        def ask() -> None:
            try:
                got.append((does(), None))
            except BaseException as error:  # noqa: BLE001 - told by who waits, whatever it is
                got.append((None, error))

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(ask,), daemon=True, name="callslip-kms")
        thread.start()
        thread.join(limits.KMS_SECONDS)
        if got:
            return got[0]
        self._away_until = time.monotonic() + limits.KMS_PAUSE_SECONDS
        raise StoreUnavailable(
            f"the KMS of keys= did not {name} within {limits.KMS_SECONDS:g} seconds",
            reason="unreachable",
        )
